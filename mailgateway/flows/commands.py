"""What a person asks of the gateway itself by mail: it is done and answered here, and no session sees it.

Runs inside the transaction that files the mail, so that a command is done once however often its mail is
read.  ``off`` takes effect with that transaction: whatever lies behind it in the same batch is filed, and
handed out when a person switches on again.
"""

from typing import assert_never

from attrs import frozen

from mailgateway.domain.command import Command
from mailgateway.domain.mode import Mode
from mailgateway.flows.bell import Event
from mailgateway.flows.counts import count
from mailgateway.flows.mode import rings, switch
from mailgateway.flows.notify_person import answer
from mailgateway.flows.troubles import QUESTIONS_LISTED, PersonsMail, Writer, list_of, on_one_line
from mailgateway.ids import MachineId, OutboxId
from mailgateway.store import envelopes, machines, modes, questions, sessions
from mailgateway.store.database import Tx

SESSIONS_LISTED = 20
"""Sessions that an answer names at most."""

HELP = """\
Reply to any mail of mine with your words, and they go to the session that wrote it. To a question, reply \
with the number of an option or in your own words.

A reply that is one of these words, and nothing else, is for the gateway itself:

- `/status` says what the gateway does now
- `/pending` lists the questions that wait for an answer
- `/off` stops all mail to you; what you write is kept and handed out later
- `/on` goes on with it
- `/help` says this

Anything else, also other words with a slash, goes to the session."""


@frozen
class Done:
    """What came of a command: what to ring after the commit, and the mail that answers it, if one does."""

    events: tuple[Event, ...]
    reply: OutboxId | None


def obey(tx: Tx, writer: Writer | None, machine: MachineId, mail: PersonsMail, command: Command) -> Done:
    """Do what a person who may has asked of the gateway on ``machine``, and queue the answer.

    Without a ``writer`` it is done and not answered.
    """
    events: tuple[Event, ...] = ()
    match command:
        case Command.ON:
            events = _switch(tx, writer, machine, Mode.ON)
            words = (
                f"The gateway on {machines.name(tx, machine)} is on: "
                "sessions write to you, and get what you write."
            )
        case Command.OFF:
            events = _switch(tx, writer, machine, Mode.OFF)
            words = (
                f"The gateway on {machines.name(tx, machine)} is off: no session writes to you, and what you "
                "write is kept until it is on again. Only a person switches it on: reply `/on`."
            )
        case Command.HELP:
            words = HELP
        case Command.STATUS:
            words = _status(tx, machine)
        case Command.PENDING:
            words = _pending(tx, writer, machine) if writer is not None else ""
        case _:
            assert_never(command)
    return Done(events, answer(tx, writer, mail, words) if writer is not None else None)


def _switch(tx: Tx, writer: Writer | None, machine: MachineId, mode: Mode) -> tuple[Event, ...]:
    changed = switch(tx, machine, mode, by="person")
    elsewhere = writer is not None and machine != writer.identity.machine_id
    return rings(mode) if changed and not elsewhere else ()


def _status(tx: Tx, machine: MachineId) -> str:
    found = count(tx, machine)
    mode = modes.current(tx, machine)
    lines = [
        f"- The gateway on {machines.name(tx, machine)} is **{mode.value}**",
        f"- Sessions: {found.clients} live",
        f"- Questions that wait for an answer: {found.registry}",
        f"- Messages that wait for their sessions: {found.pending}",
        f"- Mails that wait to be sent: {found.outbox_waiting - found.held}",
    ]
    if found.held:
        lines.append(f"- Mails that are held back for a better hour: {found.held}")
    titles = [on_one_line(each) for each in sessions.titles(tx, machine, SESSIONS_LISTED)]
    if titles:
        lines += ["", "Live sessions:", "", *(f"- {title}" for title in titles)]
    return "\n".join(lines)


def _pending(tx: Tx, writer: Writer, machine: MachineId) -> str:
    found = questions.open_for(tx, machine, None, QUESTIONS_LISTED)
    waiting = envelopes.count_waiting(tx, machine, None)
    lines = ["No question waits for an answer."]
    if found:
        lines = [
            "These questions wait for an answer; reply to their mails, or use their tags:",
            "",
            list_of(writer, found),
        ]
    if waiting:
        lines += ["", f"Messages that sessions have yet to take: {waiting}."]
    return "\n".join(lines)
