"""What went wrong with a mail server, in words for people: one sentence a class of failure, and what to do.

The classes are those of ``mailgateway.errors`` with the codes of ``protocols.dial``.  ``step`` says where on
the way it was: ``connection``, ``certificate``, ``secret``, ``login`` (the server says that the credential is
wrong, and nothing else), ``authentication`` (no login for another reason).
"""

from typing import Final

from attrs import frozen

from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    Throttled,
    TlsRefused,
    TokenUnavailable,
)
from mailgateway.protocols.dial import REFUSED, TOO_LATE, TlsTrouble
from mailgateway.providers import Provider, of_imap, of_smtp
from mailgateway.secrets import (
    Credential,
    OAuthGrant,
    PasswordCommand,
    PasswordEnv,
    SecretSource,
    TokenCommand,
)
from mailgateway.settings import Account, ServerSettings

IMPLICIT: Final = {"imap": 993, "smtp": 465}
"""The usual ports where TLS begins at once (RFC 8314)."""

_NO_MECHANISM: Final = frozenset({"no-mechanism", "NOMECHANISM"})
_OURS: Final = "Otherwise somebody may stand in between: do not go on."


@frozen
class Trouble:
    """Where on the way it failed, one sentence, and what to do."""

    step: str
    what: str
    advice: str


@frozen
class Door:
    """One server of an account; ``name`` is ``imap`` or ``smtp``."""

    account: Account
    name: str

    @property
    def server(self) -> ServerSettings:
        """Its settings."""
        return self.account.imap if self.name == "imap" else self.account.smtp

    @property
    def provider(self) -> Provider:
        """What is known of whom it belongs to."""
        return of_imap(self.server.host) if self.name == "imap" else of_smtp(self.server.host)

    @property
    def table(self) -> str:
        """The table of the settings, as it is written."""
        return f"[accounts.{self.account.tag}.{self.name}]"

    @property
    def usual(self) -> str:
        """How most providers take it."""
        return f'port {IMPLICIT[self.name]} with tls = "implicit"'

    def trouble(self, error: PeerError) -> Trouble:
        """What an error on the way to this server means."""
        match error:
            case TlsRefused():
                return Trouble("certificate", error.text, self._about_tls(error.code))
            case LoginRefused():
                return self._refused(error)
            case TokenUnavailable():
                return Trouble("secret", f"there is nothing to log in with: {error.text}", self._source())
            case LoginUnavailable() | CommandRefused() if error.code in _NO_MECHANISM:
                advice = "Passwords may be switched off there: look for OAuth, or for how to switch them on."
                if isinstance(self.server.secret, OAuthGrant | TokenCommand):
                    advice = "It takes no tokens: use a password or an app password."
                return Trouble("authentication", error.text, f"{advice} Nothing was tried.")
            case LoginUnavailable():
                what = f"the server cannot check logins now: {error.text}"
                return Trouble(
                    "authentication", what, "The password may be right. Try again in some minutes."
                )
            case Throttled():
                what = f"the server asks to slow down: {error.text}"
                return Trouble("connection", what, "Wait some minutes, and close other mail programs.")
            case _:
                return Trouble("connection", error.text, self._about_connection(error.code))

    def _about_connection(self, code: str) -> str:
        place = f"`host` and `port` of {self.table}"
        match code:
            case _ if code == REFUSED:
                return f"Nobody listens there. Look at {place}; if it is a bridge on this machine, start it."
            case _ if code == TOO_LATE:
                return f"A firewall may be in between. Look at {place}; most providers take {self.usual}."
            case _:
                return f"Try again later. If it stays so, look at {place}; most providers take {self.usual}."

    def _about_tls(self, code: str) -> str:
        match code:
            case TlsTrouble.EXPIRED | TlsTrouble.REVOKED:
                return "Whoever runs the server has to renew it. Look at the clock of this machine as well."
            case TlsTrouble.TOO_EARLY:
                return "Set the clock of this machine; if it is right, the server is set up wrongly."
            case TlsTrouble.SELF_SIGNED | TlsTrouble.UNKNOWN_AUTHORITY:
                return (
                    f"If the server is your own, or a bridge on this machine, name its certificate as "
                    f"`ca_file` in {self.table}. {_OURS}"
                )
            case TlsTrouble.NAME:
                return (
                    f"Write the name that the certificate is made out to as `host` in {self.table}; your "
                    f"provider tells it. {_OURS}"
                )
            case TlsTrouble.NO_TLS:
                return f"Port and `tls` of {self.table} may not fit each other; most take {self.usual}."
            case TlsTrouble.NOT_OFFERED:
                return f"Use {self.usual} in {self.table}. Without TLS no password is sent."
            case _:
                return f"Look at `tls` and `ca_file` of {self.table}."

    def _refused(self, error: PeerError) -> Trouble:
        """A login that the server refused: what it may mean here."""
        match self.server.secret:
            case OAuthGrant(name):
                advice = (
                    f"Sign in again: mailgateway auth {name}\nIf it stays so, `username` or `scopes` are "
                    "not those that the provider wants for mail."
                )
                return Trouble("login", f"the server refused the token: {error.text}", advice)
            case TokenCommand():
                advice = (
                    "Run `token_command` by hand: its token must be a new one, for this user and for mail."
                )
                return Trouble("login", f"the server refused the token: {error.text}", advice)
            case _:
                pass
        if error.code.endswith(("5.7.139", "5.7.30")):
            return Trouble(
                "authentication",
                error.text,
                "The password is not at fault. An administrator switches SMTP AUTH on for the mailbox, or "
                "you use OAuth (docs/oauth.md).",
            )
        also = self.provider.refusals
        advice = (
            f"Look at `username` and the password of {self.table}; they are not tried again by themselves."
        )
        if also:
            advice += f"\nWith {self.provider.name} it may also mean: {also}."
        return Trouble("login", f"the server refused the login: {error.text}", advice)

    def _source(self) -> str:
        """What to do about a source that gives nothing."""
        return advice_on_source(self.server.secret)


def advice_on_source(secret: SecretSource) -> str:
    """What to do about a source of a secret that gives nothing."""
    match secret:
        case OAuthGrant(name):
            return f"Sign in: mailgateway auth {name}"
        case PasswordCommand() | TokenCommand():
            return (
                "Run the command by hand as the user of the service: it must print one line, and end with 0."
            )
        case PasswordEnv(name):
            return f"Set the variable {name} here, and for the service: it must hold the password."
        case Credential(name):
            return (
                "The service manager gives it to the service alone. To look with it: sudo systemd-run --pipe "
                f"-p LoadCredential={name}:FILE mailgateway check"
            )
        case _:
            return "Write the password there, in one line, and let nobody else read it (chmod 600)."
