"""A person answers a question by hand: in the web inbox, in the terminal, or by a program of theirs.

The same transaction as for a reply by mail decides who was first.  The owner of a decision gets what was
chosen and said as a message of the person's; that of another question is told that there is an answer.
"""

from collections.abc import Sequence
from typing import assert_never

from attrs import evolve

from mailgateway.domain.envelope import EnvelopeKind, Trust
from mailgateway.domain.question import (
    OTHER,
    AlreadyResolved,
    Answered,
    NotOpen,
    Question,
    QuestionKind,
    QuestionStatus,
    StaleRevision,
    wrong_selection,
)
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event
from mailgateway.flows.question_updates import Person, asked, stale_revision, unknown, wrong_owner
from mailgateway.flows.resolve import ending, resolve, rings
from mailgateway.flows.waiting import commit
from mailgateway.ids import QuestionId
from mailgateway.store import envelopes
from mailgateway.store.database import Database, Tx


async def answer(
    database: Database,
    bell: Bell,
    person: Person,
    question_id: QuestionId,
    revision: int,
    values: Sequence[str],
    note: str | None,
    random: bytes,
) -> Answered:
    """Answer a question that this person has seen in this revision; ``random`` are at least 12 random bytes.

    Refusals: ``unknown``, ``wrong_owner`` (the key speaks for other sessions), ``already_resolved`` (with
    ``by``, ``door`` and ``at``), ``question_terminal``, ``stale_revision``, ``invalid_selection``.
    """

    def work(tx: Tx) -> tuple[Answered, Sequence[Event]]:
        found = asked(tx, question_id)
        if person.sessions and found.session_id not in person.sessions:
            raise wrong_owner()
        if found.status_at(tx.now) is QuestionStatus.OPEN and found.revision == revision:
            _selectable(found, values, note)
        resolution = resolve(
            tx,
            question_id=question_id,
            expected_revision=revision,
            values=values,
            note=note,
            text=_words(found, values, note),
            by=person.name,
            door=person.door,
            random=random,
        )
        match resolution:
            case Answered():
                if found.kind is QuestionKind.DECISION:
                    _deliver(tx, resolution.question, values, note, person)
                return resolution, rings(resolution.question, told=True)
            case AlreadyResolved():
                raise already_resolved(resolution)
            case StaleRevision():
                raise stale_revision(found)
            case NotOpen(None):
                raise unknown()
            case NotOpen(status):
                raise Refusal(
                    "question_terminal",
                    f"the question is {status}, and that is final",
                    {"status": str(status)},
                )
            case _:
                assert_never(resolution)

    return await commit(database, bell, work)


def already_resolved(won: AlreadyResolved) -> Refusal:
    """Somebody else was first."""
    return Refusal(
        "already_resolved",
        f"{won.by} has answered this already ({won.door}, {won.at:%Y-%m-%d %H:%M} UTC); nothing was changed",
        {"by": won.by, "door": won.door, "at": won.at},
    )


def _selectable(found: Question, values: Sequence[str], note: str | None) -> None:
    """Refuse what is no answer; a decision without options is answered in words."""
    words = bool(note and note.strip())
    if found.kind is QuestionKind.DECISION and not found.options and not values and words:
        return
    wrong = wrong_selection(found.options, found.mode, values)
    if wrong is None and OTHER in values and not words and all(each.value != OTHER for each in found.options):
        wrong = "holds `other` without a note that says what is meant"
    if wrong is not None:
        raise Refusal("invalid_selection", f"`selectedValues` {wrong}", {"field": "selectedValues"})


def _words(found: Question, values: Sequence[str], note: str | None) -> str:
    """The answer as somebody might have typed it."""
    labels = {each.value: each.label for each in found.options}
    chosen = ", ".join(labels.get(value, value) for value in values)
    return "\n\n".join(each for each in (chosen, note) if each)


def _deliver(tx: Tx, ended: Question, values: Sequence[str], note: str | None, person: Person) -> None:
    """File the answer to a decision, as the reply by mail would be."""
    words = _words(ended, values, note)
    told = ending(tx, ended, EnvelopeKind.USER, Trust.OWNER, ended.subject, words)
    choice = values[0] if len(values) == 1 else None
    envelopes.add(tx, evolve(told, from_name=person.name, choice=choice, note=note))
