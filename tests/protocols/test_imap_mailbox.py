"""The commands on a mailbox, against a scripted server with the habits of real ones."""

from datetime import UTC, date, datetime
from typing import Any

from twisted.internet.error import ConnectionLost

from mailgateway.errors import (
    CommandRefused,
    ProtocolViolation,
    Throttled,
    Unreachable,
)
from mailgateway.protocols.imap import (
    CountChanged,
    Expunged,
    FetchedHeaders,
    UidSet,
)
from tests.fakes.imap_script import ImapCase, ScriptedServer


class MailboxTests(ImapCase):
    """SELECT, FETCH, STORE, SEARCH, STATUS, LIST."""

    def collect(self, server: ScriptedServer, first: int, last: int | None, **more: Any) -> Any:
        """Begin to fetch headers; the running Deferred and the messages."""
        messages: list[FetchedHeaders] = []
        fetch = server.connection.fetch_headers(first, last, ["From", "Subject"], messages.append, **more)
        return server.start(fetch), messages

    def test_select(self) -> None:
        """The facts of the mailbox, in any case and order (T10)."""
        server = ScriptedServer().preauthenticated()
        running = server.start(server.connection.select("Entwürfe"))
        server.expect(b"SELECT Entw&APw-rfe")
        server.say(
            b"* 172 exists",
            b"* OK [uidvalidity 3] :)",
            b"* OK [UIDNEXT 4392] next",
            b"TAG ok [READ-ONLY] done",
        )
        selected = self.successResultOf(running)
        self.assertEqual(
            (selected.uid_validity, selected.uid_next, selected.exists, selected.read_only),
            (3, 4392, 172, True),
        )
        self.assertEqual(server.events, [])

    def test_select_with_little_told(self) -> None:
        """What a server does not tell is unknown, and not 0 (rows 22, 23)."""
        server = ScriptedServer().preauthenticated()
        running = server.start(server.connection.select(b"raw&name", read_only=True))
        server.expect(b"EXAMINE raw&name")
        server.say(b"* OK [UIDVALIDITY none] hm", b"* 3 EXISTS", b"TAG OK")
        selected = self.successResultOf(running)
        self.assertEqual((selected.uid_validity, selected.uid_next, selected.read_only), (None, None, True))

    def test_unsafe_login(self) -> None:
        """A refused SELECT leaves the connection in order (row 44)."""
        server = ScriptedServer().preauthenticated()
        running = server.start(server.connection.select("INBOX"))
        server.expect(b"SELECT")
        server.say(b"TAG NO SELECT Unsafe Login. Please contact kefu@188.com")
        self.failed(running, CommandRefused)
        self.assertTrue(server.connection.alive)

    def test_fetch_headers(self) -> None:
        """Messages come one by one, by UID, while the command still runs."""
        server = ScriptedServer().selected()
        running, messages = self.collect(server, 7, 8)
        server.expect(b"UID FETCH 7:8 (UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS (From Subject)])")
        server.raw(
            b'* 1 FETCH (UID 7 RFC822.SIZE 99 INTERNALDATE " 1-Nov-2026 10:00:00 +0200" FLAGS (\\Seen)'
            b" BODY[HEADER.FIELDS (FROM SUBJECT)] {11}\r\nFrom: a\r\n\r\n)\r\n"
        )
        self.assertEqual(
            messages,
            [FetchedHeaders(7, 99, datetime(2026, 11, 1, 8, tzinfo=UTC), b"From: a\r\n\r\n")],
        )
        self.assertNoResult(running)
        server.say(b"* 9 EXPUNGE", b"* 10 EXISTS", b"TAG OK done")
        self.assertEqual(self.successResultOf(running), ())
        self.assertEqual(server.events, [Expunged(), CountChanged(10)])

    def test_expunge_in_the_middle(self) -> None:
        """Sequence numbers shift; UIDs do not (T5, row 27)."""
        server = ScriptedServer().selected()
        running, messages = self.collect(server, 7, 8)
        server.expect()
        server.say(
            b"* 1 FETCH (UID 7 RFC822.SIZE 1 BODY[HEADER.FIELDS (FROM)] {0}", b")",
            b"* 1 EXPUNGE",
            b"* 1 FETCH (UID 8 RFC822.SIZE 1 BODY[HEADER.FIELDS (FROM)] {0}", b")",
            b"TAG OK",
        )  # fmt: skip
        self.successResultOf(running)
        self.assertEqual([message.uid for message in messages], [7, 8])

    def test_only_what_was_asked_for(self) -> None:
        """Flags of others, a last message below the window, repetitions, halves (T6, rows 19, 28)."""
        server = ScriptedServer().selected()
        running, messages = self.collect(server, 10, None)
        server.expect(b"UID FETCH 10:* ")
        server.say(
            b"* 3 FETCH (FLAGS (\\Seen))",
            b"* 3 FETCH (UID 9 RFC822.SIZE 1 BODY[HEADER.FIELDS (FROM)] {0}", b")",
            b"* 4 FETCH (UID 12 FLAGS (\\Flagged))",
            b"* 4 FETCH (UID 12 RFC822.SIZE 5)",
            b"* 4 FETCH (BODY[HEADER.FIELDS (FROM)] {1}", b"x UID 12)",
            b"* 4 FETCH (BODY[HEADER.FIELDS (FROM)] {1}", b"x UID 12)",
            b"* 5 FETCH (UID 13 FLAGS ())",
            b"TAG OK",
        )  # fmt: skip
        self.successResultOf(running)
        self.assertEqual(messages, [FetchedHeaders(12, 5, None, b"x")])

    def test_small_body_in_the_same_command(self) -> None:
        """A small mail comes whole at once; of a larger one the piece that came is no body."""
        server = ScriptedServer().selected()
        running, messages = self.collect(server, 1, None, small_body=4)
        server.expect(b"BODY.PEEK[]<0.5>")
        server.say(
            b"* 1 FETCH (UID 1 RFC822.SIZE 4 BODY[HEADER.FIELDS (FROM)] {1}", b"h BODY[]<0> {4}", b"abcd)",
            b"* 2 FETCH (UID 2 RFC822.SIZE 9 BODY[HEADER.FIELDS (FROM)] {1}", b"h BODY[]<0.5> {5}", b"abcde)",
            b"* 3 FETCH (UID 3 RFC822.SIZE 9 BODY[HEADER.FIELDS (FROM)] {1}", b"h BODY[]<0> NIL)",
            b"* 4 FETCH (UID 4 RFC822.SIZE 2 BODY[HEADER.FIELDS (FROM)] {1}", b"h)",
            b"* 4 FETCH (UID 4 BODY[]<5> {1}", b"x)",
            b"* 4 FETCH (UID 4 BODY[]<0> {2}", b"ab)",
            b"TAG OK",
        )  # fmt: skip
        self.successResultOf(running)
        self.assertEqual([message.body for message in messages], [b"abcd", None, b"ab", None])

    def test_an_unreadable_message_is_skipped_and_reported(self) -> None:
        """One odd message must not keep the others from coming (row 31)."""
        server = ScriptedServer().selected()
        running, messages = self.collect(server, 1, 3)
        server.expect()
        server.say(
            b"* 1 FETCH (UID 1 RFC822.SIZE 1 ENVELOPE (((( BODY[HEADER.FIELDS (FROM)] {0}", b")",
            b"* 2 FETCH (UID 2 RFC822.SIZE 1 BODY[HEADER.FIELDS (FROM)] {0}", b")",
            b"TAG OK",
        )  # fmt: skip
        (unreadable,) = self.successResultOf(running)
        self.assertEqual(unreadable.uid, 1)
        self.assertEqual([message.uid for message in messages], [2])

    def test_gaps_are_no_failure(self) -> None:
        """``NO Some of the requested messages no longer exist`` (row 30)."""
        server = ScriptedServer().selected()
        running, _ = self.collect(server, 1, 3)
        server.expect()
        server.say(b"TAG NO Some of the requested messages no longer exist.")
        self.assertEqual(self.successResultOf(running), ())

    def test_refused_for_now(self) -> None:
        """Throttling and temporary failures leave the connection in order (rows 15, 16)."""
        server = ScriptedServer().selected()
        running, _ = self.collect(server, 1, 3)
        server.expect()
        server.say(b"TAG BAD Request is throttled. Suggested Backoff Time: 92415 milliseconds")
        self.assertEqual(self.failed(running, Throttled).retry_after, 92.415)
        running, _ = self.collect(server, 1, 3)
        server.expect()
        server.say(b"TAG NO [TEMPFAIL] UID FETCH Temporary failure")
        self.assertEqual(self.failed(running, CommandRefused).code, "TEMPFAIL")
        self.assertTrue(server.connection.alive)

    def test_an_empty_mailbox_is_not_asked(self) -> None:
        """Some servers refuse any set of an empty mailbox (row 39)."""
        server = ScriptedServer().selected(exists=0)
        running, _ = self.collect(server, 1, None)
        self.assertEqual(self.successResultOf(running), ())
        server.silent()

    def test_silence_during_fetch(self) -> None:
        """Each byte gives a minute more; ten minutes are enough in all."""
        server = ScriptedServer().selected()
        running, _ = self.collect(server, 1, 3)
        for _ in range(3):
            server.clock.advance(59)
            server.raw(b"*")
        self.assertNoResult(running)
        server.clock.advance(60)
        self.failed(running, Unreachable)
        self.assertTrue(server.transport.aborted)
        server = ScriptedServer().selected()
        running, _ = self.collect(server, 1, 3)
        for _ in range(10):
            server.clock.advance(59)
            server.raw(b"\0")
        server.clock.advance(10)
        self.failed(running, Unreachable)

    def test_a_paused_connection_is_not_silent(self) -> None:
        """A slow consumer stops the flow and is not taken for a dead server."""
        server = ScriptedServer().selected()
        running, _ = self.collect(server, 1, 3)
        server.connection.pause()
        self.assertEqual(server.transport.producerState, "paused")
        server.clock.advance(300)
        self.assertNoResult(running)
        server.connection.resume()
        self.assertEqual(server.transport.producerState, "producing")
        server.clock.advance(60)
        self.failed(running, Unreachable)
        server = ScriptedServer().selected()
        server.connection.pause()
        running, _ = self.collect(server, 1, 3)
        server.clock.advance(300)
        self.assertNoResult(running)

    def test_a_consumer_that_fails(self) -> None:
        """The caller gets its own error back, and the connection is closed."""

        def broken(_: FetchedHeaders) -> None:
            raise LookupError("full")

        server = ScriptedServer().selected()
        running = server.start(server.connection.fetch_headers(1, 2, ["From"], broken))
        server.say(b"* 1 FETCH (UID 1 RFC822.SIZE 1 BODY[HEADER.FIELDS (FROM)] {0}", b")", b"TAG OK")
        self.failureResultOf(running, LookupError)
        self.assertTrue(server.transport.aborted)

    def test_fetch_message(self) -> None:
        """The literal's length counts, not the size that was told (row 34)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.fetch_message(7, 1000))
        server.expect(b"UID FETCH 7 (UID RFC822.SIZE BODY.PEEK[]<0.1000>)")
        server.say(b"* 1 FETCH (UID 7 RFC822.SIZE 10 BODY[]<0.1000> ~{12}", b"hello\r\nworld)", b"TAG OK")
        self.assertEqual(self.successResultOf(running), b"hello\r\nworld")

    def test_fetch_message_without_text(self) -> None:
        """OK alone is no message (T18, rows 18 and 29)."""
        for answer in (b"* 1 FETCH (UID 7)", b"* 1 FETCH (UID 7 BODY[] NIL)", b"* 1 FETCH (UID 8 BODY[] x)"):
            server = ScriptedServer().selected()
            running = server.start(server.connection.fetch_message(7, 1000))
            server.expect()
            server.say(answer, b"TAG OK done")
            self.assertIsNone(self.successResultOf(running))

    def test_broken_framing_of_a_message(self) -> None:
        """Items after the end are a breach that counts against this message (row 35)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.fetch_message(7, 1000))
        server.expect()
        server.say(b"* 1 FETCH (UID 7 BODY[] {2}", b"hi) FLAGS ()", b"TAG OK")
        self.failed(running, ProtocolViolation)
        self.assertTrue(server.transport.aborted)

    def test_a_cut_literal(self) -> None:
        """Half a message is none (row 36)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.fetch_message(7, 1000))
        server.raw(b"* 1 FETCH (UID 7 BODY[] {1000}\r\n" + b"x" * 500)
        server.hang_up(ConnectionLost())
        self.failed(running, Unreachable)

    def test_a_literal_without_measure(self) -> None:
        """What is announced too large is not waited for (T11)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.fetch_message(7, 1000))
        server.raw(b"* 1 FETCH (UID 7 BODY[] {10000000000}\r\n")
        self.failed(running, ProtocolViolation)

    def test_highest_uid(self) -> None:
        """The start of a cursor where the server tells no UIDNEXT (row 23)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.highest_uid())
        server.expect(b"UID FETCH * (UID)")
        server.say(b"* 9 FETCH (UID 4391)", b"TAG OK")
        self.assertEqual(self.successResultOf(running), 4391)
        server = ScriptedServer().selected(exists=0)
        self.assertIsNone(self.successResultOf(server.start(server.connection.highest_uid())))

    def test_add_seen(self) -> None:
        """Sorted into ranges, in lines below 1000 bytes (row 32)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.add_seen([*range(2, 2000, 2), 1]))
        batches = 0
        while not running.called:
            self.assertLess(len(server.expect(b"UID STORE ", b" +FLAGS.SILENT (\\Seen)\r\n")), 1000)
            server.say(b"TAG NO Some of the requested messages no longer exist.")
            batches += 1
        self.successResultOf(running)
        self.assertGreater(batches, 3)

    def test_search(self) -> None:
        """Months are English; an answer of any length is read (T1)."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.search_since(date(2026, 3, 1)))
        server.expect(b"UID SEARCH SINCE 1-Mar-2026\r\n")
        server.say(b"* SEARCH " + b" ".join(b"%d" % uid for uid in range(10000, 20000)), b"TAG OK")
        self.assertEqual(self.successResultOf(running), UidSet.span(10000, 19999))

    def test_extended_search(self) -> None:
        """With ESEARCH the answer comes in ranges."""
        server = ScriptedServer().selected(capabilities=b"IMAP4rev1 ESEARCH")
        running = server.start(server.connection.search_header("Message-ID", "<1@example.com>"))
        server.expect(b"UID SEARCH RETURN (ALL) HEADER Message-ID <1@example.com>\r\n")
        server.say(b'* ESEARCH (TAG "TAG") UID ALL 1:3,9', b"TAG OK")
        self.assertEqual(self.successResultOf(running), UidSet.of([1, 2, 3, 9]))

    def test_a_search_that_cannot_be_read_has_not_found_nothing(self) -> None:
        """An empty result would be believed."""
        server = ScriptedServer().selected()
        running = server.start(server.connection.search_uid([1, 2]))
        server.expect(b"UID SEARCH UID 1:2")
        server.say(b"* SEARCH 1 2 x", b"TAG OK")
        self.failed(running, ProtocolViolation)

    def test_status_and_list(self) -> None:
        """Names with literals, NIL delimiters, raw bytes (T7, rows 40, 42)."""
        server = ScriptedServer().preauthenticated()
        running = server.start(server.connection.status("INBOX"))
        server.expect(b"STATUS INBOX (MESSAGES UIDNEXT UIDVALIDITY)")
        server.say(b"* STATUS {5}", b"INBOX (MESSAGES 3 UIDNEXT 9)", b"TAG OK")
        status = self.successResultOf(running)
        self.assertEqual((status.messages, status.uid_next, status.uid_validity), (3, 9, None))
        listing = server.start(server.connection.list_folders())
        server.expect(b'LIST "" "*"')
        server.say(
            b"* LIST (\\HasNoChildren) NIL {5}", b"INBOX",
            b'* LIST (\\Sent) "/" "br[ack]et"',
            b'* list () "\\\\" "[Gmail]/G&APY-nderilmi\xff"',
            b"TAG OK",
        )  # fmt: skip
        names = [(listed.name, listed.delimiter) for listed in self.successResultOf(listing)]
        self.assertEqual(
            names,
            [(b"INBOX", None), (b"br[ack]et", b"/"), (b"[Gmail]/G&APY-nderilmi\xff", b"\\")],
        )
