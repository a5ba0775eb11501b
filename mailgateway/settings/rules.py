"""The rules between the settings: which belong together, what fills in what.

``parse`` is a function of its arguments: no file, no clock, no network.  It tells every problem that can be
told before the others are mended.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from attrs import AttrsInstance, evolve, fields

from mailgateway.errors import ConfigError
from mailgateway.ids import AccountName
from mailgateway.providers import LOOPBACK, endpoints_at
from mailgateway.secrets import (
    Credential,
    OAuthGrant,
    PasswordCommand,
    PasswordEnv,
    PasswordFile,
    SecretSource,
    TokenCommand,
)
from mailgateway.settings.tables import Reading, joined, overlaid, read, shown, tables
from mailgateway.settings.values import (
    Account,
    Daemon,
    Device,
    Key,
    Notify,
    OAuth,
    People,
    Retention,
    Security,
    ServerSettings,
    Settings,
    Tls,
)
from mailgateway.settings.warnings import is_allowed, is_loopback, warnings_of
from mailgateway.settings.written import AccountTable, ServerTable

T = TypeVar("T", bound=AttrsInstance)

ENVIRONMENT_PREFIX = "MAILGATEWAY_"
SECTIONS: Mapping[str, type[AttrsInstance]] = {
    "daemon": Daemon,
    "device": Device,
    "people": People,
    "security": Security,
    "notify": Notify,
    "retention": Retention,
}
SECRETS = (
    "password_file",
    "password_command",
    "password_env",
    "credential",
    "vault",
    "token_command",
    "oauth",
)
IMPLICIT_PORT = {"imap": 993, "smtp": 465}
PLAIN_PORT = {"imap": 143, "smtp": 587}


def parse(
    mapping: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    source: Path | None = None,
    host_name: str = "localhost",
) -> Settings:
    """Make the settings of the tables of a TOML file, or raise ``ConfigError`` with all that is wrong.

    ``environ`` gives the overrides ``MAILGATEWAY_<SECTION>__<KEY>`` and the directories of the system and
    of the user; ``source`` is the file, which relative paths are relative to; ``host_name`` names a device
    that has no name.
    """
    reading = Reading(environ, source.parent if source else Path(), host_name)
    whole = overlaid(mapping, environ, ENVIRONMENT_PREFIX)
    known = [*SECTIONS, "accounts", "oauth", "keys"]
    for section, value in whole.items():
        if section not in known:
            reading.unknown("", str(section), value, known)
    daemon = _section(Daemon, whole, reading)
    device = _section(Device, whole, reading)
    people = _people(_section(People, whole, reading), reading)
    security = _security(_section(Security, whole, reading))
    notify = _notify(_section(Notify, whole, reading), people, reading)
    retention = _section(Retention, whole, reading)
    oauth = {
        name: _registration(name, written, reading)
        for name, written in _named(OAuth, whole, "oauth", reading).items()
    }
    keys = _named(Key, whole, "keys", reading)
    accounts = _accounts(whole.get("accounts", {}), reading)
    _granted(accounts, whole.get("oauth"), reading)
    if daemon is not None and daemon.port == 0 and daemon.socket is None:
        reading.wrong("daemon.port", "may be 0 only when `daemon.socket` names a socket to listen on")
    if (
        reading.problems
        or daemon is None
        or device is None
        or people is None
        or security is None
        or notify is None
        or retention is None
    ):
        raise ConfigError(reading.problems)
    settings = Settings(
        daemon=daemon,
        device=device,
        accounts=accounts,
        people=people,
        security=security,
        notify=notify,
        retention=retention,
        oauth=oauth,
        keys=keys,
        source=source,
    )
    return evolve(settings, warnings=tuple(warnings_of(settings)))


def _section(made: type[T], whole: Mapping[str, object], reading: Reading) -> T | None:
    name = made.__name__.lower()
    return read(made, whole.get(name, {}), name, reading)


def _named(made: type[T], whole: Mapping[str, object], name: str, reading: Reading) -> dict[str, T]:
    found = {}
    for key, table in tables(whole.get(name, {}), name, reading).items():
        value = read(made, table, joined(name, key), reading)
        if value is not None:
            found[key] = value
    return found


def _people(people: People | None, reading: Reading) -> People | None:
    """Fill in whom to notify, and who may approve and command."""
    if people is None:
        return None
    if not people.allowed:
        reading.wrong("people.allowed", "must name at least one address: nobody else is heard")
        return None
    for name in ("may_approve", "may_command"):
        for address in getattr(people, name):
            if not is_allowed(people, address):
                reading.wrong(f"people.{name}", "must name only addresses that `people.allowed` names too")
                break
    return evolve(
        people,
        notify=people.notify or people.allowed[0],
        may_approve=people.may_approve or people.allowed,
        may_command=people.may_command or people.allowed,
    )


def _notify(notify: Notify | None, people: People | None, reading: Reading) -> Notify | None:
    """Check whom an unanswered decision goes to in the end."""
    if notify is None or people is None:
        return notify
    if notify.escalate_to and not is_allowed(people, notify.escalate_to):
        reading.wrong(
            "notify.escalate_to",
            "must be an address that `people.allowed` names too: nobody else's answer is heard",
        )
    elif notify.escalate_to and notify.escalate_to.lower() == people.notify.lower():
        reading.wrong("notify.escalate_to", "must be another address than the one that is asked first")
    elif notify.escalate_after_hours and not notify.escalate_to:
        reading.wrong(
            "notify.escalate_to", "is missing; `notify.escalate_after_hours` needs a second address"
        )
    return notify


def _security(security: Security | None) -> Security | None:
    if security is None:
        return None
    return evolve(security, accepted_tags=tuple(dict.fromkeys((security.tag, *security.accepted_tags))))


def _accounts(value: object, reading: Reading) -> dict[str, Account]:
    """Read the accounts, in the order of the file."""
    before = len(reading.problems)
    accounts = {}
    for tag, table in tables(value, "accounts", reading).items():
        account = _account(tag, table, reading)
        if account is not None:
            accounts[tag] = account
    if len(reading.problems) == before:
        if not accounts:
            reading.wrong("accounts", "must hold at least one account: [accounts.NAME]")
        elif not any(account.watch for account in accounts.values()):
            reading.wrong(
                f"accounts.{next(iter(accounts))}.watch",
                'must name the folders to watch in at least one account: watch = ["INBOX"]',
            )
    return accounts


def _account(tag: str, table: Mapping[str, object], reading: Reading) -> Account | None:
    path = f"accounts.{tag}"
    known = [field.name for field in fields(AccountTable)]
    own = {}
    for key, value in table.items():
        if key in known:
            own[key] = value
        elif key not in {"imap", "smtp"}:
            reading.unknown(path, str(key), value, [*known, "imap", "smtp"])
    account = read(AccountTable, own, path, reading)
    imap = read(ServerTable, table.get("imap", {}), f"{path}.imap", reading)
    smtp = read(ServerTable, table.get("smtp", {}), f"{path}.smtp", reading)
    imap_secret = _secret(imap, table.get("imap"), f"{path}.imap", reading)
    smtp_secret = _secret(smtp, table.get("smtp"), f"{path}.smtp", reading)
    if not _sources(table.get("imap")):
        reading.wrong(f"{path}.imap", "needs a secret: `password_file` or one of its like")
    imap_port = _port("imap", imap, path, reading)
    smtp_port = _port("smtp", smtp, path, reading)
    if account is None or imap is None or smtp is None or imap_secret is None:
        return None
    username = imap.username or account.address
    return Account(
        tag=AccountName(tag),
        address=account.address,
        from_name=account.from_name,
        watch=account.watch,
        sent_folder=account.sent_folder,
        plus_address=account.plus_address,
        imap=ServerSettings(
            host=imap.host,
            port=imap_port,
            tls=imap.tls,
            ca_file=imap.ca_file,
            username=username,
            secret=imap_secret,
        ),
        smtp=ServerSettings(
            host=smtp.host,
            port=smtp_port,
            tls=smtp.tls,
            ca_file=smtp.ca_file or imap.ca_file,
            username=smtp.username or username,
            secret=smtp_secret or imap_secret,
        ),
    )


def _registration(name: str, written: OAuth, reading: Reading) -> OAuth:
    """Fill in what is known of the provider, and check that a person can sign in there."""
    if not (written.device_url or written.authorize_url):
        reading.wrong(
            f"oauth.{name}.authorize_url",
            "is missing; give it, or `device_url` where the provider has device codes, to sign in at",
        )
    known = endpoints_at(written.token_url)
    return evolve(
        written,
        scopes=written.scopes or (known.scopes if known else ()),
        redirect_host=written.redirect_host or (known.redirect_host if known else LOOPBACK),
        authorize_parameters=written.authorize_parameters or (known.authorize_parameters if known else ()),
    )


def _granted(accounts: Mapping[str, Account], written: object, reading: Reading) -> None:
    """Check that the registrations that accounts name are written, whatever is wrong with them."""
    names = written if isinstance(written, Mapping) else {}
    for tag, account in accounts.items():
        for kind, server in (("imap", account.imap), ("smtp", account.smtp)):
            match server.secret:
                case OAuthGrant(name) if name not in names and (
                    kind == "imap" or server.secret != account.imap.secret
                ):
                    reading.wrong(
                        f"accounts.{tag}.{kind}.oauth",
                        f"names no registration: there is no table [oauth.{shown(name)}]",
                    )


def _port(kind: str, table: ServerTable | None, path: str, reading: Reading) -> int:
    """Check where a server is and how it is reached; the port that it listens on."""
    if table is None:
        return 0
    if not table.host:
        reading.wrong(
            f"{path}.{kind}.host", f'is missing; name the {kind.upper()} server: host = "mail.example.org"'
        )
    if table.tls is Tls.NONE and table.host and not is_loopback(table.host):
        reading.wrong(
            f"{path}.{kind}.tls",
            "may be none only for a host on this machine (127.0.0.1, ::1, localhost): "
            "a password would travel in the clear; use implicit or starttls",
        )
    return table.port or (IMPLICIT_PORT if table.tls is Tls.IMPLICIT else PLAIN_PORT)[kind]


def _sources(table: object) -> list[str]:
    """Name the keys of a server's table, as it is written, that give a secret."""
    if not isinstance(table, Mapping):
        return []
    return [name for name in SECRETS if str(table.get(name, "")).strip()]


def _secret(table: ServerTable | None, written: object, path: str, reading: Reading) -> SecretSource | None:
    """Pick the one source of the secret, or None when there is none or too many."""
    sources = _sources(written)
    if len(sources) > 1:
        names = " and ".join(f"`{name}`" for name in sources)
        reading.wrong(path, f"gives the secret in {len(sources)} ways, {names}; keep one")
    if table is None:
        return None
    match sources:
        case ["password_file"] if table.password_file is not None:
            return PasswordFile(table.password_file)
        case ["password_command"]:
            return PasswordCommand(table.password_command)
        case ["password_env"]:
            return PasswordEnv(table.password_env)
        case ["credential"] if "/" not in table.credential and not table.credential.startswith("."):
            return Credential(table.credential)
        case ["credential"]:
            reading.wrong(f"{path}.credential", "must be the name of a credential, without a folder")
        case ["token_command"]:
            return TokenCommand(table.token_command)
        case ["oauth"]:
            return OAuthGrant(table.oauth)
        case ["vault"]:
            reading.wrong(f"{path}.vault", "the vault comes later; a `password_file` works today")
    return None
