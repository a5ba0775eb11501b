"""The secrets that this service knows, for those who look after what leaves (``mail.secret_text``).

Keys are those in force; passwords are read where the settings say, at most once a minute, since a file may be
changed at any time; what a command printed is noted by those who log in with it.  What cannot be read is not
known: whether it keeps the account from working is said elsewhere.
"""

import os
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from attrs import define, field

from mailgateway.errors import ConfigError
from mailgateway.mail.secret_text import SHORTEST, Guard, Known
from mailgateway.secrets import Credential, PasswordEnv, PasswordFile, read_password
from mailgateway.settings import Settings
from mailgateway.wire.sasl import BearerToken, Password

READ_SECONDS = 60.0
NOTED = 4
"""So many credentials of an account are kept in mind: its servers may have two, and they change."""


@define(eq=False)
class KnownSecrets:
    """What is known now; ``keys`` are the keys in force, by what they are in words."""

    reactor: Any
    settings: Callable[[], Settings]
    keys: Callable[[], Mapping[str, str]]
    environ: Mapping[str, str] = field(factory=lambda: os.environ, repr=False)
    _noted: dict[str, deque[Password | BearerToken]] = field(factory=dict, init=False, repr=False)
    _guard: Guard | None = field(default=None, init=False, repr=False)
    _read_at: float = field(default=0.0, init=False)

    def guard(self) -> Guard:
        """Everything that is known."""
        now = self.reactor.seconds()
        if self._guard is None or now - self._read_at >= READ_SECONDS:
            known = {each.text: each for each in self._known()}
            self._guard, self._read_at = Guard(tuple(known.values())), now
        return self._guard

    def forget(self) -> None:
        """The settings or keys have changed."""
        self._guard = None

    def note(self, account: str, credential: Password | BearerToken) -> None:
        """An account logs in with this."""
        noted = self._noted.setdefault(account, deque(maxlen=NOTED))
        if credential not in noted:
            noted.append(credential)
            self.forget()

    def _known(self) -> Iterator[Known]:
        for what, text in self.keys().items():
            yield Known(what, text)
        settings = self.settings()
        for account in settings.accounts.values():
            for server in (account.imap, account.smtp):
                match server.secret:
                    case PasswordFile() | PasswordEnv() | Credential() as source:
                        with suppress(ConfigError):
                            password = read_password(source, self.environ)
                            yield from _of_password(account.tag, server.username, password)
                    case _:
                        pass
        for name, oauth in settings.oauth.items():
            if oauth.client_secret_file is not None:
                with suppress(ConfigError):
                    secret = read_password(PasswordFile(oauth.client_secret_file), self.environ)
                    yield Known(f"the client secret of {name}", secret)
        for tag, noted in self._noted.items():
            for credential in noted:
                match credential:
                    case Password(username, password):
                        yield from _of_password(tag, username, password)
                    case BearerToken(token=token):
                        yield Known(f"an access token of the account {tag}", token)


def _of_password(account: str, username: str, password: str) -> Iterator[Known]:
    """A password, and the way in which a log of a login shows it (PLAIN, RFC 4616)."""
    what = f"a password of the account {account}"
    yield Known(what, password)
    if len(password) >= SHORTEST:
        yield Known(what, b64encode(f"\0{username}\0{password}".encode()).decode("ascii"))
