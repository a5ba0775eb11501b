"""What a list of hostile behaviours is made of: for each row, the tests that hold it, and what is lacking."""

from collections.abc import Mapping

from attrs import frozen
from twisted.python.reflect import namedAny


@frozen
class Row:
    """One behaviour of servers in the field.

    ``tests`` are dotted names below ``tests``; ``lacks`` says in a sentence what of the right answer to it is
    not built, or why it does not concern us.
    """

    what: str
    tests: tuple[str, ...] = ()
    lacks: str = ""


def held(what: str, *tests: str, lacks: str = "") -> Row:
    """A row with tests."""
    return Row(what, tests, lacks)


def open_(what: str, lacks: str) -> Row:
    """A row that has none, and why."""
    return Row(what, lacks=lacks)


def unknown_tests(rows: Mapping[str, Row]) -> list[str]:
    """Names in the list that name no test."""
    return [name for row in rows.values() for name in row.tests if not _is_test(name)]


def _is_test(name: str) -> bool:
    try:
        found = namedAny(f"tests.{name}")
    except (AttributeError, ImportError):
        return False
    return callable(found) and name.rpartition(".")[2].startswith("test_")


def unexplained(rows: Mapping[str, Row]) -> list[str]:
    """Rows with neither a test nor a reason."""
    return [key for key, row in rows.items() if not row.tests and len(row.lacks.split()) < 4]
