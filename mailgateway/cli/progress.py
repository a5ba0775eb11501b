"""How the tools of an operator show what they find: one line a fact, as it comes.

On a terminal with ``rich`` there is colour and a line that says what is waited for; otherwise plain lines.
With ``--json`` nothing is shown before the end, and then one object says it all.  Colour is never the only
sign: the state stands there as a word.
"""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from mailgateway.cli.report import Exit, Failed, counted, printable, say

if TYPE_CHECKING:
    from mailgateway.operator.findings import Finding, Tell

WIDTH = 100
"""Columns at most: longer lines are hard to read."""

STATE = 9
"""Columns of the word that says how a step ended."""

COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "bright_black"}


class _Lines:
    """Plain lines; what is under way is not told."""

    def __init__(self, width: int = 0) -> None:
        self._width = width

    def show(self, finding: "Finding") -> None:
        """Write the lines of a finding at once."""
        if finding.state == "underway":
            return
        head, *more = lines_of(finding, self._width)
        colour = COLOURS.get(finding.state) if self._width else None
        click.echo(click.style(head[:STATE], fg=colour) + head[STATE:] if colour else head)
        for line in more:
            click.echo(line)


class _Live(_Lines):
    """With ``rich``: a line below the findings says what is waited for."""

    def __init__(self, width: int, status: Any) -> None:
        super().__init__(width)
        self._status = status

    def show(self, finding: "Finding") -> None:
        """Update the line, or write a finding in its place."""
        if finding.state == "underway":
            from rich.markup import escape  # noqa: PLC0415 - an extra, and only for terminals

            self._status.update(escape(printable(f"{finding.step}: {finding.what}")))
            self._status.start()
            return
        self._status.stop()
        super().show(finding)


def _nothing(finding: "Finding") -> None:
    """Show nothing: the end says it all."""


@contextmanager
def progress(*, as_json: bool) -> "Iterator[Tell]":
    """Give what shows findings as they come, and take its traces off the terminal at the end."""
    if as_json:
        yield _nothing
        return
    if not sys.stdout.isatty():
        yield _Lines().show
        return
    width = min(WIDTH, shutil.get_terminal_size().columns)
    status: Any = None
    with suppress(ImportError):
        from rich.status import Status  # noqa: PLC0415 - an extra, and only for terminals

        status = Status("", spinner="line")
    if status is None:
        yield _Lines(width).show
        return
    try:
        yield _Live(width, status).show
    finally:
        status.stop()


def lines_of(finding: "Finding", width: int = 0) -> list[str]:
    """The lines of a finding: state, step and fact; below it what to do.  Width 0 breaks no line."""
    took = "" if (finding.seconds or 0) < 0.005 else f" ({finding.seconds:.2f} s)"
    told = [f"{finding.state:<{STATE}}{finding.step}: {finding.what}{took}"]
    told += [f"{'':<{STATE}}{line}" for line in finding.advice.split("\n") if line]
    return [piece for line in told for piece in _wrapped(printable(line), width)]


def conclude(
    findings: "Sequence[Finding]", *, as_json: bool, more: Mapping[str, Any] | None = None, end: str = ""
) -> None:
    """Say the end of it, and leave with status 1 if anything failed.

    ``more`` goes into the object of ``--json``, which says it all; ``end`` is the last line where nothing
    failed.
    """
    failures = sum(each.state == "failed" for each in findings)
    warnings = sum(each.state == "warning" for each in findings)
    answer = {"ok": not failures, **(more or {}), "findings": [each.as_dict() for each in findings]}
    if failures:
        last = f"{counted(failures, 'step', 'steps')} failed; the lines below each say what to do."
    elif warnings:
        last = f"{end or 'It works.'} {counted(warnings, 'warning', 'warnings')} above."
    else:
        last = end or "All is well."
    say(answer, last, as_json=as_json)
    if failures:
        raise Failed(Exit.FAILED)


def _wrapped(line: str, width: int) -> list[str]:
    """Break a line between words, behind its state."""
    if not width:
        return [line]
    return textwrap.wrap(
        line, width, subsequent_indent=" " * STATE, break_long_words=False, break_on_hyphens=False
    )
