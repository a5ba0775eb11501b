"""``setup``: make the settings of an account, with questions at a terminal or by flags alone."""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from mailgateway.cli.asking import Asking
from mailgateway.cli.progress import progress
from mailgateway.cli.report import Exit, Failed, fail, say, shared
from mailgateway.errors import ConfigError, Refusal
from mailgateway.settings import Settings

if TYPE_CHECKING:
    from mailgateway.operator.setup import Outcome

_SECRETS = {
    "password_file": "--password-file",
    "password_command": "--password-command",
    "password_env": "--password-env",
    "password_stdin": "--password-stdin",
    "credential": "--credential",
    "token_command": "--token-command",
    "oauth": "--oauth",
}
_TLS = click.Choice(["implicit", "starttls"])
_FILE = click.Path(dir_okay=False)


@click.command("setup")
@click.argument("address", required=False, default="")
@click.option("--imap", default="", metavar="HOST[:PORT]", help="The IMAP server; else it is looked for.")
@click.option("--imap-tls", type=_TLS, default=None, help="How; else by the port.")
@click.option(
    "--smtp", default="", metavar="HOST[:PORT]", help="The submission server; else it is looked for."
)
@click.option("--smtp-tls", type=_TLS, default=None, help="How; else by the port.")
@click.option("--username", default="", metavar="NAME", help="The user name; else as the provider has it.")
@click.option("--smtp-username", default="", metavar="NAME", help="The user name for sending, if it differs.")
@click.option("--ca-file", type=_FILE, default="", metavar="FILE", help="The servers' own trust anchor.")
@click.option("--ispdb/--no-ispdb", default=None, help="Ask Mozilla's directory, which learns the domain.")
@click.option("--yes", is_flag=True, help="Use the servers that were found without a question.")
@click.option(
    "--password-file", type=_FILE, default="", metavar="FILE", help="A file that holds the password."
)
@click.option("--password-command", default="", metavar="COMMAND", help="A command that prints it.")
@click.option("--password-env", default="", metavar="VARIABLE", help="A variable that holds it.")
@click.option("--password-stdin", is_flag=True, help="Read it from standard input, into a file of its own.")
@click.option("--credential", default="", metavar="NAME", help="A credential of the service manager.")
@click.option("--token-command", default="", metavar="COMMAND", help="A command that prints an access token.")
@click.option("--oauth", default="", metavar="NAME", help="Sign in by OAuth; the name of the table.")
@click.option("--oauth-client-id", "client_id", default="", metavar="ID", help="Of your own registration.")
@click.option("--oauth-client-secret-file", "client_secret_file", type=_FILE, default="", metavar="FILE")
@click.option(
    "--oauth-device-url", "device_url", default="", metavar="URL", help="Else as the provider has it."
)
@click.option("--oauth-authorize-url", "authorize_url", default="", metavar="URL")
@click.option("--oauth-token-url", "token_url", default="", metavar="URL")
@click.option("--oauth-scope", "scopes", multiple=True, metavar="SCOPE")
@click.option("--allow", multiple=True, metavar="ADDRESS", help="Whose replies are heard; may be repeated.")
@click.option(
    "--notify", default="", metavar="ADDRESS", help="Whom the agents write to; else the first allowed."
)
@click.option(
    "--mailbox", type=click.Choice(["own", "single"]), default=None, help="The agents' own, or yours."
)
@click.option(
    "--authserv-id", "authserv_ids", multiple=True, metavar="ID", help="Whose check of senders counts."
)
@click.option("--results-below-received", is_flag=True, help="Where that server writes its results.")
@click.option(
    "--watch", multiple=True, default=("INBOX",), metavar="FOLDER", help="Folders that replies come to."
)
@click.option("--sent-folder", default="", metavar="FOLDER", help="Else the server tells it.")
@click.option("--plus-address/--no-plus-address", default=None, help="name+word@domain arrives, too.")
@click.option("--from-name", default="", metavar="NAME", help="The name that the agents write under.")
@click.option("--account", default="main", metavar="NAME", help="What the account is called in the settings.")
@click.option(
    "--systemd", type=click.Choice(["user", "system"]), default=None, help="Write the unit as well."
)
@click.option("--enable", is_flag=True, help="With --systemd: also start the service.")
@click.option("--check/--no-check", default=True, help="Log in to both servers in the end.")
@click.option("--dry-run", is_flag=True, help="Show the settings file, and write nothing.")
@click.option("--force", is_flag=True, help="Replace settings that are there; they are kept beside.")
@shared
def setup_command(config: str | None, *, as_json: bool, **flags: Any) -> None:
    """Make the settings for the agents' mailbox ADDRESS.

    Finds its mail servers, asks for what is missing, writes the settings (0600), logs in to both servers
    without sending, and says what comes next. Every question has a flag, so it also runs without a terminal.
    """
    given = [flag for key, flag in _SECRETS.items() if flags[key]]
    if flags["client_id"] and not flags["oauth"]:
        given.append("--oauth-client-id")
    if len(given) > 1:
        message = f"Give the secret in one way: {' or '.join(given)}."
        fail(Exit.USAGE, "too_many_secrets", message, as_json=as_json)
    if flags["enable"] and not flags["systemd"]:
        fail(Exit.USAGE, "usage", "--enable needs --systemd user or --systemd system.", as_json=as_json)
    if flags["systemd"] and flags["password_env"]:
        message = "A service of systemd's does not have that variable: use --password-file or another way."
        fail(Exit.USAGE, "usage", message, as_json=as_json)
    for door in ("imap", "smtp"):
        if flags[f"{door}_tls"] and not flags[door]:
            fail(Exit.USAGE, "usage", f"--{door}-tls needs --{door} HOST.", as_json=as_json)
    outcome = _set_up(config, {key: value for key, value in flags.items() if value is not None}, as_json)
    if flags["dry_run"] and not as_json:
        click.echo(outcome.text, nl=False)
        return
    say(_answer(outcome), _next(outcome), as_json=as_json)
    if not outcome.ok or (outcome.installed is not None and outcome.installed.trouble):
        raise Failed(Exit.FAILED)


def _set_up(config: str | None, flags: Mapping[str, Any], as_json: bool) -> "Outcome":
    # Imported here: the mail dialogues and the reactor are paid for by this verb alone.
    from mailgateway.operator.installing import Installation  # noqa: PLC0415
    from mailgateway.operator.setup import Setup  # noqa: PLC0415
    from mailgateway.operator.wishes import Wishes  # noqa: PLC0415

    wishes = Wishes(config=config, **flags)
    installation = Installation(wishes.systemd, wishes.enable, os.environ)
    asking = Asking.here(as_json=as_json, aside=wishes.dry_run)
    quiet = as_json or wishes.dry_run  # then the file alone goes to standard output
    try:
        return Setup(
            wishes, asking, lambda: progress(as_json=quiet), os.environ, installation, _sign_in
        ).run()
    except ConfigError as error:
        flags_alone = all(problem.path.startswith("--") for problem in error.problems)
        if not flags_alone:
            raise
        fail(Exit.USAGE, "usage", f"{error}.", as_json=as_json)
    except Refusal as refusal:
        fail(Exit.FAILED, refusal.code, refusal.message, as_json=as_json, more=refusal.details)


def _sign_in(settings: Settings, name: str) -> None:
    """Let the person at this terminal sign in."""
    from mailgateway.cli.auth import SECONDS, invite  # noqa: PLC0415 - few accounts want it
    from mailgateway.operator.auth import authorize  # noqa: PLC0415
    from mailgateway.operator.pasting import Lines  # noqa: PLC0415
    from mailgateway.operator.running import run  # noqa: PLC0415

    run(
        lambda reactor: authorize(
            reactor,
            settings.daemon.state_dir,
            name,
            settings.oauth[name],
            invite=invite(opens=False),
            paste=Lines(reactor, sys.stdin.fileno()).next,
        ),
        seconds=SECONDS,
    )


def _answer(outcome: "Outcome") -> dict[str, Any]:
    """Everything, for programs."""
    plan, choice, installed = outcome.plan, outcome.choice, outcome.installed
    servers = {
        door: {
            "host": found.server.host,
            "port": found.server.port,
            "tls": "starttls" if found.server.starttls else "implicit",
            "found": found.rank.name.lower(),
            "source": found.source,
        }
        for door, found in (("imap", choice.imap), ("smtp", choice.smtp))
        if found is not None
    }
    answer: dict[str, Any] = {
        "ok": outcome.ok,
        "config": str(outcome.path),
        "written": outcome.written is not None,
        "backup": str(outcome.written.backup) if outcome.written and outcome.written.backup else None,
        "account": plan.account,
        "address": plan.address,
        **servers,
        "allowed": list(plan.allowed),
        "authentication": "single-mailbox" if plan.single_mailbox else "required",
        "findings": [each.as_dict() for each in outcome.findings],
        "units": [str(path) for path in installed.units] if installed else [],
        "commands": list(installed.commands) if installed else [],
        "started": bool(installed and installed.started),
    }
    if outcome.written is None:
        answer["text"] = outcome.text
    return answer


def _next(outcome: "Outcome") -> list[str]:
    """What comes next, for people."""
    installed = outcome.installed
    config = f" --config {outcome.path}" if outcome.custom_place else ""
    lines = []
    if installed is not None:
        lines += [f"Written: {path}" for path in installed.units]
        if installed.trouble:
            lines.append(f"{installed.trouble}.")
    if not outcome.ok:
        lines.append(
            f"The settings are written, and a login failed: mend what stands above and run "
            f"`mailgateway check{config}`, or `mailgateway setup --force` again."
        )
        return lines
    skipped = [each for each in outcome.findings if each.state == "skipped"]
    lines += [f"{each.what[:1].upper()}{each.what[1:]}. {each.advice}" for each in skipped]
    if installed is not None and installed.commands:
        lines += ["Type this to start the service:", *(f"    {each}" for each in installed.commands)]
    elif installed is None:
        lines += ["Start the service:", f"    mailgateway ensure{config}"]
    ask = f'mailgateway ask{config} --session hello "Does this reach me?"'
    lines += ["Then ask yourself something, and answer from your phone:", f"    {ask}"]
    return lines
