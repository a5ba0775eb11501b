"""Reading a choice: what is plain is taken, and nothing that is not plain ever is."""

import time

from hypothesis import assume, example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.choice import Chosen, InWords, Option, Unclear, parse_answer
from mailgateway.domain.choice_text import Typed, fold, words
from tests.domain.choice_cases import CHOSEN, DATABASES, DEPLOY, NOT_SEVERAL, SEVERAL, SPEED, UNDECIDED

NAMES = ["1", "2", "3", "a", "b", "yes", "no", "SQLite", "PostgreSQL 16", "postgres", "option"]
WORDS = st.sampled_from(
    [*NAMES, "not", "please", "but", ".", ")", "\n", " ", "?", "or", ",", "-", "hi", "and"]
)
LABELS = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=5)
PLAIN_LABELS = st.lists(
    st.text(alphabet="bcdfghjklmnpqrstvwxz ", min_size=3, max_size=12).filter(
        lambda text: len(text.split()) > 0
    ),
    min_size=1,
    max_size=5,
)
POLITE = st.sampled_from(["{}", "{}.", "({})", "**{}**", "Hi,\n{}", "{} please", "{}\n\nThanks\nKim", " {} "])


class TableTests(SynchronousTestCase):
    """What people write."""

    def test_chosen(self) -> None:
        """Each text chooses its option, and leaves its note."""
        for options, rows in CHOSEN:
            for text, value, *note in rows:
                expected = Chosen((value,), note[0] if note else "")
                found = parse_answer(text, options)
                self.assertEqual(found, expected, f"{text!r}: {_shown(found)}")

    def test_undecided(self) -> None:
        """None of these chooses anything."""
        for options, texts in UNDECIDED:
            for text in texts:
                found = parse_answer(text, options)
                self.assertFalse(isinstance(found, Chosen), f"{text!r}: {_shown(found)}")

    def test_several(self) -> None:
        """Where several may be chosen, they come in the order of the options."""
        for text, values, note in SEVERAL:
            found = parse_answer(text, DATABASES, multi=True)
            self.assertEqual(found, Chosen(values, note), f"{text!r}: {_shown(found)}")

    def test_not_several(self) -> None:
        """A list that is not beyond doubt."""
        for text in NOT_SEVERAL:
            found = parse_answer(text, DATABASES, multi=True)
            self.assertFalse(isinstance(found, Chosen), f"{text!r}: {_shown(found)}")

    def test_there_are_many(self) -> None:
        """So that nobody thins the tables out."""
        chosen = sum(len(rows) for _, rows in CHOSEN)
        undecided = sum(len(texts) for _, texts in UNDECIDED)
        self.assertGreater(chosen, 150)
        self.assertGreater(undecided, 120)

    def test_all(self) -> None:
        """Every option, where none of them excludes the others and these are all the words."""
        options = (Option("unit", "Unit tests"), Option("web", "Browser tests"))
        for text in ("all", "All of them, please", "alle", "tous", "все", "全部"):
            self.assertEqual(parse_answer(text, options, multi=True), Chosen(("unit", "web")), text)
        for text in ("all but 2", "all?", "not all", "all the best"):
            self.assertFalse(isinstance(parse_answer(text, options, multi=True), Chosen), text)
        self.assertNotIsInstance(parse_answer("all", options), Chosen)


class DoubtTests(SynchronousTestCase):
    """What is said of a text that chooses nothing."""

    def test_what_it_could_have_meant(self) -> None:
        """The values of the options that it names, in their order."""
        for text, meant in (
            ("2 or 3?", ("postgres", "none")),
            ("3 or 2?", ("postgres", "none")),
            ("not 2", ("postgres",)),
            ("SQLite?", ("sqlite",)),
            ("b, no", ("postgres",)),
            ("7", ()),
            ("yes", ()),
        ):
            self.assertEqual(parse_answer(text, DATABASES), Unclear(meant), text)

    def test_prose(self) -> None:
        """Words that do not look like a choice are words."""
        for text in ("What would that cost?", "tomorrow", "Let us talk about it first, please", ""):
            self.assertEqual(parse_answer(text, DATABASES), InWords(), text)

    def test_a_long_text(self) -> None:
        """Nothing is read into a text of many pages."""
        self.assertEqual(parse_answer("2\n" + "log line\n" * 1_000, DATABASES), InWords())


class AnyTextTests(SynchronousTestCase):
    """Whatever is typed."""

    @given(
        st.text(max_size=300),
        st.lists(st.builds(Option, st.text(max_size=9), st.text(max_size=9)), max_size=6),
        st.booleans(),
    )
    def test_never_raises_and_chooses_only_what_is_offered(
        self, text: str, options: list[Option], multi: bool
    ) -> None:
        """Any text, any options."""
        found = parse_answer(text, options, multi)
        if isinstance(found, Chosen):
            self.assertTrue(found.values)
            self.assertLessEqual(set(found.values), {option.value for option in options})
            self.assertTrue(multi or len(found.values) == 1)

    @given(st.lists(WORDS, max_size=8))
    def test_whoever_names_two_options_chooses_none(self, parts: list[str]) -> None:
        """A text in which two options' numbers stand is never a choice of one."""
        text = " ".join(parts)
        if len({"1", "2", "3"} & set(parts)) > 1:
            self.assertFalse(isinstance(parse_answer(text, DATABASES), Chosen), text)

    @given(st.lists(WORDS, max_size=6))
    def test_a_question_mark_in_the_first_line_chooses_nothing(self, parts: list[str]) -> None:
        """Who asks back has not decided."""
        text = " ".join(part for part in parts if part != "\n") + "?"
        self.assertFalse(isinstance(parse_answer(text, DATABASES), Chosen), text)
        self.assertFalse(isinstance(parse_answer(text, DATABASES, multi=True), Chosen), text)

    @given(LABELS, st.data())
    @example(["No?", "x"], None)
    @example(["0;"], None)
    def test_the_mailed_line_is_always_understood(
        self, labels: list[str], data: st.DataObject | None
    ) -> None:
        """Number and label, as the links of our mails write them, whatever the label says."""
        options = [Option(f"v{number}", label) for number, label in enumerate(labels)]
        index = 0 if data is None else data.draw(st.integers(0, len(labels) - 1))
        line = f"{index + 1}. {' '.join(labels[index].split())}"
        assume(words(fold(labels[index])))
        assume(all(f"{other}." not in line.split()[1:] for other in range(9)))
        found = parse_answer(line + "\r\n\r\n", options)
        self.assertEqual(found, Chosen((f"v{index}",)), line)

    @given(PLAIN_LABELS, POLITE, st.data())
    def test_its_own_name_chooses_an_option(
        self, labels: list[str], around: str, data: st.DataObject
    ) -> None:
        """Number, label and value, with what people put around them."""
        folded = [fold(label) for label in labels]
        tokens = [token for label in folded for token in label.split()]
        assume(len(set(tokens)) == len(tokens) and all(len(token) > 2 for token in tokens))
        options = [Option(f"value{number}x", label) for number, label in enumerate(labels)]
        index = data.draw(st.integers(0, len(labels) - 1))
        name = data.draw(st.sampled_from([str(index + 1), " ".join(labels[index].split()), f"value{index}x"]))
        found = parse_answer(around.format(name), options)
        self.assertIsInstance(found, Chosen, around.format(name))
        assert isinstance(found, Chosen)
        self.assertEqual(found.values, (f"value{index}x",), around.format(name))

    @given(st.text(max_size=200))
    def test_folding_keeps_places(self, text: str) -> None:
        """Both folded texts have one length, and the whole is found at its beginning."""
        typed = Typed.of(text)
        self.assertEqual(len(typed.flat), len(typed.lined))
        if typed.flat:
            self.assertEqual(words(fold(typed.raw_from(0))), words(typed.flat))

    def test_time_is_bounded(self) -> None:
        """Texts made to be slow take a fraction of a second."""
        options = [Option(f"v{number}", f"Label {number}") for number in range(20)]
        for piece in ("2 ", "2, ", "hi ", "please ", "no wait ", "(", "- ", "1\n", "a b ", "yes, ", "?", "é"):
            text = "2, " + piece * (7_900 // len(piece))
            for multi in (False, True):
                began = time.process_time()
                parse_answer(text, options, multi)
                self.assertLess(time.process_time() - began, 0.25, piece)

    def test_it_is_fast(self) -> None:
        """It runs inside the transaction that files the mail."""
        times = []
        for _ in range(7):
            began = time.process_time()
            for _ in range(200):
                parse_answer("2", DATABASES)
                parse_answer("yes, but only after lunch", DEPLOY)
                parse_answer("Both at once, please", SPEED)
            times.append((time.process_time() - began) / 600)
        self.assertLess(min(times), 0.0005)  # ten times what it takes, for machines that are slow


def _shown(found: object) -> str:
    return f"{type(found).__name__} {getattr(found, 'values', ())} {getattr(found, 'note', '')!r}"
