"""Asking for the texts of candidates: neighbours together, and apart where one spoils it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import CommandRefused
from mailgateway.flows.evidence import SMALL
from mailgateway.flows.ports import FetchedMail
from mailgateway.flows.scan import FEW
from mailgateway.flows.texts import TOGETHER, TOGETHER_OCTETS, runs
from tests.flows import test_scan


class TogetherTests(test_scan.ScanTestCase):
    """The texts of neighbours come with one command."""

    def texts_of(self, *words: str) -> list[tuple[int, int | None]]:
        """Which UIDs the scan of these replies asks for together, after their header fields."""
        self.scan()
        self.mailbox.fetches.clear()
        for each in words:
            self.answer(each)
        self.scan()
        return [(first, last) for first, last, small in self.mailbox.fetches if small]

    def test_a_burst_comes_a_few_dozen_at_a_time(self) -> None:
        """Each with its own words, in one order, and nobody is asked for twice."""
        words = [f"words {number}" for number in range(2 * TOGETHER + 1)]
        asked = self.texts_of(*words)
        self.assertEqual(asked, [(1, TOGETHER), (TOGETHER + 1, 2 * TOGETHER)])
        self.assertEqual(self.mailbox.texts, [2 * TOGETHER + 1])
        self.assertEqual(self.words(), words)

    def test_strangers_between_are_not_asked_for(self) -> None:
        """The texts of mails that do not concern us are never read."""
        self.scan()
        for _ in range(FEW):
            self.stranger()
        self.answer("one")
        self.stranger()
        self.answer("two")
        self.mailbox.fetches.clear()
        self.scan()
        self.assertEqual([small for _, _, small in self.mailbox.fetches], [0])
        self.assertEqual(self.words(), ["one", "two"])

    def test_what_is_refused_together_is_asked_for_one_by_one(self) -> None:
        """The connection is in order, so the same scan goes on; what came before the refusal came."""
        self.scan()
        for _ in range(FEW):
            self.stranger()
        self.answer("one")
        stuck = self.answer("two")
        self.mailbox.poisoned_texts = {stuck}
        self.mailbox.poison = CommandRefused("NO")
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), CommandRefused)
        self.assertEqual(self.mailbox.texts, [stuck])
        self.mailbox.poisoned_texts = set()
        self.scan()
        self.assertEqual(self.words(), ["one", "two"])

    def test_large_mails_come_alone(self) -> None:
        """A text that is not small is nobody's company, whatever its neighbours are."""
        self.scan()
        self.mailbox.fetches.clear()
        for number in range(FEW + 2):
            self.answer(f"words {number}")
        self.mailbox.mails[2] += b"\r\n" + b"x" * SMALL
        self.scan()
        self.assertEqual([each[:2] for each in self.mailbox.fetches if each[2]], [(3, 2 + FEW)])
        self.assertEqual(self.mailbox.texts, [1, 2])
        self.assertEqual(len(self.words()), 2 + FEW)


class RunsTests(SynchronousTestCase):
    """Which texts may come together."""

    @given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 2 * SMALL)), unique_by=lambda each: each[0]))
    @settings(max_examples=50)
    def test_every_mail_is_in_one_run(self, mails: list[tuple[int, int]]) -> None:
        """In order; of several, all are small neighbours and together within the bounds."""
        fetched = [FetchedMail(uid, size, None, b"") for uid, size in mails]
        found = list(runs(fetched))
        self.assertEqual([each for run in found for each in run], sorted(fetched, key=lambda each: each.uid))
        for run in found:
            self.assertEqual([each.uid for each in run], list(range(run[0].uid, run[0].uid + len(run))))
            if len(run) > 1:
                self.assertLessEqual(max(each.size for each in run), SMALL)
                self.assertLessEqual(sum(each.size for each in run), TOGETHER_OCTETS)
                self.assertLessEqual(len(run), TOGETHER)
