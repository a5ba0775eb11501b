r"""One IMAP connection at work: what it says to the server, and what it hears while it rests."""

from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.daemons.line import ImapLine
from mailgateway.daemons.logins import Door
from mailgateway.daemons.watching import Held
from mailgateway.errors import PeerError, StoreUnavailable, Throttled
from mailgateway.flows import deliver
from mailgateway.flows.deliver import Claimant, Target
from mailgateway.flows.scan import Rules, Scanned, Scanner
from mailgateway.wire.sasl import Password
from tests.daemons.world import KEY, PASSWORD, Network, Run
from tests.fakes.imap_script import CAPABILITIES, ScriptedServer
from tests.flows.inbound import OWN, TTL, letter
from tests.flows.outbound import I1, IDENTITY, S1, OutboundTestCase

STRANGER = b"From: somebody@elsewhere.example\r\nSubject: sale\r\n\r\n"


class LineTestCase(OutboundTestCase):
    """A line to a scripted server; the test is the server."""

    def setUp(self) -> None:
        super().setUp()
        self.ping()
        self.sent = self.submit()
        self.scans: list[Scanned] = []
        self.news: list[str] = []
        self.lost: list[PeerError] = []
        self.begin()

    def begin(self, capabilities: bytes = CAPABILITIES) -> None:
        """A new connection, greeted."""
        gateway = self.gateway
        self.server = ScriptedServer().opened(capabilities)
        self.logins = Run(Network(), gateway.database)
        self.now(self.logins.load())
        rules = Rules(IDENTITY, OWN, TTL, KEY, header_threading=True)

        async def in_thread(judging: Any) -> Any:
            return judging()

        self.line = ImapLine(
            gateway.database,
            self.logins.logins,
            "INBOX",
            Scanner(gateway.database, gateway.bell, rules, in_thread),
            self.scans.append,
            lambda: None,
            self.server.connection,
            Password("agent", PASSWORD),
        )
        self.line.listen(lambda: self.news.append("news"), self.lost.append)

    def run_line(self, work: Any) -> "Deferred[None]":
        """Run one of the line's coroutines as far as it goes."""
        return Deferred.fromCoroutine(work)

    def prepare(self, *, uid_next: int | None = 1, exists: int = 0) -> None:
        """Log in and select."""
        running = self.run_line(self.line.prepare())
        self.server.expect(b"AUTHENTICATE PLAIN")
        self.server.say(b"TAG OK [CAPABILITY " + CAPABILITIES + b"] welcome")
        if self.line.connection.supports("ID"):
            self.server.expect(b"ID (", b'"mailgateway"')
            self.server.say(b"* ID NIL", b"TAG OK")
        self.server.expect(b"SELECT INBOX")
        told = [b"* %d EXISTS" % exists, b"* OK [UIDVALIDITY 7] ok"]
        if uid_next is not None:
            told.append(b"* OK [UIDNEXT %d] ok" % uid_next)
        self.server.say(*told, b"TAG OK [READ-WRITE] selected")
        if uid_next is None and exists:
            self.server.expect(b"FETCH")
            self.server.say(b"* %d FETCH (UID 41)" % exists, b"TAG OK")
        self.successResultOf(running)

    def resting(self, **facts: Any) -> None:
        """Bring the line to IDLE in a mailbox where everything is known."""
        self.prepare(**facts)
        self.successResultOf(self.run_line(self.line.catch_up()))  # the first look only sets the cursor
        self.server.silent()
        self.rest()

    def rest(self) -> None:
        """Enter IDLE."""
        running = self.run_line(self.line.rest())
        self.server.expect(b"IDLE")
        self.server.raw(b"+ idling\r\n")
        self.successResultOf(running)

    def leave_idle(self) -> "Deferred[None]":
        """Begin to catch up: the client ends IDLE first."""
        running = self.run_line(self.line.catch_up())
        self.assertEqual(self.server.transport.value(), b"DONE\r\n")
        self.server.transport.clear()
        self.server.say(b"TAG OK idle is over")
        return running

    def give(self, uid: int, raw: bytes) -> None:
        """Answer a FETCH of header fields with one mail, whole."""
        header = raw.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"
        self.server.raw(
            b"* 1 FETCH (UID %d RFC822.SIZE %d FLAGS () BODY[HEADER.FIELDS (FROM)] {%d}\r\n"
            % (uid, len(raw), len(header))
            + header
            + b" BODY[]<0> {%d}\r\n" % len(raw)
            + raw
            + b")\r\n"
        )

    def reply(self) -> bytes:
        """A person's answer to the mail that was sent."""
        return letter("Yes, do it.", subject=f"Re: {self.sent.subject}", replies_to=self.sent.message_id)

    def pending(self) -> Any:
        """What waits for the session."""
        return self.now(deliver.pending(self.gateway.database, IDENTITY, session=S1, kind=None))


class PrepareTests(LineTestCase):
    """From the greeting to the selected folder."""

    def test_identified_before_selected(self) -> None:
        """Some servers show nothing to a client that has not said who it is."""
        self.prepare()
        self.assertTrue(self.logins.imap.login.proven)

    def test_a_server_without_id_is_not_asked(self) -> None:
        """ID is sent where it is offered."""
        self.begin(b"IMAP4rev1 IDLE SASL-IR AUTH=PLAIN")
        running = self.run_line(self.line.prepare())
        self.server.expect(b"AUTHENTICATE")
        self.server.say(b"TAG OK [CAPABILITY IMAP4rev1 IDLE] welcome")
        self.server.expect(b"SELECT")
        self.server.say(b"* 0 EXISTS", b"TAG OK")
        self.successResultOf(running)

    def test_a_refused_login_is_held_and_remembered(self) -> None:
        """The row knows it before the line tells."""
        running = self.run_line(self.line.prepare())
        self.server.expect(b"AUTHENTICATE")
        self.server.say(b"TAG NO [AUTHENTICATIONFAILED] wrong")
        held: Any = self.failureResultOf(running, Held).value
        self.assertIsNotNone(held.until)
        run = Run(Network(), self.gateway.database)
        self.now(run.load())
        self.assertEqual(run.imap.login.refusals, 1)
        self.failureResultOf(Deferred.fromCoroutine(run.logins.credential(Door.SMTP)), Held)

    def test_a_missing_uidnext_is_found_out(self) -> None:
        """Else the first look would take years of old mail for new."""
        self.prepare(uid_next=None, exists=30)
        running = self.run_line(self.line.catch_up())
        self.successResultOf(running)
        self.server.silent()
        running = self.run_line(self.line.catch_up())
        self.server.expect(b"UID FETCH 42:*")
        self.server.say(b"TAG OK")
        self.successResultOf(running)

    def test_an_empty_mailbox_without_uidnext(self) -> None:
        """There is nothing to find out, and the first mail is seen."""
        self.resting(uid_next=None)
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.server.say(b"TAG OK")
        self.successResultOf(running)


class NewsTests(LineTestCase):
    """What a resting line hears."""

    def test_a_reply_that_comes_while_idling(self) -> None:
        """EXISTS, DONE, one FETCH with the small text: the reply waits for its session."""
        self.resting()
        self.server.say(b"* 1 EXISTS", b"* 1 RECENT")
        self.assertEqual(self.news, ["news"])
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:* ", b"BODY.PEEK[]<0.")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.server.silent()
        self.assertEqual([scan.routed for scan in self.scans], [0, 1])
        (envelope,) = self.pending()
        self.assertEqual(envelope.session_id, S1)

    def test_fewer_mails_are_no_news(self) -> None:
        """Somebody tidies up."""
        self.resting(uid_next=10, exists=3)
        self.server.say(b"* 2 EXPUNGE", b"* 2 EXPUNGE")
        self.assertEqual(self.news, [])

    def test_a_mail_that_replaces_an_expunged_one_is_noticed(self) -> None:
        """The count is the same as before, and yet there is a new mail."""
        for lines in ((b"* 2 EXPUNGE", b"* 3 EXISTS"), (b"* 2 EXPUNGE", b"* 2 EXISTS", b"* 3 EXISTS")):
            self.setUp()
            self.resting(uid_next=10, exists=3)
            self.server.say(*lines)
            self.assertEqual(self.news, ["news"], lines)

    def test_mail_that_comes_during_a_scan_leads_to_another_one(self) -> None:
        """It may have come behind the place where the server was reading."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, STRANGER)
        self.server.say(b"* 2 EXISTS", b"TAG OK")
        self.server.expect(b"UID FETCH 2:*")
        self.give(2, STRANGER)
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(sum(scan.examined for scan in self.scans), 2)

    def test_a_server_that_ends_idle_by_itself(self) -> None:
        """It is news: whatever came meanwhile may not have been told."""
        self.resting()
        self.server.say(b"TAG OK that was long enough")
        self.assertEqual(self.news, ["news"])
        running = self.run_line(self.line.catch_up())
        self.server.silent()  # an empty mailbox is not asked
        self.successResultOf(running)

    def test_a_server_that_refuses_to_idle_twice_is_polled(self) -> None:
        """Once may be a mood; then the line looks by itself, with NOOP first."""
        self.prepare()
        self.successResultOf(self.run_line(self.line.catch_up()))
        for number in (1, 2):
            self.assertTrue(self.line.idles)
            running = self.run_line(self.line.rest())
            self.server.expect(b"IDLE")
            self.server.say(b"TAG NO not today")
            self.successResultOf(running)
            self.assertEqual(len(self.news), number)
        self.assertFalse(self.line.idles)
        running = self.run_line(self.line.catch_up())
        self.server.expect(b"NOOP")
        self.server.say(b"* 1 EXISTS", b"TAG OK")
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, STRANGER)
        self.server.say(b"TAG OK")
        self.successResultOf(running)

    def test_a_lost_connection_is_told_once(self) -> None:
        """With the first cause."""
        self.resting()
        self.server.say(b"* BYE too many connections from your IP address")
        self.server.hang_up()
        self.assertEqual([type(error) for error in self.lost], [Throttled])

    def test_after_hanging_up_it_is_silent(self) -> None:
        """Late news of a line that was given up disturb nobody."""
        self.resting()
        self.line.hang_up()
        self.assertTrue(self.server.transport.aborted)
        self.assertEqual((self.news, self.lost), ([], []))


class TextTests(LineTestCase):
    """Mails that do not come as they should."""

    def test_what_cannot_be_read_is_fetched_by_itself(self) -> None:
        """A reply is not lost because the server describes it in an odd way."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:* ")
        self.server.say(b"* 1 FETCH (UID 1 ENVELOPE (((( BODY[HEADER.FIELDS (FROM)] {0}", b")", b"TAG OK")
        self.server.expect(b"UID FETCH 1 ", b"BODY.PEEK[]<0.")
        raw = self.reply()
        self.server.raw(b"* 1 FETCH (UID 1 BODY[]<0> {%d}\r\n" % len(raw) + raw + b")\r\n")
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(len(self.pending()), 1)

    def test_a_large_mail_is_fetched_after_its_header(self) -> None:
        """Only candidates are fetched, and without setting a flag."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:* ")
        raw = self.reply() + b"> quoted\r\n" * 10_000
        header = raw.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"
        self.server.raw(
            b"* 1 FETCH (UID 1 RFC822.SIZE %d BODY[HEADER.FIELDS (FROM)] {%d}\r\n" % (len(raw), len(header))
            + header
            + b")\r\n"
        )
        self.server.say(b"TAG OK")
        sent = self.server.expect(b"UID FETCH 1 ", b"BODY.PEEK[]")
        self.assertNotIn(b"BODY[]", sent)
        self.server.raw(b"* 1 FETCH (UID 1 BODY[] {%d}\r\n" % len(raw) + raw + b")\r\n")
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(len(self.pending()), 1)

    def test_a_connection_lost_in_a_scan_moves_nothing(self) -> None:
        """The next connection reads the same mail again."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, self.reply())
        self.server.hang_up()
        self.failureResultOf(running, PeerError)
        self.assertEqual(self.pending(), ())
        self.begin()
        self.prepare(uid_next=2, exists=1)
        self.read_again()
        self.assertEqual(len(self.pending()), 1)

    def test_a_database_that_fails_in_a_scan_moves_nothing(self) -> None:
        """What was not filed is not passed over."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, self.reply())
        self.gateway.database.failures.append(StoreUnavailable("disk full"))
        self.server.say(b"TAG OK")
        self.failureResultOf(running, StoreUnavailable)
        self.read_again()
        self.assertEqual(len(self.pending()), 1)

    def read_again(self) -> None:
        """Another scan, from the same place; what was announced once is no news to it."""
        running = self.run_line(self.line.catch_up())
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.server.expect(b"UID FETCH 1 ", b"BODY.PEEK[]")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.successResultOf(running)


class FlagTests(LineTestCase):
    r"""``\Seen``."""

    def take_reply(self, *, ack: bool = True) -> None:
        """Let a reply come, and the session claim and ack it."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        (envelope,) = self.pending()
        gateway, claimant = self.gateway, Claimant(I1, IDENTITY.machine_id)
        target = Target(id=envelope.id)
        self.now(deliver.claim(gateway.database, gateway.bell, IDENTITY, target, claimant))
        if ack:
            self.now(deliver.ack(gateway.database, gateway.bell, IDENTITY, target, claimant))
        self.rest()

    def look(self) -> "Deferred[None]":
        """Catch up, with nothing new there."""
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 2:*")
        self.server.say(b"TAG OK")
        return running

    def test_only_what_was_acked(self) -> None:
        """A claim changes nothing in the mailbox."""
        self.take_reply(ack=False)
        self.successResultOf(self.look())
        self.server.silent()

    def test_after_the_ack(self) -> None:
        """The flag is added silently, and once."""
        self.take_reply()
        running = self.look()
        sent = self.server.expect(b"UID STORE 1 +FLAGS.SILENT (\\Seen)")
        self.assertEqual(sent.count(b"\r\n"), 1)
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.rest()
        self.successResultOf(self.look())
        self.server.silent()

    def test_a_refused_flag_stays_wished_for(self) -> None:
        """The line goes on, and asks again the next time."""
        self.take_reply()
        running = self.look()
        self.server.expect(b"UID STORE")
        self.server.say(b"TAG NO [READ-ONLY] no")
        self.successResultOf(running)
        self.rest()
        running = self.look()
        self.server.expect(b"UID STORE 1 +FLAGS.SILENT (\\Seen)")
        self.server.say(b"TAG OK")
        self.successResultOf(running)

    def test_a_flag_whose_connection_is_lost_stays_wished_for(self) -> None:
        """Nobody knows whether it was set; setting it again does no harm."""
        self.take_reply()
        running = self.look()
        self.server.expect(b"UID STORE")
        self.server.hang_up()
        self.failureResultOf(running, PeerError)
        self.begin()
        self.prepare(uid_next=2, exists=1)
        running = self.run_line(self.line.catch_up())
        self.server.expect(b"UID FETCH 2:*")
        self.server.say(b"TAG OK")
        self.server.expect(b"UID STORE 1 +FLAGS.SILENT (\\Seen)")
        self.server.say(b"TAG OK")
        self.successResultOf(running)


class GoodbyeTests(LineTestCase):
    """Taking leave."""

    def test_politely(self) -> None:
        """Out of IDLE, LOGOUT, and gone."""
        self.resting()
        running = self.run_line(self.line.say_goodbye())
        self.assertEqual(self.server.transport.value(), b"DONE\r\n")
        self.server.transport.clear()
        self.server.say(b"TAG OK")
        self.server.expect(b"LOGOUT")
        self.server.say(b"* BYE", b"TAG OK")
        self.successResultOf(running)
        self.assertTrue(self.server.transport.aborted)
        self.assertEqual(self.lost, [])

    def test_from_a_server_that_says_nothing(self) -> None:
        """A bound on every wait."""
        self.resting()
        running = self.run_line(self.line.say_goodbye())
        self.server.clock.advance(21)
        self.successResultOf(running)
        self.assertTrue(self.server.transport.aborted)
