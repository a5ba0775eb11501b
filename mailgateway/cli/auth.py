"""``auth``: sign in by OAuth, see who is signed in, forget a sign-in."""

import sys
import webbrowser
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from mailgateway.cli.asking import on_terminal
from mailgateway.cli.report import Exit, Failed, counted, facts, printable, say, shared, when
from mailgateway.cli.service import settings_of
from mailgateway.settings import Settings

if TYPE_CHECKING:
    from mailgateway.operator.auth import Invitation

SECONDS = 3 * 3600.0
"""How long the whole may take: three device codes, each of an hour at most."""


@click.command("auth")
@click.argument("name", required=False)
@click.option(
    "--flow",
    type=click.Choice(["device", "browser", "paste"]),
    help="How to sign in; else a device code where the settings have `device_url`, or a browser.",
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port of the redirect address.")
@click.option("--open", "opens", is_flag=True, help="Open the browser of this machine.")
@click.option("--status", "asks", is_flag=True, help="Say who is signed in; nobody is asked.")
@click.option("--forget", "forgets", is_flag=True, help="Remove the tokens of NAME from this machine.")
@shared
def auth_command(
    name: str | None,
    flow: str | None,
    port: int,
    config: str | None,
    *,
    opens: bool,
    asks: bool,
    forgets: bool,
    as_json: bool,
) -> None:
    """Sign in at a provider that wants OAuth.

    NAME is that of an [oauth.NAME] table, and may be left out where there is one only. The tokens stay on
    this machine; the service takes them up by itself.
    """
    if asks and forgets:
        raise click.UsageError("Give one of --status and --forget.")
    settings = settings_of(config)
    if asks:
        _status(settings, name, as_json=as_json)
        return
    chosen = _chosen(settings, name)
    if forgets:
        if name is None:
            raise click.UsageError("Name what to forget: mailgateway auth NAME --forget")
        _forget(settings, chosen, as_json=as_json)
        return
    _sign_in(settings, chosen, flow, port, opens=opens, as_json=as_json)


def _chosen(settings: Settings, name: str | None) -> str:
    """The one that is meant."""
    names = list(settings.oauth)
    if name is None and len(names) == 1:
        return names[0]
    if name in settings.oauth:
        return str(name)
    known = f"one of {', '.join(names)}" if names else "the settings have no [oauth.NAME] table"
    raise click.UsageError(f"Name the table to sign in with: {known}.")


def _sign_in(
    settings: Settings, name: str, flow: str | None, port: int, *, opens: bool, as_json: bool
) -> None:
    from mailgateway.operator.auth import Flow, authorize  # noqa: PLC0415 - only this verb pays for it
    from mailgateway.operator.pasting import Lines  # noqa: PLC0415
    from mailgateway.operator.running import run  # noqa: PLC0415

    pastes = on_terminal(sys.stdin) or (flow == "paste" and sys.stdin is not None)
    signed_in = run(
        lambda reactor: authorize(
            reactor,
            settings.daemon.state_dir,
            name,
            settings.oauth[name],
            invite=invite(opens=opens),
            flow=Flow(flow) if flow else None,
            paste=Lines(reactor, sys.stdin.fileno()).next if pastes else None,
            port=port,
        ),
        seconds=SECONDS,
    )
    answer = {
        "name": name,
        "signedIn": True,
        "lasting": signed_in.lasting,
        "accessSeconds": signed_in.seconds,
        "remarks": list(signed_in.remarks),
    }
    done = f"Signed in: {name}. A service that runs takes it up by itself; `mailgateway check` tries it."
    say(answer, [done, *(f"Warning: {remark}" for remark in signed_in.remarks)], as_json=as_json)


def invite(*, opens: bool) -> "Callable[[Invitation], None]":
    """Make what tells a person what to do; on standard error, so that ``--json`` stays one object."""
    from mailgateway.operator.auth import TypeCode  # noqa: PLC0415

    opened: list[str] = []

    def tell(invitation: "Invitation") -> None:
        match invitation:
            case TypeCode(url, code, complete, seconds, again):
                lines = ["That code has run out; here is another one."] if again else []
                minutes = counted(max(1, seconds // 60), "minute", "minutes")
                lines += ["", f"  Open   {url}", f"  Type   {code}", ""]
                lines.append(f"Type it now: it is good for {minutes} at most, with some providers for five.")
                lines += [f"Or open {complete}"] if complete else []
                page = complete or url
            case _:
                lines = (
                    [f"{invitation.remark[:1].upper()}{invitation.remark[1:]}."] if invitation.remark else []
                )
                lines += (
                    []
                    if invitation.remark
                    else ["Open this page and sign in:", "", f"  {invitation.url}", ""]
                )
                if invitation.paste:
                    lines.append(
                        f"If the browser ends at a page that cannot be shown ({invitation.redirect_uri}...), "
                        "copy the whole address of it, paste it here and press Enter."
                    )
                page = invitation.url
        for line in lines:
            click.echo(printable(line), err=True)
        if opens and page not in opened:
            opened.append(page)
            webbrowser.open(page)

    return tell


def _status(settings: Settings, name: str | None, *, as_json: bool) -> None:
    names = [_chosen(settings, name)] if name is not None else list(settings.oauth)
    found = [_described(settings, each) for each in names]
    if not found:
        say({"grants": []}, "The settings have no [oauth.NAME] table.", as_json=as_json)
        return
    now = datetime.now(UTC)
    lines = facts([(each["name"], _sentence(each, now)) for each in found])
    say({"grants": found}, lines, as_json=as_json)
    if not all(each["usable"] for each in found):
        raise Failed(Exit.FAILED)


def _described(settings: Settings, name: str) -> dict[str, Any]:
    from mailgateway.operator.auth import standing  # noqa: PLC0415

    grant, why = standing(settings, name)
    told: dict[str, Any] = {"name": name, "usable": not why, "why": why}
    if grant is not None:
        told |= {
            "signedInAt": _time(grant.signed_in_at),
            "renewedAt": _time(grant.issued_at),
            "accessUntil": _time(grant.expires_at),
            "lasting": bool(grant.refresh_token),
        }
    return told


def _sentence(told: dict[str, Any], now: datetime) -> str:
    if told["why"]:
        return str(told["why"])
    since, until = when(told["signedInAt"], now), when(told["accessUntil"], now)
    return f"signed in {since}; the access token ends {until}"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _forget(settings: Settings, name: str, *, as_json: bool) -> None:
    from mailgateway.operator.auth import forget  # noqa: PLC0415
    from mailgateway.operator.running import run  # noqa: PLC0415

    there = run(lambda reactor: forget(reactor, settings, name), seconds=90)
    words = (
        f"The tokens of {name} are removed from this machine. At the provider the sign-in goes on until you "
        "remove it there: look for the apps that have access to your account."
        if there
        else f"Nobody was signed in: {name}."
    )
    say({"name": name, "forgotten": there}, words, as_json=as_json)
