"""What the settings hold: frozen classes whose attribute names are the names of the file.

What may be left out is already filled in (the SMTP server's secret, the state directory, the person to
notify), so that nobody else has to know a rule of inheritance.  Secrets are named here and never held.
"""

import re
from collections.abc import Mapping
from datetime import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast
from urllib.parse import urlsplit

from attrs import Factory, field, frozen

from mailgateway.ids import AccountName
from mailgateway.secrets import SecretSource
from mailgateway.settings.tables import (
    ADDRESS,
    HOST,
    PLACE,
    Kind,
    Reading,
    Wrong,
    each,
    home_of,
    matching,
    number,
    optional,
    text_of,
)


class Tls(StrEnum):
    """How a connection to a mail server is made safe."""

    IMPLICIT = "implicit"
    """TLS from the first byte (RFC 8314), ports 993 and 465."""

    STARTTLS = "starttls"
    """TLS after a command; required, never opportunistic."""

    NONE = "none"
    """No TLS; loopback only."""


class Authentication(StrEnum):
    """What proves that a mail comes from whom it names."""

    REQUIRED = "required"
    SINGLE_MAILBOX = "single-mailbox"


class SingleMailboxProof(StrEnum):
    """With agent and person in one mailbox: what tells the person's mail from anybody else's."""

    SENT_COPY = "sent-copy"
    THREAD = "thread"


class Alignment(StrEnum):
    """How closely the signing domain must match the From domain (RFC 7489, section 3.1)."""

    STRICT = "strict"
    RELAXED = "relaxed"


class PersonDoor(StrEnum):
    """Where a person at this machine answers: with ``person.key``, or by mail and web only."""

    KEY = "key"
    WEB = "web"


class MailApprovals(StrEnum):
    """Whether an approval may be answered by mail; ``auto`` is yes when authentication is required."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class ApprovalProof(StrEnum):
    """What an action that the policy calls dangerous needs beside the answer."""

    NONE = "none"
    WEB = "web"
    TOTP = "totp"


class Role(StrEnum):
    """What the bearer of a key may do."""

    SESSION = "session"
    PERSON = "person"


def _state_dir(value: object, reading: Reading) -> Path:
    """Check ``state_dir``; empty means the service manager's, else the XDG state directory."""
    place = PLACE.check(value, reading)
    if place is not None:
        return cast("Path", place)
    given = reading.environ.get("STATE_DIRECTORY", "").split(":")[0]
    if given:
        return Path(given)
    home = reading.environ.get("XDG_STATE_HOME")
    return Path(home) / "mailgateway" if home else home_of(reading) / ".local/state/mailgateway"


def _device_name(value: object, reading: Reading) -> str:
    """Check the device's name; empty means the first label of the host name."""
    return text_of(value, reading) or reading.host_name.split(".")[0] or "localhost"


def _key_file(value: object, reading: Reading) -> Path:
    """Check the file of a key, which cannot be left empty."""
    place = PLACE.check(value, reading)
    if place is None:
        raise Wrong("must name a file")
    return cast("Path", place)


def _span_of_day(value: object, reading: Reading) -> tuple[time, time] | None:
    """Check two times of day with a dash between them; empty means none."""
    text = text_of(value, reading)
    if not text:
        return None
    found = re.fullmatch(
        r"([01]?[0-9]|2[0-3]):([0-5][0-9])\s*[-\u2013]\s*([01]?[0-9]|2[0-3]):([0-5][0-9])", text
    )
    if found is None:
        raise Wrong('must be two times of day with a dash between them: "22:00-07:00"')
    hour, minute, last_hour, last_minute = map(int, found.groups())
    span = time(hour, minute), time(last_hour, last_minute)
    if span[0] == span[1]:
        raise Wrong("must end at another time than it begins; leave it empty for no quiet hours")
    return span


def _time_zone(value: object, reading: Reading) -> str:
    """Check the name of a time zone; empty means the machine's own."""
    name = text_of(value, reading)
    if name:
        from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - few settings name one

        try:
            ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise Wrong(
                "is no time zone that this machine knows; write its name as in Europe/Berlin, or leave it "
                "empty for the machine's own"
            ) from None
    return name


TAG = matching(r"[a-z0-9]{1,16}", "must be 1 to 16 lower-case letters and digits")


def _parsed(kind: Kind) -> Kind:
    """Make the kind of an address that can also be taken apart: libraries raise for some that look right."""

    def check(value: object, reading: Reading) -> str:
        url = str(kind.check(value, reading))
        try:
            port = urlsplit(url).port
        except ValueError:
            port = 0
        if port == 0:
            raise Wrong("must be an address with a host, and a port that can be")
        return url

    return Kind(check)


URL = optional(
    _parsed(matching(r"https?://[^\s/?#]+[^\s?#]*", "must start with https:// or http:// and a host"))
)
SAFE_URL = _parsed(
    matching(
        r"(?:https://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])|http://(?:127\.0\.0\.1|localhost|\[::1\]))"
        r"(?::[0-9]{1,5})?(?:/(?![!-~]*[?#])[!-~]*)?",
        "must start with https:// and a host, without ? and #: secrets travel there",
    )
)
DATABASE = optional(
    matching(r"postgresql://\S+|sqlite:///\S+", "must be a postgresql:// or sqlite:/// address")
)


@frozen(kw_only=True)
class Daemon:
    """``[daemon]``: where the service listens and keeps its state.  Port 0 listens on the socket only."""

    host: Annotated[str, HOST] = "127.0.0.1"
    port: Annotated[int, number(0, 65535)] = 4177
    socket: Annotated[Path | None, PLACE] = None
    socket_group: str = ""
    state_dir: Annotated[Path, Kind(_state_dir, "")]
    database: Annotated[str, DATABASE] = field(default="", repr=False)
    scan_interval_seconds: Annotated[int, number(0, 86_400)] = 60
    idle_exit_seconds: Annotated[int, number(0, 86_400)] = 0
    public_url: Annotated[str, URL] = ""
    metrics_open: bool = False

    @property
    def database_url(self) -> str:
        """Where the tables are: ``database``, else a SQLite file in the state directory.

        The address may hold a password: it is not to be logged.
        """
        return self.database or f"sqlite:///{self.state_dir}/mailgateway.sqlite3"


@frozen(kw_only=True)
class Device:
    """``[device]``: what people call this machine; a label, not its identity."""

    name: Annotated[str, Kind(_device_name, "")]


@frozen(kw_only=True)
class ServerSettings:
    """One mail server of an account, complete: whatever SMTP inherits from IMAP is filled in."""

    host: str
    port: int
    tls: Tls
    ca_file: Path | None
    username: str
    secret: SecretSource


@frozen(kw_only=True)
class Account:
    """``[accounts.TAG]``: a mailbox with its two servers.

    ``watch`` names the folders that people answer to; without it the account is no gateway mailbox.
    """

    tag: AccountName
    address: str
    from_name: str
    watch: tuple[str, ...]
    sent_folder: str
    plus_address: bool
    imap: ServerSettings
    smtp: ServerSettings

    @property
    def domain(self) -> str:
        """The part of the address behind the @, in lower case."""
        return self.address.rpartition("@")[2].lower()


@frozen(kw_only=True)
class OAuth:
    """``[oauth.NAME]``: the person's own registration at the provider.

    ``authorize_parameters`` are further ``name=value`` pairs for ``authorize_url``.  They, and
    ``redirect_host``, are filled in with what is known of the provider where they are left out.
    """

    client_id: Annotated[str, matching(r"[!-~]{1,512}", "must be the client id that the provider gave you")]
    client_secret_file: Annotated[Path | None, PLACE] = None
    device_url: Annotated[str, optional(SAFE_URL)] = ""
    authorize_url: Annotated[str, optional(SAFE_URL)] = ""
    token_url: Annotated[str, SAFE_URL]
    scopes: Annotated[
        tuple[str, ...], each(matching(r"[!#-\[\]-~]{1,500}", "must be a scope, without blanks"))
    ] = ()
    redirect_host: Annotated[
        str,
        optional(matching(r"127\.0\.0\.1|localhost", "must be 127.0.0.1 or localhost, as you registered it")),
    ] = ""
    authorize_parameters: Annotated[
        tuple[str, ...],
        each(matching(r"[A-Za-z0-9_.-]{1,64}=[ -~]{0,500}", 'must be written as "name=value"')),
    ] = ()


@frozen(kw_only=True)
class Key:
    """``[keys.NAME]``: the key of another machine, its role, and whose sessions it speaks for (none: all)."""

    file: Annotated[Path, Kind(_key_file)]
    role: Role = Role.SESSION
    sessions: tuple[str, ...] = ()


@frozen(kw_only=True)
class People:
    """``[people]``: who is heard, and who is written to.  The last two are never empty."""

    allowed: Annotated[tuple[str, ...], Kind(each(ADDRESS).check)]
    notify: Annotated[str, optional(ADDRESS)] = ""
    may_approve: Annotated[tuple[str, ...], each(ADDRESS)] = ()
    may_command: Annotated[tuple[str, ...], each(ADDRESS)] = ()


@frozen(kw_only=True)
class Security:
    """``[security]``: what a mail must prove.  ``accepted_tags`` always holds ``tag``."""

    tag: Annotated[str, TAG] = "mg"
    accepted_tags: Annotated[tuple[str, ...], each(TAG)] = ("mg", "pi")
    authentication: Authentication = Authentication.REQUIRED
    single_mailbox_proof: SingleMailboxProof = SingleMailboxProof.SENT_COPY
    trusted_authserv_ids: tuple[str, ...] = ()
    results_below_received: bool = False
    alignment: Alignment = Alignment.STRICT
    header_threading: bool = True
    route_ttl_hours: Annotated[int, number(1, 8_760)] = 168
    person_door: PersonDoor = PersonDoor.KEY
    mail_approvals: MailApprovals = MailApprovals.AUTO
    approval_proof: ApprovalProof = ApprovalProof.NONE


@frozen(kw_only=True)
class Notify:
    """``[notify]``: how often, how soon after a turn, and at which hours people are written to.

    ``quiet_hours`` are the times of a wall clock between which it is quiet, in ``time_zone`` (``""``: the
    machine's own); zero hours or seconds are never.
    """

    budget_per_minute: Annotated[int, number(1, 1_000)] = 10
    settle_delay_seconds: Annotated[int, number(0, 3_600)] = 20
    on_aborted: bool = False
    remind_after_hours: Annotated[int, number(0, 720)] = 3
    quiet_hours: Annotated[tuple[time, time] | None, Kind(_span_of_day, "")] = None
    quiet_decisions: bool = False
    time_zone: Annotated[str, Kind(_time_zone, "")] = ""
    bundle_seconds: Annotated[int, number(0, 3_600)] = 0
    escalate_after_hours: Annotated[int, number(0, 720)] = 0
    escalate_to: Annotated[str, optional(ADDRESS)] = ""


@frozen(kw_only=True)
class Retention:
    """``[retention]``: how long the bodies of acked envelopes are kept."""

    bodies_days: Annotated[int, number(1, 3_650)] = 30


@frozen(kw_only=True)
class Settings:
    """Everything that the settings say.

    ``accounts`` keeps the order of the file and is keyed by tag; the first with ``watch`` sends.
    ``warnings`` are sentences for ``status``: legal, but hardly meant.  ``source`` is the file, if any.
    """

    daemon: Daemon
    device: Device
    accounts: Mapping[str, Account]
    people: People
    security: Security
    notify: Notify
    retention: Retention
    oauth: Mapping[str, OAuth] = Factory(dict)
    keys: Mapping[str, Key] = Factory(dict)
    warnings: tuple[str, ...] = ()
    source: Path | None = None

    @property
    def watched(self) -> tuple[Account, ...]:
        """The gateway mailboxes, at least one."""
        return tuple(account for account in self.accounts.values() if account.watch)

    @property
    def sending(self) -> Account:
        """The account that mail of ours leaves from: the first watched one."""
        return self.watched[0]
