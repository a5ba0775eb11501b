"""Filing what a window of a folder brought: one transaction for the mails, their envelopes and the cursor.

The cursor moves only here, with everything below it filed or refused, so that a crash repeats a window and
never skips one.  Repeating is harmless, since a mail is known again (``recognise``).  What the gateway deals
with by itself, a command or an answer that no session gets, is journaled first, and then flagged.  A
stranger's mail leaves no row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import assert_never

from attrs import Factory, define, evolve, field, frozen

from mailgateway.domain.envelope import Envelope, Source
from mailgateway.domain.judge import Judged, Waits
from mailgateway.flows.answering import Consumed, answer_by_mail
from mailgateway.flows.answering import Filed as Answering
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.bounces import mark
from mailgateway.flows.commands import obey
from mailgateway.flows.fates import (
    ANSWER,
    COMMAND,
    DELIVERED,
    LATE,
    RECEIVED,
    reason_of,
    reason_of_trouble,
    step_of,
)
from mailgateway.flows.filing import (
    Commanded,
    Deliver,
    FilingRules,
    Mail,
    Turned,
    sender_and_subject,
)
from mailgateway.flows.folders import advance, renumbering, space
from mailgateway.flows.held import HELD, hold, make_room, row_of
from mailgateway.flows.leases import check_folder
from mailgateway.flows.notify_person import tell_trouble
from mailgateway.flows.recognise import Recognised
from mailgateway.flows.sort import sort
from mailgateway.flows.troubles import PersonsMail, Trouble
from mailgateway.flows.waiting import commit
from mailgateway.ids import AccountName, EnvelopeId, InstanceId, OutboxId, RouteId, SessionId
from mailgateway.mail.verdict import Verdict
from mailgateway.store import attachments, cursors, envelopes, fates, flagging, held, journal, outbox
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
    known: Recognised
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
        places = [
            (Source(window.account, window.folder, numbering, mail.uid), mail.raw_sha256) for mail in mails
        ]
        return cls(tx, rules, window, cursor, numbering, Recognised.look(tx, numbering, places))

    def file(self, mail: Examined) -> None:
        """File, rebind, or refuse one mail."""
        if mail.uid in self.known.uids:
            return
        place = Source(self.window.account, self.window.folder, self.numbering, mail.uid)
        match self.known.again(place, mail.raw_sha256):
            case None:
                pass
            case Filed() as before if self.known.renumbered(before, place):
                self.known.rebind(before, place)
                return
            case Filed() as before:
                if mail.held:
                    self._let_go(row_of(self.tx, place, mail.raw_sha256))
                self._duplicate(mail, before.envelope_id)
                return
        if self._waits(mail, place):
            return
        known_as = self.known.id_of(place, mail.raw_sha256)
        found = sort(self.tx, self.rules, Mail(known_as, place, mail.received_at, mail.judged))
        if not isinstance(found, Commanded) and found.reported is not None:
            self.events += mark(self.tx, found.reported)
        match found:
            case Turned():
                self._turn(mail, found, reply=self._tell_turned(mail, place, found))
            case Deliver(said=said) | Commanded(said=said) if (
                earlier := self.known.said_before(said)
            ) is not None:
                self._duplicate(mail, earlier)
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

    def _duplicate(self, mail: Examined, of: EnvelopeId) -> None:
        self._turn(mail, Turned(Verdict.DUPLICATE, True, *sender_and_subject(mail.judged, self.rules)), of)

    def _tell_turned(self, mail: Examined, place: Source, turned: Turned) -> OutboxId | None:
        """Tell an authenticated person why their mail could not be used; once, however often it is read."""
        if turned.mail is None or turned.trouble is None:
            return None
        self.known.add(place, mail.raw_sha256, self.known.id_of(place, mail.raw_sha256), "")
        return self._tell(turned.mail, turned.trouble)

    def _tell(self, mail: PersonsMail | None, trouble: Trouble | None) -> OutboxId | None:
        if self.rules.writer is None or mail is None or trouble is None:
            return None
        reply = tell_trouble(self.tx, self.rules.writer, mail, trouble)
        if reply is not None:
            self.events.append(Event(EventKind.OUTBOX, reply))
        return reply

    def _obey(self, mail: Examined, place: Source, found: Commanded) -> None:
        """Do what a person has asked of the gateway itself."""
        done = obey(self.tx, self.rules.writer, found.machine, found.mail, found.command)
        if done.reply is not None:
            self.events.append(Event(EventKind.OUTBOX, done.reply))
        fate = self._fate(mail, found.mail.address, found.mail.subject, COMMAND)
        fate = evolve(fate, reason=f"/{found.command}", reply_id=done.reply)
        route = None if found.mail.route is None else found.mail.route.id
        self._consume(mail, place, found.said, found.session, route, done.events, fate)

    def _consume(
        self,
        mail: Examined,
        place: Source,
        said: str,
        session: SessionId,
        route: RouteId | None,
        events: Sequence[Event],
        fate: Fate,
    ) -> None:
        r"""Deal with a mail that no session gets: journaled first, then ``\Seen``."""
        known_as = self.known.id_of(place, mail.raw_sha256)
        self.known.add(place, mail.raw_sha256, known_as, said)
        journal.add(self.tx, known_as, session, InstanceId(""))
        flagging.ask(self.tx, place)
        self.events += [*events, Event(EventKind.FLAGGING, known_as)]
        if route:
            self.answered[route] = session
        fates.add(self.tx, evolve(fate, step=fates.ACKED))

    def _deliver(self, mail: Examined, place: Source, found: Deliver) -> None:
        """File an envelope, unless the gateway itself deals with the answer that it is."""
        envelope, trouble = found.envelope, found.trouble
        if found.asked is not None:
            match answer_by_mail(self.tx, envelope, found.asked):
                case Consumed() as consumed:
                    self._consume_answer(mail, place, found, consumed)
                    return
                case Answering(envelope=envelope, events=events, trouble=trouble):
                    self.events += events
                case other:
                    assert_never(other)
        envelopes.add(self.tx, envelope, len(self.filed))
        attachments.add(self.tx, envelope.id, found.parts)
        self.known.add(place, mail.raw_sha256, envelope.id, found.said)
        self.filed.append(envelope.id)
        self.events.append(Event(EventKind.DELIVERY, envelope.id, envelope.session_id))
        if found.verdict is None and envelope.route_id:
            self.answered[envelope.route_id] = envelope.session_id
        reply = self._tell(found.mail, trouble)
        sender, subject = sender_and_subject(mail.judged, self.rules)
        fate = self._fate(mail, sender, subject, found.verdict or DELIVERED)
        reason = found.note if found.verdict is None else reason_of(found.verdict)
        if trouble is not None and found.verdict is None:
            reason = reason_of_trouble(trouble)
        fate = evolve(fate, step=DELIVERED, reason=reason, envelope_id=envelope.id, reply_id=reply)
        fates.add(self.tx, fate)

    def _consume_answer(self, mail: Examined, place: Source, found: Deliver, consumed: Consumed) -> None:
        """Keep an answer from the session: it reads what it was told of, or the answer came too late."""
        sender, subject = sender_and_subject(mail.judged, self.rules)
        fate = self._fate(mail, sender, subject, ANSWER if consumed.answered else LATE)
        reply = self._tell(found.mail, consumed.trouble)
        reason = "" if consumed.trouble is None else reason_of_trouble(consumed.trouble)
        fate = evolve(fate, reason=reason, reply_id=reply)
        session, route = found.envelope.session_id, found.envelope.route_id
        self._consume(mail, place, found.said, session, route, consumed.events, fate)

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

    def _may_notice(self, envelope: Envelope) -> bool:
        """Notices come from mails that nobody vouches for, so a session holds a few at most."""
        return envelopes.count_notices(self.tx, envelope.session_id) < NOTICES
