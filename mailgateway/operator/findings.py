"""Findings: what an operator's tool found out, one line a fact, each with what to do about it.

``check``, ``smoke``, ``doctor`` and ``setup`` tell them through one seam, ``Tell``, as they come, and return
them all at the end.  A finding may be shown and kept anywhere: it never holds a secret or the words of a
mail.  Who shows them, and how, is not known here.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeAlias

from attrs import define, field, frozen


class State(StrEnum):
    """How a step ended."""

    OK = "ok"
    NOTE = "note"
    """A fact that is neither good nor bad, or one that may be wanted so."""
    WARNING = "warning"
    """It works, and something should be done about it."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not tried, for a reason that ``what`` tells."""
    UNDERWAY = "underway"
    """What is waited for now: told for the eye, and never among the results."""


@frozen
class Finding:
    """One fact: ``step`` is where (stable words, as ``agents imap login``), ``what`` is one sentence.

    ``advice`` says what to do, and is empty where there is nothing to do.  ``seconds`` is how long the step
    took, where that was measured.
    """

    step: str
    state: State
    what: str
    advice: str = ""
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The finding as an object of JSON."""
        told: dict[str, Any] = {"step": self.step, "state": self.state.value, "what": self.what}
        if self.advice:
            told["advice"] = self.advice
        if self.seconds is not None:
            told["seconds"] = round(self.seconds, 3)
        return told


Tell: TypeAlias = Callable[[Finding], None]
"""Hears of each finding when it is made, and of what is under way."""


def failed(findings: Iterable[Finding]) -> bool:
    """Whether any of them is a failure."""
    return any(each.state is State.FAILED for each in findings)


@define(eq=False)
class Record:
    """Tells findings and keeps them; times a step from ``begin`` to the finding that ends it.

    ``seconds`` is the clock, in seconds (``reactor.seconds``).
    """

    tell: Tell
    seconds: Callable[[], float]
    findings: list[Finding] = field(factory=list)
    _began: float | None = None

    def begin(self, step: str, what: str) -> None:
        """Say what is waited for now; the next finding tells how long it took."""
        self._began = self.seconds()
        self.tell(Finding(step, State.UNDERWAY, what))

    def add(self, step: str, state: State, what: str, advice: str = "") -> Finding:
        """Tell a finding."""
        began, self._began = self._began, None
        took = None if began is None else self.seconds() - began
        finding = Finding(step, state, what, advice, took)
        self.findings.append(finding)
        self.tell(finding)
        return finding

    def ok(self, step: str, what: str) -> None:
        """Tell that a step went well."""
        self.add(step, State.OK, what)

    def note(self, step: str, what: str, advice: str = "") -> None:
        """Tell a fact."""
        self.add(step, State.NOTE, what, advice)

    def warn(self, step: str, what: str, advice: str = "") -> None:
        """Tell what works and should be better."""
        self.add(step, State.WARNING, what, advice)

    def fail(self, step: str, what: str, advice: str = "") -> None:
        """Tell that a step failed, and what to do."""
        self.add(step, State.FAILED, what, advice)

    def skip(self, step: str, what: str) -> None:
        """Tell what was not tried, and why."""
        self.add(step, State.SKIPPED, what)
