"""Legal bytes that the stock IMAP client cannot read."""

from typing import Any, cast

from twisted.internet.error import ConnectionLost
from twisted.mail.imap4 import IllegalServerResponse
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from tests.twisted_facts.imap import connected


class ParserTests(SynchronousTestCase):
    """What ends the connection, hangs, or gives a wrong result."""

    def test_a_smiley_drops_the_connection(self) -> None:
        """Text for people is parsed as if it were data, so a bracket out of pair is fatal."""
        for text in (b"* OK :-)", b"* OK Still here :)", b'* OK 19" disk', b"* OK foo] bar"):
            c = connected()
            c.feed(text)
            self.assertTrue(c.transport.disconnecting, text)
            self.assertEqual(len(self.flushLoggedErrors()), 1)

    def test_braces_in_text_break_out(self) -> None:
        """Text that ends like a literal raises into the transport."""
        c = connected()
        self.assertRaises(IllegalServerResponse, c.feed, b"* OK [ALERT] use {new portal}")

    def test_a_number_in_braces_hangs(self) -> None:
        """Text that ends in a number in braces makes the client wait for that many bytes, for ever."""
        c = connected()
        done = c.result(c.client.noop())
        c.feed(b"* OK see rule {4000}", b"TAG OK done")
        self.assertEqual((done, c.transport.disconnecting), ([], False))

    def test_a_backslash_in_a_subject_kills_the_fetch(self) -> None:
        """A subject that ends in a backslash makes the ENVELOPE of the whole batch unreadable."""
        c = connected()
        done = c.result(c.client.fetchEnvelope("1:*", uid=True))
        c.feed(
            rb'* 1 FETCH (UID 7 ENVELOPE ("date" "dir\\" NIL NIL NIL NIL NIL NIL NIL "<a@b>"))',
            b"TAG OK done",
        )
        self.assertTrue(c.transport.disconnecting)
        self.assertEqual(done, [])
        self.flushLoggedErrors()

    def test_an_escaped_backslash_stays_double(self) -> None:
        """Of the two escapes of a quoted string only one is undone."""
        c = connected()
        done = c.result(c.client.list("", "*"))
        c.feed(rb'* LIST () "/" "back\\slash"', b"TAG OK done")
        self.assertEqual(done, [[((), "/", "back\\\\slash")]])

    def test_a_long_line_gives_an_empty_result(self) -> None:
        """A SEARCH of a few thousand messages is thrown away, and the command then succeeds with nothing.

        The end of the command still comes when the connection is slow to close, as it is with TLS.
        """
        c = connected()
        done = c.result(c.client.search("ALL", uid=True))
        c.feed(b"* SEARCH " + b" ".join(b"%d" % uid for uid in range(10_000, 14_000)))
        self.assertTrue(c.transport.disconnecting)
        c.feed(b"TAG OK done")
        self.assertEqual(done, [[]])

    def test_a_literal_at_the_end_swallows_the_next_line(self) -> None:
        """The line behind it is glued on, unless the literal happens to end a segment of its own."""
        answer = b'* LIST () "/" {5}\r\nINBOX\r\n* LIST () "/" Sent\r\n'
        found = []
        for cut in (len(answer), answer.index(b"INBOX") + 5):
            c = connected()
            done = c.result(c.client.list("", "*"))
            c.client.dataReceived(answer[:cut])
            c.client.dataReceived(answer[cut:])
            c.feed(b"TAG OK done")
            found.append([name for _, _, name in done[0]])
        self.assertEqual(found, [[], ["INBOX", "Sent"]])

    def test_an_end_without_text_drops_the_connection(self) -> None:
        """A tagged OK with nothing behind it is not understood."""
        c = connected()
        c.result(c.client.noop())
        c.feed(b"TAG OK")
        self.assertTrue(c.transport.disconnecting)
        self.assertEqual(len(self.flushLoggedErrors()), 1)

    def test_ok_in_lower_case_is_a_failure(self) -> None:
        """The grammar is case-insensitive, the client is not."""
        c = connected()
        done = c.result(c.client.noop())
        c.feed(b"TAG ok done")
        self.assertEqual(type(done[0].value).__name__, "IMAP4Exception")

    def test_no_literal_is_too_large(self) -> None:
        """Ten gigabytes are accepted without a question."""
        c = connected()
        c.result(c.client.fetchMessage("1", uid=True))
        c.feed(b"* 1 FETCH (UID 1 RFC822 {10000000000}")
        self.assertFalse(c.transport.disconnecting)
        self.assertEqual(c.client._pendingSize, 10_000_000_000)
        cast("Any", c.client)._pendingBuffer.close()

    def test_one_odd_folder_hides_all(self) -> None:
        """A single name that is not valid modified UTF-7 makes the whole LIST fail."""
        c = connected()
        done = c.result(c.client.list("", "*"))
        c.feed(b'* LIST () "/" INBOX', b'* LIST () "/" "a&b"', b"TAG OK done")
        self.assertEqual([isinstance(outcome, Failure) for outcome in done], [True])

    def test_no_delimiter_is_an_error(self) -> None:
        """A server without a hierarchy says NIL, which the client cannot take."""
        c = connected()
        done = c.result(c.client.list("", "*"))
        c.feed(b"* LIST () NIL INBOX", b"TAG OK done")
        self.assertTrue(done[0].check(AttributeError))

    def test_deep_nesting_drops_the_connection(self) -> None:
        """Lists in lists are followed by recursion, without a bound of its own."""
        c = connected()
        c.feed(b"* " + b"(" * 3000 + b")" * 3000)
        self.assertTrue(c.transport.disconnecting)
        self.assertEqual(len(self.flushLoggedErrors(RecursionError)), 1)

    def test_bodies_are_asked_for_in_the_old_form(self) -> None:
        """``RFC822`` marks the message as read, and at least one large provider answers it with no body."""
        c = connected()
        c.result(c.client.fetchMessage("1", uid=True))
        self.assertIn(b"UID FETCH 1 (RFC822)", c.sent)

    def test_a_command_after_the_loss_raises(self) -> None:
        """On a lost connection a command raises instead of giving a Deferred that fails."""
        c = connected()
        c.client.connectionLost(Failure(ConnectionLost()))
        self.assertRaises(Exception, c.client.noop)  # noqa: B017 - which one is an accident
