"""IDLE, how a connection ends, and that the cutting of the bytes does not matter."""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError

from mailgateway.errors import (
    CommandRefused,
    Fault,
    ProtocolViolation,
    Unreachable,
)
from mailgateway.protocols.imap import (
    Alert,
    CountChanged,
    Disconnected,
    Expunged,
    FetchedHeaders,
    IdleEnded,
    Leaving,
)
from mailgateway.wire import Misuse
from tests.fakes.imap_script import ImapCase, ScriptedServer


class IdleTests(ImapCase):
    """IDLE and the races around it."""

    def idling(self) -> ScriptedServer:
        """A server in IDLE."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.idle())
        server.expect(b"IDLE\r\n")
        server.say(b"+ idling")
        self.successResultOf(running)
        return server

    def test_news_and_done(self) -> None:
        """News is told as it comes; a sign of life is none (row 8)."""
        server = self.idling()
        server.say(b"* OK Still here :)", b"* 9 EXISTS")
        self.assertEqual(server.events, [])
        server.say(b"* 10 EXISTS")
        self.assertEqual(server.events, [CountChanged(10)])
        done = server.start(server.connection.done())
        self.assertEqual(server.expect(), b"DONE\r\n")
        self.assertNoResult(done)
        server.say(b"TAG OK")
        self.successResultOf(done)
        self.assertFalse(server.connection.busy)
        server.clock.advance(3600)
        self.assertTrue(server.connection.alive)

    def test_news_before_the_plus(self) -> None:
        """Outlook tells EXISTS before it says ``+`` (row 6)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.idle())
        server.say(b"* 10 EXISTS")
        self.assertEqual(server.events, [CountChanged(10)])
        self.assertNoResult(running)
        server.say(b"+")
        self.successResultOf(running)

    def test_done_before_the_plus_waits_for_it(self) -> None:
        """Nothing may be sent between IDLE and ``+`` (row 6)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.idle())
        server.expect(b"IDLE")
        done = server.start(server.connection.done())
        server.silent()
        server.say(b"+ idling")
        self.assertEqual(server.expect(), b"DONE\r\n")
        server.say(b"TAG OK")
        self.successResultOf(running)
        self.successResultOf(done)

    def test_done_before_a_plus_that_is_all_that_comes(self) -> None:
        """The deadline of DONE goes on when IDLE begins only to be ended."""
        server = ScriptedServer().selected()
        server.start(server.connection.idle()).addErrback(lambda _: None)
        done = server.start(server.connection.done())
        server.say(b"+ idling")
        server.clock.advance(15)
        self.failed(done, Unreachable)

    def test_a_mail_for_a_mail(self) -> None:
        """As many as before, after one has gone, is one more."""
        server = self.idling()
        server.say(b"* 1 EXPUNGE", b"* 9 EXISTS")
        self.assertEqual(server.events, [Expunged(), CountChanged(9)])

    def test_done_is_answered_in_time_or_the_line_is_dead(self) -> None:
        """A path that died silently shows at the renewal (row 1)."""
        server = self.idling()
        done = server.start(server.connection.done())
        server.clock.advance(15)
        self.failed(done, Unreachable)
        self.assertTrue(server.transport.aborted)

    def test_refused(self) -> None:
        """IDLE that is advertised and refused: no DONE (row 9)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.idle())
        server.expect()
        server.say(b"TAG NO not now")
        self.failed(running, CommandRefused)
        self.successResultOf(server.start(server.connection.done()))
        server.silent()

    def test_no_plus(self) -> None:
        """IDLE that never begins is given up."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.idle())
        server.clock.advance(30)
        self.failed(running, Unreachable)

    def test_ended_by_the_server(self) -> None:
        """A tagged OK ends IDLE without DONE (row 9)."""
        server = self.idling()
        server.say(b"TAG OK Idle timed out")
        self.assertEqual(server.events, [IdleEnded("OK Idle timed out")])
        noop = server.start(server.connection.noop())
        server.expect(b"NOOP")
        server.say(b"TAG OK")
        self.successResultOf(noop)

    def test_plus_and_end_in_one_packet(self) -> None:
        """DONE must not follow an IDLE that has ended: it would be read as a command."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.idle())
        server.expect()
        server.start(server.connection.done())
        server.say(b"+ idling", b"TAG OK bye")
        server.silent()
        self.successResultOf(running)


class EndTests(ImapCase):
    """How a connection ends, and who hears why."""

    def test_bye_is_the_first_cause(self) -> None:
        """What the server said counts, not the loss that follows (row 10)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.noop())
        server.say(b"* BYE Session invalidated - AccessTokenExpired")
        server.hang_up()
        error = self.failed(running, Unreachable)
        self.assertEqual(error.code, "ENDED")
        self.assertEqual(server.events, [Leaving(error), Disconnected(error, asked=False)])
        self.assertIs(self.failed(server.start(server.connection.noop()), Unreachable), error)

    def test_a_server_that_says_bye_and_stays(self) -> None:
        """After BYE it gets a few seconds."""
        server = ScriptedServer().selected()
        server.say(b"* BYE going down")
        server.clock.advance(5)
        self.assertTrue(server.transport.aborted)

    def test_alert(self) -> None:
        """RFC 3501 wants people to see these."""
        server = ScriptedServer().selected()
        server.say(b"* OK [ALERT] use {new portal}")
        self.assertEqual(server.events, [Alert("OK [ALERT] use {new portal}")])

    def test_logout(self) -> None:
        """Ends IDLE first, and is quick."""
        server = ScriptedServer().selected()
        server.start(server.connection.idle())
        server.expect()
        server.say(b"+")
        out = server.start(server.connection.logout())
        server.expect(b"DONE")
        server.say(b"TAG OK")
        server.expect(b"LOGOUT")
        server.say(b"* BYE see you", b"TAG OK")
        self.successResultOf(out)
        self.assertTrue(server.transport.aborted)
        (end,) = server.events
        self.assertTrue(isinstance(end, Disconnected) and end.asked)

    def test_logout_without_an_answer(self) -> None:
        """A goodbye that nobody answers does not keep anybody."""
        server = ScriptedServer().selected()
        out = server.start(server.connection.logout())
        server.clock.advance(5)
        self.successResultOf(out)
        self.assertTrue(server.transport.aborted)
        self.assertEqual(server.clock.getDelayedCalls(), [])

    def test_cancelling_ends_the_connection(self) -> None:
        """The answer on the way must not be taken for the next command's."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.noop())
        running.cancel()
        self.failureResultOf(running, CancelledError)
        self.assertTrue(server.transport.aborted)
        self.assertEqual(server.clock.getDelayedCalls(), [])

    def test_one_command_at_a_time(self) -> None:
        """A second one is our own mistake and does not reach the wire."""
        server = ScriptedServer().selected()
        server.start(server.connection.noop())
        server.expect(b"NOOP")
        self.failureResultOf(server.start(server.connection.noop()), Misuse)
        server.silent()

    def test_a_breach_fails_the_command_with_its_name(self) -> None:
        """Not with the loss of the connection that we end because of it (twisted.md 8)."""
        for breach in (b"A999 OK done", b"From: a line of a mail", b"* 1 FETCH (UID 1 BODY[] {99999999999}"):
            server = ScriptedServer().selected()
            running = server.start(server.connection.noop())
            server.say(breach)
            self.failed(running, ProtocolViolation)
            self.assertTrue(server.transport.aborted)

    def test_a_listener_that_fails_does_no_harm(self) -> None:
        """Its failure is logged and the command goes on."""
        server = ScriptedServer().selected()

        def broken(_: object) -> None:
            raise LookupError

        server.connection.on_event = broken
        running = server.start(server.connection.noop())
        server.expect()
        server.say(b"* 10 EXISTS", b"TAG OK")
        self.successResultOf(running)
        [logged] = self.flushLoggedErrors(Fault)
        self.assertIn("LookupError at", str(logged.value))


class ChunkingTests(ImapCase):
    """The client's behaviour does not hang on how the bytes are cut."""

    def test_byte_by_byte(self) -> None:
        """Login, SELECT, FETCH and IDLE with one byte at a time."""

        def single(data: bytes) -> list[bytes]:
            return [data[at : at + 1] for at in range(len(data))]

        def whole(data: bytes) -> list[bytes]:
            return [data]

        self.assertEqual(self.session(single), self.session(whole))

    def session(self, cut: Callable[[bytes], list[bytes]]) -> Any:
        """A session, and all that came of it."""
        server = ScriptedServer()
        server.cut = cut
        server.selected()
        messages: list[FetchedHeaders] = []
        running = server.start(server.connection.fetch_headers(1, 9, ["From"], messages.append, small_body=9))
        server.expect()
        server.say(
            b"* 11 EXISTS",
            b"* 1 FETCH (UID 1 RFC822.SIZE 4 BODY[HEADER.FIELDS (FROM)] {1}", b"h BODY[]<0> {4}", b"abcd)",
            b"* OK {10}",
            b"TAG OK",
        )  # fmt: skip
        self.successResultOf(running)
        server.start(server.connection.idle())
        server.expect()
        server.say(b"+ idling", b"* 12 EXISTS", b"* BYE idle for too long")
        server.hang_up()
        ended = server.events[-1]
        assert isinstance(ended, Disconnected)
        return messages, [type(event) for event in server.events], ended.cause.text
