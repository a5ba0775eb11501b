"""Kinds: what a member of a JSON object may hold, with its check and its schema.

Text must be such as UTF-8 and every database can hold; numbers are not truth values; everything is bounded.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

LONGEST_ID = 255
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Wrong(Exception):
    """A value is not what its field wants; the argument ends the sentence "`name` ..."."""


@frozen
class Kind:
    """What a field may hold: ``check`` returns the value or raises ``Wrong``; ``schema`` describes it."""

    check: Callable[[Any], Any]
    schema: Mapping[str, Any]


def _characters(value: Any) -> str:
    """Check for text that UTF-8 and every database can hold."""
    if not isinstance(value, str):
        raise Wrong("must be text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Wrong("holds half of a surrogate pair; send whole characters") from None
    if "\0" in value:
        raise Wrong("must not hold a NUL character")
    return value


def text_kind(longest: int, shortest: int = 0) -> Kind:
    """Text of any lines."""

    def check(value: Any) -> str:
        text = _characters(value)
        if not shortest <= len(text) <= longest:
            raise Wrong(f"must have {shortest} to {longest} characters")
        return text

    return Kind(check, {"type": "string", "minLength": shortest, "maxLength": longest})


def line_kind(longest: int, shortest: int = 0) -> Kind:
    """One line of text, without control characters."""
    text = text_kind(longest, shortest)

    def check(value: Any) -> str:
        line: str = text.check(value)
        if CONTROL.search(line):
            raise Wrong("must be one line without control characters")
        return line

    return Kind(check, text.schema)


def id_kind() -> Kind:
    """An id of the caller's making: 1 to 255 characters on one line, not only spaces."""
    line = line_kind(LONGEST_ID, 1)

    def check(value: Any) -> str:
        found: str = line.check(value)
        if found.isspace():
            raise Wrong("must not be blank")
        return found

    return Kind(check, line.schema)


def whole_kind(low: int, high: int) -> Kind:
    """Whole number within bounds, not a truth value and not ``1.0``."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Wrong(f"must be a whole number from {low} to {high}")
        return value

    return Kind(check, {"type": "integer", "minimum": low, "maximum": high})


def real_kind(low: float, high: float) -> Kind:
    """Check a number within bounds."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise Wrong(f"must be a number from {low:g} to {high:g}")
        return float(value)

    return Kind(check, {"type": "number", "minimum": low, "maximum": high})


def seconds_kind(most: int) -> Kind:
    """Seconds in a query string: digits, perhaps with a fraction."""

    def check(value: Any) -> float:
        found = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value) if isinstance(value, str) else None
        if found is None or float(found[0]) > most:
            raise Wrong(f"must be a number of seconds from 0 to {most}")
        return float(found[0])

    return Kind(check, {"type": "number", "minimum": 0, "maximum": most})


def flag_kind() -> Kind:
    """Check a truth value."""

    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise Wrong("must be true or false")
        return value

    return Kind(check, {"type": "boolean"})


def choice_kind(*words: str) -> Kind:
    """One of a few words."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise Wrong(f"must be one of {', '.join(words)}")
        return value

    return Kind(check, {"type": "string", "enum": list(words)})


def list_kind(each: Kind, most: int) -> Kind:
    """A list of at most so many."""

    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > most:
            raise Wrong(f"must be a list of at most {most} items")
        return tuple(each.check(item) for item in value)

    return Kind(check, {"type": "array", "maxItems": most, "items": each.schema})


def time_kind() -> Kind:
    """RFC 3339 time with its offset from UTC."""

    def check(value: Any) -> datetime:
        pattern = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)"
        try:
            if not isinstance(value, str) or re.fullmatch(pattern, value, re.ASCII) is None:
                raise ValueError
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise Wrong("must be a time such as 2026-01-31T12:00:00Z") from None

    return Kind(check, {"type": "string", "format": "date-time"})


ID = id_kind()
FLAG = flag_kind()
TIME = time_kind()
ANY = Kind(lambda value: value, {})
"""For answers, which we do not check."""
