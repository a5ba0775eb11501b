"""The cases of the corpus with other identities, words, texts, line ends and transport.

The kinds of mail stay the same: what a reader has learnt by heart of the files fails here.  A case that
cannot be varied without changing what it tests (a damaged structure, a charset that lacks the letters) keeps
what it is, or is left out.
"""

import html
import random
import re
from base64 import encodebytes
from collections.abc import Iterator, Mapping, Sequence
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from quopri import encodestring
from typing import Any

from attrs import evolve, frozen

from tests.corpus.scoring import Case
from tests.corpus.synthetic import GATEWAYS, PEOPLE, Gateway

WORDS = (
    "Take the other one, please.",
    "no",
    "2",
    "Stop now. I will look at it tonight.",
    "Merge it and delete the branch.",
    "Ask Kim first: she knows the data.",
)
"""Words in place of those that were typed, for cases whose words say nothing about their kind."""

_PERSON = "Robin Example"
"""The name of who writes in the corpus."""

_FREE_WORDS = frozenset(
    {"gmail-lang", "iphone-lang", "outlook", "client", "footer", "disclaimer", "negative"}
)
_NARROW = frozenset({"charset", "structure"})
"""Groups whose mails have no room for other letters or another transport."""

_FIXED = frozenset({"malformed", "malformed-ok"})


@frozen
class Change:
    """Strings and what takes their place, in the order in which they are replaced."""

    pairs: tuple[tuple[str, str], ...]

    def applied(self, text: str) -> str:
        """The changed text; each place is changed once."""
        if not self.pairs:
            return text
        table = dict(self.pairs)
        pattern = "|".join(re.escape(old) for old in sorted(table, key=len, reverse=True))
        return re.sub(pattern, lambda found: table[found[0]], text)


class CannotVaryError(Exception):
    """The mail would not be of its kind any more."""


def change_of(known: Mapping[str, Any], gateway: Gateway, person: tuple[str, str]) -> Change:
    """What makes a mail to the gateway of the corpus one to another gateway, from another person."""
    old_lines = [line for line in known["original_text"].split("\n") if line.strip()]
    new_lines = [line for line in gateway.sent.split("\n") if line.strip()]
    pairs = [
        (known["own_addresses"][0], gateway.address),
        (known["own_message_ids"][0], gateway.message_id),
        (known["own_subject"], gateway.subject),
        (known["own_names"][0], gateway.name),
        (known["person"], person[1]),
        (_PERSON, person[0] or person[1].partition("@")[0]),
    ]
    for at, line in enumerate(old_lines):
        new = new_lines[at % len(new_lines)] if at < len(new_lines) else f"{new_lines[-1]} ({at})"
        pairs += [(line, new), (html.escape(line), html.escape(new))]
        bare = re.sub(r"^\d+\. ", "", line)
        if bare != line:
            pairs.append((bare, re.sub(r"^\d+\. ", "", new)))
    return Change(tuple(dict(pairs).items()))


def known_after(known: Mapping[str, Any], change: Change, gateway: Gateway) -> dict[str, Any]:
    """What the other gateway knows of itself."""
    return {
        **known,
        "own_addresses": [gateway.address, *known["own_addresses"][1:]],
        "own_names": [gateway.name],
        "own_message_ids": [gateway.message_id],
        "own_subject": gateway.subject,
        "original_text": change.applied(known["original_text"]),
        "original_html": change.applied(known["original_html"]),
        "inline_originals": [change.applied(text) for text in known["inline_originals"]],
        "person": change.applied(known["person"]),
    }


def variations(
    cases: Sequence[Case], known: Mapping[str, Any], seed: int
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Each case once, changed as the seed says."""
    dice = random.Random(seed)  # noqa: S311 - the same mails again
    for case in cases:
        if case.group in _FIXED:
            yield case, dict(known)
            continue
        gateway, person = dice.choice(GATEWAYS), dice.choice(PEOPLE)
        if case.group in _NARROW:
            gateway, person = GATEWAYS[0], PEOPLE[0]
        change = change_of(known, gateway, person)
        try:
            yield varied(case, change, dice), known_after(known, change, gateway)
        except CannotVaryError:
            continue


def varied(case: Case, change: Change, dice: random.Random) -> Case:
    """One case, changed; ``CannotVaryError`` where it would be another kind of mail then."""
    message = message_from_bytes(case.raw)
    words = case.texts[0]
    if case.group in _FREE_WORDS and len(case.texts) == 1 and _is_literally_in(words, message):
        change = Change((*change.pairs, (words, dice.choice(WORDS))))
    _change_headers(message, change)
    for part in message.walk():
        if part.get_content_maintype() == "text" and not part.is_multipart():
            _change_text(part, change, dice, free=case.group not in {*_NARROW, "bounce"})
        elif part is not message and part.get_content_type() == "message/rfc822":
            continue
    raw = message.as_bytes()
    changed = evolve(
        case,
        raw=raw,
        texts=tuple(change.applied(text) for text in case.texts),
        must_contain=tuple(change.applied(text) for text in case.must_contain),
        must_not_contain=tuple(
            each for text in case.must_not_contain if len(each := change.applied(text)) > 3
        ),
    )
    return _with_line_ends(changed, dice)


def _is_literally_in(words: str, message: Message) -> bool:
    """Whether the words stand in each of the mail's texts as they are, and not broken or as entities."""
    texts = [
        data.decode(part.get_content_charset() or "ascii", "replace")
        for part in message.walk()
        if part.get_content_maintype() == "text" and isinstance(data := part.get_payload(decode=True), bytes)
    ]
    return bool(words) and "\n" not in words and all(words in text for text in texts)


def _with_line_ends(case: Case, dice: random.Random) -> Case:
    raw = case.raw.replace(b"\r\n", b"\n")
    return evolve(case, raw=raw if dice.random() < 0.3 else raw.replace(b"\n", b"\r\n"))


def _change_headers(message: Message, change: Change) -> None:
    """Change the decoded values, and encode again what is not ASCII."""
    for at, (name, value) in enumerate(list(message._headers)):  # type: ignore[attr-defined] # no other way keeps order and doubles
        text = _decoded(str(value)) if name.lower() in {"subject", "from", "to", "cc"} else str(value)
        new = change.applied(text)
        if new == text:
            continue
        message._headers[at] = (name, _encoded_header(name, new))  # type: ignore[attr-defined] # as above


def _decoded(value: str) -> str:
    try:
        return "".join(
            piece if isinstance(piece, str) else piece.decode(charset or "ascii")
            for piece, charset in decode_header(value)
        )
    except (HeaderParseError, LookupError, UnicodeError) as error:
        raise CannotVaryError from error


def _encoded_header(name: str, text: str) -> str:
    if name.lower() not in {"from", "to", "cc"}:
        return text if text.isascii() else _words(text)
    phrase, less, rest = text.partition("<")
    phrase = phrase.strip().strip('"')
    if not less or not phrase:
        return text if text.isascii() else _words(text)
    shown = (
        _words(phrase)
        if not phrase.isascii()
        else f'"{phrase}"'
        if "," in phrase or "(" in phrase
        else phrase
    )
    return f"{shown} <{rest}"


def _words(text: str) -> str:
    return " ".join(
        f"=?utf-8?B?{encodebytes(text[at : at + 14].encode()).decode().strip()}?="
        for at in range(0, len(text), 14)
    )


def _change_text(part: Message, change: Change, dice: random.Random, *, free: bool) -> None:
    """Change the decoded text of a part, and encode it again, where that is allowed in another way."""
    charset = part.get_content_charset() or "ascii"
    charset = "cp1252" if charset == "iso-8859-1" else charset
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)
    if not data.strip():
        return
    try:
        text = data.decode(charset)
        new = change.applied(text)
        if new == text and not free:
            return
        try:
            encoded = new.encode(charset)
        except UnicodeError:
            if not free:
                raise
            encoded, charset = new.encode(), "utf-8"
            part.set_param("charset", "utf-8")
    except (LookupError, UnicodeError) as error:
        raise CannotVaryError from error
    encoding = str(part.get("content-transfer-encoding", "7bit")).strip().lower()
    if free and encoding in {"7bit", "8bit", "quoted-printable", "base64"}:
        encoding = dice.choice(("8bit", "quoted-printable", "base64"))
    if part.get_param("format") == "flowed" and encoding == "base64":
        encoding = "quoted-printable"
    match encoding:
        case "base64":
            payload = encodebytes(encoded).decode("ascii")
        case "quoted-printable":
            payload = encodestring(encoded).decode("ascii")
        case _:
            encoding = "8bit" if not encoded.isascii() else encoding
            payload = encoded.decode("ascii", "surrogateescape")
    del part["content-transfer-encoding"]
    part["Content-Transfer-Encoding"] = encoding
    part._payload = payload  # type: ignore[attr-defined] # set_payload would encode once more
