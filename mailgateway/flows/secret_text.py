"""The refusal of words and files that hold a secret of ours, wherever a session's words go into mail."""

from collections.abc import Iterable

from mailgateway.errors import Refusal
from mailgateway.mail.letter import Enclosure
from mailgateway.mail.secret_text import Guard

SECRET_IN_TEXT = "secret_in_text"  # noqa: S105 (a code of the API)


def refuse_secrets(
    guard: Guard, words: Iterable[tuple[str, str]], enclosures: Iterable[Enclosure] = ()
) -> None:
    """Refuse (``secret_in_text``) words and files with a secret in them; the refusal names its kind alone.

    ``words`` are pairs of what they are (``"text"``) and what they say.
    """
    for name, text in words:
        if kind := guard.secret_in(text):
            raise _refusal(f"the {name}", name, kind)
    for enclosure in enclosures:
        if kind := guard.secret_in(enclosure.filename) or guard.secret_in_file(enclosure.data):
            raise _refusal("an attached file", "attachments", kind)


def _refusal(where: str, field: str, kind: str) -> Refusal:
    return Refusal(
        SECRET_IN_TEXT,
        f"{where} holds {kind}, which must not leave by mail; take it out and send again",
        {"field": field},
    )
