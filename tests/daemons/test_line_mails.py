r"""Mails on an IMAP line: odd ones, large ones, lost ones; and the flags of those that were acked."""

from twisted.internet.defer import Deferred

from mailgateway.domain.envelope import Source
from mailgateway.errors import PeerError, ProtocolViolation, StoreUnavailable
from mailgateway.flows import deliver
from mailgateway.flows.deliver import Claimant, Target
from mailgateway.store import flagging
from tests.daemons.line import LineTestCase
from tests.flows.outbound import ACCOUNT, I1, IDENTITY


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

    def test_a_mail_that_is_named_without_its_header_is_fetched_by_itself(self) -> None:
        """OK says nothing: a mail of which only the size came is there, and must not be passed over."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:* ")
        self.server.say(b"* 1 FETCH (UID 1 RFC822.SIZE 900)", b"TAG OK")
        self.server.expect(b"UID FETCH 1 ", b"BODY.PEEK[]<0.")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(len(self.pending()), 1)

    def test_a_mail_without_header_and_text_stops_the_scan(self) -> None:
        """As long as it is there; the cursor stays in front of it."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:* ")
        self.server.say(b"* 1 FETCH (UID 1 FLAGS ())", b"TAG OK")
        self.server.expect(b"UID FETCH 1 ")
        self.server.say(b"TAG OK")
        self.server.expect(b"UID SEARCH UID 1")
        self.server.say(b"* SEARCH 1", b"TAG OK")
        self.failureResultOf(running, ProtocolViolation)
        self.begin()
        self.prepare(uid_next=2, exists=1)
        self.read_again()
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
        self.read_again(same_connection=True)
        self.assertEqual(len(self.pending()), 1)

    def read_again(self, *, same_connection: bool = False) -> None:
        """Another scan, from the same place; what was announced once is no news to it."""
        running = self.run_line(self.line.catch_up())
        if same_connection:
            self.asked()
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
        self.asked()
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

    def test_after_a_wish_during_the_scan(self) -> None:
        """A command is done while its mail is filed, and its flag is set when that scan is over."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.flags_due = True
        self.gateway.rows(lambda tx: flagging.ask(tx, Source(ACCOUNT, "INBOX", 7, 1)))
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.server.expect(b"UID STORE 1 +FLAGS.SILENT (\\Seen)")
        self.server.say(b"TAG OK")
        self.successResultOf(running)

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
