"""How a verb speaks: lines for people, JSON for programs, an exit status for both.

Every failure that is expected ends here in one sentence that says what to do; with ``--json`` in one object
on standard output.  A traceback is a bug.
"""

import functools
import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, NoReturn

import click

from mailgateway.client import ApiRefused, ServiceUnreachable, WrongService
from mailgateway.errors import ConfigError, MailgatewayError


class Exit(IntEnum):
    """The exit status of every verb."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3


class Failed(click.exceptions.Exit):
    """The verb has said why it failed."""


def shared(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb ``--json`` and ``--config``, and turn its failures into a sentence and an exit status.

    The verb receives ``config`` (a path or ``None``) and ``as_json``.
    """

    @click.option("--json", "as_json", is_flag=True, help="Answer in JSON, complete and stable.")
    @click.option("--config", type=click.Path(), metavar="FILE", help="The settings file.")
    @functools.wraps(function)
    def verb(*args: Any, as_json: bool, config: str | None, **more: Any) -> None:
        with reporting(as_json=as_json):
            function(*args, as_json=as_json, config=config, **more)

    return verb


@contextmanager
def reporting(*, as_json: bool) -> Iterator[None]:
    """Say a failure, and end with its exit status."""
    try:
        yield
    except click.UsageError as error:
        if not as_json:
            raise
        fail(Exit.USAGE, "usage", error.format_message(), as_json=True)
    except ConfigError as error:
        problems = [{"path": problem.path, "message": problem.message} for problem in error.problems]
        lines = ["The settings are wrong.", *(f"  {problem}" for problem in error.problems)]
        fail(Exit.USAGE, "invalid_settings", "\n".join(lines), as_json=as_json, more={"problems": problems})
    except WrongService as error:
        fail(Exit.UNREACHABLE, "wrong_service", _sentence(error), as_json=as_json)
    except ServiceUnreachable as error:
        hint = "Start mailgateway with `mailgateway ensure`, or `systemctl --user start mailgateway`."
        fail(Exit.UNREACHABLE, "unreachable", f"{_sentence(error)} {hint}", as_json=as_json)
    except ApiRefused as error:
        fail(Exit.FAILED, error.code, _sentence(error), as_json=as_json, more=error.details)
    except MailgatewayError as error:
        fail(Exit.FAILED, "failed", _sentence(error), as_json=as_json)


def fail(
    status: Exit, code: str, message: str, *, as_json: bool, more: Mapping[str, Any] | None = None
) -> NoReturn:
    """Say what went wrong and end: one object on standard output, or a sentence on standard error."""
    if as_json:
        click.echo(json.dumps({"error": code, "message": message, **(more or {})}))
    else:
        click.echo(printable(f"{message} ({code})"), err=True)
    raise Failed(status)


def say(answer: Mapping[str, Any], lines: Sequence[str] | str, *, as_json: bool) -> None:
    """Say what was done: the answer as one JSON object, or its lines for people."""
    if as_json:
        click.echo(json.dumps(answer))
        return
    for line in [lines] if isinstance(lines, str) else lines:
        click.echo(printable(line))


def facts(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Align facts: one line each, the words before and the values behind one column."""
    width = max((len(name) for name, _ in pairs), default=0)
    return [f"{name:<{width}}  {value}".rstrip() for name, value in pairs]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows under heads; a single row needs no heads."""
    shown = [list(heads), *map(list, rows)] if len(rows) > 1 else list(map(list, rows))
    widths = [max(len(row[column]) for row in shown) for column in range(len(heads))] if shown else []
    return ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in shown]


def printable(text: str) -> str:
    """The text without control characters: what came by mail must not steer a terminal.

    Characters that turn the direction of writing, and others that nobody sees, are shown by their number, as
    in Python's literals: a name must not read as another one.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


_JOINERS = "\u200c\u200d"
"""They only shape the letters or pictures at their sides, in Persian and in many an emoji."""
_UNSEEN = frozenset({"Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: format, surrogate, line and paragraph separator."""


def _shown(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Cc":
        return char if char in "\n\t" else ""
    if category in _UNSEEN and char not in _JOINERS:
        return char.encode("unicode_escape").decode("ascii")
    return char


def when(moment: str | None, now: datetime) -> str:
    """A time as a person reads it, relative and exact: ``3 min ago (2026-11-30 19:40 UTC)``."""
    if not moment:
        return "never"
    try:
        at = datetime.fromisoformat(moment).astimezone(UTC)
    except ValueError:
        return moment
    seconds = (now - at).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if abs(seconds) >= size:
            count = f"{abs(seconds) // size:.0f} {unit}"
            relative = f"{count} ago" if seconds > 0 else f"in {count}"
            break
    else:
        relative = "now"
    return f"{relative} ({at:%Y-%m-%d %H:%M} UTC)"


def counted(number: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{number} {one if number == 1 else many}"


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
