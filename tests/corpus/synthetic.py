# ruff: noqa: RUF001 - letters of many languages, as programs and people send them
"""Mails made of templates: what each program puts around the words, in each language, for any gateway.

A seed makes the same mails again.  Nothing here is known to the code that reads them.
"""

import html
import random
import textwrap
from base64 import encodebytes
from collections.abc import Callable, Iterator, Sequence
from quopri import encodestring
from typing import Any

from attrs import Factory, define, frozen

from tests.corpus.scoring import Case
from tests.corpus.tongues import TONGUES, Tongue


@frozen
class Gateway:
    """Whom the person answers, and what was sent."""

    name: str
    address: str
    message_id: str
    subject: str
    sent: str

    def known(self, person: str) -> dict[str, Any]:
        """The context that such a gateway gives its reader."""
        return {
            "own_addresses": [self.address],
            "own_names": [self.name],
            "own_message_ids": [self.message_id],
            "own_subject": self.subject,
            "own_header": "X-Relay-Instance",
            "original_text": self.sent,
            "person": person,
        }


GATEWAYS = (
    Gateway(
        "Coding agents",
        "agent@mail.example.net",
        "<mg.f913c9.00aa11bb22cc.0a1b2c3d@mail.example.net>",
        "[mg:f913c9] Which database?",
        "Which database shall the service use?\n\n"
        "Both are installed here, and the tests pass with either.\n\n"
        "1. SQLite\n2. PostgreSQL\n\nAnswer this mail in your own words.",
    ),
    Gateway(
        "Büro-Agent",
        "bau+f00d12@buero.example.de",
        "<q-17.88@buero.example.de>",
        "Freigabe nötig: Datenbank umziehen",
        "Darf ich die Datenbank heute Nacht umziehen?\nDer Dienst steht dann etwa zehn Minuten.\n\n"
        "- ja, ab 2 Uhr\n- nein, erst am Wochenende\n\nAntworten Sie einfach auf diese Mail.",
    ),
    Gateway(
        "Deploy, Bot (ci)",
        "ci.bot_7@build.example.com",
        "<20261012.1@build.example.com>",
        "deploy 4711: retry?",
        "The deploy of api-gateway failed at step 3:\n\n    error: connection refused (db-2:5432)\n\n"
        "Shall I retry, roll back, or stop here?",
    ),
    Gateway(
        "開発エージェント",
        "kaihatsu@example.jp",
        "<j.99@example.jp>",
        "[mg:0a0b0c] 質問があります",
        "質問です。\n\nテストを先に直しますか、それとも機能を先に作りますか。\n\n"
        "1. テスト\n2. 機能\n\n返信してください。",
    ),
)

PEOPLE = (
    ("Robin Sommer", "robin@example.org"),
    ("Zoë Müller-Lüdenscheidt", "zoe.mueller@example.de"),
    ("Sample, Kim", "kim.sample@corp.example.com"),
    ("李雷", "lilei@example.cn"),
    ("Анна Иванова", "anna@example.ru"),
    ("", "o.neill@example.ie"),
)

TYPED = (
    "1",
    "yes",
    "OK",
    "Y",
    "/stop",
    "👍",
    "✅ 🚀",
    "nein, noch nicht",
    "Use option 2, please.",
    "1) a\n2) b\n3) leave it",
    "First the tests.\n\nThen the feature: do not touch the old index, it is still read.",
    "Run it with --no-verify and -x:\n\n    git push --force-with-lease origin main\n\nand tell me.",
    "```\n$ make\n> echo x\nOn Monday, Bob wrote:\n-- \nFrom: x\n```",
    "Apply this:\n\n--- a/x.ini\n+++ b/x.ini\n@@ -1,2 +1,2 @@\n-port=80\n+port=81\n mode=fast",
    "topic one: delete\n\n---\n\ntopic two: keep",
    "On Tuesday the job wrote: nothing. Why?",
    "The mail begins with\nFrom: noreply@example.net\nTo: list@example.net\nSubject: Hello\nkeep it so.",
    "The table:\n\n| a | b |\n| 1 | 2 |\n\n* one\n* two",
    ">>> add(1, 2)\n3\nis what I expect.",
    "At 14:05 on 12.10.2026 it worked:\n12.10.2026 14:05 started\n12.10.2026 14:09 done",
    "The alert was sent from my phone app, keep that.",
    "def f(x):\n    if x > 3:\n        return x\n\n    return 0",
    "Regards to the team, and best of luck with it.",
    "siehe unten: erst A, dann B",
    "Answer: the second one\nReason: it is smaller\nTime: 14:30",
    "How about this?\n______\nfill in the name here",
    "好的",
    "はい。テストを先に。",
    "Да, продолжай; а потом `make test`.",
    "كلا، انتظر",
)


@frozen
class Scene:
    """One mail to be made: who answers whom, in which language, with which words."""

    gateway: Gateway
    person: tuple[str, str]
    tongue: Tongue
    typed: str
    dice: random.Random

    def filled(self, template: str) -> str:
        """A template with the gateway's name and address."""
        return template.format(n=self.gateway.name, a=self.gateway.address)

    @property
    def quote(self) -> str:
        """What was sent, with quote marks."""
        return "\n".join(f"> {line}".rstrip() for line in self.gateway.sent.split("\n"))

    def wrapped(self, line: str) -> str:
        """A line broken as programs break it, or not."""
        width = self.dice.choice((0, 0, 34, 50, 66, 72, 78))
        if not width or len(line) <= width:
            return line
        return "\n".join(
            textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False, max_lines=None)
        )


@define
class Made:
    """The text of a mail, plain or HTML, and the readings that are right."""

    plain: str = ""
    page: str = ""
    texts: list[str] = Factory(list)


Layout = Callable[[Scene], Made]


def _made(plain: str, *texts: str) -> Made:
    return Made(plain=plain, texts=list(texts))


# --------------------------------------------------------------------------- plain text


def gmail(scene: Scene) -> Made:
    """Words, attribution with address, quotation."""
    attribution = scene.wrapped(scene.filled(scene.tongue.gmail))
    return _made(f"{scene.typed}\n\n{attribution}\n\n{scene.quote}\n", scene.typed)


def apple_phone(scene: Scene) -> Made:
    """A footer, and the attribution inside the quotation."""
    attribution = "\n".join(
        f"> {line}" for line in scene.wrapped(scene.filled(scene.tongue.apple)).split("\n")
    )
    text = f"{scene.typed}\n\n{scene.tongue.phone}\n\n{attribution}\n> \n{scene.quote}\n"
    return _made(text, scene.typed)


def apple_mail(scene: Scene) -> Made:
    """Attribution with address, a blank line within the quotation."""
    attribution = scene.wrapped(scene.filled(scene.tongue.apple))
    return _made(f"{scene.typed}\n\n{attribution}\n> \n{scene.quote}\n", scene.typed)


def thunderbird(scene: Scene) -> Made:
    """The name alone, and no blank line."""
    signature = scene.dice.choice(("", f"\n-- \n{scene.person[0]}\nplatform team\n"))
    attribution = scene.wrapped(scene.filled(scene.tongue.named))
    return _made(f"{scene.typed}\n\n{attribution}\n{scene.quote}\n{signature}", scene.typed)


def thunderbird_below(scene: Scene) -> Made:
    """Answered below the whole quotation, with a signature."""
    signature = scene.dice.choice(("", f"\n-- \n{scene.person[0]}\n"))
    attribution = scene.filled(scene.tongue.named)
    return _made(f"{attribution}\n{scene.quote}\n\n{scene.typed}\n{signature}", scene.typed)


def unknown_name(scene: Scene) -> Made:
    """The program shows another name for us, but the quotation is ours."""
    name = scene.dice.choice(("Bot", "Mein Helfer", "エージェント", "via Lists"))
    attribution = scene.tongue.gmail.format(n=name, a="lists@relay.example.com")
    return _made(f"{scene.typed}\n\n{attribution}\n{scene.quote}\n", scene.typed)


def no_attribution(scene: Scene) -> Made:
    """Only a quotation."""
    return _made(f"{scene.typed}\n\n{scene.quote}\n", scene.typed)


def no_quote(scene: Scene) -> Made:
    """Only the words."""
    return _made(f"{scene.typed}\n", scene.typed)


def footer(scene: Scene) -> Made:
    """A phone's footer and nothing else."""
    line = scene.dice.choice((scene.tongue.phone, *scene.tongue.others))
    return _made(f"{scene.typed}\n\n{line}\n", scene.typed)


def footer_and_quote(scene: Scene) -> Made:
    """A footer between words and attribution."""
    line = scene.dice.choice((scene.tongue.phone, *scene.tongue.others))
    attribution = scene.filled(scene.tongue.gmail)
    return _made(f"{scene.typed}\n\n{line}\n\n{attribution}\n\n{scene.quote}\n", scene.typed)


def signature(scene: Scene) -> Made:
    """The usual delimiter, no quotation."""
    lines = f"{scene.person[0] or 'R.'}\nPlatform engineering\n+49 30 1234567"
    mark = scene.dice.choice(("-- ", "--"))
    return _made(f"{scene.typed}\n\n{mark}\n{lines}\n", scene.typed)


def _block(scene: Scene, *, bold: bool = False, marks: str = "") -> str:
    sender, sent, to, subject = scene.tongue.labels
    gateway = scene.gateway
    colon = "：" if scene.tongue.code.startswith("zh") and scene.dice.random() < 0.5 else ":"
    colon = " :" if scene.tongue.code == "fr" and scene.dice.random() < 0.5 else colon
    whom = scene.dice.choice(
        (
            f"{gateway.name} <{gateway.address}>",
            f"{gateway.name} [mailto:{gateway.address}]",
            gateway.name,
            f'"{gateway.name}" <{gateway.address}>',
        )
    )
    date = scene.dice.choice(
        (
            "Monday, October 12, 2026 2:05 PM",
            "12. Oktober 2026 14:05",
            "2026年10月12日 14:05",
            "12/10/2026 14:05:12",
        )
    )
    rows = [
        (sender, whom),
        (sent, date),
        (to, scene.person[0] or scene.person[1]),
        (subject, gateway.subject),
    ]
    if scene.dice.random() < 0.3:
        rows.insert(3, ("Cc", "Kim Sample <kim@example.net>"))
    star = "*" if bold else ""
    return "\n".join(f"{marks}{star}{label}{colon}{star} {value}" for label, value in rows)


def outlook(scene: Scene) -> Made:
    """A header block, then our text without any marks."""
    rule = scene.dice.choice(("", "", "________________________________\n", f"{scene.tongue.original}\n"))
    text = f"{scene.typed}\n\n{rule}{_block(scene)}\n\n{scene.gateway.sent}\n"
    return _made(text, scene.typed)


def outlook_bold(scene: Scene) -> Made:
    """The block in the bold of plain text, sometimes with quote marks before all."""
    marks = scene.dice.choice(("", "> "))
    sent = scene.quote if marks else scene.gateway.sent
    return _made(f"{scene.typed}\n\n{_block(scene, bold=True, marks=marks)}\n\n{sent}\n", scene.typed)


def outlook_with_signature(scene: Scene) -> Made:
    """A footer above the block."""
    line = scene.dice.choice(scene.tongue.others)
    return _made(f"{scene.typed}\n\n{line}\n\n{_block(scene)}\n\n{scene.gateway.sent}\n", scene.typed)


def yahoo(scene: Scene) -> Made:
    """Attribution with an indented, unmarked copy."""
    copy = "\n".join(f" {line}".rstrip() for line in scene.gateway.sent.split("\n"))
    return _made(f"{scene.typed}\n\n    {scene.filled(scene.tongue.gmail)}\n\n{copy}\n", scene.typed)


def rewrapped(scene: Scene) -> Made:
    """Quoted lines that a program broke, so that their rests have lost the mark."""
    lines = []
    for line in scene.gateway.sent.split("\n"):
        lines += [
            f"> {piece}" if at == 0 else piece
            for at, piece in enumerate(textwrap.wrap(line, 40, break_on_hyphens=False) or [""])
        ]
    attribution = scene.filled(scene.tongue.gmail)
    return _made(f"{scene.typed}\n\n{attribution}\n\n" + "\n".join(lines) + "\n", scene.typed)


def interleaved(scene: Scene) -> Made:
    """Each part of our text answered below it."""
    parts = [part for part in scene.gateway.sent.split("\n\n") if part.strip()][:3]
    answers = [scene.typed, scene.tongue.yes, "7"][: len(parts)]
    quoted = ["\n".join(f"> {line}" for line in part.split("\n")) for part in parts]
    pairs = [f"{part}\n\n{answer}" for part, answer in zip(quoted, answers, strict=True)]
    text = f"{scene.filled(scene.tongue.named)}\n" + "\n\n".join(pairs) + "\n"
    return _made(text, "\n\n".join(pairs))


def between(scene: Scene) -> Made:
    """Words above and below the whole quotation."""
    text = f"{scene.typed}\n\n{scene.filled(scene.tongue.gmail)}\n{scene.quote}\n\n{scene.tongue.yes}\n"
    return _made(text, f"{scene.typed}\n\n{scene.tongue.yes}")


def disclaimer(scene: Scene) -> Made:
    """A lawyer's or a list's lines under it all."""
    notice = scene.dice.choice(
        (
            "________________________________\nThis e-mail is confidential and for the addressee only.",
            (
                "_______________________________________________\nTeam mailing list\nteam@lists.example.org\n"
                "https://lists.example.org/options/team"
            ),
            (
                "-- \nYou received this message because you are subscribed to the group.\n"
                "To unsubscribe, send a mail to team+unsubscribe@example.org."
            ),
            "---\nThis email has been checked for viruses by an antivirus program.\nwww.antivirus.example",
        )
    )
    return _made(
        f"{scene.typed}\n\n{scene.filled(scene.tongue.gmail)}\n\n{scene.quote}\n\n{notice}\n", scene.typed
    )


PLAIN: tuple[Layout, ...] = (
    gmail,
    apple_phone,
    apple_mail,
    thunderbird,
    thunderbird_below,
    unknown_name,
    no_attribution,
    no_quote,
    footer,
    footer_and_quote,
    signature,
    outlook,
    outlook_bold,
    outlook_with_signature,
    yahoo,
    rewrapped,
    interleaved,
    between,
    disclaimer,
)


# --------------------------------------------------------------------------- the whole mail


def _name(text: str, dice: random.Random) -> str:
    """A display name as a header holds it."""
    if text.isascii():
        return f'"{text}"' if any(each in text for each in ',()[]"') else text
    return _word(text, dice)


def _word(text: str, dice: random.Random) -> str:
    """An encoded word."""
    if dice.random() < 0.5:
        data = encodebytes(text.encode()).replace(b"\n", b"").decode()
        return f"=?utf-8?B?{data}?="
    return "=?UTF-8?Q?" + "".join(f"={byte:02X}" for byte in text.encode()) + "?="


def _subject(text: str, dice: random.Random) -> str:
    if text.isascii():
        return text
    return " ".join(_word(text[at : at + 12], dice) for at in range(0, len(text), 12))


def _encoded(text: str, dice: random.Random) -> tuple[str, bytes]:
    """A transfer encoding, and the text in it."""
    data = text.encode()
    kind = dice.choice(("8bit", "quoted-printable", "base64"))
    if kind == "base64":
        return kind, encodebytes(data)
    if kind == "quoted-printable":
        return kind, encodestring(data)
    return kind, data


def mail_of(scene: Scene, made: Made, *, subject: str = "", more: Sequence[tuple[str, str]] = ()) -> bytes:
    """The whole mail, its line ends CRLF or LF."""
    dice = scene.dice
    name, address = scene.person
    gateway = scene.gateway
    head = [
        ("Return-Path", f"<{address}>"),
        ("Received", "from mx.example.net by mail.example.net; Mon, 12 Oct 2026 14:09:31 +0200"),
        ("From", f"{_name(name, dice)} <{address}>".strip()),
        ("To", f"{_name(gateway.name, dice)} <{gateway.address}>"),
        ("Subject", subject or "Re: " + _subject(gateway.subject, dice)),
        ("Date", "Mon, 12 Oct 2026 14:09:31 +0200"),
        ("Message-ID", f"<{dice.getrandbits(60):x}@mail.example.org>"),
        ("In-Reply-To", gateway.message_id),
        ("References", gateway.message_id),
        ("MIME-Version", "1.0"),
        *more,
    ]
    parts = [
        (f"text/{kind}", *_encoded(text, dice))
        for kind, text in (("plain", made.plain), ("html", made.page))
        if text
    ]
    if len(parts) == 1:
        kind, encoding, data = parts[0]
        head += [("Content-Type", f'{kind}; charset="utf-8"'), ("Content-Transfer-Encoding", encoding)]
        body = data
    else:
        head.append(("Content-Type", 'multipart/alternative; boundary="=-b1"'))
        body = b"".join(
            f"--=-b1\nContent-Type: {kind}; charset=UTF-8\nContent-Transfer-Encoding: {encoding}\n\n".encode()
            + data
            + b"\n"
            for kind, encoding, data in parts
        )
        body += b"--=-b1--\n"
    raw = "".join(f"{field}: {value}\n" for field, value in head).encode() + b"\n" + body
    return raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if dice.random() < 0.8 else raw


def scenes(seed: int) -> Iterator[Scene]:
    """Scenes without end, of all languages in turn."""
    dice = random.Random(seed)  # noqa: S311 - the same mails again
    while True:
        for tongue in TONGUES:
            typed = dice.choice((*TYPED, tongue.yes))
            yield Scene(dice.choice(GATEWAYS), dice.choice(PEOPLE), tongue, typed, dice)


def replies(count: int, seed: int, layouts: Sequence[Layout]) -> Iterator[tuple[Case, dict[str, Any]]]:
    """So many replies, layout by layout, each with what its gateway knows."""
    for number, scene in enumerate(scenes(seed)):
        if number >= count:
            return
        layout = layouts[number % len(layouts)]
        made = layout(scene)
        leaks = [line for line in scene.gateway.sent.split("\n") if len(line) > 12]
        yield (
            Case(
                id=f"{seed}-{number}-{layout.__name__}-{scene.tongue.code}",
                group=layout.__name__,
                kind="reply",
                kinds=frozenset({"reply", "command"}),
                texts=tuple(made.texts),
                must_not_contain=() if "interleaved" in layout.__name__ else tuple(leaks),
                keeps_lines=not made.page or bool(made.plain),
                raw=mail_of(scene, made),
            ),
            scene.gateway.known(scene.person[1]),
        )


def absences() -> Iterator[tuple[Case, dict[str, Any]]]:
    """Absence notices in all languages, told by their subject alone, and a person's answer that is none."""
    dice = random.Random(1)  # noqa: S311 - the same mails again
    for tongue in TONGUES:
        for at, away in enumerate(tongue.away):
            gateway = GATEWAYS[at % len(GATEWAYS)]
            scene = Scene(gateway, PEOPLE[at % len(PEOPLE)], tongue, tongue.gone, dice)
            for prefix, kind in ((f"{away} ", "auto_reply"), (f"Re: {away} ", "reply")):
                yield (
                    Case(
                        id=f"away-{tongue.code}-{at}-{kind}",
                        group="away" if kind == "auto_reply" else "away-answered",
                        kind=kind,
                        kinds=frozenset({kind}),
                        texts=(tongue.gone,),
                        raw=mail_of(
                            scene,
                            Made(plain=tongue.gone + "\n"),
                            subject=_subject(prefix + gateway.subject, dice),
                        ),
                    ),
                    gateway.known(scene.person[1]),
                )


def escaped(text: str) -> str:
    """Text as HTML, its lines broken and its blanks kept."""
    lines = [html.escape(line).replace("  ", "&nbsp; ") for line in text.split("\n")]
    return "<br>".join(lines)
