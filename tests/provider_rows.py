"""The rows of ``docs/providers.md``, made of the table of providers.

    python -m tests.provider_rows

prints them, to be pasted after the table has changed; ``tests.test_providers`` holds the page against them.
"""

import sys

from mailgateway.providers import WHOLE_ADDRESS, Offer, Server, offers

_NAMES = {"password": "password", "app-password": "app password", "oauth": "OAuth"}
_USERS = {WHOLE_ADDRESS: "address", "%EMAILLOCALPART%": "part before the @"}


def rows() -> list[str]:
    """Each provider's row."""
    return [_row(offer) for offer in offers()]


def _row(offer: Offer) -> str:
    where = [*offer.domains, *(f"MX `{pattern}`" for pattern in offer.mx)]
    cells = [
        offer.name,
        ", ".join(where),
        _server(offer.imap),
        _server(offer.smtp),
        _user(offer),
        ", ".join(_NAMES[kind] for kind in offer.secrets) or "none",
        " ".join([*offer.hints, *([f"<{offer.page}>"] if offer.page else [])]) or "nothing",
        offer.source,
    ]
    return f"| {' | '.join(cells)} |"


def _server(server: Server | None) -> str:
    if server is None:
        return "none"
    return f"{server}, STARTTLS" if server.starttls else str(server)


def _user(offer: Offer) -> str:
    if offer.imap is None or offer.smtp is None:
        return "none"
    imap, smtp = _USERS[offer.imap.username], _USERS[offer.smtp.username]
    return imap if imap == smtp else f"IMAP: {imap}; SMTP: {smtp}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
