"""The strict reading of From: the attack table, row by row."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.decode import Field
from mailgateway.mail.sender import OddSender, OneMailbox, match_mailbox, sender_of
from tests.mail.mails import EVIL, PERSON

REFUSED: dict[str, bytes] = {
    "address outside the brackets": f"{PERSON} <{EVIL}>".encode(),
    "two addresses": f"{PERSON}, {EVIL}".encode(),
    "two addresses, other order": f"{EVIL}, {PERSON}".encode(),
    "bare address, then another": f"{PERSON}, Inc <{EVIL}>".encode(),
    "group": f"Team: {PERSON};".encode(),
    "group named as the person": f"{PERSON}: {EVIL};".encode(),
    "encoded word as the address": b"=?utf-8?B?PHJvYmluQGV4YW1wbGUub3JnPg==?=",
    "encoded word in the local part": b"=?utf-8?B?cm9iaW5AZXhhbXBsZS5vcmcAAA==?=@evil.example",
    "encoded line break in the name": f"=?utf-8?Q?x=0D=0AFrom:_robin=40example.org?= <{EVIL}>".encode(),
    "encoded NUL in the name": f"=?utf-8?Q?x=00?= <{PERSON}>".encode(),
    "NUL behind the address": b"robin@example.org\0@evil.example",
    "comment behind": f"{PERSON}(<{EVIL}>)".encode(),
    "comment inside": b"robin@(evil.example)example.org",
    "comment with the person": f"{EVIL} (<{PERSON}>)".encode(),
    "comment first": f"({PERSON}) {EVIL}".encode(),
    "unclosed comment": f"{PERSON}(<{EVIL}>".encode(),
    "two brackets": f"<{PERSON}> <{EVIL}>".encode(),
    "name and two brackets": f"Robin <{PERSON}><{EVIL}>".encode(),
    "semicolon": f"{PERSON}; {EVIL}".encode(),
    "source route": f"<@evil.example:{PERSON}>".encode(),
    "two at signs": f"{PERSON}@evil.example".encode(),
    "escaped at": b"robin\\@example.org@evil.example",
    "quoted local part": f'"{PERSON}"@evil.example'.encode(),
    "Cyrillic letter in the domain": "robin@ex\u0430mple.org".encode(),
    "Kelvin sign": "\u212aen@example.org".encode(),
    "fullwidth at": "robin\uff20example.org".encode(),
    "direction mark in the name": f"\u202eRobin <{PERSON}>".encode(),
    "trailing dot": b"<robin@example.org.>",
    "domain literal": b"<robin@[127.0.0.1]>",
    "empty": b"",
    "only a name": b"Robin",
    "unclosed bracket": f"Robin <{PERSON}".encode(),
    "unclosed quote": f'"Robin <{PERSON}>'.encode(),
    "too long": b"x" * 1000 + f" <{PERSON}>".encode(),
}

ACCEPTED: dict[bytes, OneMailbox] = {
    b"robin@example.org": OneMailbox("robin@example.org"),
    b"<robin@example.org>": OneMailbox("robin@example.org"),
    b"Robin Sommer <robin@Example.ORG>": OneMailbox("robin@example.org", "Robin Sommer"),
    b'"Sommer, Robin" <robin@example.org>': OneMailbox("robin@example.org", "Sommer, Robin"),
    b"Robin S. Sommer <robin@example.org>": OneMailbox("robin@example.org", "Robin S. Sommer"),
    b"=?utf-8?Q?R=C3=B6bin?= <robin@example.org>": OneMailbox("robin@example.org", "Röbin"),
    b'"robin@example.org" <eve@evil.example>': OneMailbox(EVIL, "robin@example.org"),
    b"=?utf-8?Q?robin=40example.org?= <eve@evil.example>": OneMailbox(EVIL, "robin@example.org"),
    b"robin@xn--exmple-4nf.org": OneMailbox("robin@xn--exmple-4nf.org"),
    b"Robin@example.org": OneMailbox("Robin@example.org"),
    b"=?utf-8?B?4oCuUm9iaW4=?= <robin@example.org>": OneMailbox("robin@example.org", "Robin"),
}


class SenderTests(SynchronousTestCase):
    """Two forms of From are accepted and nothing else."""

    def test_every_other_form_is_refused(self) -> None:
        """What mail programs read in different ways is refused, however harmless it looks."""
        let_in = [name for name, raw in REFUSED.items() if not isinstance(match_mailbox(raw), OddSender)]
        self.assertEqual(let_in, [])

    def test_the_two_forms_are_read_exactly(self) -> None:
        """The address is that in the brackets, whatever the name pretends; the local part keeps its case."""
        for raw, wanted in ACCEPTED.items():
            self.assertEqual(match_mailbox(raw), wanted)

    def test_there_is_exactly_one_from(self) -> None:
        """None, two, and two that are equal are refused."""
        one = Field("from", PERSON.encode())
        self.assertIsInstance(sender_of([]), OddSender)
        self.assertIsInstance(sender_of([one, one]), OddSender)
        self.assertEqual(sender_of([Field("sender", EVIL.encode()), one]), OneMailbox(PERSON))

    @given(st.binary(max_size=300))
    def test_no_bytes_raise(self, value: bytes) -> None:
        """Whatever is accepted has one @ and is plain ASCII."""
        match match_mailbox(value):
            case OneMailbox(address=address):
                self.assertEqual(address.count("@"), 1)
                self.assertTrue(address.isascii())
            case OddSender(reason=reason):
                self.assertTrue(reason)

    @given(st.text(alphabet='robin@example.org<>()",;: \\=?evil', max_size=60))
    def test_what_looks_like_from_is_read_in_one_way(self, text: str) -> None:
        """An accepted bare value is its own address; an accepted other one ends with it in brackets."""
        verdict = match_mailbox(text.encode())
        if isinstance(verdict, OneMailbox):
            bare = text.strip()
            self.assertTrue(bare == verdict.address or bare.endswith(f"<{verdict.address}>"))

    def test_a_long_value_takes_no_time(self) -> None:
        """The grammar cannot be made to backtrack; were it quadratic, this would not end."""
        for raw in (b"a " * 499, b'"' + b"a" * 990, b"a." * 499, b"<" * 998):
            self.assertIsInstance(match_mailbox(raw), OddSender)
