"""``demo``: the main job on an embedded mailbox."""

import click


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave it running, to be looked at.")
@click.option("--json", "as_json", is_flag=True, help="Tell the story in JSON.")
def demo_command(*, keep: bool, as_json: bool) -> None:
    """Show the main job on an embedded mailbox, in seconds."""
    from mailgateway.demo.main import main  # noqa: PLC0415 - brings Twisted with it

    raise SystemExit(main(keep=keep, json=as_json))
