r"""One IMAP connection at work: what it says to the server, and what it hears while it rests."""

from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.daemons.logins import Door
from mailgateway.daemons.watching import Held
from mailgateway.errors import Throttled
from tests.daemons.line import STRANGER, LineTestCase
from tests.daemons.world import Network, Run
from tests.flows.outbound import S1


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
        self.asked()
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
        self.asked()
        self.server.silent()  # an empty mailbox has nothing to fetch
        self.successResultOf(running)

    def test_mail_that_was_never_announced_is_found_all_the_same(self) -> None:
        """A server that pushes nothing is asked at each renewal, in an empty mailbox too."""
        self.resting()
        running = self.leave_idle()
        self.asked(b"* 1 EXISTS")
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(len(self.pending()), 1)

    def test_a_mail_that_becomes_visible_late(self) -> None:
        """Row 26: below the cursor, and announced by nobody; it is searched for at the next quiet look."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.give(2, STRANGER)
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.rest()
        running = self.leave_idle()
        self.asked()
        self.server.expect(b"UID FETCH 3:*")
        self.server.say(b"TAG OK")
        self.server.expect(b"UID SEARCH UID 1\r\n")
        self.server.say(b"* SEARCH 1", b"TAG OK")
        self.server.expect(b"UID FETCH 1 ")
        self.give(1, self.reply())
        self.server.say(b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(len(self.pending()), 1)

    def test_a_server_that_told_of_news_is_not_asked(self) -> None:
        """A round trip less between the news and the mail."""
        self.resting()
        self.server.say(b"* 1 EXISTS")
        running = self.leave_idle()
        self.server.expect(b"UID FETCH 1:*")
        self.give(1, STRANGER)
        self.server.say(b"TAG OK")
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
