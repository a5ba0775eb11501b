"""IDLE, how a connection ends, and that the cutting of the bytes does not matter."""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred

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


class FetchInIdleTests(ImapCase):
    """A FETCH that is started in IDLE goes out with DONE, in one segment."""

    HEADER = b"* 10 FETCH (UID 10 RFC822.SIZE 9 BODY[HEADER.FIELDS (FROM)] {1}"

    def setUp(self) -> None:
        self.server = ScriptedServer().selected()
        self.idle = self.server.start(self.server.connection.idle())
        self.server.expect(b"IDLE")
        self.idle_tag = self.server.tag
        self.mails: list[FetchedHeaders] = []

    def fetch(self) -> "Deferred[Any]":
        """Ask for what is new."""
        connection = self.server.connection
        return self.server.start(
            connection.fetch_headers(10, None, ["From"], self.mails.append, small_body=5)
        )

    def fetching(self) -> "Deferred[Any]":
        """Be told of a mail, and ask for it."""
        self.server.say(b"+ idling", b"* 10 EXISTS")
        running = self.fetch()
        sent = self.server.expect(b"UID FETCH 10:*")
        self.assertEqual(sent.count(b"DONE\r\n"), 1)
        self.assertTrue(sent.startswith(b"DONE\r\n"))
        self.server.tag = sent[6:].partition(b" ")[0]
        return running

    def say(self, *lines: bytes) -> None:
        """Speak, with the tag of IDLE for ``OLD``."""
        self.server.say(*(line.replace(b"OLD", self.idle_tag) for line in lines))

    def answer(self, body: bytes = b" BODY[]<0> {4}\r\nabcd") -> tuple[bytes, ...]:
        """The mail, and the ends of both commands."""
        return b"OLD OK over", self.HEADER, b"h" + body + b")", b"TAG OK"

    def test_one_segment(self) -> None:
        """The text comes along, and both have ended."""
        running = self.fetching()
        self.say(*self.answer())
        self.assertEqual(self.successResultOf(running), ())
        self.assertEqual([(mail.uid, mail.body) for mail in self.mails], [(10, b"abcd")])
        self.assertEqual(self.server.events, [CountChanged(10)])
        self.assertFalse(self.server.connection.busy)
        self.assertEqual(self.server.clock.getDelayedCalls(), [])

    def test_cut_anywhere(self) -> None:
        """However the bytes come."""
        for size in (1, 2, 3, 7, 50):
            self.setUp()
            self.server.cut = (
                lambda data, size=size: [  # type: ignore[misc]  # the default binds the size
                    data[at : at + size] for at in range(0, len(data), size)
                ]
            )
            running = self.fetching()
            self.say(*self.answer())
            self.assertEqual(self.successResultOf(running), ())
            self.assertEqual([mail.body for mail in self.mails], [b"abcd"])

    def test_not_answered_before_idle_has_ended(self) -> None:
        """What comes until the tagged end of IDLE is news, and no part of the answer."""
        running = self.fetching()
        self.say(b"* 10 FETCH (UID 10 FLAGS (\\Seen))", b"* 11 EXISTS", b"* 3 EXPUNGE")
        self.assertNoResult(running)
        self.assertEqual(self.server.events, [CountChanged(10), CountChanged(11), Expunged()])
        self.say(*self.answer())
        self.successResultOf(running)
        self.assertEqual(len(self.mails), 1)

    def test_before_the_plus(self) -> None:
        """Nothing is sent until the server is in IDLE, then both."""
        self.server.say(b"* 10 EXISTS")
        running = self.fetch()
        self.server.silent()
        self.server.say(b"+ idling")
        sent = self.server.expect(b"DONE\r\nA", b"UID FETCH 10:*")
        self.server.tag = sent[6:].partition(b" ")[0]
        self.say(*self.answer())
        self.successResultOf(running)
        self.successResultOf(self.idle)

    def test_idle_that_is_refused(self) -> None:
        """There is nothing to end: the FETCH goes alone, and who wanted to rest hears of the refusal."""
        self.server.say(b"* 10 EXISTS")
        running = self.fetch()
        self.server.say(b"TAG NO not now")
        self.failed(self.idle, CommandRefused)
        sent = self.server.expect(b"UID FETCH 10:*")
        self.assertNotIn(b"DONE", sent)
        self.server.say(self.HEADER, b"h BODY[]<0> {4}\r\nabcd)", b"TAG OK")
        self.successResultOf(running)

    def test_idle_that_begins_and_ends_in_one_packet(self) -> None:
        """No DONE for an IDLE that is over, and the FETCH is not lost."""
        running = self.fetch()
        self.server.say(b"+ idling", b"TAG OK bye")
        sent = self.server.expect(b"UID FETCH 10:*")
        self.assertNotIn(b"DONE", sent)
        self.server.say(b"TAG OK")
        self.successResultOf(running)

    def test_idle_that_the_server_ends_meanwhile(self) -> None:
        """Its OK has crossed our DONE, which it then takes for a command; the FETCH is answered."""
        running = self.fetching()
        self.say(b"OLD OK that was long enough", b"DONE BAD what is this", *self.answer()[1:])
        self.successResultOf(running)
        self.assertEqual(len(self.mails), 1)

    def test_bye_in_between(self) -> None:
        """The first cause ends both."""
        running = self.fetching()
        self.say(b"OLD OK over", b"* BYE going down")
        self.server.hang_up()
        self.failed(running, Unreachable)
        self.assertEqual(self.mails, [])
        self.assertEqual(self.server.clock.getDelayedCalls(), [])

    def test_bye_before_the_end_of_idle(self) -> None:
        """Also when IDLE had not ended."""
        running = self.fetching()
        self.say(b"* BYE going down")
        self.server.hang_up()
        self.failed(running, Unreachable)
        self.assertEqual(self.server.clock.getDelayedCalls(), [])

    def test_the_end_of_idle_has_its_own_deadline(self) -> None:
        """A path that died silently shows within the time that DONE has, however long a FETCH may take."""
        running = self.fetching()
        self.server.clock.advance(15)
        self.failed(running, Unreachable)
        self.assertTrue(self.server.transport.aborted)

    def test_silence_after_the_end_of_idle(self) -> None:
        """The clock of the answer starts when IDLE is over."""
        running = self.fetching()
        self.say(b"OLD OK over")
        self.server.clock.advance(59)
        self.assertNoResult(running)
        self.server.clock.advance(1)
        self.failed(running, Unreachable)

    def test_cancelled(self) -> None:
        """Both answers are on the way, so the connection is closed."""
        running = self.fetching()
        running.cancel()
        self.failureResultOf(running, CancelledError)
        self.assertTrue(self.server.transport.aborted)
        self.assertEqual(self.server.clock.getDelayedCalls(), [])

    def test_a_missing_and_a_large_text(self) -> None:
        """A mail without its text, or with more of it than asked for, comes with its header fields alone."""
        for body in (b"", b" BODY[]<0> {6}\r\nabcdef", b" BODY[] NIL"):
            self.setUp()
            running = self.fetching()
            self.say(*self.answer(body))
            self.successResultOf(running)
            self.assertEqual([(mail.uid, mail.body) for mail in self.mails], [(10, None)])

    def test_no_new_mail(self) -> None:
        """``n:*`` brings the last mail at least, though it is none of those that were asked for."""
        running = self.fetching()
        self.say(b"OLD OK over", self.HEADER.replace(b"UID 10", b"UID 9"), b"h)", b"TAG OK")
        self.successResultOf(running)
        self.assertEqual(self.mails, [])

    def test_refused(self) -> None:
        """NO to the FETCH leaves the connection in order."""
        running = self.fetching()
        self.say(b"OLD OK over", b"TAG NO later")
        self.failed(running, CommandRefused)
        self.assertTrue(self.server.connection.alive)

    def test_other_commands(self) -> None:
        """What names messages by UID or none at all may follow so; nothing else, and only one."""
        connection = self.server.connection
        self.failureResultOf(self.server.start(connection.list_folders()), Misuse)
        self.failureResultOf(self.server.start(connection.idle()), Misuse)
        self.server.silent()
        noop = self.server.start(connection.noop())
        self.failureResultOf(self.server.start(connection.noop()), Misuse)
        self.server.say(b"+")
        sent = self.server.expect(b"DONE\r\n", b" NOOP\r\n")
        self.server.tag = sent[6:].partition(b" ")[0]
        self.say(b"OLD OK", b"TAG OK")
        self.successResultOf(noop)

    def test_another_mailbox(self) -> None:
        """SELECT waits for the end of IDLE: what IDLE still tells is of the old mailbox."""
        self.server.say(b"+ idling")
        running = self.server.start(self.server.connection.select("INBOX"))
        self.assertEqual(self.server.expect(), b"DONE\r\n")
        self.server.say(b"* 12 EXISTS", b"TAG OK over")
        self.server.expect(b"SELECT INBOX")
        self.server.say(b"* 3 EXISTS", b"TAG OK")
        self.assertEqual(self.successResultOf(running).exists, 3)


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
