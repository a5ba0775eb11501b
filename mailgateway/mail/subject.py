"""Subjects: the tag, then the question; never longer, whatever mail programs add on the way back and forth.

Programs put ``Re:``, ``AW:``, ``RE[2]:`` or a mark like ``[EXTERNAL]`` in front of each reply.  What we write
starts afresh every time: all of that and every tag is taken off, and one ``Re:`` stands where there was any.
"""

import re

from mailgateway.mail.agent_text import one_line
from mailgateway.mail.tag import strip_tags

SUBJECT_LIMIT = 60
"""Characters of a question in a subject; a longer one is cut at a word, and stands whole in the mail."""

_REPLY = (
    "re|aw|antw|antwort|sv|vs|odp|res|rif|r|rv|enc|tr|vá|válasz|ynt|yan\u0131t|ilt|σχετ|απ|отв|ответ|回复|回覆|答复"
    "|返信|转发|轉寄|fw|fwd|wg|wtr|doorst|vb|vl|továbbítás|пересл|προωθ|הועבר|השב"
)
_PREFIX = re.compile(
    rf"(?:(?:{_REPLY})(?:\[\d{{1,3}}\]|\(\d{{1,3}}\)|\^\d{{1,3}})? ?[:\uff1a]\s*)", re.IGNORECASE
)
_MARK = re.compile(
    r"\[(?:ext|extern|external|externe|externo|esterno|external email|caution|spam|\*+spam\*+)\]:?\s*"
    r"|\*{3,5}spam\*{3,5}\s*",
    re.IGNORECASE,
)


def bare_subject(subject: str, tags: frozenset[str]) -> tuple[str, bool]:
    """The subject without tags, prefixes of replies and marks of servers; whether it had such a prefix."""
    text = strip_tags(one_line(subject), tags)
    replied = False
    while True:
        found = _PREFIX.match(text)
        replied = replied or found is not None
        found = found or _MARK.match(text)
        if found is None:
            return text, replied
        text = text[found.end() :]


def human_subject(subject: str, tags: frozenset[str]) -> str:
    """What stands behind the tag: at most `SUBJECT_LIMIT` characters, and a ``Re:`` if there was one."""
    text, replied = bare_subject(subject, tags)
    text = cut(text, SUBJECT_LIMIT)
    return f"Re: {text}".strip() if replied else text


def cut(text: str, limit: int) -> str:
    """The text of one line within ``limit`` characters, cut at a word when it is longer."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    at = head.rfind(" ")
    if at > limit // 2 and not text[limit - 1].isspace():
        head = head[:at]
    return head.rstrip(" ,;:-") + "…"


def settle_subject(what: str, project: str, device: str, *, aborted: bool = False) -> str:
    """``Done: 14 tests fixed · api · laptop``: where it happened stays, however long the rest is."""
    word = "Stopped" if aborted else "Done"
    where = "".join(f" · {cut(one_line(each), 14)}" for each in (project, device) if one_line(each))
    what = one_line(what) or "the turn is over"
    return f"{word}: {cut(what, SUBJECT_LIMIT - len(word) - 2 - len(where))}{where}"
