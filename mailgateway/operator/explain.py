"""``explain``: how the gateway would treat mail files, without a service and without a mailbox.

It reads files and nothing else; the judgement is the service's own (``domain.explain``).  One file never
spoils the others: what cannot be read or understood is one line that says so.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from mailgateway.domain.explain import Context, Explanation, Kind, explain
from mailgateway.errors import ConfigError, Problem
from mailgateway.mail.inbound import LARGEST_MAIL
from mailgateway.mail.own import Own, own_of
from mailgateway.mail.verdict import Verdict
from mailgateway.settings import Settings

LARGEST_CONTEXT = 8 * 1024 * 1024


def read_context(path: Path) -> Context:
    """Read the JSON file that tells what a running gateway would know; ``ConfigError`` when it is none."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_CONTEXT + 1)
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be read: {error.strerror}")]) from None
    if len(data) > LARGEST_CONTEXT:
        raise ConfigError([Problem(str(path), "is too large")])
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError([Problem(str(path), f"is not JSON ({type(error).__name__})")]) from None
    if not isinstance(value, dict):
        raise ConfigError([Problem(str(path), "must hold one JSON object")])
    return Context.from_json(value)


def explain_files(
    names: Iterable[str], settings: Settings | None, context: Context | None, standard_input: BinaryIO
) -> Iterator[dict[str, Any]]:
    """Explain each file in turn; ``-`` is the standard input.  Each answer is one JSON object.

    Without ``settings`` the gateway knows little about itself, and believes nobody.
    """
    own = Own() if settings is None else own_of(settings)
    for name in names:
        try:
            yield {"file": name, **_explained(_bytes(name, standard_input), own, context)}
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            yield {"file": name, **_malformed(f"{name} cannot be read: {reason}")}


def _bytes(name: str, standard_input: BinaryIO) -> bytes:
    if name == "-":
        data = standard_input.read(LARGEST_MAIL + 1)
    else:
        with Path(name).open("rb") as stream:
            data = stream.read(LARGEST_MAIL + 1)
    if len(data) > LARGEST_MAIL:
        raise ValueError(f"it is larger than {LARGEST_MAIL // 1024 // 1024} MB")
    return data


def _explained(raw: bytes, own: Own, context: Context | None) -> dict[str, Any]:
    try:
        return explain(raw, own, context).as_dict()
    except Exception as error:  # noqa: BLE001 - a mail that breaks the reading is what one looks for here
        return _malformed(f"the reading of it failed ({type(error).__name__}); this is a bug of mailgateway")


def _malformed(message: str) -> dict[str, Any]:
    told = Explanation(kind=Kind.MALFORMED, reason=Verdict.MALFORMED, why=message)
    return {**told.as_dict(), "message": message}
