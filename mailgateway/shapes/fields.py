"""Fields: what a member of a JSON object may be, told once for reading, writing and describing.

A class of the API is a frozen attrs class; ``Annotated[..., kind]`` says what an attribute may hold.  The
JSON name is the attribute's name in camelCase, unless ``Named`` says otherwise.  An attribute with a
default is optional; ``null`` counts as absent there.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import attrs
from attrs import NOTHING, AttrsInstance, frozen

from mailgateway.errors import Refusal
from mailgateway.shapes.kinds import ANY, Kind, Wrong

T = TypeVar("T", bound=AttrsInstance)


@frozen
class Named:
    """The JSON name of a member whose own name cannot be an attribute, or is not camelCase."""

    name: str


@frozen
class Member:
    """One attribute of a class of the API, as JSON sees it."""

    attribute: str
    name: str
    kind: Kind
    required: bool
    annotation: Any


@cache
def members(made: type[AttrsInstance]) -> tuple[Member, ...]:
    """Look up the attributes of a class of the API, in their order."""
    attrs.resolve_types(made)
    return tuple(_member(each) for each in attrs.fields(made))


def _member(attribute: "attrs.Attribute[Any]") -> Member:
    marks = getattr(attribute.type, "__metadata__", ())
    annotation: Any = attribute.type
    return Member(
        attribute=attribute.name,
        name=next((mark.name for mark in marks if isinstance(mark, Named)), _camel(attribute.name)),
        kind=next((mark for mark in marks if isinstance(mark, Kind)), ANY),
        required=attribute.default is NOTHING,
        annotation=annotation.__origin__ if marks else annotation,
    )


def read(made: type[T], values: Mapping[str, Any]) -> T:
    """Read an object as a value of ``made``; ``Refusal("invalid")`` that names the field otherwise."""
    known = members(made)
    arguments: dict[str, Any] = {}
    taken = 0
    for member in known:
        value = values.get(member.name)
        taken += member.name in values
        if value is None:
            if member.required:
                raise _invalid(member.name, "must not be null" if member.name in values else "is missing")
            continue
        try:
            arguments[member.attribute] = member.kind.check(value)
        except Wrong as wrong:
            raise _invalid(member.name, str(wrong)) from None
    if taken != len(values):
        names = [member.name for member in known]
        stranger = next(name for name in values if name not in names)
        hint = f"known here: {', '.join(names)}" if names else "nothing is known here"
        raise _invalid(stranger, f"is not a field of this request; {hint}")
    return made(**arguments)


def plain(value: Any) -> Any:
    """Turn a value into what ``json`` takes: attrs classes of the API, times, lists, maps and words."""
    if value is None or value.__class__ in {str, int, bool, float}:
        return value
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if attrs.has(value.__class__):
        return write(value)
    return str(value) if isinstance(value, str) else value


def write(value: AttrsInstance) -> dict[str, Any]:
    """Write a value of the API as a JSON object; optional members that are absent are left out."""
    return {
        member.name: plain(found)
        for member in members(value.__class__)
        if (found := getattr(value, member.attribute)) is not None or member.required
    }


def rfc3339(moment: datetime) -> str:
    """Write an aware time in UTC, always with microseconds, so that texts sort as the times do."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@cache
def schema(made: type[AttrsInstance]) -> dict[str, Any]:
    """Describe a class of the API as an OpenAPI schema."""
    known = members(made)
    required = [member.name for member in known if member.required]
    described: dict[str, Any] = {
        "type": "object",
        "description": (made.__doc__ or "").strip().splitlines()[0],
        "properties": {
            member.name: dict(member.kind.schema) or _guess(member.annotation) for member in known
        },
        "additionalProperties": False,
    }
    if required:
        described["required"] = required
    return described


def _guess(annotation: Any) -> dict[str, Any]:
    """Describe a member of an answer by its annotation."""
    arguments: Any = getattr(annotation, "__args__", ())
    origin = getattr(annotation, "__origin__", None)
    if arguments and type(None) in arguments:
        inner = next(each for each in arguments if each is not type(None))
        return {**_guess(inner), "nullable": True}
    if origin is tuple:
        return {"type": "array", "items": _guess(arguments[0])}
    if origin is not None:
        return {"type": "object"}
    if annotation is datetime:
        return {"type": "string", "format": "date-time"}
    if isinstance(annotation, type) and attrs.has(annotation):
        return schema(annotation)
    names: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}
    return {"type": names.get(annotation, "string")}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _invalid(name: str, sentence: str) -> Refusal:
    shown = name[:64]
    return Refusal("invalid", f"`{shown}` {sentence}", {"field": shown})
