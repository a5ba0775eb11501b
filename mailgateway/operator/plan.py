"""What ``setup`` has decided, and the settings file that says it.

The text is for people who will edit it: only what differs from the defaults, with a remark where a line needs
one.  No secret stands in a plan, nor in the file; they name where it is.
"""

import json
from pathlib import Path

from attrs import evolve, frozen

from mailgateway.domain.discovery import Choice
from mailgateway.providers import Endpoints, Results, Server, of_imap, username_of
from mailgateway.settings import Authentication
from mailgateway.settings.file import USER_FILE

SYSTEM_SECRET = "mail"  # noqa: S105 - the name of a credential
"""The credential of the system unit."""

SYSTEM_SOCKET = "/run/mailgateway/api.sock"
SYSTEM_STATE = "/var/lib/mailgateway"
SYSTEM_GROUP = "mailgateway"
SYSTEM_KEY = "/etc/mailgateway/agents.key"


@frozen
class OAuthPlan:
    """An ``[oauth.NAME]`` table: the person's own registration, and the endpoints of the provider."""

    name: str
    client_id: str
    endpoints: Endpoints
    client_secret_file: str = ""


@frozen
class SecretPlan:
    """Where the secret is: a key of ``[accounts.NAME.imap]`` and its value."""

    key: str
    value: str


@frozen(kw_only=True)
class Plan:
    """Everything that goes into the file."""

    account: str = "main"
    address: str
    imap: Server
    smtp: Server
    secret: SecretPlan
    allowed: tuple[str, ...]
    notify: str = ""
    single_mailbox: bool = False
    authserv_ids: tuple[str, ...] = ()
    results_below_received: bool = False
    watch: tuple[str, ...] = ("INBOX",)
    from_name: str = ""
    sent_folder: str = ""
    plus_address: bool = False
    ca_file: str = ""
    oauth: OAuthPlan | None = None
    for_system: bool = False
    """The service of the machine: a socket for a group, a state directory, keys for the group's agents."""


def with_facts(plan: Plan, choice: Choice) -> Plan:
    """The plan with what is known of the provider, where nothing else was said."""
    facts = choice.facts
    below = of_imap(plan.imap.host).results is Results.BELOW
    if facts is None:
        return evolve(plan, results_below_received=plan.results_below_received or below)
    return evolve(
        plan,
        authserv_ids=plan.authserv_ids or facts.authserv_ids,
        results_below_received=plan.results_below_received or below,
        sent_folder=plan.sent_folder or facts.sent_folder,
    )


def text_of(plan: Plan, day: str) -> str:
    """The settings file; ``day`` is when it was written."""
    blocks = [
        f"# Written by `mailgateway setup` on {day}.\n# Every setting and its default: docs/settings.md.",
        _block(f"accounts.{_name(plan.account)}", _account(plan)),
        _block(f"accounts.{_name(plan.account)}.imap", _imap(plan)),
        _block(f"accounts.{_name(plan.account)}.smtp", _smtp(plan)),
    ]
    if plan.oauth is not None:
        blocks.append(_block(f"oauth.{_name(plan.oauth.name)}", _oauth(plan.oauth)))
    blocks += [_block("people", _people(plan)), _block("security", _security(plan))]
    if plan.for_system:
        blocks += [_block("daemon", _daemon()), _block("keys.agents", [("file", SYSTEM_KEY, "")])]
    return "\n\n".join(block for block in blocks if block) + "\n"


Line = tuple[str, object, str]
"""A key, its value, and a remark."""


def _account(plan: Plan) -> list[Line]:
    lines: list[Line] = [("address", plan.address, "")]
    if plan.from_name:
        lines.append(("from_name", plan.from_name, ""))
    lines.append(("watch", plan.watch, "the folders that replies arrive in"))
    if plan.sent_folder:
        lines.append(("sent_folder", plan.sent_folder, ""))
    if plan.plus_address:
        lines.append(("plus_address", True, "name+word@domain arrives here as well"))
    return lines


def _imap(plan: Plan) -> list[Line]:
    lines = _server(plan.imap, 993, 143)
    if plan.ca_file:
        lines.append(("ca_file", plan.ca_file, ""))
    username = username_of(plan.imap.username, plan.address)
    if username != plan.address:
        lines.append(("username", username, ""))
    remark = ""
    if plan.secret.key == "password_file":
        remark = "chmod 600" if "/" in plan.secret.value else "beside this file; chmod 600"
    lines.append((plan.secret.key, plan.secret.value, remark))
    return lines


def _smtp(plan: Plan) -> list[Line]:
    lines = _server(plan.smtp, 465, 587)
    username = username_of(plan.smtp.username, plan.address)
    if username != username_of(plan.imap.username, plan.address):
        lines.append(("username", username, ""))
    return lines


def _server(server: Server, implicit: int, starttls: int) -> list[Line]:
    lines: list[Line] = [("host", server.host, "")]
    if server.port != (starttls if server.starttls else implicit):
        lines.append(("port", server.port, ""))
    if server.starttls:
        lines.append(("tls", "starttls", "required, not only when it is offered"))
    return lines


def _oauth(oauth: OAuthPlan) -> list[Line]:
    lines: list[Line] = [("client_id", oauth.client_id, "of your own registration")]
    if oauth.client_secret_file:
        lines.append(("client_secret_file", oauth.client_secret_file, ""))
    urls = [(key, getattr(oauth.endpoints, key), "") for key in ("device_url", "authorize_url", "token_url")]
    lines += [line for line in urls if line[1]]
    if oauth.endpoints.scopes:
        lines.append(("scopes", oauth.endpoints.scopes, ""))
    return lines


def _people(plan: Plan) -> list[Line]:
    lines: list[Line] = [("allowed", plan.allowed, "whose replies are heard; nobody else's are")]
    if plan.notify and plan.notify != plan.allowed[0]:
        lines.append(("notify", plan.notify, ""))
    return lines


def _security(plan: Plan) -> list[Line]:
    lines: list[Line] = []
    if plan.single_mailbox:
        lines.append(
            ("authentication", Authentication.SINGLE_MAILBOX.value, "the agents and you share one mailbox")
        )
        return lines
    if plan.authserv_ids:
        lines.append(("trusted_authserv_ids", plan.authserv_ids, "whose check of the sender counts"))
    if plan.results_below_received:
        lines.append(("results_below_received", True, "as this provider writes them"))
    return lines


def _daemon() -> list[Line]:
    return [
        ("port", 0, ""),
        ("socket", SYSTEM_SOCKET, ""),
        ("socket_group", SYSTEM_GROUP, "whose agents may use it"),
        ("state_dir", SYSTEM_STATE, ""),
    ]


def _block(head: str, lines: list[Line]) -> str:
    """A table; remarks stand in one column, where the lines are short enough."""
    if not lines:
        return ""
    texts = [f"{key} = {_value(value)}" for key, value, _ in lines]
    width = max((len(text) for text, (*_, remark) in zip(texts, lines, strict=True) if remark), default=0)
    told = [
        f"{text:<{width}}   # {remark}" if remark else text
        for text, (*_, remark) in zip(texts, lines, strict=True)
    ]
    return "\n".join([f"[{head}]", *told])


def _value(value: object) -> str:
    """A value in TOML; JSON's texts, whole numbers and truth values are TOML's as well."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _name(name: str) -> str:
    """A key of a table, in quotes where TOML wants them."""
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _value(name)


def secret_file(config: Path, account: str) -> Path:
    """Where the password of an account is put, beside the settings.

    Settings of another name have files of their own: two in one folder never share a password by accident.
    """
    own = "" if config.name == USER_FILE.name else f"{config.name}."
    return config.with_name(f"{own}{account}.password")
