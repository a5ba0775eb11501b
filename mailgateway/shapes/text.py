"""JSON text and query strings, to plain values and back: the outermost strictness.

Python's reader takes more than JSON is (NaN, repeated names) and ends in odd exceptions on hostile text
(nesting, endless numbers); here every such text is one refusal.  RFC 8259; RFC 7493 for repeated names.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mailgateway.errors import Refusal
from mailgateway.shapes.fields import T, plain, read

LONGEST_QUERY_VALUE = 1024


def parse(body: bytes) -> Mapping[str, Any]:
    """Read a request's body, which must be one JSON object in UTF-8; ``Refusal("invalid")`` otherwise."""
    try:
        value = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_once_each,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
    except UnicodeDecodeError:
        raise Refusal("invalid", "the body is not UTF-8 text; send JSON in UTF-8") from None
    except RecursionError:
        raise Refusal(
            "invalid", "the body is nested too deeply; send the fields of this route only"
        ) from None
    except ValueError:  # JSONDecodeError, and numbers of too many digits
        raise Refusal("invalid", "the body is not JSON; send one JSON object") from None
    if not isinstance(value, dict):
        raise Refusal("invalid", "the body must be one JSON object")
    return value


def read_query(made: type[T], arguments: Mapping[bytes, Sequence[bytes]]) -> T:
    """Read the parameters of a query string, each given at most once, as a value of ``made``."""
    values: dict[str, Any] = {}
    for raw_name, raw_values in arguments.items():
        name = raw_name.decode("utf-8", "replace")
        if len(raw_values) != 1:
            raise Refusal("invalid", f"`{name[:64]}` is given more than once", {"field": name[:64]})
        try:
            values[name] = raw_values[0].decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal("invalid", f"`{name[:64]}` is not UTF-8 text", {"field": name[:64]}) from None
        if len(values[name]) > LONGEST_QUERY_VALUE:
            raise Refusal("invalid", f"`{name[:64]}` is too long", {"field": name[:64]})
    return read(made, values)


def printed(value: Any) -> bytes:
    """Write JSON in UTF-8; half surrogates, which UTF-8 cannot say, become ``?``."""
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; of two readers of a repeated name, each may believe another value."""
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Refusal("invalid", f"`{twice[:64]}` is given more than once", {"field": twice[:64]})
    return made


def _no_constant(_: str) -> NoReturn:
    raise ValueError


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError
    return number
