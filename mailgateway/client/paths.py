"""Paths of the API with what varies in them."""

from urllib.parse import quote, urlencode


def query(**fields: str | None) -> str:
    """The query string of the fields that say something, with its question mark; ``""`` of none."""
    given = {name: value for name, value in fields.items() if value}
    return f"?{urlencode(given)}" if given else ""


def within(*segments: str) -> str:
    """A path of these segments, whatever stands in them."""
    return "".join(f"/{quote(each, safe='')}" for each in segments)
