"""Filing what a window of a folder brought: one transaction for the mails, their envelopes and the cursor.

The cursor moves only here, with everything below it filed or refused, so that a crash repeats a window and
never skips one.  Repeating is harmless: a mail is known by its place, and where the server has numbered the
folder anew, by the digest of its bytes; then its envelope keeps its id, claim and journal and only learns the
new place.  A person's mail that somebody sends again, with another header around the same words, is known by
who said what when.  A stranger's mail leaves no row.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import assert_never

from attrs import Factory, define, evolve, field, frozen

from mailgateway.domain.envelope import Envelope, Source
from mailgateway.domain.judge import Judged, Waits
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.bounces import mark
from mailgateway.flows.commands import obey
from mailgateway.flows.fates import COMMAND, DELIVERED, RECEIVED, reason_of, step_of
from mailgateway.flows.folders import advance, renumbering, space
from mailgateway.flows.held import HELD, hold, make_room, row_of
from mailgateway.flows.leases import check_folder
from mailgateway.flows.notify_person import tell_trouble
from mailgateway.flows.resolve import answer_by_mail
from mailgateway.flows.sort import Commanded, Deliver, FilingRules, Mail, Turned, sender_and_subject, sort
from mailgateway.flows.waiting import commit
from mailgateway.ids import (
    AccountName,
    EnvelopeId,
    InstanceId,
    OutboxId,
    RouteId,
    SessionId,
    envelope_id_of_mail,
)
from mailgateway.mail.verdict import Verdict
from mailgateway.store import attachments, cursors, envelopes, fates, flagging, held, journal, outbox, sources
from mailgateway.store.cursors import Cursor
from mailgateway.store.database import Database, Tx
from mailgateway.store.fates import Fate
from mailgateway.store.held import Held
from mailgateway.store.sources import Filed

NOTICES = 20
"""Open notices from mails that one session holds at most."""


@frozen
class Examined:
    """One candidate of a scan, judged by its bytes; ``received_at`` is its INTERNALDATE, ``size`` in octets.

    ``raw_sha256`` is the hex digest of the bytes by which the mail is known again; ``""`` knows nothing.
    """

    uid: int
    received_at: datetime
    size: int
    raw_sha256: str
    judged: Judged = field(repr=False)
    held: bool = False
    """It was held until now."""


@frozen
class Window:
    """Which part of which folder was examined: everything up to UID ``through``.

    ``fence`` is that of the folder's lease, ``None`` where there is none.  In the numbering of the cursor
    the cursor comes to stand at ``through``; in a new one it stays until ``folders.finish_renumbering``.
    """

    account: AccountName
    folder: str
    uid_validity: int
    through: int
    fence: int | None


@frozen
class Received:
    """What became of a window: envelopes filed for sessions, and the others by verdict."""

    routed: int = 0
    refused: Mapping[str, int] = Factory(dict)
    envelopes: tuple[EnvelopeId, ...] = ()
    held: int = 0
    """Mails that are to be tried again."""


async def receive(
    database: Database,
    bell: Bell,
    rules: FilingRules,
    window: Window,
    mails: Sequence[Examined],
) -> Received:
    """File the mails of one window and move the cursor, in one transaction, also when there are none.

    Raises ``StaleWrite`` when the folder's lease was taken by another machine; then nothing was filed.
    """

    def work(tx: Tx) -> tuple[Received, tuple[Event, ...]]:
        filing = _Filing.begin(tx, rules, window, mails)
        for mail in sorted(mails, key=lambda each: each.uid):
            filing.file(mail)
        return filing.finish()

    return await commit(database, bell, work)


@define(eq=False)
class _Filing:
    """One transaction's work on a window."""

    tx: Tx
    rules: FilingRules
    window: Window
    cursor: Cursor | None
    numbering: int
    known: set[int]
    """UIDs of this window that were filed before."""
    digests: dict[str, list[Filed]]
    """Known mails with the bytes of mails of this window."""
    taken: set[EnvelopeId]
    """The ids that mails of this window would get and another mail has."""
    filed: list[EnvelopeId] = field(factory=list)
    routed: int = 0
    refused: Counter[str] = field(factory=Counter)
    waiting: set[Source] = field(factory=set)
    answered: dict[RouteId, SessionId] = field(factory=dict)
    """The routes by which replies have come, and their sessions."""
    events: list[Event] = field(factory=list)

    @classmethod
    def begin(cls, tx: Tx, rules: FilingRules, window: Window, mails: Sequence[Examined]) -> "_Filing":
        """Check that the folder is still ours, and look up what is known of these mails."""
        check_folder(tx, window.account, window.folder, window.fence)
        cursor = cursors.find(tx, window.account, window.folder)
        numbering = space(cursor, window.uid_validity)
        places = [Source(window.account, window.folder, numbering, mail.uid) for mail in mails]
        known = sources.known(tx, [(at, mail.raw_sha256) for at, mail in zip(places, mails, strict=True)])
        return cls(
            tx,
            rules,
            window,
            cursor,
            numbering,
            known.uids,
            known.copies,
            envelopes.taken(tx, [_usual_id(place) for place in places]),
        )

    def file(self, mail: Examined) -> None:
        """File, rebind, or refuse one mail."""
        if mail.uid in self.known:
            return
        place = Source(self.window.account, self.window.folder, self.numbering, mail.uid)
        match self._known_again(mail):
            case None:
                pass
            case Filed() as before if self._renumbered(before):
                self._rebind(before, place)
                return
            case Filed() as before:
                if mail.held:
                    self._let_go(row_of(self.tx, place, mail.raw_sha256))
                sender, subject = sender_and_subject(mail.judged, self.rules)
                self._turn(mail, Turned(Verdict.DUPLICATE, True, sender, subject), before.envelope_id)
                return
        if self._waits(mail, place):
            return
        found = sort(self.tx, self.rules, Mail(self._id(mail, place), place, mail.received_at, mail.judged))
        if not isinstance(found, Commanded) and found.reported is not None:
            self.events += mark(self.tx, found.reported)
        match found:
            case Turned():
                self._turn(mail, found, reply=self._tell(mail, place, found))
            case Deliver(said=said) | Commanded(said=said) if (
                earlier := self._said_before(said)
            ) is not None:
                sender, subject = sender_and_subject(mail.judged, self.rules)
                self._turn(mail, Turned(Verdict.DUPLICATE, True, sender, subject), earlier)
            case Commanded():
                self.routed += 1
                self._obey(mail, place, found)
            case Deliver():
                if found.verdict is None:
                    self.routed += 1
                else:
                    self.refused[found.verdict] += 1
                if found.verdict is None or self._may_notice(found.envelope):
                    self._deliver(mail, place, found)
            case _:
                assert_never(found)

    def finish(self) -> tuple[Received, tuple[Event, ...]]:
        """Settle what was answered, and move the cursor, unless the folder is read under new numbers."""
        # whatever became of the mails that are answered: they have arrived, and must not be sent again
        for sent, route in outbox.arrived(self.tx, *self.answered):
            self.events.append(Event(EventKind.OUTBOX, sent, self.answered[route]))
        if not renumbering(self.cursor, self.numbering):
            to = Cursor(self.numbering, self.window.through)
            advance(self.tx, self.window.account, self.window.folder, self.cursor, to)
        received = Received(self.routed, dict(self.refused), tuple(self.filed), len(self.waiting))
        return received, tuple(self.events)

    # --- mail that waits for evidence -----------------------------------------------------------------

    def _waits(self, mail: Examined, place: Source) -> bool:
        """Hold a mail whose evidence may come yet; one that was held, and is not any more, is let go."""
        judged = mail.judged
        if not (isinstance(judged, Waits) or mail.held or renumbering(self.cursor, self.numbering)):
            return False
        before = row_of(self.tx, place, mail.raw_sha256)
        row = (
            hold(self.tx, before, place, mail.raw_sha256, mail.received_at, judged.awaits)
            if isinstance(judged, Waits)
            else None
        )
        if row is None or not isinstance(judged, Waits):
            self._let_go(before)
            return False
        if before is None:
            self._make_room()
        elif row.place != before.place:
            held.drop(self.tx, [before.place])
        if row.fate_id is None:
            sender, subject = sender_and_subject(judged, self.rules)
            fate = evolve(self._fate(mail, sender, subject, HELD), reason=judged.reason)
            row = evolve(row, fate_id=fates.add(self.tx, fate))
        held.keep(self.tx, row)
        self.waiting.add(place)
        return True

    def _make_room(self) -> None:
        """Refuse what has waited longest in a folder where too many wait."""
        if (given_up := make_room(self.tx, self.window.account, self.window.folder)) is not None:
            self.refused[given_up.verdict] += 1
            self.waiting.discard(given_up.place)

    def _let_go(self, row: Held | None) -> None:
        """Hold a mail no more; what was told of its waiting is taken back."""
        if row is not None:
            held.drop(self.tx, [row.place])
            if row.fate_id is not None:
                fates.remove(self.tx, row.fate_id)

    # --- known mails ----------------------------------------------------------------------------------

    def _known_again(self, mail: Examined) -> Filed | None:
        """The mail with these bytes that was filed before, first one that was numbered otherwise."""
        found = [
            before
            for before in self.digests.get(mail.raw_sha256, ())
            if envelopes.dropped_reason(self.tx, before.envelope_id) != envelopes.RENUMBERED
        ]
        # what still has its place in this numbering is the mail itself, and this one its copy
        here = [before for before in found if not self._renumbered(before)]
        return next(iter(here or found), None)

    def _said_before(self, said: str) -> EnvelopeId | None:
        """The envelope of a mail that said the same, unless that was lost with its numbers."""
        return next(
            (
                each
                for each in (sources.saying(self.tx, said) if said else ())
                if envelopes.dropped_reason(self.tx, each) != envelopes.RENUMBERED
            ),
            None,
        )

    def _renumbered(self, before: Filed) -> bool:
        place = before.place
        return (place.account, place.folder) == (self.window.account, self.window.folder) and (
            place.uid_validity != self.numbering
        )

    def _rebind(self, before: Filed, place: Source) -> None:
        sources.rebind(self.tx, before, place)
        envelopes.rebind(self.tx, before.envelope_id, place)
        flagging.rebind(self.tx, before.place, place)
        self._remember(before, evolve(before, place=place))

    def _remember(self, before: Filed | None, now: Filed) -> None:
        entries = self.digests.setdefault(now.raw_sha256, [])
        if before is not None:
            entries.remove(before)
        if now.raw_sha256:
            entries.append(now)

    def _id(self, mail: Examined, place: Source) -> EnvelopeId:
        """The id by the place; another one where reused numbers gave that id to another mail before."""
        found = _usual_id(place)
        if found not in self.taken:
            return found
        while envelopes.taken(self.tx, [found]):
            again = hashlib.sha256(f"{found}\0{mail.raw_sha256}".encode()).hexdigest()
            found = EnvelopeId(f"m-{again[:24]}")
        return found

    # --- writing --------------------------------------------------------------------------------------

    def _turn(
        self,
        mail: Examined,
        turned: Turned,
        envelope_id: EnvelopeId | None = None,
        reply: OutboxId | None = None,
    ) -> None:
        self.refused[turned.verdict] += 1
        if not (turned.concerns or mail.held):  # of a held mail it was told that it waits
            return
        fate = self._fate(mail, turned.from_address, turned.subject, turned.verdict)
        fate = evolve(
            fate,
            step=step_of(turned.verdict, turned.trouble),
            reason=turned.reason or reason_of(turned.verdict),
            envelope_id=envelope_id,
            reply_id=reply,
        )
        # a folder that is read again under new numbers brings the same refusals again
        if not (renumbering(self.cursor, self.numbering) and fates.told(self.tx, fate)):
            fates.add(self.tx, fate)

    def _tell(self, mail: Examined, place: Source, turned: Turned) -> OutboxId | None:
        """Tell an authenticated person why their mail could not be used; once, however often it is read."""
        if turned.mail is None or turned.trouble is None:
            return None
        self._know(place, mail, self._id(mail, place), "")
        if self.rules.writer is None:
            return None
        reply = tell_trouble(self.tx, self.rules.writer, turned.mail, turned.trouble)
        if reply is not None:
            self.events.append(Event(EventKind.OUTBOX, reply))
        return reply

    def _obey(self, mail: Examined, place: Source, found: Commanded) -> None:
        r"""Do what a person has asked of the gateway itself: journaled first, then ``\Seen``."""
        known_as = self._id(mail, place)
        done = obey(self.tx, self.rules.writer, found.machine, found.mail, found.command)
        self._know(place, mail, known_as, found.said)
        journal.add(self.tx, known_as, found.session, InstanceId(""))
        flagging.ask(self.tx, place)
        self.events += [*done.events, Event(EventKind.FLAGGING, known_as)]
        if done.reply is not None:
            self.events.append(Event(EventKind.OUTBOX, done.reply))
        if found.mail.route is not None and found.mail.route.id:
            self.answered[found.mail.route.id] = found.session
        fate = self._fate(mail, found.mail.address, found.mail.subject, COMMAND)
        fates.add(self.tx, evolve(fate, step=fates.ACKED, reason=f"/{found.command}", reply_id=done.reply))

    def _know(self, place: Source, mail: Examined, envelope_id: EnvelopeId, said: str) -> None:
        """Remember the mail, so that it is dealt with once."""
        filed = Filed(place, mail.raw_sha256, envelope_id)
        sources.add(self.tx, filed, said)
        self._remember(None, filed)
        self.known.add(mail.uid)

    def _fate(self, mail: Examined, sender: str, subject: str, verdict: str) -> Fate:
        """What is told of a mail, as one that was only received."""
        return Fate(
            account=self.window.account,
            at=self.tx.now,
            received_at=mail.received_at,
            from_address=sender,
            subject=subject,
            verdict=verdict,
            step=RECEIVED,
            envelope_id=None,
        )

    def _deliver(self, mail: Examined, place: Source, found: Deliver) -> None:
        envelope = found.envelope
        if found.asked is not None:
            envelope, won = answer_by_mail(self.tx, envelope, found.asked.question_id, found.asked.revision)
            if won:
                self.events.append(Event(EventKind.QUESTION, envelope.question_id or "", envelope.session_id))
        envelopes.add(self.tx, envelope, len(self.filed))
        attachments.add(self.tx, envelope.id, found.parts)
        self._know(place, mail, envelope.id, found.said)
        self.filed.append(envelope.id)
        self.events.append(Event(EventKind.DELIVERY, envelope.id, envelope.session_id))
        if found.verdict is None and envelope.route_id:
            self.answered[envelope.route_id] = envelope.session_id
        sender, subject = sender_and_subject(mail.judged, self.rules)
        fate = self._fate(mail, sender, subject, found.verdict or DELIVERED)
        reason = found.note if found.verdict is None else reason_of(found.verdict)
        fates.add(self.tx, evolve(fate, step=DELIVERED, reason=reason, envelope_id=envelope.id))

    def _may_notice(self, envelope: Envelope) -> bool:
        """Notices come from mails that nobody vouches for, so a session holds a few at most."""
        return envelopes.count_notices(self.tx, envelope.session_id) < NOTICES


def _usual_id(place: Source) -> EnvelopeId:
    return envelope_id_of_mail(place.account, place.folder, place.uid_validity, place.uid)
