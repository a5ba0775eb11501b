"""Scanning a folder: from a mailbox in memory to filed envelopes, with the mischief that servers make."""

from datetime import timedelta
from email.message import EmailMessage
from typing import TypeVar

from attrs import define, evolve
from sqlalchemy import select
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from zope.interface import implementer

from mailgateway.domain.envelope import Envelope
from mailgateway.errors import (
    CommandRefused,
    Fault,
    LoginUnavailable,
    PeerError,
    ProtocolViolation,
    Throttled,
    Unreachable,
)
from mailgateway.flows import deliver, folders, scan
from mailgateway.flows.deliver import Claimant, Target
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.patience import NARROWER, PATIENCE, WINDOW
from mailgateway.flows.ports import Database
from mailgateway.flows.scan import FEW, Scanned, Scanner, ScanRules
from mailgateway.mail.own import Own
from mailgateway.store.database import Tx, Work
from mailgateway.store.tables import envelope
from tests.fakes.database import ImmediateDatabase
from tests.fakes.mailbox import FakeMailbox
from tests.flows.outbound import I1, IDENTITY, S1, OutboundTestCase

T = TypeVar("T")

GUILTY = "guilty secret"
PERSON = "robin@example.org"
RESULTS = "mx.example.net; dkim=pass header.d=example.org; dmarc=pass header.from=example.org"
OWN = Own(addresses=["agent@example.org"], allowed=[PERSON], trusted_authserv_ids=["mx.example.net"])


def mail(words: str, subject: str, sender: str = PERSON) -> bytes:
    """A mail as the receiving server hands it over."""
    message = EmailMessage()
    message["Authentication-Results"] = RESULTS
    message["From"] = sender
    message["To"] = "agent@example.org"
    message["Subject"] = subject
    message["Message-ID"] = f"<{words.replace(' ', '.')}@mail.example.org>"
    message.set_content(words)
    return message.as_bytes().replace(b"\n", b"\r\n")


@define(eq=False)
class StumblingDatabase(ImmediateDatabase):
    """A database under a program with a defect: what it is given to store, it cannot encode."""

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, unless it leaves a guilty envelope behind."""

        def falling(tx: Tx) -> T:
            result = work(tx)
            if tx.execute(select(envelope.c.id).where(envelope.c.body == GUILTY)).first():
                raise UnicodeEncodeError("utf-8", GUILTY, 0, 1, "surrogates not allowed")
            return result

        return ImmediateDatabase.run(self, falling)


class ScanTestCase(OutboundTestCase):
    """A session with a question out, and the folder that its answers come to."""

    def setUp(self) -> None:
        super().setUp()
        self.ping()
        sent = self.now(self.submitting())
        self.subject = f"Re: {sent.subject}"
        self.mailbox = FakeMailbox()
        self.scanner = self.make_scanner(self.gateway.database)
        self.clock = Clock()

    def make_scanner(self, database: Database) -> Scanner:
        """A scanner that judges at once."""
        rules = ScanRules(FilingRules(IDENTITY, OWN, "k" * 64), timedelta(hours=168))
        return Scanner(database, self.gateway.bell, rules, lambda judging: succeed(judging()))

    def scan(self) -> Scanned:
        """One scan, to its end."""
        return self.now(self.scanner.scan(self.mailbox, None))

    def answer(self, words: str) -> int:
        """A person answers; the UID."""
        return self.mailbox.deliver(mail(words, self.subject))

    def stranger(self) -> int:
        """Somebody else writes; the UID."""
        return self.mailbox.deliver(mail("buy this", "Offer", "eve@evil.example"))

    def pending(self) -> tuple[Envelope, ...]:
        """What waits for the session."""
        gateway = self.gateway
        return self.now(deliver.pending(gateway.database, gateway.identity, session=S1, kind=None))

    def words(self) -> list[str]:
        """The words that wait for the session, oldest first."""
        return [envelope.body for envelope in self.pending()]

    def take(self, envelope: Envelope) -> None:
        """Claim and ack."""
        gateway = self.gateway
        who = (Target(id=envelope.id), Claimant(I1, IDENTITY.machine_id))
        self.now(deliver.claim(gateway.database, gateway.bell, gateway.identity, *who))
        self.now(deliver.ack(gateway.database, gateway.bell, gateway.identity, *who))

    def cursor(self) -> tuple[int, int] | None:
        """Where reading goes on."""
        return self.now(folders.cursor(self.gateway.database, self.mailbox.account, self.mailbox.folder))


class ForwardTests(ScanTestCase):
    """Reading on from the cursor."""

    def test_answers_leave_before_the_scan_goes_on(self) -> None:
        """Whoever waits has heard of the mail by then; what files nothing for a session stops nowhere."""
        self.scan()
        heard: list[str] = []
        self.gateway.bell.subscribe(lambda numbered: heard.append(numbered.event.kind))

        async def breathe() -> None:
            heard.append("breathes")

        self.scanner.breathe = breathe
        self.stranger()
        self.scan()
        self.assertEqual(heard, [])
        self.answer("SQLite")
        self.scan()
        self.assertEqual(heard[:2], ["delivery", "breathes"])

    def test_the_first_look_begins_with_what_comes_from_now_on(self) -> None:
        """Old mail is neither read nor filed, however much there is."""
        for _ in range(20):
            self.answer("from before")
        told: list[str] = []

        @implementer(ILogObserver)
        def hear(event: LogEvent) -> None:
            told.append(formatEvent(event))

        globalLogPublisher.addObserver(hear)
        self.addCleanup(globalLogPublisher.removeObserver, hear)
        self.assertEqual(self.scan(), Scanned(0, 0, {}))
        self.assertEqual(self.mailbox.fetches, [])
        self.assertEqual(self.cursor(), (7, 20))
        self.assertTrue(any("mail up to UID 20 is left alone" in line for line in told), told)

    def test_an_answer_is_filed_and_the_cursor_moves(self) -> None:
        """The main walk."""
        self.scan()
        uid = self.answer("take sqlite")
        scanned = self.scan()
        self.assertEqual((scanned.examined, scanned.routed), (1, 1))
        self.assertEqual(self.words(), ["take sqlite"])
        self.assertEqual(self.cursor(), (7, uid))

    def test_a_few_new_mails_come_in_one_command(self) -> None:
        """Their texts come along, so nothing is asked for twice."""
        self.scan()
        self.answer("one")
        self.answer("two")
        self.scan()
        self.assertEqual(len(self.mailbox.fetches), 1)
        self.assertEqual(self.mailbox.texts, [])
        self.assertEqual(self.words(), ["one", "two"])

    def test_texts_of_strangers_are_never_asked_for(self) -> None:
        """Of unrelated mail only header fields are read, and it is counted, not stored."""
        self.scan()
        for _ in range(FEW + 10):
            self.stranger()
        uid = self.answer("among them")
        scanned = self.scan()
        self.assertEqual(scanned.refused, {"not-allowed": FEW + 10})
        self.assertEqual(self.mailbox.texts, [uid])
        self.assertEqual(self.words(), ["among them"])

    def test_a_backlog_is_read_in_windows(self) -> None:
        """No command asks for more than a window of a mailbox whose size is known."""
        self.scan()
        first = self.mailbox.next_uid
        for _ in range(WINDOW + 20):
            self.stranger()
        self.answer("last of all")
        self.scan()
        self.assertEqual(self.mailbox.fetches[0], (first, first + WINDOW - 1, 0))
        self.assertEqual(self.mailbox.fetches[1][:2], (first + WINDOW, None))
        self.assertEqual(self.words(), ["last of all"])

    def test_an_empty_scan_writes_nothing(self) -> None:
        """Idle mailboxes cost no commit."""
        self.scan()
        before = self.cursor()
        self.assertEqual(self.scan(), Scanned(0, 0, {}))
        self.assertEqual(self.cursor(), before)

    def test_another_connection_reads_on_where_the_table_says(self) -> None:
        """What a connection remembers of its own scans ends with it."""
        self.scan()
        self.answer("one")
        self.scan()
        self.mailbox = evolve(self.mailbox)
        self.answer("two")
        self.scan()
        self.assertEqual(self.words(), ["one", "two"])
        self.assertEqual(self.mailbox.fetches[-1][0], 2)

    def test_a_lost_connection_moves_the_cursor_over_nothing_that_was_not_filed(self) -> None:
        """The next scan finds everything, once."""
        self.scan()
        self.answer("one")
        self.answer("two")
        before = self.cursor()
        self.mailbox.lost_after = 1
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), Unreachable)
        self.assertEqual(self.cursor(), before)
        self.mailbox.lost_after = None
        self.scan()
        self.assertEqual(self.words(), ["one", "two"])

    def test_a_server_that_tells_wrong_sizes(self) -> None:
        """What was judged and is not filed yet is bounded by what came, and not by what was told."""
        self.patch(scan, "BATCH", 1)
        self.scan()
        uids = []
        for words in ("one", "two", "three"):
            uids.append(self.answer(words))
            self.stranger()  # so that each text is asked for by itself
        self.mailbox.unscanned = 0
        self.mailbox.told_size = 0
        self.mailbox.poisoned_texts.add(uids[2])
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), ProtocolViolation)
        self.assertEqual((self.cursor(), len(self.words())), ((7, uids[1]), 2))

    def test_a_text_that_does_not_come_stops_the_scan_in_front_of_it(self) -> None:
        """Some servers answer OK without a text; the mail must not be passed over."""
        self.scan()
        self.answer("one")
        stuck = self.answer("two")
        self.answer("three")
        self.mailbox.withheld = {stuck}
        self.assertEqual(self.scan().stopped_at, stuck)
        self.assertEqual(self.words(), ["one"])
        self.mailbox.withheld = set()
        self.assertIsNone(self.scan().stopped_at)
        self.assertEqual(self.words(), ["one", "two", "three"])

    def test_a_text_that_never_comes_is_given_up_visibly(self) -> None:
        """One poisoned mail does not keep the ones behind it for ever."""
        self.scan()
        stuck = self.answer("poison")
        self.answer("behind it")
        self.mailbox.withheld = {stuck}
        refused = [self.scan().refused for _ in range(PATIENCE)]
        self.assertEqual(refused[-1], {"malformed": 1})
        self.assertEqual(self.words(), ["behind it"])

    def test_a_mail_that_vanished_meanwhile_is_passed_over(self) -> None:
        """Another client expunged it between its header and its text."""
        self.scan()
        for _ in range(FEW + 1):
            self.stranger()
        gone = self.answer("gone")
        self.answer("still here")
        self.mailbox.vanishing = {gone}
        self.scan()
        self.assertEqual(self.words(), ["still here"])


class PoisonTests(ScanTestCase):
    """A mail that breaks the connection, every time."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()
        for _ in range(40):
            self.stranger()
        self.answer("before it")
        self.poison = self.answer("poison")
        self.answer("behind it")

    def reconnect_until_whole(self, most: int) -> int:
        """Scan on fresh connections until a scan comes to its end; how many broke."""
        poison = type(self.mailbox.poison)
        for broken in range(most):
            self.mailbox = evolve(self.mailbox)
            scanning = Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None))
            if isinstance(scanning.result, Scanned):
                self.successResultOf(scanning)
                return broken
            self.failureResultOf(scanning, poison)
        raise self.failureException(f"still broken after {most} connections")

    def test_header_fields_that_break_the_connection(self) -> None:
        """Fewer mails are asked for until the guilty one is alone; then it is given up, and only it."""
        self.mailbox.poisoned_headers = {self.poison}
        self.assertEqual(self.reconnect_until_whole(9), len(NARROWER) - 1 + PATIENCE)
        self.assertEqual(self.words(), ["before it", "behind it"])

    def test_a_text_that_breaks_the_connection(self) -> None:
        """After a few connections the mail is given up without asking for its text again.

        The first of them broke when the texts were asked for together.
        """
        self.mailbox.poisoned_texts = {self.poison}
        self.assertEqual(self.reconnect_until_whole(PATIENCE + 2), 1 + PATIENCE)
        self.assertEqual(self.words(), ["before it", "behind it"])
        self.assertEqual(self.mailbox.texts.count(self.poison), PATIENCE)

    def test_a_mail_that_is_always_refused_for_now_or_closes_the_connection(self) -> None:
        """It is given up late, and alone."""
        for poison in (CommandRefused("NO", code="SERVERBUG"), Unreachable("closed")):
            self.setUp()
            self.mailbox.poisoned_headers = {self.poison}
            self.mailbox.poison = poison
            self.assertGreater(self.reconnect_until_whole(20), 10)
            self.assertEqual(self.words(), ["before it", "behind it"])


class OutageTests(ScanTestCase):
    """A server that gives nothing for a while, whichever mail is asked for."""

    def endure(self, outage: PeerError, times: int) -> None:
        """Scan in vain so many times, then once more when it is over."""
        self.scan()
        self.answer("one")
        self.answer("two")
        self.mailbox.outage = outage
        for _ in range(times):
            self.mailbox = evolve(self.mailbox)
            self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), type(outage))
        self.mailbox.outage = None
        self.scan()
        self.assertEqual(self.words(), ["one", "two"])

    def test_throttling_speaks_against_no_mail(self) -> None:
        """However long it lasts."""
        self.endure(Throttled("BAD Request is throttled", retry_after=92.4), 100)

    def test_a_dead_session_speaks_against_no_mail(self) -> None:
        """Nor does a server that has lost its store."""
        self.endure(LoginUnavailable("BAD User is authenticated but not connected"), 100)

    def test_a_refusal_for_now_is_endured_for_long(self) -> None:
        """Some servers use these codes for a poisoned mail, so it is not endured for ever."""
        for code in ("TEMPFAIL", "UNAVAILABLE", "INUSE", "SERVERBUG", "OVERQUOTA"):
            self.setUp()
            self.endure(CommandRefused("NO", code=code), 10)

    def test_lost_connections_are_endured_for_long(self) -> None:
        """A network that fails in each scan for ten minutes takes no mail away."""
        self.endure(Unreachable("reset"), 10)


class DefectTests(ScanTestCase):
    """A mail that hits a defect of ours holds nobody up."""

    def test_one_mail_that_cannot_be_filed_is_refused_and_the_others_are_filed(self) -> None:
        """Together they fail, apart only the guilty one does; the log says where, and no word of it."""
        self.scan()
        for words in ("one", GUILTY, "three"):
            self.answer(words)
        self.scanner = self.make_scanner(StumblingDatabase(self.gateway.database.engine))
        scanned = self.scan()
        self.assertEqual(self.words(), ["one", "three"])
        self.assertEqual((scanned.routed, scanned.refused), (2, {"malformed": 1}))
        [fault] = self.flushLoggedErrors(Fault)
        self.assertNotIn("secret", str(fault.value))
        self.assertEqual(self.scan(), Scanned(0, 0, {}))


class RenumberingTests(ScanTestCase):
    """The server has numbered the folder anew."""

    def test_nothing_is_lost_and_nothing_comes_twice(self) -> None:
        """Acked stays acked, waiting keeps its id, new is new, and what is gone is dropped."""
        self.scan()
        uids = [self.answer(words) for words in ("acked", "waiting", "gone")]
        self.scan()
        acked, waiting, _gone = self.pending()
        self.take(acked)
        self.mailbox = self.mailbox.renumbered([uids[1], uids[0]], uid_validity=8)
        self.answer("new")
        self.scan()
        found = self.pending()
        self.assertEqual([envelope.body for envelope in found], ["waiting", "new"])
        self.assertEqual(found[0].id, waiting.id)
        assert found[0].source is not None
        self.assertEqual((found[0].source.uid_validity, found[0].source.uid), (8, 1))
        self.assertEqual(self.cursor(), (8, 3))

    def test_a_renumbering_that_was_cut_short_begins_anew(self) -> None:
        """The cursor stays in the old numbers until everything is known under the new ones."""
        self.scan()
        uids = [self.answer(words) for words in ("one", "two")]
        self.scan()
        self.mailbox = self.mailbox.renumbered(uids, uid_validity=8)
        self.mailbox.lost_after = 1
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), Unreachable)
        self.assertEqual(self.cursor(), (7, uids[-1]))
        self.mailbox.lost_after = None
        self.scan()
        self.assertEqual(self.words(), ["one", "two"])
        self.assertEqual(self.cursor(), (8, 2))
