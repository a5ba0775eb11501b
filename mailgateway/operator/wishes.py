"""What a person wants ``setup`` to do: all that flags can say, and the seams to whoever is asked and shown.

An answer that is not here is asked for; who cannot ask ends with the name of the flag.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NoReturn, Protocol

from attrs import frozen

from mailgateway.operator.findings import Tell

Progress = Callable[[], AbstractContextManager[Tell]]
"""Shows findings while something goes on."""


class Talk(Protocol):
    """Whoever asks the person, or knows that there is none."""

    @property
    def present(self) -> bool:
        """Whether there is a person to ask."""

    def text(self, question: str, flag: str, check: Callable[[str], str], default: str | None = None) -> str:
        """One line; ``check`` gives it as it is used, or raises ``ValueError`` with a sentence."""

    def secret(self, question: str, flag: str) -> str:
        """A password, typed without echo."""

    def agrees(self, question: str, flag: str, *, default: bool) -> bool:
        """Yes or no."""

    def tell(self, *lines: str) -> None:
        """Say something, beside the answer."""

    def missing(self, question: str, flag: str) -> NoReturn:
        """End, since nobody is there to answer."""


@frozen(kw_only=True)
class Wishes:
    """The flags; empty or ``None`` is what nobody said."""

    address: str = ""
    account: str = "main"
    from_name: str = ""
    watch: tuple[str, ...] = ("INBOX",)
    imap: str = ""
    imap_tls: str = ""
    smtp: str = ""
    smtp_tls: str = ""
    username: str = ""
    smtp_username: str = ""
    ca_file: str = ""
    ispdb: bool | None = None
    yes: bool = False
    password_file: str = ""
    password_command: str = ""
    password_env: str = ""
    password_stdin: bool = False
    credential: str = ""
    token_command: str = ""
    oauth: str = ""
    client_id: str = ""
    client_secret_file: str = ""
    device_url: str = ""
    authorize_url: str = ""
    token_url: str = ""
    scopes: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    notify: str = ""
    mailbox: str = ""
    """``own`` or ``single``."""
    authserv_ids: tuple[str, ...] = ()
    results_below_received: bool = False
    sent_folder: str = ""
    plus_address: bool | None = None
    systemd: str = ""
    """``user`` or ``system``."""
    enable: bool = False
    check: bool = True
    dry_run: bool = False
    force: bool = False
    config: str | None = None
