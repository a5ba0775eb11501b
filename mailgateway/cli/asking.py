"""Questions to the person at a terminal, each of which a flag can answer beforehand.

Without a terminal, or with ``--json``, nothing is asked: a question that has no answer and no default ends
the verb with the usage, and names the flag.  A secret is read without echo, and is never shown, not even in
part.
"""

import sys
from collections.abc import Callable
from typing import NoReturn, TextIO

import click
from attrs import define

from mailgateway.cli.report import Exit, fail, printable


def on_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; one that was closed before we began is none."""
    return stream is not None and stream.isatty()


@define(eq=False)
class Asking:
    """Asks, where somebody is there to answer."""

    as_json: bool
    present: bool
    """Whether a person can be asked."""
    aside: bool = False
    """Standard output is for something else: what is said goes to standard error."""

    @classmethod
    def here(cls, *, as_json: bool, aside: bool = False) -> "Asking":
        """Whoever sits at this terminal; nobody where there is none, or JSON is wanted."""
        seen = sys.stderr if aside else sys.stdout
        return cls(as_json, not as_json and on_terminal(sys.stdin) and on_terminal(seen), aside)

    def text(self, question: str, flag: str, check: Callable[[str], str], default: str | None = None) -> str:
        """One line of text; ``check`` gives it as it is used, or raises ``ValueError`` with a sentence.

        Where nobody can be asked, the default holds; without one the flag is missing.
        """
        if not self.present:
            if default is None:
                self.missing(question, flag)
            try:
                return check(default)
            except ValueError as error:
                message = f"{flag.split(maxsplit=1)[0]}: {error}."
                fail(Exit.USAGE, "invalid_answer", message, as_json=self.as_json)

        def checked(given: str) -> str:
            try:
                return check(given)
            except ValueError as error:
                raise click.BadParameter(str(error)) from None

        answer: str = click.prompt(question, default=default, value_proc=checked, err=self.aside)
        return answer

    def secret(self, question: str, flag: str) -> str:
        """Ask for a password, without echo."""
        if not self.present:
            self.missing(question, flag)
        answer: str = click.prompt(f"{question} (it is not shown)", hide_input=True, err=self.aside)
        return answer.strip()

    def agrees(self, question: str, flag: str, *, default: bool) -> bool:
        """Yes or no; where nobody can be asked, the flag is missing."""
        if not self.present:
            self.missing(question, flag)
        return click.confirm(question, default=default, err=self.aside)

    def tell(self, *lines: str) -> None:
        """Say something to people."""
        if not self.as_json:
            for line in lines:
                click.echo(printable(line), err=self.aside)

    def missing(self, question: str, flag: str) -> NoReturn:
        """End for want of an answer."""
        message = f"There is nobody to ask: {question.rstrip('?:. ')}? Say it with {flag}."
        named = flag.split(maxsplit=1)[0]
        fail(Exit.USAGE, "missing_answer", message, as_json=self.as_json, more={"flag": named})
