"""Twisted's own IMAP client as a second opinion: on a server that behaves, both see the same mailbox.

The server is Twisted's too, completed by ``mailgateway.demo``.  The stock client needs a command for each
kind of fact; ours reads them in one, and every way of cutting the bytes has to give the same.
"""

from collections.abc import Coroutine, Iterator
from datetime import datetime
from typing import Any, TypeVar

from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.mail.imap4 import IMAP4Client
from twisted.test.iosim import IOPump
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.demo.mailbox import FLAGS, Mailbox
from mailgateway.demo.server import MailServer
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.imap import FetchedHeaders, ImapConnection, Selected
from mailgateway.settings import Tls
from mailgateway.wire.imap_fetch import parse_internal_date
from mailgateway.wire.sasl import Password
from tests.fakes.smtp_script import in_memory

T = TypeVar("T")

ANN = "ann@example.com"
PASSWORD = "pass word"
FIELDS = ("From", "Subject", "X-Odd")


@frozen
class Seen:
    """What a client has seen of one message."""

    uid: int
    size: int
    received_at: datetime | None
    header: bytes
    body: bytes


def at_once(steps: Iterator[Any]) -> "Deferred[None]":
    """Let the server answer without waiting for a reactor's turn."""
    for step in steps:
        assert not isinstance(step, Deferred) or step.called
    return succeed(None)


class Stock(IMAP4Client):
    """The stock client, whose timer stands on our clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.greeted = False

    def callLater(self, period: float, func: Any) -> Any:
        """Time is the test's."""
        return self.clock.callLater(period, func)

    def serverGreeting(self, caps: object) -> None:
        """Note that the server is there."""
        del caps
        self.greeted = True


class Ragged(ImapConnection):
    """Our client, to which bytes come in pieces of one size."""

    def __init__(self, clock: Clock, peer: Peer, piece: int) -> None:
        super().__init__(clock, peer)
        self.piece = piece

    def dataReceived(self, data: bytes) -> None:
        """Take them piece by piece."""
        for at in range(0, len(data), self.piece):
            super().dataReceived(data[at : at + self.piece])


class OpinionTestCase(SynchronousTestCase):
    """One mailbox, and both clients."""

    def connect(self, server: MailServer, client: Any, clock: Clock) -> IOPump:
        """Join a client with a server."""
        there: Any = server.imap()
        there._scheduler = at_once
        there.callLater = clock.callLater
        return in_memory(client, there, clock)

    def result(self, pump: IOPump, running: "Deferred[T]") -> T:
        """Let all bytes flow; what came of it."""
        pump.flush()
        return self.successResultOf(running)

    def ours(self, server: MailServer, piece: int) -> tuple[Selected, list[Seen]]:
        """What our client sees when the bytes come in pieces of this size."""
        clock = Clock()
        connection = Ragged(clock, Peer("127.0.0.1", 143, Tls.NONE), piece)
        pump = self.connect(server, connection, clock)

        def run(work: Coroutine[Any, Any, T]) -> T:
            return self.result(pump, Deferred.fromCoroutine(work))

        run(connection.open())
        run(connection.login(Password(ANN, PASSWORD)))
        selected = run(connection.select("INBOX"))
        messages: list[FetchedHeaders] = []
        self.assertEqual(run(connection.fetch_headers(1, None, FIELDS, messages.append)), ())
        seen = []
        for message in messages:
            body = run(connection.fetch_message(message.uid, 1_000_000))
            assert body is not None
            seen.append(Seen(message.uid, message.size, message.internal_date, message.header, body))
        whole: list[FetchedHeaders] = []
        run(connection.fetch_headers(1, None, FIELDS, whole.append, small_body=1_000_000))
        self.assertEqual([message.body for message in whole], [each.body for each in seen])
        run(connection.logout())
        self.assertEqual(clock.getDelayedCalls(), [])
        return selected, seen

    def stock(self, server: MailServer) -> tuple[dict[str, Any], list[Seen]]:
        """What Twisted's client sees."""
        clock = Clock()
        client = Stock(clock)
        pump = self.connect(server, client, clock)
        pump.flush()
        self.assertTrue(client.greeted)
        self.result(pump, client.login(ANN.encode(), PASSWORD.encode()))
        selected = self.result(pump, client.select("INBOX"))
        if not selected["EXISTS"]:
            return selected, []
        every = f"1:{selected['EXISTS']}"

        def facts(name: str, started: "Deferred[Any]") -> dict[int, Any]:
            return {number: found[name] for number, found in self.result(pump, started).items()}

        uids = facts("UID", client.fetchUID(every))
        sizes = facts("RFC822.SIZE", client.fetchSize(every))
        dates = facts("INTERNALDATE", client.fetchInternalDate(every))
        headers = self.result(
            pump, client.fetchSpecific(every, headerType="HEADER.FIELDS", headerArgs=FIELDS, peek=True)
        )
        bodies = self.result(pump, client.fetchSpecific(every, headerType="", peek=True))
        return selected, [
            Seen(
                int(uids[number]),
                int(sizes[number]),
                parse_internal_date(dates[number].encode()),
                as_bytes(headers[number][0][-1]),
                as_bytes(bodies[number][0][-1]),
            )
            for number in sorted(uids)
        ]


def as_bytes(told: Any) -> bytes:
    """The stock client's idea of a text, as the bytes that it was."""
    return told if isinstance(told, bytes) else str(told).encode("latin-1")


values = st.text(
    st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from('{}()[]"\\*'), max_size=30
)
lines = st.binary(max_size=40).map(
    lambda line: line.replace(b"\r", b"").replace(b"\n", b"")
) | st.sampled_from(
    [b"", b".", b")", b"* 7 EXISTS", b"A1 OK done", b"A4 BAD no", b"{5}", b"+ idling", b"* BYE", b"NIL"]
)


@st.composite
def mails(draw: st.DrawFn) -> bytes:
    """A mail whose words look like the protocol around it."""
    header = [f"{name}: {draw(values)}".encode() for name in draw(st.lists(st.sampled_from((*FIELDS, "To"))))]
    folded = draw(st.booleans())
    if header and folded:
        header.insert(1, b"\tfolded " + draw(values).encode())
    return b"\r\n".join([*header, b"", *draw(st.lists(lines))])


filed = st.lists(st.tuples(mails(), st.frozensets(st.sampled_from(FLAGS)), st.booleans()), max_size=6)


class AgreementTests(OpinionTestCase):
    """Both opinions."""

    @settings(max_examples=60)
    @given(filed, st.sampled_from([1, 3, 64, 100_000]))
    def test_both_see_the_same(self, filed: list[tuple[bytes, frozenset[str], bool]], piece: int) -> None:
        """UIDs with gaps, sizes, dates, header fields and whole mails, however the bytes are cut."""
        server = MailServer({ANN: PASSWORD})
        inbox: Mailbox = server.mailboxes[ANN]
        letters = [inbox.file(raw, flags) for raw, flags, _ in filed]
        gone = {letter.uid for letter, (_, _, stays) in zip(letters, filed, strict=True) if not stays}
        inbox.letters = [letter for letter in letters if letter.uid not in gone]
        selected, ours = self.ours(server, piece)
        told, theirs = self.stock(server)
        self.assertEqual(ours, theirs)
        self.assertEqual([each.body for each in ours], [letter.raw for letter in inbox.letters])
        self.assertEqual(
            (selected.exists, selected.uid_validity, selected.uid_next, selected.read_only),
            (told["EXISTS"], told["UIDVALIDITY"], told["UIDNEXT"], not told["READ-WRITE"]),
        )
