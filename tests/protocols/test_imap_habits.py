"""Habits of IMAP servers in the field, in the words of a scripted one: whole, byte by byte, and ragged.

The rows are those of the list in ``tests.protocols.test_rows``.
"""

from collections.abc import Callable, Iterator
from typing import Any

from twisted.internet.error import ConnectionLost

from mailgateway.errors import ENDED, Throttled, Unreachable
from mailgateway.protocols.imap import CountChanged, Disconnected, FetchedHeaders
from tests.fakes.imap_script import ImapCase, ScriptedServer

CUTS: dict[str, Callable[[bytes], list[bytes]]] = {
    "whole": lambda data: [data],
    "byte by byte": lambda data: [data[at : at + 1] for at in range(len(data))],
    "ragged": lambda data: list(_ragged(data)),
}


def _ragged(data: bytes) -> Iterator[bytes]:
    """Pieces of 1, 2, 5, 11, 1 ... bytes."""
    at = 0
    while at < len(data):
        for size in (1, 2, 5, 11):
            if data[at : at + size]:
                yield data[at : at + size]
            at += size


class HabitTests(ImapCase):
    """Habits of servers, however their bytes are cut."""

    def servers(self, exists: int = 9) -> Iterator[ScriptedServer]:
        """A server in a selected mailbox, for each way to cut."""
        for cut in CUTS.values():
            server = ScriptedServer().selected(exists)
            server.cut = cut
            yield server

    def fetch(self, server: ScriptedServer, first: int, last: int | None, **more: Any) -> Any:
        """Begin to fetch headers; the running Deferred, and the messages."""
        messages: list[FetchedHeaders] = []
        running = server.start(
            server.connection.fetch_headers(first, last, ["From"], messages.append, **more)
        )
        server.expect(b"UID FETCH")
        return running, messages

    def test_news_in_the_packet_that_ends_a_command(self) -> None:
        """Row 7: it is told, whether before or behind the tagged end."""
        for server in self.servers():
            for number, lines in enumerate(
                ([b"* 10 EXISTS", b"TAG OK"], [b"TAG OK", b"* 11 EXISTS"]), start=10
            ):
                running, _ = self.fetch(server, 1, None)
                server.say(*lines)
                self.assertEqual(self.successResultOf(running), ())
                self.assertEqual(server.events[-1], CountChanged(number))

    def test_a_token_that_ran_out(self) -> None:
        """Row 10: a clean end with its reason, also in the middle of IDLE."""
        for server in self.servers():
            running = server.start(server.connection.idle())
            server.expect(b"IDLE")
            server.say(b"+ idling")
            self.successResultOf(running)
            server.say(b"* BYE Session invalidated - AccessTokenExpired")
            server.hang_up(ConnectionLost())
            end = server.events[-1]
            assert isinstance(end, Disconnected)
            self.assertEqual((type(end.cause), end.cause.code, end.asked), (Unreachable, ENDED, False))

    def test_a_hint_in_the_answer_to_a_command(self) -> None:
        """Row 15: the server's own number, in seconds."""
        for server in self.servers():
            running, _ = self.fetch(server, 1, 3)
            server.say(b"TAG BAD Request is throttled. Suggested Backoff Time: 92415 milliseconds")
            self.assertEqual(self.failed(running, Throttled).retry_after, 92.415)
            self.assertTrue(server.connection.alive)

    def test_the_last_message_below_the_range(self) -> None:
        """Row 19: it was not asked for."""
        for server in self.servers():
            running, messages = self.fetch(server, 10, None)
            server.say(b"* 9 FETCH (UID 9 RFC822.SIZE 2 BODY[HEADER.FIELDS (FROM)] {2}", b"hi)", b"TAG OK")
            self.assertEqual((self.successResultOf(running), messages), ((), []))

    def test_a_message_in_halves_and_twice(self) -> None:
        """Row 28: put together by UID, handed on once, whatever others do meanwhile."""
        for server in self.servers():
            running, messages = self.fetch(server, 5, 6)
            server.say(
                b"* 1 FETCH (UID 5 FLAGS ())",
                b"* 2 FETCH (FLAGS (\\Deleted))",
                b"* 8 FETCH (UID 8 FLAGS (\\Seen))",
                b"* 1 EXPUNGE",
                b"* 1 FETCH (BODY[HEADER.FIELDS (FROM)] {2}",
                b"hi UID 5 RFC822.SIZE 7)",
                b"* 1 FETCH (UID 5 RFC822.SIZE 7 BODY[HEADER.FIELDS (FROM)] {2}",
                b"ho)",
                b"TAG OK",
            )
            self.assertEqual(self.successResultOf(running), ())
            self.assertEqual([(message.uid, message.header) for message in messages], [(5, b"hi")])

    def test_data_and_then_a_gap(self) -> None:
        """Row 30: what came has come."""
        for server in self.servers():
            running, messages = self.fetch(server, 1, 3)
            server.say(
                b"* 1 FETCH (UID 2 RFC822.SIZE 2 BODY[HEADER.FIELDS (FROM)] {2}",
                b"hi)",
                b"TAG NO Some of the requested messages no longer exist.",
            )
            self.assertEqual(self.successResultOf(running), ())
            self.assertEqual([message.uid for message in messages], [2])

    def test_sizes_that_are_not_true(self) -> None:
        """Row 34: only a literal's own length counts."""
        for server in self.servers():
            running, messages = self.fetch(server, 1, 2, small_body=20)
            server.say(
                b"* 1 FETCH (UID 1 RFC822.SIZE 10 BODY[HEADER.FIELDS (FROM)] {2}",
                b"hi BODY[]<0.21> {12}",
                b"hi\r\n\r\nworld!)",
                b"* 2 FETCH (UID 2 RFC822.SIZE 10 BODY[HEADER.FIELDS (FROM)] {2}",
                b"hi BODY[]<0> {21}",
                b"x" * 21 + b")",
                b"TAG OK",
            )
            self.successResultOf(running)
            self.assertEqual([message.body for message in messages], [b"hi\r\n\r\nworld!", None])

    def test_items_behind_the_end(self) -> None:
        """Row 35: that message is reported, and the others come."""
        for server in self.servers():
            running, messages = self.fetch(server, 1, 2)
            server.say(
                b"* 1 FETCH (UID 1 RFC822.SIZE 2 BODY[HEADER.FIELDS (FROM)] {2}",
                b"hi) FLAGS ()",
                b"* 2 FETCH (UID 2 RFC822.SIZE 2 BODY[HEADER.FIELDS (FROM)] {2}",
                b"ho)",
                b"TAG OK",
            )
            (unreadable,) = self.successResultOf(running)
            self.assertEqual(unreadable.uid, 1)
            self.assertEqual([message.uid for message in messages], [2])

    def test_a_loss_at_every_byte_of_an_answer(self) -> None:
        """Row 36: a message that is not whole is none, and the command has failed."""
        first = b"* 1 FETCH (UID 1 RFC822.SIZE 2 BODY[HEADER.FIELDS (FROM)] {2}\r\nhi)\r\n"
        answer = first + first.replace(b"UID 1", b"UID 2") + b"TAG OK done\r\n"
        for length in range(len(answer)):
            server = ScriptedServer().selected()
            running, messages = self.fetch(server, 1, 2)
            server.raw(answer[:length].replace(b"TAG", server.tag))
            server.hang_up(ConnectionLost())
            self.failed(running, Unreachable)
            self.assertEqual(len(messages), min(length // len(first), 2))
