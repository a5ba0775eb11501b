"""``log``: what was decided, by whom, and whether that record holds."""

import click

from mailgateway.cli.report import Exit, fail, say, shared, table
from mailgateway.cli.service import client_of, person_client_of, settings_of


@click.group("log")
def log_command() -> None:
    """Show the log of decisions, or check it."""


@log_command.command("verify")
@click.option(
    "--noted",
    multiple=True,
    metavar="MACHINE:NUMBER:DIGEST",
    help="A place that was printed before; the chain must still go through it. May be repeated.",
)
@shared
def verify_command(noted: tuple[str, ...], config: str | None, *, as_json: bool) -> None:
    """Check that nothing in the log was changed, left out or put in.

    Prints how far each machine's chain goes. Keep that somewhere else: with --noted, it shows later that
    the end was not cut off either. Needs `person.key`.
    """
    from mailgateway.operator.decision_log import Noted, verify  # noqa: PLC0415 - only this verb pays for it

    try:
        places = tuple(Noted.read(each) for each in noted)
    except ValueError:
        raise click.BadParameter("must be MACHINE:NUMBER:DIGEST", param_hint="--noted") from None
    settings = settings_of(config)
    with person_client_of(settings) or client_of(settings) as client:
        checked = verify(client, places)
    machines = [
        {
            "machineId": each.machine,
            "number": each.chain.number,
            "digest": each.chain.digest,
            "broken": None
            if each.broken is None
            else {"number": each.broken.number, "reason": each.broken.reason},
        }
        for each in checked
    ]
    wrong = [
        f"{each.machine}: entry {each.broken.number} {each.broken.reason}." for each in checked if each.broken
    ]
    if wrong:
        fail(
            Exit.FAILED,
            "log_broken",
            "\n".join(["The log of decisions does not hold.", *wrong]),
            as_json=as_json,
            more={"machines": machines},
        )
    lines = [f"{each.machine}:{each.chain.number}:{each.chain.digest}" for each in checked]
    say({"machines": machines}, ["The log of decisions holds.", *lines], as_json=as_json)


@log_command.command("show")
@click.option("--machine", metavar="ID", help="Else the machine of the service.")
@click.option("--after", type=click.IntRange(0), default=0, metavar="NUMBER", help="Only later entries.")
@shared
def show_command(machine: str | None, after: int, config: str | None, *, as_json: bool) -> None:
    """Print the log: who did what to which question, by which door, when.

    Needs `person.key`.
    """
    from mailgateway.operator.decision_log import entries  # noqa: PLC0415 - only this verb pays for it

    settings = settings_of(config)
    with person_client_of(settings) or client_of(settings) as client:
        found = list(entries(client, machine, after))
    rows = [
        (
            str(each["number"]),
            each["at"][:19].replace("T", " "),
            each["questionId"],
            each["act"],
            f"{each['revision']}/{each['ownerRevision']}",
            each["door"],
            each["by"],
        )
        for each in found
    ]
    heads = ("NUMBER", "AT (UTC)", "QUESTION", "ACT", "REVISION", "DOOR", "BY")
    say({"entries": found}, table(heads, rows) or "Nothing was decided yet.", as_json=as_json)
