"""The files of the pages: read once, and known by name, so that no request names a path."""

from collections.abc import Mapping
from pathlib import Path

from mailgateway.errors import Refusal
from mailgateway.http.inbox.house import House
from mailgateway.http.inbox.visit import Page, Visit

FOLDER = Path(__file__).parent.parent / "static"

TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}

_FILES = {path.name: (path.read_bytes(), TYPES[path.suffix]) for path in sorted(FOLDER.iterdir())}


async def static(house: House, visit: Visit) -> Page:  # noqa: ARG001 (every page has the same signature)
    """One of the files."""
    found = _FILES.get(visit.parts["name"])
    if found is None:
        raise Refusal("unknown", "there is no such file")
    return Page(found[0], content_type=found[1])
