"""``prime``: watch from now on, and leave alone what lies in the mailbox already."""

import click

from mailgateway.cli.report import counted, say, shared
from mailgateway.cli.service import client_of, settings_of


@click.command("prime")
@shared
def prime_command(config: str | None, *, as_json: bool) -> None:
    """Watch from now on, and leave alone what lies in the mailbox already.

    This is for a first start on a mailbox with old mail. A folder from which a mail was used already is not
    touched.
    """
    with client_of(settings_of(config)) as client:
        answer = client.prime()
    folders = counted(int(answer.get("moved", 0)), "folder", "folders")
    text = (
        f"{folders} watched from now on: mail that lies there already is left alone. A folder from which a "
        "mail was used before goes on from where it was."
    )
    say(answer, text, as_json=as_json)
