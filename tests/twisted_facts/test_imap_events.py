"""Events that the stock IMAP client loses, and messages with them."""

from twisted.mail.imap4 import IMAP4Client
from twisted.trial.unittest import SynchronousTestCase

from tests.twisted_facts.imap import connected


class EventTests(SynchronousTestCase):
    """Untagged data while a command runs."""

    def test_exists_without_a_command_is_told(self) -> None:
        """The one case that works: nothing else is going on."""
        c = connected()
        c.feed(b"* 5 EXISTS")
        self.assertEqual(c.client.told, [(5, None)])

    def test_exists_during_a_command_is_lost(self) -> None:
        """News that arrives while any command runs is never told."""
        for start in (
            lambda c: c.client.fetchUID("1:*", uid=True),
            lambda c: c.client.search("ALL", uid=True),
        ):
            c = connected()
            done = c.result(start(c))
            c.feed(b"* 5 EXISTS", b"TAG OK done")
            self.assertEqual((len(done), c.client.told), (1, []))

    def test_news_before_a_refusal_are_lost(self) -> None:
        """When the command ends with NO, nobody ever sees what came before."""
        c = connected()
        done = c.result(c.client.noop())
        c.feed(b"* 5 EXISTS", b"TAG NO not now")
        self.assertEqual((len(done), c.client.told), (1, []))

    def test_expunge_in_a_uid_fetch_loses_a_message(self) -> None:
        """Results are keyed by sequence number, which an EXPUNGE shifts: UID 7 is gone from the result."""
        c = connected()
        done = c.result(c.client.fetchUID("1:*", uid=True))
        c.feed(b"* 1 FETCH (UID 7)", b"* 1 EXPUNGE", b"* 1 FETCH (UID 8)", b"TAG OK done")
        self.assertEqual(done, [{1: {"UID": "8"}}])

    def test_flags_of_others_look_like_an_empty_message(self) -> None:
        """A flag that another client sets during a fetch of bodies appears as a message without a body."""
        c = connected()
        done = c.result(c.client.fetchSpecific("1:*", uid=True, headerType="", peek=True))
        c.feed(b"* 3 FETCH (FLAGS (\\Seen))", b"TAG OK done")
        self.assertEqual(done, [{3: [[]]}])

    def test_there_is_no_idle(self) -> None:
        """Only the server class has it."""
        self.assertFalse(any("idle" in name.lower() for name in vars(IMAP4Client)))

    def test_bye_text_is_lost(self) -> None:
        """A server that refuses at the greeting says why; the caller cannot learn it."""
        c = connected(b"* BYE too many connections")
        self.assertTrue(c.transport.disconnecting)
        self.assertEqual(len(self.flushLoggedErrors()), 1)
