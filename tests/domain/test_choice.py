"""Reading a choice: what is plain is taken, and nothing that is not plain ever is."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.choice import Chosen, Option, parse_answer

DATABASES = (
    Option("sqlite", "SQLite"),
    Option("postgres", "PostgreSQL 16"),
    Option("none", "Neither of them"),
)
DEPLOY = (Option("go", "Yes, deploy"), Option("wait", "No, wait until Monday"))

WORDS = st.sampled_from(
    [
        "1",
        "2",
        "3",
        "a",
        "b",
        "yes",
        "no",
        "not",
        "SQLite",
        "PostgreSQL 16",
        "postgres",
        ".",
        ")",
        "\n",
        " ",
        "?",
        "or",
        "option",
    ]
)


def _chosen(text: str, options: tuple[Option, ...] = DATABASES) -> str | None:
    parsed = parse_answer(text, options)
    return parsed.values[0] if isinstance(parsed, Chosen) else None


class PlainTests(SynchronousTestCase):
    """Ways in which people choose."""

    def test_by_number(self) -> None:
        """With whatever marks stand around it, also as full-width digits."""
        for text in (
            "2",
            " 2 ",
            "2.",
            "2)",
            "(2)",
            "#2",
            "**2**",
            '"2"',
            "\n\n2\n",
            "Option 2",
            "\uff12",
            "nr 2",
        ):
            self.assertEqual(_chosen(text), "postgres", text)

    def test_by_letter(self) -> None:
        """In either case."""
        for text in ("b", "B", "b)", "(b)", "B.", "option b"):
            self.assertEqual(_chosen(text), "postgres", text)

    def test_by_words(self) -> None:
        """The label or the value, in any case, with any blanks."""
        for text in ("SQLite", "sqlite", "SQLITE!", "  sqlite.", "“SQLite”", "_SQLite_"):
            self.assertEqual(_chosen(text), "sqlite", text)
        self.assertEqual(_chosen("neither  of\tthem"), "none")

    def test_by_number_and_words_that_agree(self) -> None:
        """As the links of our mails write it."""
        for text in ("1. SQLite", "1) SQLite", "1: sqlite", "1 SQLite", "1 - SQLite", "a) SQLite"):
            self.assertEqual(_chosen(text), "sqlite", text)

    def test_by_yes_and_no(self) -> None:
        """When exactly one option begins so."""
        self.assertEqual(_chosen("yes", DEPLOY), "go")
        self.assertEqual(_chosen("Y", DEPLOY), "go")
        self.assertEqual(_chosen("No.", DEPLOY), "wait")

    def test_what_follows_is_a_note(self) -> None:
        """Kept as it was typed."""
        parsed = parse_answer("1\n\nIt is simpler.\n", DATABASES)
        self.assertEqual(parsed, Chosen(("sqlite",), "It is simpler."))


class DoubtTests(SynchronousTestCase):
    """A wrong choice costs more than none."""

    def test_prose_chooses_nothing(self) -> None:
        """Conditions, questions, negations, several at once."""
        for text in (
            "",
            "   \n ",
            "yes, but only after lunch",
            "1?",
            "SQLite?",
            "not 1",
            "1 or 2",
            "1, 2",
            "1 2",
            "1-2",
            "-1",
            "1.5",
            "0",
            "4",
            "12",
            "z",
            "d",
            "maybe",
            "I would take SQLite",
            "1 PostgreSQL 16",
            "no 1",
        ):
            self.assertIsNone(_chosen(text), text)

    def test_yes_without_an_option_that_says_so(self) -> None:
        """``yes`` to "which one?" chooses nothing, and neither does it when two options begin so."""
        self.assertIsNone(_chosen("yes"))
        self.assertIsNone(_chosen("yes", (Option("a1", "Yes, now"), Option("a2", "Yes, later"))))

    def test_two_readings_are_none(self) -> None:
        """Options that are numbers or letters themselves, or two of the same name."""
        numbers = (Option("2", "2"), Option("1", "1"))
        self.assertIsNone(_chosen("1", numbers))
        letters = (Option("x", "B"), Option("y", "A"))
        self.assertIsNone(_chosen("a", letters))
        same = (Option("one", "Same"), Option("two", "same"))
        self.assertIsNone(_chosen("same", same))
        self.assertEqual(_chosen("1", same), "one")

    def test_numbers_that_agree_with_their_place_are_fine(self) -> None:
        """An option that is called 1 and stands first is meant either way."""
        self.assertEqual(_chosen("1", (Option("1", "1"), Option("2", "2"))), "1")

    def test_a_note_that_names_another_option(self) -> None:
        """By its words, its number, its letter on a line; the choice itself may be named again."""
        for note in ("no wait, 2", "PostgreSQL 16 is better", "2", "b", "postgres", "rather (2)"):
            self.assertIsNone(_chosen(f"1\n{note}"), note)
        self.assertEqual(_chosen("1\nSQLite it is, a fine one"), "sqlite")

    def test_no_options_no_choice(self) -> None:
        """A free question is answered in words."""
        self.assertIsNone(_chosen("1", ()))
        self.assertIsNone(_chosen("yes", ()))

    def test_empty_options_are_never_chosen(self) -> None:
        """A label of marks alone is not what an empty line means."""
        self.assertIsNone(_chosen("...", (Option("", "."), Option("x", "**"))))


class AnyTextTests(SynchronousTestCase):
    """Whatever is typed."""

    @given(
        st.text(max_size=300),
        st.lists(st.builds(Option, st.text(max_size=9), st.text(max_size=9)), max_size=6),
    )
    def test_never_raises_and_chooses_only_what_is_offered(self, text: str, options: list[Option]) -> None:
        """Any text, any options."""
        parsed = parse_answer(text, options)
        if isinstance(parsed, Chosen):
            self.assertIn(parsed.values[0], [option.value for option in options])

    @given(st.lists(WORDS, max_size=8))
    def test_whoever_names_two_options_chooses_none(self, words: list[str]) -> None:
        """A text in which two options' numbers stand is never a choice."""
        text = " ".join(words)
        if {"1", "2"} <= set(words) or {"1", "3"} <= set(words) or {"2", "3"} <= set(words):
            self.assertIsNone(_chosen(text), text)

    @given(st.lists(WORDS, max_size=6))
    def test_a_question_mark_in_the_first_line_chooses_nothing(self, words: list[str]) -> None:
        """Who asks back has not decided."""
        self.assertIsNone(_chosen(" ".join(word for word in words if word != "\n") + "?"))
