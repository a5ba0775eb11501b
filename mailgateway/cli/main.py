"""The entry point: finds the verb, and imports nothing else.

``--help`` must not cost the import of every verb, so the names and their one-line helps stand here; a test
holds them against the commands themselves.
"""

import io
import sys
from importlib import import_module
from typing import Any

import click

import mailgateway

VERBS = {
    "demo": ("demo", "Show the main job on an embedded mailbox, in seconds."),
    "setup": ("setup", "Make the settings for the agents' mailbox ADDRESS."),
    "check": ("check", "Check the settings and log in to both servers, without sending."),
    "smoke": ("smoke", "Send a mail to the account itself, and wait until it is there."),
    "doctor": ("doctor", "Test every part, and say what to do."),
    "auth": ("auth", "Sign in at a provider that wants OAuth."),
    "ensure": ("life", "Start the service if it does not run."),
    "restart": ("life", "Stop the service and start it again."),
    "status": ("status", "Say what the service does, and what it waits for."),
    "on": ("mode", "Switch the gateway on for this machine."),
    "off": ("mode", "Switch the gateway off for this machine."),
    "prime": ("prime", "Watch from now on, and leave alone what lies in the mailbox already."),
    "reload": ("mode", "Let the service read its settings again."),
    "explain": ("explain", "Say how the gateway would treat these mails."),
    "token": ("keys", "Make a signed token for a subject."),
    "secret": ("keys", "Say where the session key is."),
    "notify": ("send", "Write to the person, without waiting for a word."),
    "ask": ("send", "Ask the person, and wait for the answer."),
    "outbox": ("outbox", "List the mails that wait to be sent; try or drop one."),
    "wait": ("receive", "Wait for the next message to the session, and take it."),
    "inbox": ("receive", "List what waits for the session."),
    "attachments": ("attachments", "Write the files that came with a message into a folder."),
    "ack": ("receive", "Take a message over, for good."),
    "login": ("login", "Make a link that logs a person in to the web inbox."),
    "questions": ("questions", "List what waits for an answer, or show one question."),
    "answer": ("answer", "Answer a question, if nobody was faster."),
    "cancel": ("answer", "End a question without an answer; its session is told."),
    "log": ("log", "Show the log of decisions, or check it."),
}
"""Verb -> the module of ``mailgateway.cli`` that has it, and its help in one line."""


class Verbs(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the verbs, in the order in which a newcomer meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one verb."""
        if cmd_name not in VERBS:
            return None
        module: Any = import_module(f"mailgateway.cli.{VERBS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one was meant."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"mailgateway {mailgateway.__version__}")
        ctx.exit()


@click.group(
    cls=Verbs,
    epilog="Exit status: 0 done, 1 refused or failed, 2 usage or settings, 3 the service does not answer.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Say the version."
)
def command() -> None:
    """Connect a mailbox with running coding-agent sessions."""


def main() -> None:
    """Run the command; the exit status is the process's."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a mail's words must not break an old terminal's verb
    command.main(prog_name="mailgateway")
