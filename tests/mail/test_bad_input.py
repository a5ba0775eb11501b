"""Whole mails that are made to hurt: each is understood in little time and memory, and time grows with size.

Twice the input may take 2.6 times the time; the rest of `test_bounds` looks at each reader alone.
"""

import time
import tracemalloc
from collections.abc import Callable, Mapping

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.explain import Context, explain
from tests.mail.mails import AGENT, OWN, PERSON, SENT_ID, SENT_TEXT, lay, reply

SECONDS = 0.5
NOTHING = 0.02
"""Seconds below which the clock tells more about itself."""

MEGABYTES = 20
GROWTH = 2.6
KNOWN = Context.from_json({"original_text": SENT_TEXT * 30})

HTML = "text/html; charset=utf-8"


def text(unit: str, size: int) -> bytes:
    """A reply that repeats something up to a size."""
    return reply(unit * (size // len(unit.encode())))


def page(unit: str, size: int) -> bytes:
    """The same in HTML."""
    return reply(unit * (size // len(unit.encode())), content_type=HTML)


def nested(levels: int) -> bytes:
    """Multiparts in one another, the words in the innermost."""
    opened = "".join(
        f'--b{level}\nContent-Type: multipart/mixed; boundary="b{level + 1}"\n\n' for level in range(levels)
    )
    closed = "".join(f"--b{level}--\n" for level in range(levels, -1, -1))
    return reply(
        f"{opened}--b{levels}\nContent-Type: text/plain\n\nYes.\n{closed}",
        content_type='multipart/mixed; boundary="b0"',
    )


def groups(count: int) -> bytes:
    """A delivery report about many recipients."""
    status = "".join(f"Final-Recipient: rfc822; u{n}@example.net\nAction: failed\n\n" for n in range(count))
    return lay(
        [
            ("From", "MAILER-DAEMON@example.org"),
            ("Content-Type", 'multipart/report; report-type=delivery-status; boundary="d"'),
        ],
        f"--d\nContent-Type: message/delivery-status\n\n{status}--d--\n",
    )


SIZED: Mapping[str, tuple[int, Callable[[int], bytes]]] = {
    "On a a a": (64_000, lambda size: text("On a a a ", size)),
    "On a a a, in lines": (64_000, lambda size: text("On a a a\n", size)),
    "newlines": (100_000, lambda size: text("\n", size)),
    "quote marks": (8_000, lambda lines: reply("> x\n" * lines)),
    "quote marks alone": (8_000, lambda lines: reply(">\n" * lines)),
    "marks in one line": (64_000, lambda size: text("> ", size)),
    "nested divisions": (20_000, lambda count: reply("<div>" * count, content_type=HTML)),
    "nested quotations": (20_000, lambda count: reply("<blockquote>" * count, content_type=HTML)),
    "open tags": (64_000, lambda size: page("<a ", size)),
    "open comments": (64_000, lambda size: page("<!--", size)),
    "open attributes": (64_000, lambda size: page('<a b="', size)),
    "links": (64_000, lambda size: page('<a href="https://x.example/">x<br>', size)),
    "links that end": (64_000, lambda size: page('<a href="https://x.example/">x</a>', size)),
    "nested multiparts": (120, nested),
    "references": (60_000, lambda size: reply(more=[("References", "<a@b> " * (size // 6))])),
    "references in lines": (60_000, lambda size: reply(more=[("References", "<a@b>\r\n " * (size // 8))])),
    "zero bytes": (64_000, lambda size: reply().replace(b"Yes.", b"\0" * size)),
    "truncated base64": (
        200_000,
        lambda size: reply("QUJD" * (size // 4) + "Q", more=[("Content-Transfer-Encoding", "base64")]),
    ),
    "short lines of base64": (
        100_000,
        lambda size: reply("QQ==\n" * (size // 5), more=[("Content-Transfer-Encoding", "base64")]),
    ),
    "soft line breaks": (
        100_000,
        lambda size: reply("a=\n" * (size // 3), more=[("Content-Transfer-Encoding", "quoted-printable")]),
    ),
    "attributions": (64_000, lambda size: text(f"On 1.1.2026 {AGENT} wrote:\n", size)),
    "halves of attributions": (64_000, lambda size: text(f"{AGENT}\n\n", size)),
    "attributions of others": (
        64_000,
        lambda size: text("On 1.1.2026 14:05 X <x@y.example> wrote:\n\n", size),
    ),
    "labels": (64_000, lambda size: text("From: x\n", size)),
    "labels that name us": (64_000, lambda size: text(f"From: {AGENT} 2026\n\n", size)),
    "our lines": (64_000, lambda size: text("Shall I use SQLite or PostgreSQL?\n", size)),
    "our lines, quoted, with answers": (
        64_000,
        lambda size: text("> Shall I use SQLite or PostgreSQL?\nYes.\n", size),
    ),
    "pieces of our lines": (64_000, lambda size: text("> Shall I use SQLite or\nPostgreSQL?\n", size)),
    "signatures": (64_000, lambda size: text("-- \nx\n", size)),
    "footers": (64_000, lambda size: text("Sent from my iPhone\n", size)),
    "half a footer": (64_000, lambda size: text("sent from ", size)),
    "rules": (64_000, lambda size: text("_____\n", size)),
    "notices": (64_000, lambda size: text("This message is confidential. ", size)),
    "fences": (64_000, lambda size: text("```\n", size)),
    "blanks": (64_000, lambda size: text(" ", size)),
    "blanks that are none": (64_000, lambda size: text("\u200b", size)),
    "reactions": (64_000, lambda size: text("x reacted via gmail ", size)),
    "recipients of a report": (1_000, groups),
    "addresses in a report": (
        64_000,
        lambda size: lay([("From", "MAILER-DAEMON@x.example")], f"<{PERSON}>:\n" * (size // 25)),
    ),
    "Message-IDs in a report": (
        64_000,
        lambda size: lay([("From", "MAILER-DAEMON@x.example")], f"{SENT_ID}\n" * (size // 60)),
    ),
    "guesses at a boundary": (
        64_000,
        lambda size: reply("--" * (size // 2), content_type="multipart/mixed"),
    ),
    "encoded words": (60_000, lambda size: reply(subject="=?utf-8?Q?a?= " * (size // 14))),
    "prefixes of a subject": (60_000, lambda size: reply(subject="Re: " * (size // 4))),
}


def seconds(raw: bytes) -> float:
    """The processor's time that the whole reading of a mail takes."""
    began = time.process_time()
    explain(raw, OWN, KNOWN)
    return time.process_time() - began


class BadInputTests(SynchronousTestCase):
    """Nothing hurts."""

    def test_little_time(self) -> None:
        """Half a second each, and twice the input takes about twice the time."""
        for name, (size, make) in SIZED.items():
            raw = make(size)
            took = min(seconds(raw) for _ in range(2))
            self.assertLess(took, SECONDS, name)
            half = make(size // 2)
            for _ in range(6):
                took = min(took, seconds(raw))
                if took < NOTHING or took < GROWTH * max(seconds(half), NOTHING / 2):
                    break
            else:
                self.fail(f"{name}: {took:.3f} s, and {seconds(half):.3f} s for half of it")

    def test_little_memory(self) -> None:
        """Whatever it is made of."""
        for name, (size, make) in SIZED.items():
            raw = make(size // 2)  # tracing makes it many times slower
            tracemalloc.start()
            explain(raw, OWN, KNOWN)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertLess(peak, MEGABYTES * 1024 * 1024, name)

    def test_what_is_said_is_still_found(self) -> None:
        """A bound is not a refusal: the words in the depth of 300 multiparts are read."""
        self.assertEqual(explain(nested(300), OWN, KNOWN).text, "Yes.")
