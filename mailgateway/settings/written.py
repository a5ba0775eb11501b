"""The tables of an account as they stand in the file, before anything is inherited or filled in.

``rules`` makes the complete values of ``values`` from them; nobody else needs these.
"""

from pathlib import Path
from typing import Annotated

from attrs import frozen

from mailgateway.settings.tables import ADDRESS, HOST, PLACE, number
from mailgateway.settings.values import Tls


@frozen(kw_only=True)
class ServerTable:
    """``[accounts.TAG.imap]`` and ``.smtp`` as they are written: everything may be absent but the host."""

    host: Annotated[str, HOST] = ""
    port: Annotated[int | None, number(1, 65535)] = None
    tls: Tls = Tls.IMPLICIT
    ca_file: Annotated[Path | None, PLACE] = None
    username: str = ""
    password_file: Annotated[Path | None, PLACE] = None
    password_command: str = ""
    password_env: str = ""
    credential: str = ""
    vault: str = ""
    token_command: str = ""
    oauth: str = ""


@frozen(kw_only=True)
class AccountTable:
    """``[accounts.TAG]`` as it is written."""

    address: Annotated[str, ADDRESS]
    from_name: str = "Coding agents"
    watch: tuple[str, ...] = ()
    sent_folder: str = ""
    plus_address: bool = False
