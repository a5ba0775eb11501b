"""The corpus, read by the gateway: at least 97 of 100 right, and never one of the dangerous mistakes."""

import json

from twisted.trial.unittest import SynchronousTestCase

from tests.corpus.reading import reader
from tests.corpus.scoring import CASES, Case, Score, context, judge, load

WANTED = 0.97


class CorpusTests(SynchronousTestCase):
    """All cases at once."""

    def test_nearly_all_are_read_right(self) -> None:
        """The score of each group is shown when it is too low."""
        score = Score.of(load(), reader(context()))
        self.assertGreater(len(score.judgements), 230)
        self.assertGreaterEqual(score.share, WANTED, "\n" + score.report())

    def test_no_dangerous_mistake(self) -> None:
        """No machine taken for a person, no person's mail lost, no leak where one word is the answer."""
        score = Score.of(load(), reader(context()))
        short = {"command", "content"}
        for each in score.judgements:
            self.assertFalse(each.machine_as_person, each)
            self.assertFalse(each.person_lost, each)
            if each.case.group in short and len(each.case.texts[0].split()) <= 1:
                self.assertFalse(each.leaked, each)

    def test_each_case_has_both_files(self) -> None:
        """A mail without its result would count as nothing."""
        self.assertEqual(
            sorted(path.stem for path in CASES.glob("*.eml")),
            sorted(json.loads(path.read_text(encoding="utf-8"))["id"] for path in CASES.glob("*.json")),
        )


class JudgeTests(SynchronousTestCase):
    """The scorer can say no."""

    CASE = Case(
        id="x",
        group="g",
        kind="reply",
        kinds=frozenset({"reply"}),
        texts=("Yes.\n  two", "No."),
        must_not_contain=("wrote:",),
        keeps_lines=True,
        raw=b"",
    )

    def test_right_readings(self) -> None:
        """White space at the ends, and any of the right texts."""
        for text in ("Yes.\n  two", "Yes.\n\n  two  \n", "No."):
            self.assertTrue(judge(self.CASE, "reply", text).right, text)

    def test_wrong_readings(self) -> None:
        """Another kind, a lost line, a lost indentation, more text."""
        for kind, text in (
            ("empty", ""),
            ("auto_reply", ""),
            ("reply", "Yes."),
            ("reply", "Yes.\ntwo"),
            ("reply", "No. X wrote:"),
        ):
            self.assertFalse(judge(self.CASE, kind, text).right, text)
        self.assertTrue(judge(self.CASE, "auto_reply", "").person_lost)
        self.assertTrue(judge(self.CASE, "reply", "No. X wrote:").leaked)
