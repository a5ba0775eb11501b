"""Is a reading of a mail right?  The cases of the corpus, and the judgement of one result.

Runs of white space, no-break blanks, zero-width and direction marks make no difference; where a case keeps
its lines, these are compared one by one with their indentation.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import Factory, define, field, frozen

HERE = Path(__file__).parent
CASES = HERE / "cases"
CONTEXT = HERE / "context.json"

_INVISIBLE = dict.fromkeys(
    [0x200B, 0x200E, 0x200F, 0xFEFF, 0x2060, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_PERSONS = frozenset({"reply", "command"})
_MACHINES = frozenset({"auto_reply", "bounce", "loop"})


@frozen(kw_only=True)
class Case:
    """One mail and what a good gateway makes of it; ``texts`` are the right readings, the best one first."""

    id: str
    group: str
    kinds: frozenset[str]
    kind: str
    texts: tuple[str, ...] = ("",)
    must_contain: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    keeps_lines: bool = False
    raw: bytes = field(repr=False)


@frozen
class Judgement:
    """What is wrong with a reading; right when nothing is."""

    case: Case
    faults: tuple[str, ...]
    machine_as_person: bool
    person_lost: bool
    leaked: bool

    @property
    def right(self) -> bool:
        """Whether the reading is one of the right ones."""
        return not self.faults


Reading = tuple[str, str]
"""The kind and the text that a reader gives."""

Reader = Callable[[Case], Reading]


def context() -> dict[str, Any]:
    """What the gateway of these cases knows about itself."""
    loaded = json.loads(CONTEXT.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def load() -> Iterator[Case]:
    """All cases of the folder, in the order of their names."""
    for path in sorted(CASES.glob("*.json")):
        yield case_of(json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".eml").read_bytes())


def case_of(given: Mapping[str, Any], raw: bytes) -> Case:
    """A case from the fields of its JSON file."""
    return Case(
        id=given["id"],
        group=given["group"],
        kind=given["kind"],
        kinds=frozenset({given["kind"], *given.get("accept_kinds", ())}),
        texts=(given["expected_text"], *given.get("accept_texts", ())),
        must_contain=tuple(given["must_contain"]),
        must_not_contain=tuple(given["must_not_contain"]),
        keeps_lines=bool(given.get("preserve_lines")),
        raw=raw,
    )


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\u00a0\u202f\u2009]", " ", text).translate(_INVISIBLE)


def collapsed(text: str) -> str:
    """The text as it is compared."""
    return re.sub(r"\s+", " ", _plain(text)).strip()


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in _plain(text).split("\n") if line.strip()]


def judge(case: Case, kind: str, text: str) -> Judgement:
    """Compare a reading with the right ones."""
    if kind == "reply" and not collapsed(text):
        kind = "empty"
    faults = [] if kind in case.kinds else [f"kind {kind}, not {'/'.join(sorted(case.kinds))}"]
    read = collapsed(text)
    leaks = [each for each in case.must_not_contain if collapsed(each) in read]
    if case.kind in _PERSONS and not (kind not in _PERSONS and not faults and not read):
        fitting = [each for each in case.texts if collapsed(each) == read]
        if not fitting:
            faults.append(f"text {text[:300]!r}, not {case.texts[0][:300]!r}")
        elif case.keeps_lines and all(_lines(each) != _lines(text) for each in fitting):
            faults.append(f"lines or indentation lost: {text[:300]!r}")
        faults += [f"lacks {each!r}" for each in case.must_contain if collapsed(each) not in read]
    if kind in _PERSONS or read:
        faults += [f"holds {each!r}" for each in leaks]
    return Judgement(
        case,
        tuple(faults),
        machine_as_person=case.kind in _MACHINES and kind in _PERSONS,
        person_lost=case.kind in _PERSONS and kind not in _PERSONS | case.kinds,
        leaked=bool(leaks) and kind in _PERSONS,
    )


@define
class Score:
    """The judgements of many cases."""

    judgements: list[Judgement] = Factory(list)

    @classmethod
    def of(cls, cases: Iterable[Case], read: Reader) -> "Score":
        """Read all cases."""
        return cls([judge(case, *read(case)) for case in cases])

    @property
    def share(self) -> float:
        """The part that is right, 0 to 1."""
        return sum(each.right for each in self.judgements) / max(len(self.judgements), 1)

    def groups(self) -> dict[str, tuple[int, int]]:
        """How many of each group are right, and how many there are."""
        found: dict[str, tuple[int, int]] = {}
        for each in self.judgements:
            right, all_of = found.get(each.case.group, (0, 0))
            found[each.case.group] = (right + each.right, all_of + 1)
        return found

    def report(self, shown: int = 40) -> str:
        """The faults, then the score of each group: for a person to read."""
        wrong = [each for each in self.judgements if not each.right]
        lines = [f"{each.case.id}: {'; '.join(each.faults)}" for each in wrong[:shown]]
        lines += [f"({len(wrong) - shown} more)"] if len(wrong) > shown else []
        lines += [f"{group:16} {right:5} of {of:5}" for group, (right, of) in sorted(self.groups().items())]
        return "\n".join([*lines, f"{'all':16} {self.share:.1%} of {len(self.judgements)}"])
