"""The IMAP dialogue: the same events however the bytes are cut, and what it makes of odd servers."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ProtocolViolation, TlsRefused
from mailgateway.wire import Misuse, imap_command
from mailgateway.wire.imap_dialogue import Dialogue
from mailgateway.wire.imap_event import Broken, Completed, CountChanged, Event, Idling, State
from mailgateway.wire.imap_fetch import Fetched, Unreadable
from mailgateway.wire.imap_response import Condition, Listed, Status
from mailgateway.wire.sasl import BearerToken, Password, choose

SELECT = rb"""* 172 EXISTS
* 1 RECENT
* FLAGS (\Answered \Seen $x]y)
* OK [UNSEEN 12] Message 12
* OK [PERMANENTFLAGS (\Deleted a]b \*)] Limited (
* OK [UIDVALIDITY 3857529045] UIDs valid
* ok [uidnext 4392] "next
A1 OK [READ-WRITE] done
"""
LISTS = rb"""* LIST (\HasNoChildren) "/" {5}
INBOX
* LIST () NIL "a\"b\\c"
* LIST (\NoSelect) "/" {8}
A {3}

* LSUB () "/" x
* 3 exists
A1 ok
"""
FETCHES = rb"""* 12 FETCH (UID 7 FLAGS () RFC822.SIZE 4 INTERNALDATE "17-Jul-1996 02:44:25 -0700" BODY[] {23}
("{5}
))* 12 EXPUNGE
)
* 1 FETCH (UID 7 BODY[HEADER.FIELDS (FROM {2}
TO)] ~{0}
 X-GM-LABELS ("a b" (c)) BODY[]<0.9> NIL)
* 5 FETCH (UID 9 ENVELOPE (NIL "dir\\" ((NIL NIL "a" "b"))) BODY[HEADER] "")
* XNEW (what {3}
)))
"""
TEXTS = rb"""* OK Still here :)
* OK [ALERT] use {new portal}
* NO {10}
* OK
*  23 EXISTS

* BAD [x
"""
ANSWERS = rb"""* ESEARCH (TAG "A1") UID COUNT 3 ALL 1:3,9
* SEARCH 2 84 (MODSEQ 9)
* SEARCH
* SEARCH x
* VANISHED (EARLIER) 1:5
* VANISHED 9
* ID NIL
* ID ("name" {1}
x)
* STATUS {3}
a b (UIDNEXT 9)
"""
IDLING = b"""+ idling
* 173 EXISTS
A1 NO [TEMPFAIL]
* BYE going
"""
UNASKED = b"""A1 NO no
* 4 FETCH (UID 0 FLAGS ())
* 1 FETCH (((((
* 1 EXISTS
A2 OK unasked
* 2 EXISTS
"""
ENDLESS = b"""* 4 FETCH (UID 3 BODY[] {99999999999}
* 5 EXISTS
"""
SLIPPED = b"""From: a mail that slipped out of its literal
* 6 EXISTS
"""


def wire(text: bytes) -> bytes:
    """A transcript with the line ends of the wire."""
    return text.replace(b"\n", b"\r\n")


TRANSCRIPTS = [
    *map(wire, (SELECT, LISTS, FETCHES, TEXTS, ANSWERS, IDLING, UNASKED, ENDLESS, SLIPPED)),
    TEXTS,
    SELECT.replace(b"*", b"\0\0*"),
]
"""What servers say: usual things, and each oddity that we have a rule for."""


def feed(pieces: Sequence[bytes]) -> tuple[list[Event], bytes, object]:
    """The events of a connection in which SELECT runs, what it sends, and its final state."""
    dialogue = Dialogue(max_line=2000, max_literal=5000)
    dialogue.receive(b"* PREAUTH hello\r\n")
    dialogue.command(imap_command.select("INBOX"))
    events = [event for piece in pieces for event in dialogue.receive(piece)]
    facts = dialogue.mailbox
    return (
        [_comparable(event) for event in events],
        dialogue.outgoing(),
        facts and (facts.exists, facts.uid_next, facts.uid_validity, facts.read_only, dialogue.capabilities),
    )


def _comparable(event: Event) -> Event:
    """An event without the identity of its exception."""
    return Broken(_Same(event.error)) if isinstance(event, Broken) else event


class _Same(ProtocolViolation):
    """An error that is equal to another with the same type and text."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data in pieces, cut at these places."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


texts = st.one_of(
    st.sampled_from(
        [b"", b":)", b"{10}", b"[x", b'"', b"(", b"use {x}", b"[ALERT] a", b"[UIDNEXT 5]", b"\xff\xfe"]
    ),
    st.binary(max_size=8).map(lambda raw: raw.translate(None, b"\r\n")),
)
strings = st.binary(max_size=20).map(lambda raw: b"{%d}\r\n%b" % (len(raw), raw))
items = st.one_of(
    st.integers(0, 2**33).map(lambda n: b"UID %d" % n),
    st.integers(-1, 2**40).map(lambda n: b"RFC822.SIZE %d" % n),
    st.sampled_from([b"FLAGS (\\Seen a]b)", b'INTERNALDATE " 1-Nov-2026 10:00:00 +0000"', b"X (", b"BODY["]),
    strings.map(lambda s: b"BODY[HEADER.FIELDS (FROM)] " + s),
    strings.map(lambda s: b"BODY[]<0> " + s),
    strings.map(lambda s: b"ENVELOPE (" + s + b' NIL (("x")))'),
)  # fmt: skip
responses = st.one_of(
    texts.map(lambda text: b"* OK " + text),
    texts.map(lambda text: b"+ " + text),
    texts.map(lambda text: b"* XYZ " + text.replace(b"{", b"")),
    st.integers(0, 99).map(lambda n: b"* %d EXISTS" % n),
    st.lists(items, max_size=5).map(lambda parts: b"* 1 FETCH (" + b" ".join(parts) + b")"),
    strings.map(lambda s: b'* LIST () "/" ' + s),
)
transcripts = st.lists(st.tuples(responses, st.sampled_from([b"\r\n", b"\n"])), max_size=6).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


class CuttingTests(SynchronousTestCase):
    """Bytes come as the network likes."""

    def test_recorded_byte_by_byte(self) -> None:
        """Each transcript gives the same, whole and one byte at a time."""
        for transcript in TRANSCRIPTS:
            single = [transcript[at : at + 1] for at in range(len(transcript))]
            self.assertEqual(feed(single), feed([transcript]), transcript)

    def test_recorded_at_every_place(self) -> None:
        """Each transcript gives the same wherever it is cut in two."""
        for transcript in TRANSCRIPTS:
            whole = feed([transcript])
            for place in range(len(transcript)):
                self.assertEqual(feed([transcript[:place], transcript[place:]]), whole, (transcript, place))

    @settings(max_examples=100)
    @given(transcripts, st.lists(st.integers(0, 10000), max_size=12))
    def test_generated_and_ragged(self, transcript: bytes, places: list[int]) -> None:
        """Whatever the server says, cutting it changes nothing."""
        self.assertEqual(feed(cut(transcript, places)), feed([transcript]))

    @settings(max_examples=100)
    @given(st.binary(max_size=200), st.lists(st.integers(0, 10000), max_size=5))
    def test_noise(self, noise: bytes, places: list[int]) -> None:
        """Bytes without sense never raise, and are cut as they like."""
        self.assertEqual(feed(cut(noise, places)), feed([noise]))


class ReadingTests(SynchronousTestCase):
    """What is made of the transcripts."""

    def events(self, transcript: bytes) -> list[Event]:
        """The events of a transcript."""
        return feed([transcript])[0]

    def test_literals_at_the_end_of_a_line(self) -> None:
        """The line goes on behind them, and the next one stays apart (T7)."""
        self.assertEqual(
            self.events(wire(LISTS))[:2],
            [Listed(b"INBOX", b"/", frozenset({b"\\hasnochildren"})), Listed(b'a"b\\c', None, frozenset())],
        )

    def test_a_body_may_look_like_anything(self) -> None:
        """Parentheses, quotes, responses and announcements in a literal are content."""
        body = b'("{5}\r\n))* 12 EXPUNGE\r\n'
        date = b"17-Jul-1996 02:44:25 -0700"
        self.assertEqual(
            self.events(wire(FETCHES)),
            [Fetched(7, 4, date, None, body), Fetched(7, header=b""), Fetched(9, header=b"")],
        )

    def test_texts_for_people_announce_no_literal(self) -> None:
        """Nor do they upset the reader (T8, T9)."""
        events = self.events(wire(TEXTS))
        self.assertEqual(
            [event.text for event in events if isinstance(event, Status)],
            [b"Still here :)", b"use {new portal}", b"{10}", b"", b"[x"],
        )

    def test_an_unreadable_message_hurts_no_other(self) -> None:
        """It is told, the rest goes on."""
        events = self.events(b"* 1 FETCH (UID 4 FLAGS ((((\r\n* 2 FETCH (UID 5 FLAGS ())\r\n")
        self.assertTrue(isinstance(events[0], Unreadable) and events[0].uid == 4)
        self.assertEqual(events[1], Fetched(5))

    def test_a_uid_is_not_guessed_from_what_a_sender_wrote(self) -> None:
        """A subject must not be able to blame another message."""
        (event,) = self.events(b'* 1 FETCH (X-SUBJECT "( UID 9 " Y ((((\r\n')
        self.assertTrue(isinstance(event, Unreadable) and event.uid is None)

    def test_deep_lists(self) -> None:
        """Nesting has a bound and needs no stack."""
        (event,) = self.events(b"* 1 FETCH (UID 3 X " + b"(" * 900 + b")" * 900 + b")\r\n")
        self.assertTrue(isinstance(event, Unreadable) and event.uid == 3)

    def test_bounds(self) -> None:
        """Lines without an end and literals without measure end the connection, at their bound."""
        for pieces in (
            [b"* OK " + b"x" * 1997],
            [b"* OK ", *[b"x" * 100] * 21],
            [b"* OK " + b"x" * 1996 + b"\r\n"],
            [b"* 1 FETCH (BODY[] {5001}\r\n"],
            [b"* 1 FETCH (BODY[] {%b}\r\n" % (b"9" * 1000)],
            [b"* LIST ("] + [b"{1}\r\nx" + b" " * 90] * 50,
            [b"* LIST ("] + [b"{999}\r\n" + b"x" * 999] * 6,
        ):
            with self.subTest(pieces[0][:30]):
                last = feed(pieces)[0][-1]
                self.assertTrue(isinstance(last, Broken) and "more than" in str(last.error))

    def test_a_line_at_its_bound(self) -> None:
        """May be cut anywhere, also within its end."""
        line = b"* OK " + b"x" * 1995 + b"\r\n"
        for pieces in ([line], [line[:-1], b"\n"], [line[:9], line[9:-1], b"\n"], [line[:-2], b"\r\n"]):
            (status,) = feed(pieces)[0]
            self.assertIsInstance(status, Status)

    def test_an_answer_to_nothing(self) -> None:
        """An unknown tag, or a line that is no response: nothing further is believed."""
        events = self.events(wire(UNASKED))
        self.assertIsInstance(events[-1], Broken)
        self.assertNotIn(CountChanged(2), events)
        self.assertEqual(len(self.events(wire(ENDLESS))), 1)


class CommandTests(SynchronousTestCase):
    """The client's side: one command at a time, literals, mechanisms, IDLE, TLS."""

    def ready(self, greeting: bytes = b"* OK [CAPABILITY IMAP4rev1] hi\r\n") -> Dialogue:
        """A dialogue that was greeted."""
        dialogue = Dialogue()
        dialogue.receive(greeting)
        return dialogue

    def test_one_at_a_time(self) -> None:
        """A second command is our own bug, as is one before the greeting."""
        with self.assertRaises(Misuse):
            Dialogue().command(imap_command.NOOP)
        dialogue = self.ready()
        self.assertEqual(dialogue.command(imap_command.NOOP), b"A1 NOOP\r\n")
        with self.assertRaises(Misuse):
            dialogue.command(imap_command.NOOP)
        (completed,) = dialogue.receive(b"a1 OK\r\n")
        self.assertEqual(completed, Completed(imap_command.NOOP, Status(b"a1", Condition.OK)))
        self.assertEqual(dialogue.command(imap_command.NOOP), b"A2 NOOP\r\n")

    def test_literals_wait_for_the_server(self) -> None:
        """Each piece follows a ``+``; a refusal drops the rest."""
        dialogue = self.ready()
        self.assertEqual(dialogue.command(imap_command.login("ä", "ö")), b"A1 LOGIN {2}\r\n")
        self.assertEqual(dialogue.outgoing(), b"")
        dialogue.receive(b"+ go\r\n")
        self.assertEqual(dialogue.outgoing(), "ä {2}\r\n".encode())
        dialogue.receive(b"A1 BAD no\r\n+ go\r\n")
        self.assertEqual(dialogue.outgoing(), b"")

    def test_literal_plus(self) -> None:
        """With LITERAL+ nothing waits."""
        dialogue = self.ready(b"* OK [CAPABILITY IMAP4rev1 LITERAL+] hi\r\n")
        self.assertEqual(dialogue.command(imap_command.login("ä", "b")), "A1 LOGIN {2+}\r\nä b\r\n".encode())

    def test_a_mail_waits_unless_it_is_small(self) -> None:
        """Up to 4,096 octets go along where the server said so; all else waits for the ``+``."""
        for told, octets, waits in (
            (b"LITERAL+", 4096, False),
            (b"LITERAL-", 4096, False),
            (b"LITERAL+", 4097, True),
            (b"LITERAL-", 4097, True),
            (b"IDLE", 1, True),
        ):
            dialogue = self.ready(b"* OK [CAPABILITY IMAP4rev1 " + told + b"] hi\r\n")
            mail = b"x" * octets
            head = rb"A1 APPEND Sent (\Seen) {%d" % octets
            sent = dialogue.command(imap_command.append("Sent", mail))
            self.assertEqual(sent, head + b"}\r\n" if waits else head + b"+}\r\n" + mail + b"\r\n", told)
            dialogue.receive(b"+ go\r\n")
            self.assertEqual(dialogue.outgoing(), mail + b"\r\n" if waits else b"")
            (ended,) = dialogue.receive(b"A1 OK [APPENDUID 7 1] done\r\n")
            self.assertIsInstance(ended, Completed)

    def test_mechanism_without_initial_response(self) -> None:
        """The response follows the first ``+``."""
        dialogue = self.ready(b"* OK [CAPABILITY AUTH=plain] hi\r\n")
        mechanism = choose(dialogue.mechanisms(), Password("a", "b"))
        assert mechanism is not None
        self.assertEqual(dialogue.authenticate(mechanism), b"A1 AUTHENTICATE PLAIN\r\n")
        dialogue.receive(b"+\r\n")
        self.assertEqual(dialogue.outgoing(), b"AGEAYg==\r\n")
        dialogue.receive(b"A1 OK\r\n")
        self.assertEqual((dialogue.state, dialogue.capabilities), (State.AUTHENTICATED, None))

    def test_a_challenge_that_is_no_base64(self) -> None:
        """Is answered with a cancellation, and after that nothing more is said."""
        dialogue = self.ready(b"* OK [CAPABILITY SASL-IR AUTH=XOAUTH2] hi\r\n")
        mechanism = choose(dialogue.mechanisms(), BearerToken("a", "h", 1, "t"))
        assert mechanism is not None
        dialogue.authenticate(mechanism)
        dialogue.receive(b"+ a\r\n")
        self.assertEqual(dialogue.outgoing(), b"*\r\n")
        (broken,) = dialogue.receive(b"+ e30=\r\n")
        self.assertIsInstance(broken, Broken)

    def test_idle(self) -> None:
        """DONE goes out once, after the ``+``, and only while IDLE runs."""
        dialogue = self.ready()
        self.assertEqual(dialogue.done(), b"")
        dialogue.command(imap_command.IDLE)
        self.assertEqual(dialogue.receive(b"+ idling\r\n"), [Idling()])
        self.assertTrue(dialogue.idling)
        self.assertEqual((dialogue.done(), dialogue.done()), (b"DONE\r\n", b""))
        dialogue.receive(b"A1 OK\r\n")
        self.assertFalse(dialogue.idling)

    def test_starttls(self) -> None:
        """Plain text behind the agreement is an attack, whether it came with it or after it."""
        for pieces in ([b"A1 OK go\r\n* CAPABILITY X\r\n"], [b"A1 OK go\r\n", b"*"]):
            dialogue = self.ready()
            dialogue.command(imap_command.STARTTLS)
            *_, last = [event for piece in pieces for event in dialogue.receive(piece)]
            self.assertTrue(isinstance(last, Broken) and isinstance(last.error, TlsRefused))
        dialogue = self.ready()
        dialogue.command(imap_command.STARTTLS)
        dialogue.receive(b"A1 OK go\r\n")
        dialogue.encrypted()
        self.assertIsNone(dialogue.capabilities)

    def test_a_failed_select_leaves_nothing_selected(self) -> None:
        """Also when a mailbox was selected before (RFC 3501 section 6.3.1)."""
        dialogue = self.ready(b"* PREAUTH hi\r\n")
        dialogue.command(imap_command.select("a"))
        dialogue.receive(b"* 3 EXISTS\r\nA1 OK\r\n")
        self.assertEqual(dialogue.state, State.SELECTED)
        dialogue.command(imap_command.select("b"))
        dialogue.receive(b"A2 NO\r\n")
        self.assertEqual((dialogue.state, dialogue.mailbox), (State.AUTHENTICATED, None))
