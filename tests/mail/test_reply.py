"""What was typed: the programs' dialects, and what a person may type that looks like them."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.markup import lines_of_html
from mailgateway.mail.reply import LINES_LIMIT, TEXT_LIMIT, Reply, separate, typed_words
from tests.mail.mails import AGENT, OWN, SENT_TEXT, reply

WORDS = """\
Use the second one: it is safer.

    git push --force-with-lease

Note: two things
- one
- two
---
Thänks"""
QUOTED = "\n".join(f"> {line}".rstrip() for line in SENT_TEXT.rstrip().split("\n"))
HEADER = f"""\
From: Coding agents <{AGENT}>
Sent: Monday, November 30, 2026 9:41 AM
To: Robin Sommer
Subject: [mg:f913c9] Which database?
"""

BELOW: dict[str, str] = {
    "Gmail": f"On Mon, Nov 30, 2026 at 9:41 AM Coding agents <{AGENT}> wrote:\n\n{QUOTED}\n",
    "Gmail, wrapped": f"On Mon, Nov 30, 2026 at 9:41 AM Coding agents <\n{AGENT}> wrote:\n\n{QUOTED}\n",
    "German": f"Am Mo., 30. Nov. 2026 um 09:41 Uhr schrieb Coding agents <{AGENT}>:\n\n{QUOTED}\n",
    "a language nobody listed": f"Zzz 30.11.2026 09:41 qqq Coding agents <{AGENT}>:\n{QUOTED}\n",
    "phone": f"Sent from my iPhone\n\n> On 30 Nov 2026, 9:41, Coding agents <{AGENT}> wrote:\n>\n{QUOTED}\n",
    "signature above": f"-- \nRobin Sommer\nExample Ltd\n\nOn 2026-11-30 09:41, {AGENT} wrote:\n{QUOTED}\n",
    "signature below": f"On 2026-11-30 09:41, {AGENT} wrote:\n{QUOTED}\n\n-- \nRobin Sommer\n",
    "Outlook": f"________________________________\n{HEADER}\n{SENT_TEXT}",
    "Outlook, bare": f"{HEADER}\n{SENT_TEXT}",
    "Original Message": f"-----Original Message-----\n{HEADER}\n{SENT_TEXT}",
    "Japanese labels": f"差出人: Coding agents <{AGENT}>\n送信日時: 2026年11月30日\n件名: x\n\n{SENT_TEXT}",
    "no attribution at all": QUOTED,
    "no marks at all": SENT_TEXT,
    "nothing": "",
}

LINES = (
    *(
        "",
        "x",
        "> x",
        ">",
        "--",
        "-- ",
        "```",
        ":",
        f"{AGENT}:",
        f"From: {AGENT} 2026",
        "To: x",
        "Subject: y",
    ),
    *("On 1.1.2026 Coding agents wrote:", "_____", "Sent from my x", *SENT_TEXT.split("\n")),
)
"""Lines that the rules look for, to be thrown together."""

TYPED = (
    'The log says "On Monday the job wrote:" and stops.\nPlease find out why.',
    "Write a test mail:\nFrom: noreply@example.net\nTo: list@example.net\nSubject: Hello\nand send it.",
    "First: delete.\n\n---\n\nSecond: rename.",
    "Plan\n====\nx\n\nNotes\n-----\ny",
    "The output must be:\n\n>>> add(1, 2)\n3\n\nMake it pass.",
    "3c3\n< port=80\n---\n> port=8080\n\nThat is all.",
    "Use this:\n\n```\n# On Monday, Coding agents wrote:\n> no quote\n-- \nSent from x\n```\n\nRun it.",
    "The alert was sent from my iPhone app, so keep the text\nSent from my iPhone out of the template.",
    "git checkout -- docs\nand finish with -- done",
    "Run this:\n\n--\n-- a comment of SQL\nSELECT 1;",
    "1. SQLite\n2. PostgreSQL",
    "1",
    "/stop",
    "👩\u200d💻 ✅",
)


class TypedWordsTests(SynchronousTestCase):
    """Only the typed words arrive, and all of them."""

    def test_what_programs_put_below_is_cut(self) -> None:
        """In every dialect, with and without words, and nothing typed is lost."""
        for name, below in BELOW.items():
            for words in (WORDS, "1", "Yes.\nNo.", ""):
                got = separate(f"{words}\n\n{below}", OWN, SENT_TEXT)
                self.assertEqual(got.text, words, f"{name}: {got.text!r}")

    def test_without_the_sent_text(self) -> None:
        """What marks itself is still told apart."""
        for name, below in BELOW.items():
            if name not in {"no marks at all", "no attribution at all"}:
                self.assertEqual(separate(f"{WORDS}\n\n{below}", OWN, None).text, WORDS, name)

    def test_typed_lines_stay(self) -> None:
        """Whatever they look like, alone and above a quotation."""
        for words in TYPED:
            self.assertEqual(separate(words, OWN, SENT_TEXT).text, words)
            self.assertEqual(separate(f"{words}\n\n{BELOW['Gmail']}", OWN, SENT_TEXT).text, words)

    def test_a_typed_line_that_names_the_agents_stays(self) -> None:
        """An attribution is more than a name and a colon."""
        for words in ("Yes.\nTell the Coding agents:", "Yes (Coding agents)", f"Write to {AGENT}:\nhello"):
            self.assertEqual(separate(words, OWN, SENT_TEXT).text, words)

    def test_answers_amid_the_quotation(self) -> None:
        """Each below the lines that it answers; below the whole quotation, alone."""
        inline = f"On 2026-11-30 09:41, {AGENT} wrote:\n> Which database?\nThe second.\n> 1. SQLite\nNo.\n"
        self.assertEqual(
            separate(inline, OWN, SENT_TEXT).text, "> Which database?\nThe second.\n> 1. SQLite\nNo."
        )
        bottom = f"On 2026-11-30 09:41, {AGENT} wrote:\n{QUOTED}\n\nThe second.\n"
        self.assertEqual(separate(bottom, OWN, SENT_TEXT).text, "The second.")

    def test_answers_between_our_unmarked_lines(self) -> None:
        """Given back where all of our text is there; where the program rewrote it, nothing is told apart."""
        below = SENT_TEXT.replace("1. SQLite\n", "1. SQLite\nno, too small\n").replace(
            "2. PostgreSQL\n", "2. PostgreSQL\nthis one\n"
        )
        got = separate(f"See below.\n\n{HEADER}\n{below}", OWN, SENT_TEXT)
        self.assertIn("1. SQLite\nno, too small\n", got.text)
        self.assertIn("2. PostgreSQL\nthis one", got.text)
        self.assertTrue(got.text.startswith("See below."))
        got = separate(
            f"Yes.\n\n{HEADER}\n{below.replace('Shall I use', 'Shall I  really use')}", OWN, SENT_TEXT
        )
        self.assertEqual(got.text, "Yes.")
        self.assertIn("this one", got.quoted)

    def test_introductions_that_do_not_name_us(self) -> None:
        """By the quotation that follows; a typed sentence above a quotation stays."""
        for line in (
            "On Mon, Nov 30, 2026 at 9:41 AM Bot <bot@lists.example.com> wrote:",
            "On Mon, Nov 30, 2026 at\n9:41 AM Bot\n<bot@lists.example.com> wrote:",
            "30.11.2026 09:41:",
            "pon., 30 lis 2026 o 09:41 Bot <bot@lists.example.com> napisał(a):",
        ):
            self.assertEqual(separate(f"Yes.\n\n{line}\n{QUOTED}", OWN, SENT_TEXT).text, "Yes.", line)
        block = HEADER.replace(f"Coding agents <{AGENT}>", "Bot <bot@lists.example.com>")
        self.assertEqual(separate(f"Yes.\n\n{block}\n{SENT_TEXT}", OWN, SENT_TEXT).text, "Yes.")
        for line in ("What you asked:", "As to this, see my mail of 2026:", "Which means for 9:41:"):
            self.assertEqual(separate(f"Yes.\n\n{line}\n{QUOTED}", OWN, SENT_TEXT).text, f"Yes.\n\n{line}")

    def test_footers_of_programs(self) -> None:
        """At the end, as programs write them; what a person writes like one stays."""
        for line in (
            "Sent from my iPhone",
            "Von meinem Samsung Galaxy Smartphone gesendet.",
            "Получите Outlook для iOS",
            "Get Outlook for Android<https://aka.ms/x>",
            "Enviado desde mi BlackBerry\n<plist>\n<dict>\n</dict>\n</plist>",
            "Sent from my phone. Please excuse my brevity.",
            "R. Sommer reacted via Gmail\n<https://www.example.net/gmail>",
            "<https://www.example.com/x>\nVirus-free.www.example.com\n<https://www.example.com/x>\n<#DAB4>",
        ):
            self.assertEqual(separate(f"Yes.\n\n{line}\n", OWN, SENT_TEXT).text, "Yes.", line)
        for words in (
            "Sent from the staging server: nothing came.",
            "Sent with curl, it works.",
            "Get Outlook running on the server first.",
            "It was late.\nSent from Berlin to Rome",
            "Say so:\nEnviado ayer",
            "The reaction reacted with gmailed words.",
        ):
            self.assertEqual(separate(words, OWN, SENT_TEXT).text, words)
            self.assertEqual(
                separate(f"Yes.\n\n{words}\n\n{QUOTED}", OWN, SENT_TEXT).text, f"Yes.\n\n{words}"
            )

    def test_notices(self) -> None:
        """A lawyer's last paragraph goes, a typed one that only mentions such words stays."""
        notice = (
            "This e-mail and any files transmitted with it are confidential and intended solely for the use "
            "of the individual to whom they are addressed."
        )
        self.assertEqual(separate(f"Yes.\n\n{notice}\n", OWN, None).text, "Yes.")
        for words in (
            notice,
            f"Yes.\n\nAdd this to the footer: {notice}",
            "Yes.\n\nThis mail is confidential.",
        ):
            self.assertEqual(separate(words, OWN, None).text, words)

    def test_an_interpreter_s_session_below_a_quotation(self) -> None:
        """A third depth would not begin of itself."""
        prompt = ">>> add(1, 2)\n3"
        text = f"On 2026-11-30 09:41, {AGENT} wrote:\n{QUOTED}\n\n{prompt}\n"
        self.assertEqual(separate(text, OWN, SENT_TEXT).text, prompt)

    def test_the_quotation_is_kept_apart(self) -> None:
        """It is shown, never lost."""
        got = separate(f"Yes.\n\n{BELOW['Gmail']}", OWN, SENT_TEXT)
        self.assertIn("> Shall I use SQLite or PostgreSQL?", got.quoted)

    def test_list_footers_go(self) -> None:
        """Under their rule, with their words."""
        footer = (
            "_______________________________________________\nTeam mailing list\nTo unsubscribe send a mail\n"
        )
        self.assertEqual(separate(f"Yes.\n\n{QUOTED}\n\n{footer}", OWN, SENT_TEXT).text, "Yes.")

    def test_inline_signed_mail(self) -> None:
        """The armour goes, its dash-escaping is undone."""
        text = (
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nYes.\n- - one\n"
            "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n"
        )
        self.assertEqual(separate(text, OWN, None).text, "Yes.\n- one")

    def test_bounds(self) -> None:
        """What lies behind them is not looked at, and that is said."""
        self.assertEqual(separate("x", OWN, None), Reply("x", ""))
        self.assertTrue(separate("x" * (TEXT_LIMIT + 1), OWN, None).shortened)
        self.assertTrue(separate("x\n" * (LINES_LIMIT + 1), OWN, None).shortened)

    @given(
        st.lists(
            st.sampled_from(LINES),
            max_size=25,
        ),
        st.sampled_from([None, SENT_TEXT]),
    )
    def test_no_line_is_lost_or_invented(self, lines: list[str], sent: str | None) -> None:
        """Each filled line is either typed or quoted, in its order."""
        got = separate("\n".join(lines), OWN, sent)
        filled = sorted(line.rstrip() for line in lines if line.strip())
        parts = f"{got.text}\n{got.quoted}".split("\n")
        self.assertEqual(sorted(line.rstrip() for line in parts if line.strip()), filled)

    @given(st.text(max_size=400))
    def test_no_text_raises(self, text: str) -> None:
        """And a second reading of what was typed finds no marks of ours to trip over."""
        separate(text, OWN, SENT_TEXT)


def typed(raw: bytes) -> str:
    """The typed words of a whole mail."""
    inbound = read(raw)
    assert isinstance(inbound, Inbound)
    return typed_words(inbound, OWN, SENT_TEXT).text


class PartTests(SynchronousTestCase):
    """Which part is read."""

    def alternative(self, plain: str, page: str) -> bytes:
        """A mail with both."""
        return reply(
            f"--b\nContent-Type: text/plain; charset=utf-8\n\n{plain}\n"
            f"--b\nContent-Type: text/html; charset=utf-8\n\n{page}\n--b--\n",
            content_type="multipart/alternative; boundary=b",
        )

    def test_plain_text_goes_before_html(self) -> None:
        """Even when they differ; HTML when plain is blank or only says that there is HTML."""
        self.assertEqual(typed(self.alternative("plain words", "<p>other words</p>")), "plain words")
        self.assertEqual(typed(self.alternative(" ", "<p>page words</p>")), "page words")
        stub = "This message is in HTML format. Please use an HTML capable mail client."
        self.assertEqual(typed(self.alternative(stub, "<p>page words</p>")), "page words")

    def test_html_of_the_usual_programs(self) -> None:
        """Cut by structure: Gmail, Outlook, Apple, Yahoo; signatures and hidden text go."""
        attribution = f"On Mon, Nov 30, 2026 Coding agents &lt;{AGENT}&gt; wrote:"
        gone = "Which database?"
        gmail = (
            f'<div class="gmail_quote"><div class="gmail_attr">{attribution}</div>'
            f'<blockquote class="gmail_quote">{gone}</blockquote></div>'
        )
        for page in (
            f'<div dir="ltr">words<div>more</div></div><br>{gmail}',
            f'<div>words<br>more</div><hr><div id="divRplyFwdMsg">From: {AGENT}</div><div>{gone}</div>',
            f'<p>words<br>more</p><blockquote type="cite"><div>{attribution}</div>{gone}</blockquote>',
            f'<p>words<p>more<div class="yahoo_quoted">{gone}</div>',
            '<div>words<br>more</div><div class="gmail_signature">Robin<br>Boss</div>',
            '<div>words<span style="display: none">rm -rf /</span><br>more</div><style>x</style><!-- y -->',
            f'<div>words<br>more</div><div style="border-top:solid #E1E1E1 1.0pt">From: x</div>{gone}',
        ):
            self.assertEqual(typed(self.alternative("", page)), "words\nmore", page)

    def test_html_structure_of_the_person_stays(self) -> None:
        """Lists, preformatted text, a plain block quote."""
        page = "<p>Do:</p><ol><li>a<li>b</ol><pre>x\n  y</pre><blockquote>cited</blockquote>"
        self.assertEqual(lines_of_html(page).text, "Do:\n1. a\n2. b\nx\n  y\ncited")

    def test_html_that_marks_nothing_but_a_block(self) -> None:
        """A plain quotation counts below an attribution, or with our text in it; else it is formatting."""
        box = f"<blockquote>{SENT_TEXT.replace(chr(10), '<br>')}</blockquote>"
        for line in (
            f"30.11.2026, 09:41, Coding agents &lt;{AGENT}&gt;:",
            "30.11.2026, 09:41, Bot &lt;x@y.example&gt;:",
        ):
            page = f"<div>words<br>more</div><div>{line}</div>{box}"
            self.assertEqual(typed(self.alternative("", page)), "words\nmore", line)
        page = "<div>words</div><blockquote>what Kim said</blockquote><div>more</div>"
        self.assertEqual(typed(self.alternative("", page)), "words\nwhat Kim said\nmore")

    def test_html_with_answers_between(self) -> None:
        """In their order, each below what it answers."""
        page = "".join(
            f'<blockquote type="cite">{line}</blockquote><div>{answer}</div>'
            for line, answer in (("1. SQLite", "no"), ("2. PostgreSQL", "yes"))
        )
        self.assertEqual(typed(self.alternative("", page)), "> 1. SQLite\nno\n> 2. PostgreSQL\nyes")

    def test_links(self) -> None:
        """With their targets, where the words do not say them; those of a footer go with it."""
        for page, expected in (
            ('see <a href="https://x.example/y">here</a>, now', "see here <https://x.example/y>, now"),
            ('<a href="https://x.example/y/">https://x.example/y</a>', "https://x.example/y"),
            ('<a href="https://x.example">x.example</a>', "x.example"),
            ('<a href="mailto:robin@example.org">Robin</a>', "Robin"),
            ('<a href="javascript:x()">Robin</a>', "Robin"),
            ('yes<a href="https://x.example/pixel"><img src="x"></a>', "yes"),
            ('yes<br><br>Sent from <a href="https://x.example/m">Mail</a> for Windows', "yes"),
            ('yes<br><br>Get <a href="https://aka.ms/x">Outlook for iOS</a>', "yes"),
        ):
            self.assertEqual(typed(self.alternative("", f"<div>{page}</div>")), expected)

    def test_hidden_text(self) -> None:
        """It would be a way to say what the person does not see."""
        for hidden in (
            "<div hidden>x</div>",
            '<div title="a" HIDDEN>x</div>',
            '<p style="opacity:0.0">x</p>',
            '<p style="position:absolute; left:-9999px">x</p>',
            '<p style="color: transparent">x</p>',
        ):
            self.assertEqual(typed(self.alternative("", f"<p>words</p>{hidden}")), "words", hidden)
        for seen in ('<p style="opacity:0.5">x</p>', '<p title="hidden">x</p>', "<p class=hidden>x</p>"):
            self.assertEqual(typed(self.alternative("", f"<p>words</p>{seen}")), "words\nx", seen)

    def test_letters_that_grow_in_lower_case(self) -> None:
        """What stands behind a style sheet is where it was."""
        self.assertEqual(
            lines_of_html("İ" * 30 + "<STYLE>x</STYLE>words<br>more").text, "İ" * 30 + "words\nmore"
        )

    def test_giant_references(self) -> None:
        """The number in a character reference has no end; the standard library raises on it."""
        for page in ("&#" + "9" * 5000 + ";", "<a title='&#" + "9" * 5000 + ";'>", "&#x" + "f" * 5000):
            self.assertIn(lines_of_html(f"a{page}z").text, {"a\ufffdz", "az"}, page[:20])
        self.assertEqual(lines_of_html("&#228;&#xe4;&#0;&#xD800;").text, "ää\ufffd\ufffd")

    @given(st.text(alphabet='<>/apdivblockquote="! -&#;x', max_size=200))
    def test_no_html_raises(self, page: str) -> None:
        """Whatever is open or closed."""
        lines_of_html(page)

    def test_our_names_come_from_the_settings(self) -> None:
        """Another gateway's attribution is not ours; its text is unknown too."""
        other = evolve(OWN, addresses=["x@y.example"], names=[])
        text = f"Yes.\n\nSomebody <{AGENT}>:\nWhich database?"
        self.assertEqual(separate(text, other, None).text, text)
