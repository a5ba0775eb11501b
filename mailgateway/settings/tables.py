"""From TOML tables to frozen classes: every problem is collected, none stops the reading.

A class says by its annotations what each key must be.  Plain types mean the obvious (``str``, ``bool``,
``tuple[str, ...]``, a ``StrEnum``); ``Annotated[..., kind]`` names one of the kinds below.  A key without a
default is required, unless its kind says what absence means.

No message repeats a value that was read: it might be a secret on the wrong line.  This module knows no
setting by name, and opens no file.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

from attrs import NOTHING, AttrsInstance, Factory, define, fields, frozen

from mailgateway.errors import Problem

T = TypeVar("T", bound=AttrsInstance)

LONGEST_TEXT = 2000
LONGEST_LIST = 200


class Override(str):
    """A value that came from the environment: text, to be parsed to whatever its key wants."""

    __slots__ = ("variable",)
    variable: str


def override(variable: str, text: str) -> Override:
    """The text of one environment variable, which remembers where it came from."""
    value = Override(text)
    value.variable = variable
    return value


class Wrong(Exception):
    """A value is not what its key wants; the argument is the sentence for the person who wrote it."""


@define(eq=False)
class Reading:
    """One run over the settings: what was found wrong, and what the kinds may ask.

    ``folder`` is what relative paths are relative to; ``host_name`` is this machine's.
    """

    environ: Mapping[str, str]
    folder: Path
    host_name: str
    problems: list[Problem] = Factory(list)

    def wrong(self, path: str, message: str) -> None:
        """Note a problem and go on."""
        self.problems.append(Problem(path, message))

    def unknown(self, path: str, key: str, value: object, known: Iterable[str]) -> None:
        """Note a key that nobody reads, with the nearest one that somebody does."""
        import difflib  # noqa: PLC0415 - costs a start that right settings need not pay

        if key in {"password", "secret", "token"}:
            hint = "secrets do not stand in the settings; name a file in `password_file`"
        elif near := difflib.get_close_matches(key.lower(), list(known), 1, 0.6):
            hint = f"did you mean `{near[0]}`?"
        else:
            hint = f"known here: {', '.join(known)}" if known else "nothing is known here"
        self.wrong(joined(path, shown(key)), f"is not a setting; {hint}{_origin(value)}")


REQUIRED = object()
"""What a kind says that knows nothing to put in for a key that is not there."""

Check = Callable[[object, Reading], Any]


@frozen
class Kind:
    """What a key may hold.  ``check`` turns the TOML value into ours, or raises ``Wrong``.

    ``absent`` is what ``check`` is given when the key is not there; ``REQUIRED`` makes the key required.
    """

    check: Check
    absent: object = REQUIRED


def joined(path: str, key: str) -> str:
    """The dotted path of a key below a path."""
    return f"{path}.{key}" if path else key


def shown(key: str) -> str:
    """A key as it may stand in a message: bare where TOML allows it, else quoted and cut."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", key) else ascii(key[:64])


def _origin(value: object) -> str:
    """Say from which variable a value came, where it came from one."""
    return f" (from ${value.variable})" if isinstance(value, Override) else ""


def text_of(value: object, _: Reading | None = None) -> str:
    """Check one line of text without control characters."""
    if not isinstance(value, str):
        raise Wrong("must be text, in quotes")
    if len(value) > LONGEST_TEXT or any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise Wrong(f"must be one line of at most {LONGEST_TEXT} characters, without control characters")
    return str(value).strip()


def flag_of(value: object, _: Reading) -> bool:
    """Check a truth value; from the environment also yes, no, on, off, 1 and 0."""
    if isinstance(value, Override):
        word = value.strip().lower()
        if word in {"true", "yes", "on", "1"}:
            return True
        if word in {"false", "no", "off", "0"}:
            return False
    elif isinstance(value, bool):
        return value
    raise Wrong("must be true or false")


def texts_of(value: object, _: Reading) -> tuple[str, ...]:
    """Check a list of texts; from the environment also words between commas."""
    if isinstance(value, Override):
        value = [word.strip() for word in value.strip().removeprefix("[").removesuffix("]").split(",")]
        value = [word.strip("\"'") for word in value if word]
    if not isinstance(value, list | tuple) or len(value) > LONGEST_LIST:
        raise Wrong(f'must be a list of at most {LONGEST_LIST} texts: ["one", "two"]')
    texts = [text_of(item) for item in value]
    if not all(texts):
        raise Wrong("must not hold an empty text")
    return tuple(dict.fromkeys(texts))


def number(low: int, high: int) -> Kind:
    """Make the kind of a whole number within bounds."""

    def check(value: object, _: Reading) -> int:
        wanted = Wrong(f"must be a whole number from {low} to {high}")
        if isinstance(value, Override) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise wanted
        return value

    return Kind(check)


def matching(pattern: str, sentence: str) -> Kind:
    """Make the kind of a text that a pattern describes; ``sentence`` says the same to a person."""

    def check(value: object, reading: Reading) -> str:
        text = text_of(value, reading)
        if re.fullmatch(pattern, text) is None:
            raise Wrong(sentence)
        return text

    return Kind(check)


def optional(kind: Kind) -> Kind:
    """Make the kind that may also be left empty, which is then the empty text."""

    def check(value: object, reading: Reading) -> object:
        return kind.check(value, reading) if text_of(value, reading) else ""

    return Kind(check, "")


def each(kind: Kind) -> Kind:
    """Make the kind of a list whose items are of a kind."""

    def check(value: object, reading: Reading) -> tuple[Any, ...]:
        return tuple(kind.check(item, reading) for item in texts_of(value, reading))

    return Kind(check, ())


def home_of(reading: Reading) -> Path:
    """Find the home directory, or say that there is none."""
    home = reading.environ.get("HOME")
    if not home:
        raise Wrong("needs the home directory, but HOME is not set; give a full path")
    return Path(home)


def place_of(value: object, reading: Reading) -> Path | None:
    """Check a path: ``~`` is the home directory, relative is beside the settings file, empty is None."""
    text = text_of(value, reading)
    if not text:
        return None
    if text == "~" or text.startswith("~/"):
        return home_of(reading) / text[2:]
    return reading.folder / text


def choice(kind: type[StrEnum]) -> Kind:
    """Make the kind of one word out of a few."""

    def check(value: object, reading: Reading) -> StrEnum:
        try:
            return kind(text_of(value, reading))
        except ValueError:
            raise Wrong(f"must be one of {', '.join(kind)}") from None

    return Kind(check)


TEXT = Kind(text_of)
FLAG = Kind(flag_of)
TEXTS = Kind(texts_of)
PLACE = Kind(place_of, "")
HOST = matching(
    r"[A-Za-z0-9._-]{1,253}|[0-9A-Fa-f:.]{2,45}",
    "must be a host name or an IP address, without a scheme, a port or brackets",
)
ADDRESS = matching(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?",
    "must be a mail address such as robin@example.org",
)


def kind_of(annotation: object) -> Kind:
    """The kind that an annotation asks for."""
    if get_origin(annotation) is Annotated:
        return cast("Kind", get_args(annotation)[1])
    if annotation == tuple[str, ...]:
        return TEXTS
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return choice(annotation)
    return {str: TEXT, bool: FLAG}[annotation]  # type: ignore[index]  # anything else is our own mistake


def read(made: type[T], table: object, path: str, reading: Reading) -> T | None:
    """Read one table into one class; None when anything in it was wrong (which ``reading`` then knows)."""
    if not isinstance(table, Mapping):
        reading.wrong(path, f"must be a table: [{path}]")
        return None
    known = {field.name: field for field in fields(made)}
    before = len(reading.problems)
    for key, value in table.items():
        if key not in known:
            reading.unknown(path, str(key), value, known)
    values: dict[str, object] = {}
    for name, field in known.items():
        kind = kind_of(field.type)
        value = table.get(name, kind.absent)
        if name not in table and field.default is not NOTHING:
            values[name] = field.default
        elif value is not REQUIRED:
            try:
                values[name] = kind.check(value, reading)
            except Wrong as wrong:
                reading.wrong(joined(path, name), f"{wrong}{_origin(value)}")
        else:
            reading.wrong(joined(path, name), "is missing")
    return made(**values) if len(reading.problems) == before else None


def tables(value: object, path: str, reading: Reading) -> dict[str, Mapping[str, object]]:
    """The tables of a section that has one table for each name, such as ``[accounts.NAME]``."""
    if not isinstance(value, Mapping):
        reading.wrong(path, f"must hold one table for each name: [{path}.NAME]")
        return {}
    found = {}
    for name, table in value.items():
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", str(name)) is None:
            reading.wrong(joined(path, shown(str(name))), "must be named with letters, digits, - and _")
        elif not isinstance(table, Mapping):
            reading.wrong(joined(path, name), f"must be a table: [{path}.{name}]")
        else:
            found[str(name)] = table
    return found


def overlaid(mapping: Mapping[str, object], environ: Mapping[str, str], prefix: str) -> dict[str, object]:
    """The mapping with the variables ``<prefix><SECTION>__<KEY>`` laid on top; the mapping is not changed.

    Names are compared without regard to case, and ``-`` is written ``_``.  A variable without ``__`` is none
    of the settings' business.
    """
    result = _copied(mapping)
    for variable in sorted(environ):
        steps = variable.removeprefix(prefix).split("__")
        if not variable.startswith(prefix) or len(steps) < 2 or not all(steps):
            continue
        table = result
        for step in steps[:-1]:
            inner = table.setdefault(_named(table, step), {})
            if not isinstance(inner, dict):
                break
            table = inner
        else:
            table[_named(table, steps[-1])] = override(variable, environ[variable])
    return result


def _copied(mapping: Mapping[str, object]) -> dict[str, object]:
    return {key: _copied(value) if isinstance(value, Mapping) else value for key, value in mapping.items()}


def _named(table: Mapping[str, object], step: str) -> str:
    """The key of the table that a part of a variable's name means; a new one in lower case else."""
    wanted = step.lower()
    return next((key for key in table if str(key).lower().replace("-", "_") == wanted), wanted)
