"""Where a Markdown text names local files: found by the parser's word, and nothing else is touched."""

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client.links import LONGEST_TEXT, MOST_PLACES, names_of, places_of, replaced

PIECES = st.sampled_from(
    [
        "![a](b.png)",
        "[a](b.txt)",
        "[a]: b.png",
        "![a][a]",
        "[a]",
        "`",
        "``",
        "```\n",
        "~~~\n",
        "    ",
        "> ",
        "- ",
        "\n",
        "\n\n",
        "\\",
        "](",
        "![",
        "<",
        ">",
        "<!--",
        "(",
        ")",
        "|",
        "\t",
        " ",
        "é",
        "x",
        '"t"',
        "&amp;",
        "<b c.png>",
        "[a](<b c.png> 't')",
        "| - | - |\n",
        "[x](http://y/z)",
    ]
)


def found(text: str) -> list[tuple[str, bool]]:
    """The likeliest name of each place, and whether it is an image's."""
    return [(place.names[0], place.is_image) for place in places_of(text)]


def code_of(text: str) -> list[str]:
    """All that the parser sees as code."""
    codes = []
    for token in MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(text):
        codes += [each.content for each in (token, *(token.children or ())) if "code" in each.type]
        codes += [token.content] if token.type == "fence" else []
    return codes


class PlaceTests(SynchronousTestCase):
    """What is a place."""

    def test_images_and_links(self) -> None:
        """Inline, with titles and brackets, by reference, in lists, quotations and tables."""
        for text, expected in (
            ("![plot](docs/plot.png)", [("docs/plot.png", True)]),
            ("see [it](out/report.pdf 'R')", [("out/report.pdf", False)]),
            ("![p](<my plot.png>) [q](a(1).png)", [("my plot.png", True), ("a(1).png", False)]),
            ("![p][one] and [p][one]\n\n[one]: a.png 'x'", [("a.png", True)]),
            ("![one]\n\n[one]: <a b.png>", [("a b.png", True)]),
            (
                "- > ![p](a.png)\n\n| a | b |\n| - | - |\n| ![q](c.png) | d |",
                [("a.png", True), ("c.png", True)],
            ),
            ("[![p](small.png)](large.png)", [("small.png", True), ("large.png", False)]),
            ("![p](\n  a.png\n)", [("a.png", True)]),
            (r"![p](a\(b.png)", [("a(b.png", True)]),
            ("![p](a&amp;b.png)", [("a&b.png", True)]),
            ("![p](file:///srv/a%20b.png)", [("/srv/a b.png", True)]),
        ):
            self.assertEqual(found(text), expected, text)

    def test_what_is_none(self) -> None:
        """Code, escapes, HTML, remote addresses, anchors, and whatever is broken."""
        for text in (
            "`![p](a.png)`",
            "``x ` ![p](a.png)``",
            "```\n![p](a.png)\n```",
            "~~~md\n[r]: a.png\n~~~\n",
            "    ![p](a.png)",
            r"\![p\](a.png)",
            r"[p\](a.png)",
            '<img src="a.png">',
            "![p](https://example.org/a.png) [m](mailto:a@b.c) [d](data:image/png;base64,AA)",
            "[a](#part) [b](//host/a.png) [c](?q) [d]()",
            "[a](attachment:a-1)",
            "[p](a b.png)",
            "[p](a(b.png)",
            "[p](file://host/a.png)",
            "[p](file://[x/a.png)",
            "[unused]: a.png",
            "![p](a`b.png) and `![q](c.png)`",
        ):
            self.assertEqual(found(text), [], text)

    def test_names(self) -> None:
        """As it stands first, then read as a URL."""
        self.assertEqual(names_of("a%20b.md#part"), ("a%20b.md#part", "a b.md"))
        self.assertEqual(names_of("a.png"), ("a.png",))
        self.assertEqual(names_of("C:/x"), ())

    def test_bounds(self) -> None:
        """A text that is no letter is not looked into, and of very many places only the first ones are."""
        self.assertEqual(found("![p](a.png)" + "x" * LONGEST_TEXT), [])
        self.assertEqual(len(found("![p](a.png) " * (MOST_PLACES + 5))), MOST_PLACES)

    def test_the_marks_are_words_that_do_not_occur(self) -> None:
        """A text that has such words already does not confuse them."""
        text = "attachment:place0x attachment:place00x [p](attachment:place0x0x) ![q](a.png)"
        self.assertEqual(found(text), [("a.png", True)])


class NothingElseTests(SynchronousTestCase):
    """What is replaced."""

    @settings(max_examples=100)
    @given(st.lists(PIECES, max_size=14).map("".join))
    def test_code_is_never_touched(self, text: str) -> None:
        """Whatever the text: all code is the same afterwards, and so is all but the destinations."""
        places = places_of(text)
        new = replaced(text, dict.fromkeys(places, "attachment:a-1"))
        self.assertEqual(code_of(new), code_of(text))
        rest, at = [], 0
        for place in places:
            self.assertLessEqual(at, place.start)
            self.assertLess(place.start, place.end)
            rest.append(text[at : place.start])
            at = place.end
        rest.append(text[at:])
        self.assertEqual(new, "attachment:a-1".join(rest))

    @settings(max_examples=60)
    @given(st.text(max_size=60))
    def test_any_text(self, text: str) -> None:
        """Nothing raises, and what has no place stays as it is."""
        self.assertEqual(replaced(text, {}), text)
        for place in places_of(f"[x]({text}) ![y][z]\n\n[z]: {text}"):
            self.assertTrue(place.names)
