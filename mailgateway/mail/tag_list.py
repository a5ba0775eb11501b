"""Tag lists, the form in which DKIM writes its fields and keys (RFC 6376, section 3.2)."""

import re

_BLANKS = re.compile(r"[ \t\r\n]+")


def parse_tag_list(value: bytes) -> dict[str, str] | None:
    """The tags without any blanks; None when it is no tag list, or has a tag twice."""
    if not value.isascii():
        return None
    tags: dict[str, str] = {}
    for piece in _BLANKS.sub("", value.decode("ascii")).rstrip(";").split(";"):
        name, equals, content = piece.partition("=")
        if not equals or not name or name in tags:
            return None
        tags[name] = content
    return tags
