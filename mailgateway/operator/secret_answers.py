"""Where the secret of the account is: as flags say it, typed by a person, or by OAuth.

Policy: a password that is typed is held only until it stands in its own file, and is never shown.  One that
flags name is left where it is.  Where a provider takes OAuth alone, no password is asked for.
"""

import sys
from pathlib import Path
from typing import Final

from attrs import define, field

from mailgateway.domain.discovery import Choice
from mailgateway.errors import Refusal
from mailgateway.operator.plan import SYSTEM_SECRET, OAuthPlan, SecretPlan, secret_file
from mailgateway.operator.settings_file import OWNER_ONLY, Secret, put
from mailgateway.operator.wishes import Talk, Wishes
from mailgateway.providers import Endpoints, SecretKind

LARGEST_PASSWORD: Final = 4096
HOW_TO_GIVE: Final = "--password-file FILE (or --password-command, --password-env, --password-stdin)"


@define(eq=False)
class SecretAnswers:
    """What is said of the secret; ``secret`` is one that was typed."""

    wishes: Wishes
    talk: Talk
    for_system: bool
    secret: Secret | None = field(default=None, init=False, repr=False)

    def oauth(self, choice: Choice) -> OAuthPlan | None:
        """The ``[oauth.NAME]`` table, where sign-in is by OAuth."""
        facts, wishes = choice.facts, self.wishes
        kinds = choice.imap.server.secrets if choice.imap else ()
        kinds = kinds or (facts.secrets if facts is not None else ())
        only = tuple(kinds) == (SecretKind.OAUTH,) and not self._named
        if not (wishes.oauth or wishes.client_id or only):
            return None
        if not wishes.client_id:
            self.talk.tell(
                "This provider takes no password: it wants OAuth, with a registration of your own there "
                "(docs/oauth.md tells how), which has a client id."
            )
        client_id = wishes.client_id or self.talk.text(
            "Client id of your registration", "--oauth-client-id ID (or --token-command)", _one_line
        )
        known = facts.oauth if facts is not None else None
        token_url = wishes.token_url or (known.token_url if known else "")
        if not token_url:
            token_url = self.talk.text("Token endpoint of the provider", "--oauth-token-url URL", _one_line)
        endpoints = Endpoints(
            device_url=wishes.device_url or (known.device_url if known else ""),
            authorize_url=wishes.authorize_url or (known.authorize_url if known else ""),
            token_url=token_url,
            scopes=wishes.scopes or (known.scopes if known else ()),
        )
        file = str(Path(wishes.client_secret_file).absolute()) if wishes.client_secret_file else ""
        return OAuthPlan(wishes.oauth or wishes.account, client_id, endpoints, file)

    @property
    def _named(self) -> bool:
        wishes = self.wishes
        named = (wishes.password_file, wishes.password_command, wishes.password_env, wishes.credential)
        return any(named) or bool(wishes.token_command) or wishes.password_stdin

    def plan(self, choice: Choice, path: Path) -> SecretPlan:
        """Where the secret is, by the flags; else a file beside the settings, for what is typed."""
        wishes = self.wishes
        if wishes.password_file:
            file = Path(wishes.password_file).absolute()
            if self.for_system:
                return SecretPlan("credential", SYSTEM_SECRET)
            return SecretPlan("password_file", file.name if file.parent == path.parent else str(file))
        for key in ("password_command", "password_env", "credential", "token_command"):
            if value := getattr(wishes, key):
                return SecretPlan(key, value)
        file = secret_file(path, wishes.account)
        if not wishes.dry_run:
            self.secret = Secret(file, self._typed(choice))
        return (
            SecretPlan("credential", SYSTEM_SECRET)
            if self.for_system
            else SecretPlan("password_file", file.name)
        )

    def _typed(self, choice: Choice) -> str:
        """The password, from standard input or from the terminal."""
        if self.wishes.password_stdin:
            text = _first_line()
        else:
            kinds = choice.facts.secrets if choice.facts is not None else ()
            name = "App password" if kinds[:1] == (SecretKind.APP_PASSWORD,) else "Password"
            text = self.talk.secret(
                f"{name} for {choice.imap.server.host if choice.imap else ''}", HOW_TO_GIVE
            )
        return _password(text)

    def path(self) -> Path | None:
        """The file of the secret, for the unit."""
        if self.secret is not None:
            return self.secret.path
        return Path(self.wishes.password_file).absolute() if self.wishes.password_file else None

    def again(self) -> None:
        """Ask once more for what was typed, and put it into its file."""
        if self.secret is not None:
            self.secret = Secret(self.secret.path, _password(self.talk.secret("Password", HOW_TO_GIVE)))
            put(self.secret.path, f"{self.secret.text}\n", OWNER_ONLY)


def _first_line() -> str:
    """The line on standard input, where there is one."""
    try:
        line = sys.stdin.readline(LARGEST_PASSWORD + 1) if sys.stdin is not None else ""
    except UnicodeDecodeError:
        raise Refusal("no_password", "Standard input holds no text in UTF-8; it was not written.") from None
    if len(line) > LARGEST_PASSWORD:
        raise Refusal("no_password", f"The password is longer than {LARGEST_PASSWORD} characters.")
    return line.rstrip("\r\n")


def _password(text: str) -> str:
    if not text or not text.isprintable():
        raise Refusal(
            "no_password", "The password is empty, or holds control characters; it was not written."
        )
    return text


def _one_line(text: str) -> str:
    text = text.strip()
    if not text or not text.isprintable():
        raise ValueError("must be one line of text")
    return text
