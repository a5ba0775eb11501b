"""Limits: deadlines on the clock, bodies counted, connections bounded."""

import json
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.flows.uploads import UPLOAD_LIMIT
from mailgateway.http.limits import (
    BODY_SECONDS,
    CLOSING_SECONDS,
    HEADER_SECONDS,
    IDLE_SECONDS,
    LARGEST_BODY,
    OWN_FILES,
    WANTED_FILES,
    Connections,
    share_of,
)
from tests.http.rig import HOST, KEY, Client, Rig, request

HEAD = f"POST /ping HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {KEY}\r\n".encode()
PING = request("POST", "/ping", {"sessionId": "s", "instanceId": "i"})


def chunk(size: int) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (size, b"x" * size)


class BodyTests(SynchronousTestCase):
    """Bodies over the bound are refused without being taken."""

    def setUp(self) -> None:
        self.rig = Rig()

    def too_large(self, client: Client) -> None:
        """The connection has got a 413 and is closed."""
        answer = client.answer()
        assert answer is not None
        self.assertEqual((answer.status, answer.code), (413, "too_large"))
        self.assertEqual(answer.headers["mailgateway-api"], "1")
        self.assertTrue(client.closed)

    def test_an_announced_body_is_refused_before_it_is_sent(self) -> None:
        """By its Content-Length alone, however absurd."""
        for length in (b"1000001", b"2000000", b"9" * 20, b"9" * 6000):
            client = self.rig.connect()
            client.feed(HEAD + b"Content-Length: " + length + b"\r\n\r\n")
            self.too_large(client)

    def test_a_chunked_body_is_counted(self) -> None:
        """Nobody says how long it will be; it is cut off soon after the bound."""
        client = self.rig.connect()
        client.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        while not client.closed:
            client.feed(chunk(50_000))
            sent += 50_000
            self.assertLess(sent, LARGEST_BODY + 200_000)
        self.too_large(client)

    def test_a_body_within_the_bound_is_taken(self) -> None:
        """Announced or chunked, in memory or on disk."""
        body = json.dumps({"sessionId": "s", "instanceId": "i", "title": "x"}).encode()
        for size in (len(body), 150_000, LARGEST_BODY):
            answer = self.rig.ask("POST", "/ping", body.ljust(size))
            self.assertEqual(answer.status, 200, size)
            client = self.rig.connect()
            client.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            client.feed(b"%x\r\n%s\r\n0\r\n\r\n" % (size, body.ljust(size)))
            answer_chunked = client.answer()
            assert answer_chunked is not None
            self.assertEqual(answer_chunked.status, 200, size)

    def test_no_hundred_follows_a_refusal(self) -> None:
        """A client that asks first must not be told to go on after it was refused."""
        client = self.rig.connect()
        client.feed(HEAD + b"Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n")
        self.assertNotIn(b" 100 ", client.text())
        self.too_large(client)
        client = self.rig.connect()
        client.feed(HEAD + b"Expect: 100-continue\r\nContent-Length: 40\r\n\r\n")
        self.assertEqual(client.text(), b"HTTP/1.1 100 Continue\r\n\r\n")

    def test_the_body_of_a_stranger_is_not_stored(self) -> None:
        """Without a key it is counted and thrown away."""
        client = self.rig.connect()
        client.feed(request("POST", "/ping", None, key=None, headers={"Content-Length": "500000"}))
        client.feed(b"x" * 400_000)
        self.assertEqual(client.channel.requests[0].content.tell(), 0)
        client.feed(b"x" * 100_000)
        answer = client.answer()
        assert answer is not None
        self.assertEqual(answer.status, 401)

    def test_only_a_key_opens_the_larger_bound_of_uploads(self) -> None:
        """A stranger's upload is cut off where every other body is."""
        client = self.rig.connect()
        client.feed(request("POST", "/attachments", None, key=None, headers={"Content-Length": "2000000"}))
        self.too_large(client)
        self.assertEqual(list(self.rig.uploads.iterdir()), [])

    def test_an_upload_over_its_bound_leaves_no_file(self) -> None:
        """Announced or not."""
        fields = {"Transfer-Encoding": "chunked", "X-Session-Id": "s", "X-Filename": "big"}
        client = self.rig.connect()
        client.feed(request("POST", "/attachments", headers=fields).replace(b"Content-Length: 0\r\n", b""))
        for _ in range(UPLOAD_LIMIT // 1_000_000):
            client.feed(chunk(1_000_000))
        self.assertEqual(len(list(self.rig.uploads.iterdir())), 1)
        self.assertFalse(client.closed)
        client.feed(chunk(1))
        self.too_large(client)
        self.assertEqual(list(self.rig.uploads.iterdir()), [])

    def test_an_upload_that_breaks_off_leaves_no_file(self) -> None:
        """Whoever hangs up in the middle costs nothing."""
        fields = {"Content-Length": "5000", "X-Session-Id": "s", "X-Filename": "half"}
        client = self.rig.connect()
        client.feed(request("POST", "/attachments", headers=fields) + b"half")
        self.assertEqual(len(list(self.rig.uploads.iterdir())), 1)
        client.hang_up()
        self.assertEqual(list(self.rig.uploads.iterdir()), [])


class MalformedTests(SynchronousTestCase):
    """What is no HTTP is told so in the one shape, and the connection closes."""

    def test_broken_requests_are_malformed(self) -> None:
        """Lengths, lines, headers without end."""
        broken = [
            b"nonsense\r\n\r\n",
            b"GET /x y HTTP/1.1\r\n\r\n",
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nno colon\r\n\r\n",
            HEAD + b"".join(b"X-%d: %s\r\n" % (number, b"v" * 1000) for number in range(40)) + b"\r\n",
            HEAD + b"".join(b"X-%d: v\r\n" % number for number in range(600)) + b"\r\n",
            *(
                HEAD + b"Content-Length: %s\r\n\r\nhello" % value
                for value in (b"-5", b"abc", b"5, 6", b"0x10")
            ),
            HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        ]
        for raw in broken:
            client = Rig().connect()
            client.feed(raw)
            answer = client.answer()
            assert answer is not None, raw[:60]
            self.assertEqual((answer.status, answer.code), (400, "malformed"), raw[:60])
            self.assertTrue(client.closed)

    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.integers(1, len(PING) - 1), max_size=8))
    def test_chunking_never_matters(self, cuts: list[int]) -> None:
        """However the network splits two requests, the answers are the same."""
        client = shared_rig().connect()
        places = sorted({0, *cuts, len(PING)})
        for start, end in pairwise(places):
            client.feed(PING[start:end])
        answer = client.answer()
        assert answer is not None
        self.assertEqual(answer.status, 200)

    @settings(max_examples=100, deadline=None)
    @given(st.integers(0, len(PING)), st.integers(0, 40), st.binary(max_size=60))
    def test_no_bytes_end_in_a_traceback(self, place: int, gone: int, put: bytes) -> None:
        """A request with a hole or a splinter is answered, refused or waited for, and nothing is logged."""
        client = shared_rig().connect()
        client.feed(PING[:place] + put + PING[place + gone :])
        if client.text():
            self.assertRegex(client.text(), rb"^HTTP/1\.1 [24]\d\d ")
        client.hang_up()
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_byte_by_byte_and_pipelined(self) -> None:
        """Three requests at once are answered in order; one byte at a time as well."""
        whole, dribbled = shared_rig().connect(), shared_rig().connect()
        whole.feed(PING * 3)
        for place in range(len(PING)):
            dribbled.feed(PING[place : place + 1])
        found = [whole.answer(), whole.answer(), whole.answer(), dribbled.answer()]
        self.assertEqual([answer and answer.status for answer in found], [200] * 4)


@cache
def shared_rig() -> Rig:
    """One for the tests that change nothing which others see: making one costs a database."""
    return Rig()


class DeadlineTests(SynchronousTestCase):
    """Nobody keeps a connection by dribbling."""

    def setUp(self) -> None:
        self.rig = Rig()

    def dribble(self, client: Client, byte: bytes, seconds: float) -> None:
        """One byte a second."""
        for _ in range(int(seconds)):
            client.feed(byte)
            self.rig.clock.advance(1)

    def test_a_header_has_a_deadline(self) -> None:
        """Every byte comes in time, the whole does not."""
        client = self.rig.connect()
        client.feed(b"GET /health HTTP/1.1\r\nX-a: ")
        self.dribble(client, b"a", HEADER_SECONDS - 1)
        self.assertFalse(client.closed)
        self.dribble(client, b"a", 2)
        answer = client.answer()
        assert answer is not None
        self.assertEqual((answer.status, answer.code), (408, "timeout"))
        self.assertTrue(client.closed)

    def test_a_body_has_a_deadline(self) -> None:
        """Counted from the end of the header."""
        client = self.rig.connect()
        client.feed(HEAD + b"Content-Length: 900\r\n\r\n{")
        self.dribble(client, b"a", BODY_SECONDS - 1)
        self.assertFalse(client.closed)
        self.dribble(client, b"a", 2)
        self.assertTrue(client.closed)
        self.assertIn(b" 408 ", client.text()[:20])

    def test_a_silent_connection_is_closed_without_a_word(self) -> None:
        """Nothing was asked, so nothing is answered."""
        client = self.rig.connect()
        self.rig.clock.advance(HEADER_SECONDS + 1)
        self.assertTrue(client.closed)
        self.assertEqual(client.text(), b"")

    def test_an_idle_connection_may_rest_between_requests(self) -> None:
        """Longer than a header may take, and not for ever."""
        client = self.rig.connect()
        client.feed(PING)
        self.rig.clock.advance(IDLE_SECONDS - 1)
        self.assertFalse(client.closed)
        client.feed(PING)
        self.rig.clock.advance(IDLE_SECONDS - 1)
        self.assertFalse(client.closed)
        self.rig.clock.advance(2)
        self.assertTrue(client.closed)

    def test_a_client_that_does_not_read_is_cut_off(self) -> None:
        """Closing waits for the last bytes to be read, but not for ever."""
        client = self.rig.connect()
        client.feed(b"nonsense\r\n")
        self.assertFalse(client.wire.disconnected)
        self.rig.clock.advance(CLOSING_SECONDS + 1)
        self.assertTrue(client.wire.disconnected)

    def test_no_deadline_runs_while_we_answer(self) -> None:
        """A long poll is our time, not the client's; and nothing of it is left on the clock."""
        client = self.rig.connect()
        client.feed(request("GET", "/pending?wait=60"))
        self.rig.clock.advance(59)
        self.assertFalse(client.closed)
        self.assertIsNone(client.answer())
        self.rig.clock.advance(1)
        self.assertIsNotNone(client.answer())
        client.hang_up()
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])


class BackpressureTests(SynchronousTestCase):
    """A client that asks and does not read."""

    def test_the_next_request_waits_until_the_answer_is_read(self) -> None:
        """Nothing is read or answered while an answer cannot be sent; afterwards all of it, in order."""
        client = Rig().connect()
        client.channel.pauseProducing()  # what the transport calls when its buffer is full
        client.feed(PING * 50)
        self.assertEqual(client.text().count(b"HTTP/1.1 200"), 1)
        self.assertEqual(client.wire.producerState, "paused")
        client.channel.resumeProducing()
        self.assertEqual(client.text().count(b"HTTP/1.1 200"), 50)
        self.assertEqual(client.wire.producerState, "producing")

    def test_who_never_reads_is_cut_off(self) -> None:
        """After the time that a connection may rest."""
        rig = Rig()
        client = rig.connect()
        client.channel.pauseProducing()
        client.feed(PING * 3)
        rig.clock.advance(IDLE_SECONDS + 1)
        rig.clock.advance(CLOSING_SECONDS + 1)
        self.assertTrue(client.wire.disconnected)
        client.hang_up()
        self.assertEqual(rig.clock.getDelayedCalls(), [])


class ShareTests(SynchronousTestCase):
    """As many places as there are files for."""

    def test_the_share_of_places(self) -> None:
        """All of them with many files; with few, all places together need fewer than there are."""
        self.assertEqual(share_of(65_536), 1.0)
        for files in (256, 1_024):
            self.assertLess(share_of(files) * WANTED_FILES, files - OWN_FILES + 1)
        self.assertGreater(share_of(10), 0)


class ConnectionTests(SynchronousTestCase):
    """How many may be connected."""

    def setUp(self) -> None:
        self.rig = Rig(connections=Connections(most=3))

    def connected(self, count: int, then: Callable[[Client], None] = lambda _: None) -> list[Client]:
        """So many connections, each after its first act."""
        clients = [self.rig.connect() for _ in range(count)]
        for client in clients:
            then(client)
        return clients

    def test_who_waits_longest_makes_room(self) -> None:
        """A flood that asks nothing pushes out itself; whoever asks is served."""
        first, second, third = self.connected(3)
        second.feed(PING)
        fourth = self.rig.connect()
        self.assertTrue(first.wire.disconnected)
        self.assertFalse(second.closed or third.closed or fourth.closed)
        for _ in range(20):
            self.rig.connect()
        client = self.rig.connect()
        client.feed(PING)
        self.assertIsNotNone(client.answer())
        self.assertEqual(len(self.rig.connections.open), 3)

    def test_strangers_push_out_strangers_first(self) -> None:
        """Whoever has shown a key keeps the connection, although it has waited longest."""
        first, second, third = self.connected(3)
        first.feed(PING)
        self.rig.connect()
        self.assertEqual([each.wire.disconnected for each in (first, second, third)], [False, True, False])

    def test_who_waits_for_an_answer_keeps_the_place(self) -> None:
        """When all are being answered the next is refused."""
        clients = self.connected(3, lambda client: client.feed(request("GET", "/pending?wait=60")))
        self.assertIsNone(self.rig.site.buildProtocol(None))
        clients[0].hang_up()
        self.rig.connect()

    def test_streams_do_not_count(self) -> None:
        """Subscribers have a bound of their own."""
        clients = self.connected(3, lambda client: client.feed(request("GET", "/events")))
        self.connected(3, lambda client: client.feed(request("GET", "/pending?wait=60")))
        for client in clients:
            client.hang_up()
        self.assertEqual(self.rig.connections.streams, 0)
        self.assertIsNone(self.rig.site.buildProtocol(None))
