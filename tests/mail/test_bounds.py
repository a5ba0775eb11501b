"""Time that a mail can take: linear in its size, whatever it is made of.

Each row repeats what some reader could stumble over, up to a quarter of what it reads and up to all of it.
Four times the work may take up to nine times as long here, since the machine has other things to do;
quadratic work takes sixteen times.  What takes next to nothing even at the full size is not compared: there
the clock tells more about itself than about the code.
"""

import gc
import time
from collections.abc import Callable, Iterable
from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.judge import judge
from mailgateway.domain.routing import claims_of
from mailgateway.mail.authenticity import authenticate
from mailgateway.mail.automatic import classify
from mailgateway.mail.charset import CODECS, decode_text
from mailgateway.mail.decode import (
    HEADER_LIMIT,
    Malformed,
    decode_base64,
    decode_header,
    decode_transfer,
    parse_fields,
    parse_fields_kindly,
)
from mailgateway.mail.inbound import Inbound, is_candidate, read
from mailgateway.mail.markup import lines_of_html
from mailgateway.mail.mime import content_type_of
from mailgateway.mail.parts import safe_filename
from mailgateway.mail.reply import separate, typed_words
from mailgateway.mail.results import VALUE_LIMIT, parse_results
from mailgateway.mail.sender import FROM_LIMIT, match_mailbox
from mailgateway.mail.tag import find_tag, strip_tags
from tests.mail.mails import AGENT, EVIL, GOOD_RESULTS, OWN, PERSON, reply

NOTHING = 0.02
"""Seconds of the processor that are next to nothing: not a bound for any work, but for comparing it."""

SIZE = 50_000
"""Bytes of a body: some thousand units are enough to tell how the work grows."""

WORD = b"=?utf-8?Q?" + b"a" * 50 + b"?= "

HEADER_VALUES = (
    *(
        b"=?",
        b"=?utf-8?Q?",
        WORD,
        b"=?utf-8?Q?a?==?cp1252?Q?a?=",
        b"=?_punycode?Q?a-aaaa?= ",
        b"=?utf-8?B?QQ==?= ",
    ),
    *(
        b"a",
        b" ",
        b"(",
        b")",
        b"(a",
        b"<",
        b"<a@b>",
        b"a@",
        b"@",
        b"a.",
        b'"',
        b'"a',
        b"\\",
        b";",
        b"; ",
        b";a",
    ),
    *(
        b";a=",
        b';a="',
        b";a*0*=utf-8''%41",
        b"=",
        b"[",
        b"[mg:",
        b"[mg:f913c9] ",
        b"<mg.f913c9.",
        b"from a by (",
    ),
    *(
        b"a+",
        b"agent+f913c9@example.org, ",
        b":",
        b"\xff",
        b"\x1b$B",
        b"%",
        b"dkim=pass a=b ",
        b"d=example.org;",
    ),
)


def seconds(run: Callable[[], object]) -> float:
    """Seconds of the processor that a call takes, without those for the garbage of other tests."""
    gc.disable()
    try:
        began = time.process_time()
        run()
        return time.process_time() - began
    finally:
        gc.enable()


def header_with(name: bytes, value: bytes) -> bytes:
    """A person's header with one long field on top, of which only so much is long as a header may be."""
    return name + b": " + value + b"\r\n" + reply().split(b"\r\n\r\n")[0]


class LinearTests(SynchronousTestCase):
    """Four times the work in about four times the time."""

    def assert_linear(self, name: str, run: Callable[[int], object]) -> None:
        """``run`` does a share of the work, given in quarters."""
        whole, share = [seconds(lambda: run(4))], []
        if whole[0] < NOTHING:
            return
        for _ in range(5):
            share.append(seconds(lambda: run(1)))
            if min(whole) < 9 * min(share):
                return
            whole.append(seconds(lambda: run(4)))
        self.fail(f"{name}: four times the work takes {min(whole) / min(share):.1f} times as long")

    def each(self, readers: Iterable[Callable[[bytes], object]], units: Iterable[bytes], limit: int) -> None:
        """Every reader with every unit, repeated up to the limit."""
        for unit in units:
            for number, reader in enumerate(readers):

                def run(
                    quarters: int, unit: bytes = unit, reader: Callable[[bytes], object] = reader
                ) -> None:
                    reader((unit * (limit // len(unit) + 1))[: limit * quarters // 4])

                self.assert_linear(f"reader {number} of {unit[:30]!r}", run)

    def test_header_values(self) -> None:
        """All that reads one value, at the size of the largest header."""
        readers: list[Callable[[bytes], object]] = [
            decode_header,
            content_type_of,
            parse_fields,
            parse_fields_kindly,
            lambda value: find_tag(value.decode("latin-1"), OWN.accepted_tags),
            lambda value: strip_tags(value.decode("latin-1"), OWN.accepted_tags),
            lambda value: safe_filename(value.decode("latin-1"), 1),
        ]
        self.each(readers, HEADER_VALUES, HEADER_LIMIT)
        self.each([parse_results], HEADER_VALUES, VALUE_LIMIT)
        self.each([match_mailbox], HEADER_VALUES, FROM_LIMIT)

    def test_whole_headers(self) -> None:
        """A value in each field that is read, through all that judges a header."""
        names = (
            *(b"Subject", b"To", b"Cc", b"From", b"Received", b"Authentication-Results", b"DKIM-Signature"),
            *(b"In-Reply-To", b"References", b"Message-ID", b"Content-Type", b"Auto-Submitted", b"X-Other"),
        )

        def judged(name: bytes, value: bytes) -> None:
            raw = header_with(name, value)
            inbound = read(raw)
            if not isinstance(inbound, Malformed):
                judge(raw, OWN)
                classify(inbound, OWN)
                authenticate(inbound, OWN)
                claims_of(inbound, OWN)

        for name in names:
            self.each([partial(judged, name)], HEADER_VALUES, HEADER_LIMIT - 2000)

    def test_many_fields(self) -> None:
        """As many as a header may have, of each kind that is counted or searched."""
        fields = (
            b"Authentication-Results: " + GOOD_RESULTS.replace("\r\n", "").encode(),
            *(
                b"Received: from a (b (c)) by mx.example.net; x",
                b"Subject: [mg:f913c9] " + WORD,
                b"References: <a@b>",
            ),
            *(
                b"DKIM-Signature: v=1; d=example.org; h=from:to:subject",
                b"To: agent+f913c9@example.org",
                b"A: b",
                b"A",
            ),
        )
        self.each(
            [lambda raw: judge(raw + b"\r\nFrom: " + PERSON.encode(), OWN)],
            (f + b"\r\n" for f in fields),
            60_000,
        )

    def test_the_scan(self) -> None:
        """A stranger's header fields of any size: parsed only up to the bound, in the callback of a fetch."""

        def scanned(head: bytes, raw: bytes) -> bool:
            return is_candidate(head + raw, OWN)

        for size in (HEADER_LIMIT, 500_000):
            for trace in (b"", b"To: agent+f913c9@example.org\r\n"):
                head = b"From: " + EVIL.encode() + b"\r\n" + trace + b"Subject: "
                self.each([partial(scanned, head)], HEADER_VALUES, size)
            fold = (unit + b"\r\n " for unit in HEADER_VALUES)
            self.each([lambda raw: is_candidate(b"Subject: " + raw, OWN)], fold, size)
            self.each([lambda raw: is_candidate(raw, OWN)], [b"Subject: " + WORD + b"\r\n"], size)

    def test_charsets(self) -> None:
        """Every codec of the table."""
        units = (
            b"a",
            b"\xff",
            b"\x81",
            b"\x1b$B",
            b"\x1b(B",
            b"+2AA-",
            b"+",
            b"~{",
            b"\x0e",
            b"<meta charset=",
            b"a-",
        )
        readers = [partial(decode_text, charset=codec) for codec in CODECS]
        self.each(readers, units, SIZE)
        self.each([lambda data: decode_text(b"x-" + data, "punycode")], units, SIZE)

    def test_transfer_encodings(self) -> None:
        """Bodies as large as they come are decoded for attachments."""
        units = (
            b"QUJD",
            b"QQ==",
            b"QQ==\n",
            b"Q\n",
            b"=",
            b"=\n",
            b"=41",
            b"_",
            b"\n",
            b"QUJD" * 19 + b"\r\n",
            b"Q Q",
        )
        readers = (decode_base64, lambda data: decode_transfer(data, "quoted-printable"))
        self.each(readers, units, SIZE)

    def test_texts(self) -> None:
        """What is typed, alone and in answer to a text of ours that is as long."""

        def answered(text: bytes) -> None:
            sent = "\n".join(f"line {number} of what we sent" for number in range(len(text) // 20))
            separate(text.decode(), OWN, sent)

        units = (
            *(
                "--\n",
                ">\n",
                ":\n",
                "\n",
                f"{AGENT}:\n",
                "Coding agents wrote:\n\n\n",
                "```\n",
                "a",
                " ",
                ">",
                "-",
            ),
            *(
                f"On 2026-11-30 {AGENT} wrote:\n> x\n",
                f"From: {AGENT} 2026\n",
                f"From: {AGENT}\n\nTo: 2026\n",
            ),
            *(
                f"a: {AGENT}\n",
                "Coding agents\nx wrote:\n",
                "x 2026:\n",
                "-- \nx\n",
                "____\n",
                "Sent from my x\n",
            ),
            *(
                "> x\ny\n",
                "> line 7 of what we sent\nwhat we sent\n",
                "> line 7 of what we sent\nsent what we\n",
                "x " * 150 + "wrote:\n",
                "|" * 200 + ":\n",
            ),
            *(
                "Coding agents x\na\nb\nc\nd wrote:\n",
                f"{AGENT} {'x' * 360}\n" * 4 + "wrote:\n",
                "> 1. SQLite\n2.\n",
            ),
        )
        readers = (lambda text: separate(text.decode(), OWN, None), answered)
        self.each(readers, [unit.encode() for unit in units], SIZE)

    def test_flowed_text(self) -> None:
        """Joining lines one by one would copy the paragraph with each of them."""
        flowed = "text/plain; charset=utf-8; format=flowed; delsp=yes"
        head = reply(content_type=flowed).split(b"\r\n\r\n")[0] + b"\r\n\r\n"

        def words(text: bytes) -> None:
            inbound = read(head + text)
            assert isinstance(inbound, Inbound)
            typed_words(inbound, OWN, None)

        self.each([words], (b"a \n", b" \n", b"> a \n", b">\n", b"-- \n", b"a" * 70 + b" \n"), 6 * SIZE)

    def test_html(self) -> None:
        """What the readers of the standard library stumble over, and some more."""
        units = (
            *(
                "<",
                "<a ",
                "<!--",
                "<![CDATA[",
                "<div>",
                "<li>",
                "&#",
                "&#x",
                "&" + "a" * 33,
                "&#9999999;",
                "<p>",
            ),
            *(
                "</p>",
                "</div>",
                "<div></p>",
                "<title>",
                "<title></title",
                "<a href='",
                '<a b="',
                "<br>",
                "<td>",
            ),
            *(
                "<div><li>",
                "<ol><li>",
                "<x y='<",
                "<style>x</style>",
                "a",
                " ",
                "\n",
                "<a " + "b=c " * 900 + ">",
            ),
            *(
                '<a href="&&&&&&">',
                "<div style='" + "a" * 3900 + "'>",
                "<pre>",
                "<blockquote type=cite>",
                "&lt;",
            ),
        )
        deep = b"<div>" * 490
        readers = (
            lambda page: lines_of_html(page.decode()),
            lambda page: lines_of_html((deep + page).decode()),
        )
        self.each(readers, [unit.encode() for unit in units], SIZE)

    def test_whole_mails(self) -> None:
        """Bodies of many parts, levels and dashes, of a person and of a mail server that anybody can play."""
        mixed = b"Content-Type: multipart/mixed; boundary="
        units = (
            *(
                b"--b\r\n",
                b"--b\r\n\r\nx\r\n",
                b"--\n",
                b"--c\n",
                b"--b\r\n" + mixed + b"b\r\n\r\n",
                b"\n",
                b"a",
            ),
            *(
                b"--b\r\n" + mixed + b"c\r\n\r\n--c\r\n\r\n",
                b"--b\r\nA: b\r\n",
                b"<mg.",
                b"\nAction: ",
                b"--b\r\n\r\n<a@b>",
            ),
            *(
                b"--b\r\nContent-Type: message/delivery-status\r\n\r\nAction: x\r\n",
                b"--b" * 400,
                b"--b--\r\n",
            ),
        )
        person = reply(content_type="multipart/mixed; boundary=b").split(b"\r\n\r\n")[0] + b"\r\n\r\n"
        report = b"From: mailer-daemon@x.example\r\nContent-Type: multipart/report; boundary=b\r\n\r\n"
        readers = [lambda body, head=head: judge(head + body, OWN) for head in (person, report)]
        self.each(readers, units, 500_000)
