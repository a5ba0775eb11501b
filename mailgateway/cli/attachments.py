"""``attachments``: the files that came with a message, written where a session can read them.

Nothing is overwritten, opened or run, and nobody but the user may read what is written.
"""

import os
from pathlib import Path

import click

from mailgateway.cli.report import Exit, fail, say, shared
from mailgateway.cli.service import client_of, instance_of, session_option, settings_of
from mailgateway.client import ApiRefused
from mailgateway.client.answers import Attachment

MOST_NAMES = 1_000
"""How many names are tried for one file before giving up."""

LONGEST_NAME = 240
"""Octets of a name; file systems take 255, and a number may have to go in."""


@click.command("attachments")
@click.argument("delivery", metavar="ID")
@click.argument("wanted", metavar="[ATTACHMENT]...", nargs=-1)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Where to write them; made when missing.  [default: here]",
)
@session_option
@shared
def attachments_command(
    delivery: str,
    wanted: tuple[str, ...],
    folder: Path,
    session: str | None,
    config: str | None,
    *,
    as_json: bool,
) -> None:
    """Write the files that came with a message into a folder.

    ID is a delivery's id, or enough of its beginning; ATTACHMENT the ids of files (a1, a2 ...), else all.
    Claims the message where that has not happened; of one that this session has taken over, name the files.
    """
    instance = instance_of(session or os.environ.get("MAILGATEWAY_SESSION"))
    with client_of(settings_of(config)) as client:
        files: list[Attachment] = []
        try:
            files = client.claim(delivery, instance)["attachments"]
        except ApiRefused as refused:
            if refused.code != "acked":
                raise
            if not wanted:
                message = "The message was taken over already: name the files that are wanted, such as a1."
                fail(Exit.FAILED, "acked", message, as_json=as_json)
        known = {each["id"]: each["filename"] for each in files}
        unknown = [each for each in wanted if known and each not in known]
        if unknown:
            message = f"The message has no attachment {', '.join(unknown)}; it has: {', '.join(known)}."
            fail(Exit.FAILED, "unknown", message, as_json=as_json)
        written = []
        for name in wanted or known:
            data = client.attachment(delivery, name, instance)
            try:
                path = write_new(folder, known.get(name, name), data)
            except OSError as error:
                why = error.strerror or str(error)
                fail(Exit.FAILED, "not_written", f"{folder} cannot be written to: {why}.", as_json=as_json)
            written.append({"id": name, "path": str(path), "size": len(data)})
    lines = [str(each["path"]) for each in written]
    say({"files": written}, lines or "The message has no files.", as_json=as_json)


def write_new(folder: Path, filename: str, data: bytes) -> Path:
    """Write a file that was not there, for the user alone; where the name is taken, under a numbered one.

    ``filename`` is a stranger's: only its last part counts, and it hides nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    safe = filename.replace("\\", "/").rpartition("/")[2].replace("\0", "").lstrip(".") or "attachment"
    safe = _short(safe)
    stem, dot, extension = safe.rpartition(".")
    for number in range(1, MOST_NAMES):
        numbered = f"{stem} ({number}){dot}{extension}" if stem else f"{safe} ({number})"
        path = folder / (safe if number == 1 else numbered)
        try:
            descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return path
    raise FileExistsError(f"{folder} has too many files named like {safe}")


def _short(name: str) -> str:
    """The name, cut in front of its extension to what file systems take."""
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension) > 20:
        stem, dot, extension = name, "", ""
    room = LONGEST_NAME - len(f"{dot}{extension}".encode())
    return f"{stem.encode('utf-8', 'replace')[:room].decode('utf-8', 'ignore')}{dot}{extension}"
