"""What leaves: the bytes of a mail, read back by the standard library."""

import email
import email.policy
import re
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import Refusal
from mailgateway.ids import MessageId, OutboxId, RouteId
from mailgateway.mail.automatic import OwnMail, classify
from mailgateway.mail.compose import Composed, compose
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.letter import Enclosure, Item, Letter, LetterKind, Offer, Who
from mailgateway.mail.own import Own
from mailgateway.mail.tag import ShortTag, find_tag
from tests.mail.mails import AGENT, OWN, PERSON, SENT_ID

NASTY = (
    "\r\nBcc: eve@evil.example",
    "=?utf-8?Q?x?= ",
    "x" * 200,
    "Ü" * 120,
    "[mg:000000] [x](mailto:e@e)",
    "```python\n'\n```",
    "![i](attachment:f-1)",
    "\ud800\x00\x85",
    '"a, b" <c@d>',
    "<b>&amp;",
)
IDS = (
    *(MessageId(f"<{number}@example.org>") for number in range(5)),
    MessageId(f"<{'p' * 130}@example.net>"),
)

LETTER = Letter(
    kind=LetterKind.DECISION,
    sender_address=AGENT,
    sender_name="Coding agents",
    recipient=PERSON,
    tag="mg",
    route=RouteId("f913c9"),
    subject="Which database?",
    text="Shall I use **SQLite** or PostgreSQL?\n\n```\nx = 1\n.\n..\nFrom here\n```\n",
    message_id=SENT_ID,
    date=datetime(2026, 11, 30, 10, 0, tzinfo=UTC),
    instance="i-1",
    outbox_id=OutboxId("o-1"),
    who=Who(title="Migration", project="api", branch="main", device="laptop"),
    options=(Offer(label="SQLite"), Offer(label="PostgreSQL")),
    recommendation="SQLite",
)


def parsed(composed: Composed) -> EmailMessage:
    """The mail as the standard library reads it."""
    message = email.message_from_bytes(composed.raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def text_of(message: EmailMessage) -> str:
    """Its plain text."""
    part = message.get_body(("plain",))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


def faults(raw: bytes) -> list[str]:
    """What a strict server would refuse."""
    found = []
    if re.search(rb"(?<!\r)\n|\r(?!\n)", raw):
        found.append("bare CR or LF")
    if b"\0" in raw or not raw.isascii():
        found.append("not plain ASCII")
    head, _, body = raw.partition(b"\r\n\r\n")
    if any(len(line) > 998 for line in head.split(b"\r\n")):
        found.append("long header line")
    if any(len(line) > 76 for line in body.split(b"\r\n")):
        found.append("long body line")
    if not raw.endswith(b"\r\n"):
        found.append("no line end at the end")
    return found


class ComposeTests(SynchronousTestCase):
    """One letter, its bytes, and back."""

    def test_fields_come_back(self) -> None:
        """Every field that was given, and those that keep machines quiet."""
        letter = evolve(
            LETTER, in_reply_to=MessageId("<a@b>"), references=(MessageId("<r@b>"), MessageId("<a@b>"))
        )
        message = parsed(compose(letter))
        self.assertEqual(
            {name: str(message[name]) for name in message if not name.startswith(("Content", "MIME"))},
            {
                "Date": "Mon, 30 Nov 2026 10:00:00 +0000",
                "From": f"Coding agents <{AGENT}>",
                "To": PERSON,
                "Subject": "[mg:f913c9] Which database?",
                "Message-ID": SENT_ID,
                "In-Reply-To": "<a@b>",
                "References": "<r@b> <a@b>",
                "Auto-Submitted": "auto-generated",
                "X-Auto-Response-Suppress": "All",
                "X-Mailgateway-Instance": "i-1",
                "X-Mailgateway-Id": "o-1",
            },
        )

    def test_the_text_asks_and_says_how_to_answer(self) -> None:
        """Who, question, words, numbered options, recommendation, footer; kept for the thread as sent."""
        composed = compose(LETTER)
        self.assertEqual(
            composed.text,
            "Needs you · Migration · api · main · laptop\n\nWhich database?\n\n"
            "Shall I use **SQLite** or PostgreSQL?\n\n```\nx = 1\n.\n..\nFrom here\n```\n\n"
            "[mg:f913c9] Options\n\n1. SQLite (recommended)\n2. PostgreSQL\n\n[mg:f913c9] How to answer\n\n"
            "Reply with the number of an option, or in your own words.\n\n"
            "The session waits for you; without an answer it does not go on with\nthis.\n",
        )
        self.assertEqual(text_of(parsed(composed)), composed.text)
        self.assertEqual(composed.subject, "[mg:f913c9] Which database?")

    def test_the_page_shows_the_same(self) -> None:
        """With a link for each option, and nothing that runs or loads."""
        part = parsed(
            compose(evolve(LETTER, text="<script>x</script> ![i](https://e.example/i.png) **b**"))
        ).get_body(("html",))
        assert part is not None
        page = str(part.get_content())
        self.assertIn("mailto:agent@example.org?subject=Re%3A%20%5Bmg%3Af913c9%5D", page)
        self.assertIn("<strong", page)
        self.assertNotIn("<script", page)
        self.assertNotIn("<img", page)
        self.assertIn("prefers-color-scheme", page)

    def test_the_tag_stands_in_plain_ascii(self) -> None:
        """First, on the first line, whatever the human subject is; a foreign tag in it is taken out."""
        for subject in (
            "Größe?",
            "x" * 150,
            "Ü" * 190,
            "[mg:000000] Re: x",
            "=?utf-8?Q?x?=",
            "",
            "a\r\nBcc: e@e",
        ):
            composed = compose(evolve(LETTER, subject=subject))
            self.assertRegex(composed.raw, rb"\r\nSubject: \[mg:f913c9\]")
            self.assertEqual(str(parsed(composed)["Subject"]).strip(), composed.subject)
            self.assertEqual(find_tag(composed.subject, OWN.accepted_tags), ShortTag("mg", RouteId("f913c9")))
            self.assertEqual(composed.subject.count("[mg:"), 1)
            self.assertIsNone(parsed(composed)["Bcc"])

    def test_a_gateway_knows_it_as_a_gateway_s(self) -> None:
        """So that nothing we send can answer us, whoever reads it."""
        inbound = read(compose(LETTER).raw)
        assert isinstance(inbound, Inbound)
        self.assertIsInstance(classify(inbound, Own()), OwnMail)

    def test_files_come_back(self) -> None:
        """With their names, also those that are not ASCII."""
        files = (
            Enclosure("a.txt", "text/plain", b"hello\n"),
            Enclosure("größe " + "x" * 80 + ".png", "image/png", bytes(range(256)) * 9),
            Enclosure("../x\r\ny.eml", "message/rfc822", b"From: x\n\n"),
        )
        message = parsed(compose(evolve(LETTER, attachments=files)))
        got = [
            (part.get_filename(), part.get_content_type(), part.get_payload(decode=True))
            for part in message.iter_attachments()
        ]
        self.assertEqual(
            got,
            [
                ("a.txt", "text/plain", b"hello\n"),
                (files[1].filename, "image/png", files[1].data),
                ("x y.eml", "application/octet-stream", b"From: x\n\n"),
            ],
        )

    def test_what_cannot_stand_in_a_header_is_refused(self) -> None:
        """Addresses and ids are never cleaned into something else."""
        for letter in (
            evolve(LETTER, recipient="robin@example.org, eve@evil.example"),
            evolve(LETTER, recipient="robin@example.org\r\nBcc: eve@evil.example"),
            evolve(LETTER, recipient="größe@example.org"),
            evolve(LETTER, sender_address="agent"),
            evolve(LETTER, message_id=MessageId("<a@b>\r\nX: y")),
            evolve(LETTER, references=(MessageId("<a@b> <c@d>"),)),
            evolve(LETTER, instance="a\nb"),
            evolve(LETTER, outbox_id=OutboxId("")),
        ):
            self.assertEqual(self.assertRaises(Refusal, compose, letter).code, "invalid")

    def test_an_international_domain_becomes_a_labels(self) -> None:
        """No server needs SMTPUTF8 for it."""
        self.assertEqual(
            str(parsed(compose(evolve(LETTER, recipient="robin@exämple.org")))["To"]),
            "robin@xn--exmple-cua.org",
        )

    def test_a_long_thread_is_cut_in_the_middle(self) -> None:
        """First and newest ancestors stay, each id whole on its line."""
        references = tuple(MessageId(f"<{number}.{'x' * 60}@example.org>") for number in range(200))
        raw = compose(evolve(LETTER, references=references)).raw
        kept = str(email.message_from_bytes(raw)["References"]).split()
        self.assertEqual(kept, [references[0], *references[-19:]])
        self.assertEqual(faults(raw), [])

    def test_code_arrives_line_by_line(self) -> None:
        """Dots, long lines, trailing blanks, lines of dashes."""
        lines = [".", "..", ".x", "x" * 300, "From x", "trailing  ", "\ttab", "-- ", "=3D", "ü" * 100]
        text = "```\n" + "\n".join(lines) + "\n```\n"
        self.assertIn("\n".join(lines), text_of(parsed(compose(evolve(LETTER, text=text)))))

    def test_a_huge_text_is_sent_plain_and_soon(self) -> None:
        """Rendering it would hold up everybody else."""
        composed = compose(evolve(LETTER, text="word " * 150_000))
        self.assertIsNone(parsed(composed).get_body(("html",)))
        self.assertEqual(faults(composed.raw), [])

    def test_the_same_letter_gives_the_same_bytes(self) -> None:
        """What was shown is what is sent."""
        self.assertEqual(compose(LETTER), compose(LETTER))

    @settings(max_examples=80)
    @given(data=st.data())
    def test_no_words_make_faulty_bytes(self, data: st.DataObject) -> None:
        """Whatever stands in any field: bytes that a strict server takes, and every field as it was meant."""

        def words(size: int = 60) -> str:
            return data.draw(st.one_of(st.text(max_size=size), st.sampled_from(NASTY)))

        letter = Letter(
            kind=data.draw(st.sampled_from(LetterKind)),
            sender_address=AGENT,
            sender_name=words(),
            recipient=PERSON,
            tag="mg",
            route=RouteId(data.draw(st.sampled_from(["f913c9", "f913c9aa", ""]))),
            subject=words(120),
            text=words(400),
            message_id=SENT_ID,
            date=LETTER.date,
            instance="i-1",
            outbox_id=OutboxId("o-1"),
            who=Who(title=words(), project=words(), branch=words(), device=words()),
            ambiguity=words(),
            options=tuple(
                Offer(label=words(), value=words(), description=words(), impact=words())
                for _ in range(data.draw(st.integers(0, 3)))
            ),
            recommendation=words(),
            multi=data.draw(st.booleans()),
            items=tuple(
                Item(subject=words(), text=words(), at=LETTER.date)
                for _ in range(data.draw(st.integers(0, 2)))
            ),
            in_reply_to=data.draw(st.sampled_from([None, MessageId("<a@b>")])),
            references=tuple(data.draw(st.lists(st.sampled_from(IDS), max_size=30))),
            attachments=(
                Enclosure(words(), words(), b"\x89PNG\r\n\x1a\n", "f-1"),
                Enclosure(words(), "x/y", b""),
            ),
            reply_address=data.draw(st.sampled_from(["", "agent+f913c9@example.org"])),
            one_tap=data.draw(st.booleans()),
            card_url=data.draw(st.sampled_from(["", "https://gateway.example.org/inbox/questions/q-1"])),
            asked_at=data.draw(st.sampled_from([None, LETTER.date - timedelta(hours=5)])),
            expires_at=data.draw(st.sampled_from([None, LETTER.date + timedelta(days=7)])),
        )
        composed = compose(letter)
        self.assertEqual(faults(composed.raw), [])
        message = parsed(composed)
        self.assertEqual([str(each) for part in message.walk() for each in part.defects], [])
        names = [
            line.split(b":")[0].decode()
            for line in composed.raw.split(b"\r\n\r\n")[0].split(b"\r\n")
            if line[:1].strip()
        ]
        self.assertEqual(sorted(names), sorted(self.expected_names(letter)))
        self.assertEqual(text_of(message), composed.text)
        self.assertEqual(" ".join(str(message["Subject"]).split()), " ".join(composed.subject.split()))
        kept = (
            [*letter.references[:1], *letter.references[-19:]]
            if len(letter.references) > 20
            else letter.references
        )
        self.assertEqual(str(message["References"] or "").split(), list(kept))
        self.assertEqual(message["From"].addresses[0].addr_spec, AGENT)
        files = [part.get_payload(decode=True) for part in message.walk() if part.get_filename()]
        self.assertEqual(sorted(files), sorted(each.data for each in letter.attachments))
        old = email.message_from_bytes(composed.raw)
        self.assertEqual(sorted(old.keys()), sorted(message.keys()))

    @staticmethod
    def expected_names(letter: Letter) -> list[str]:
        """The fields that such a letter has, and no others."""
        return [
            *("Date", "From", "To", "Subject", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress"),
            *("X-Mailgateway-Instance", "X-Mailgateway-Id", "MIME-Version", "Content-Type"),
            *(["Reply-To"] if letter.reply_address else []),
            *(["In-Reply-To"] if letter.in_reply_to else []),
            *(["References"] if letter.references else []),
        ]
