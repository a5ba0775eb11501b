"""Mails that nobody has looked at: the corpus with other identities and words, and made-up ones."""

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

import mailgateway
from tests.corpus.pages import PAGES
from tests.corpus.reading import judged
from tests.corpus.scoring import CASES, Case, context, load
from tests.corpus.synthetic import PLAIN, absences, replies
from tests.corpus.vary import variations

SEED = 2026


class VariationTests(SynchronousTestCase):
    """The same rules must hold for mails that were not at hand when they were written."""

    def assert_read(self, pairs: Iterable[tuple[Case, Mapping[str, Any]]], wanted: float) -> None:
        """Nearly all right; what is wrong is shown by group."""
        score = judged(pairs)
        self.assertGreaterEqual(score.share, wanted, "\n" + score.report())
        for each in score.judgements:
            self.assertFalse(each.machine_as_person, each)
            self.assertFalse(each.person_lost, each)

    def test_the_corpus_with_other_identities_and_words(self) -> None:
        """Other addresses, names, texts, subjects, transport and line ends."""
        cases = list(load())
        self.assert_read(
            chain.from_iterable(variations(cases, context(), SEED + turn) for turn in range(2)), 0.97
        )

    def test_replies_in_plain_text(self) -> None:
        """Each layout in each language, with words that are easily mistaken."""
        self.assert_read(replies(len(PLAIN) * 22 * 2, SEED, PLAIN), 0.99)

    def test_replies_in_html(self) -> None:
        """Likewise."""
        self.assert_read(replies(len(PAGES) * 22 * 2, SEED, PAGES), 0.99)

    def test_absences(self) -> None:
        """Notices in each language by their subject alone; an answer to such a subject is a person's."""
        self.assert_read(absences(), 1.0)


class NothingLearntTests(SynchronousTestCase):
    """The code knows kinds of mail and no mail of the corpus."""

    def test_no_string_of_the_context_or_a_case_is_in_the_code(self) -> None:
        """What the gateway of the corpus knows of itself, and what is typed there."""
        known = context()
        strings = {
            *known["own_addresses"],
            *known["own_names"],
            *known["own_message_ids"],
            known["own_subject"],
            known["own_header"],
            known["person"],
        }
        texts = [known["original_text"], *known["inline_originals"]]
        texts += [
            json.loads(path.read_text(encoding="utf-8"))["expected_text"] for path in CASES.glob("*.json")
        ]
        strings |= {line for text in texts for line in text.split("\n") if len(line) > 15}
        package = Path(mailgateway.__file__).parent
        code = {
            path: path.read_text(encoding="utf-8")
            for layer in ("mail", "domain", "flows")
            for path in (package / layer).rglob("*.py")
        }
        self.assertGreater(len(strings), 100)
        for string in sorted(strings):
            found = [str(path) for path, text in code.items() if string in text]
            self.assertEqual(found, [], string)
