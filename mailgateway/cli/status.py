"""``status``: what the service does, what it waits for, and what a person should do about it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from mailgateway.cli.report import counted, facts, printable, say, shared, table, when
from mailgateway.cli.service import client_of, person_client_of, settings_of
from mailgateway.client import ApiRefused
from mailgateway.client.answers import AccountState, Fate, Health
from mailgateway.client.of_settings import base_of_settings
from mailgateway.errors import ConfigError
from mailgateway.settings import Settings

ADVICE = {
    "backing-off": (
        "The mail server cannot be reached or used now; mailgateway tries again by itself. Its log says why "
        "(`journalctl --user -u mailgateway`, or `service.log` in the state directory)."
    ),
    "refused": (
        "The password was refused twice. mailgateway has stopped trying so that the account is not locked. "
        "Mend the password, then run `mailgateway reload`."
    ),
}
"""What to do, by the states that need it; the service's ``domain.account`` names them."""

SIGN_IN = "`mailgateway auth "
"""What the service remarks where no password was refused, but a person has to sign in."""

REFUSED_ONCE = (
    "The password was refused. mailgateway tries it once more, {when}, and then no more, so that the account "
    "is not locked. If it is wrong, mend it before, then run `mailgateway reload`."
)

STORE = (
    "The database cannot be used now (a full disk, a lock, a server that is down). Nothing is lost: mail "
    "waits on its server, and mailgateway goes on by itself when the database is well again."
)

MUTED = (
    "mailgateway wrote so many answers of its own to a person or in a thread that it says nothing more there "
    "for two hours: maybe a program answers back. What sessions and people write goes on."
)

WITHHELD = (
    "A session's summary was not mailed, since it holds a password, a key or the like. The session can send "
    "another one without it; what a person should know of is better put in a file."
)

FATES_SINCE = timedelta(hours=24)
FATES_SHOWN = 10


@click.command("status")
@shared
def status_command(config: str | None, *, as_json: bool) -> None:
    """Say what the service does, and what it waits for."""
    settings = settings_of(config)
    with client_of(settings) as client:
        client.prove()
        health = client.health()
    fates = _fates(settings)
    tags = [account.tag for account in settings.watched]
    where = str(base_of_settings(settings))
    answer = {**health, "warnings": settings.warnings, "service": where}
    answer.pop("proof", None)
    if fates is not None:
        answer["inbound"] = fates
    now = datetime.now(UTC)
    lines = [*status_lines(health, tags, where, now), *fate_lines(fates or [], now)]
    say(answer, [*lines, *(f"Warning: {warning}" for warning in settings.warnings)], as_json=as_json)


def status_lines(health: Health, tags: Sequence[str], where: str, now: datetime) -> list[str]:
    """The status for people, one line a fact; what to do stands last."""
    mode = "on" if health["mode"] == "on" else "off: replies are kept; `mailgateway on` hands them out"
    scan = health.get("lastScan")
    waiting = counted(health["pending"], "message waits", "messages wait")
    pairs = [
        ("Service", f"{where}, version {health['version']}"),
        ("Mode", mode),
        (
            "Queue",
            f"{waiting} for sessions; {counted(health['sessions'], 'open decision', 'open decisions')}",
        ),
        ("Sessions", f"{health['clients']} live, last heard {when(health.get('lastPingAt'), now)}"),
        ("Settings", f"read {when(health.get('configLoadedAt'), now)}"),
        ("Last scan", _scan(scan, now) if scan else "none yet"),
    ]
    held = _held(health)
    if held:
        pairs.append(("Elsewhere", f"{counted(held, 'reply is', 'replies are')} for other devices"))
    if health.get("held"):
        kept = counted(health["held"], "mail waits", "mails wait")
        pairs.append(
            ("Held back", f"{kept} for a better hour, the first leaves {when(health.get('heldUntil'), now)}")
        )
    accounts = health.get("accounts", [])
    advice = [STORE] if health["status"] == "store_unavailable" else []
    if health.get("muted"):
        advice.append(MUTED)
    if health.get("withheld"):
        advice.append(WITHHELD)
    for number, account in enumerate(accounts):
        name = tags[0] if len(tags) == len(accounts) == 1 else str(number + 1)
        pairs.append((f"Account {name}", _account(account, now)))
        advice.extend(f"Account {name}: {remark}." for remark in account.get("remarks", ()))
        word = _advice(account, now)
        if word and word not in advice:
            advice.append(word)
    return [printable(line) for line in (*facts(pairs), *advice)]


def _fates(settings: Settings) -> list[Fate] | None:
    """What became of mail that came lately; ``None`` where this user may not ask, or is told nothing."""
    client = person_client_of(settings)
    if client is None:
        return None
    since = (datetime.now(UTC) - FATES_SINCE).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        with client:
            return client.inbound(since)
    except (ApiRefused, ConfigError):
        return None


def fate_lines(fates: Sequence[Fate], now: datetime) -> list[str]:
    """The newest fates for people, one line each; what was not used says why."""
    if not fates:
        return []
    rows = [
        (
            when(fate["receivedAt"], now),
            fate["from"],
            _short(fate["subject"]),
            fate["verdict"] if fate["verdict"] == fate["step"] else f"{fate['verdict']} ({fate['step']})",
            fate.get("reason", "") + (", the sender was told" if fate.get("replyId") else ""),
        )
        for fate in fates[:FATES_SHOWN]
    ]
    heads = ("RECEIVED", "FROM", "SUBJECT", "BECAME", "WHY")
    more = len(fates) - FATES_SHOWN
    lines = ["", "Mail of the last 24 hours:", *table(heads, rows)]
    return [printable(line) for line in (*lines, *([f"... and {more} more"] if more > 0 else []))]


def _short(text: str, width: int = 40) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _scan(scan: Mapping[str, Any], now: datetime) -> str:
    examined, routed = scan.get("examined", 0), scan.get("routed", 0)
    text = f"{when(scan.get('at'), now)}: {examined} examined, {routed} for sessions"
    refused = scan.get("refused") or {}
    if refused:
        text += ", refused: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(refused.items()))
    return text


def _account(account: AccountState, now: datetime) -> str:
    text = f"{account['state']} since {when(account.get('since'), now)}"
    again = account.get("nextAttemptAt")
    return f"{text}, next attempt {when(again, now)}" if again else text


def _advice(account: AccountState, now: datetime) -> str:
    again = account.get("nextAttemptAt")
    if account["state"] == "refused" and any(SIGN_IN in remark for remark in account.get("remarks", ())):
        return ""
    if account["state"] == "refused" and again:
        return REFUSED_ONCE.format(when=when(again, now))
    return ADVICE.get(account["state"], "")


def _held(health: Mapping[str, Any]) -> int:
    """Count the replies for other devices that the last scan met."""
    refused = (health.get("lastScan") or {}).get("refused") or {}
    count = refused.get("other-device", 0)
    return count if isinstance(count, int) else 0
