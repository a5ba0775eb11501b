"""Mails in a real browser: laid out, measured, and made into pictures."""

import email
import email.policy
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

from mailgateway.mail.compose import compose
from mailgateway.mail.letter import Letter
from tests.fakes.dovecot import require

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, without a window; it ends with the block."""
    path = require("chromium", "chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where a browser is there

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield opened
        finally:
            opened.close()


def page_of(letter: Letter) -> str:
    """The page as a mail program shows it: what it refers to by ``cid:`` is put in."""
    message = email.message_from_bytes(compose(letter).raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    body = message.get_body(("html",))
    assert body is not None
    page = str(body.get_content())
    for part in message.walk():
        name = str(part["Content-ID"] or "").strip("<>")
        if name:
            data = b64encode(part.get_content()).decode()
            page = page.replace(f"cid:{name}", f"data:{part.get_content_type()};base64,{data}")
    return page


@contextmanager
def shown(opened: Any, page: str, width: int, scheme: str) -> Iterator[Any]:
    """One page at so many pixels, ``light`` or ``dark``; nothing is fetched."""
    context = opened.new_context(
        viewport={"width": width, "height": 640}, color_scheme=scheme, device_scale_factor=2, offline=True
    )
    try:
        tab = context.new_page()
        tab.set_content(page)
        yield tab
    finally:
        context.close()
