"""The gateway's own reading of a case: the same code that the service and ``explain`` run."""

from collections.abc import Iterable, Mapping
from typing import Any

from mailgateway.domain.explain import Context, explain
from mailgateway.mail.own import Own
from tests.corpus.scoring import Case, Reader, Reading, Score, judge


def judged(pairs: Iterable[tuple[Case, Mapping[str, Any]]]) -> Score:
    """Read cases, each with what its gateway knows."""
    return Score([judge(case, *reader(known)(case)) for case, known in pairs])


def reader(known: Mapping[str, Any]) -> Reader:
    """A reader for a gateway that knows this of itself (the object of a context file)."""
    context = Context.from_json(known)
    own = Own()

    def read(case: Case) -> Reading:
        explained = explain(case.raw, own, context)
        return str(explained.kind), explained.text

    return read
