"""The log of decisions: rows are added in the transaction of what they tell, and never changed.

Each machine has a chain of its own.  Two writers that add the same number meet at the primary key, and one of
them does its transaction again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, func, select

from mailgateway.domain.decision_log import Act, LogEntry, canonical
from mailgateway.domain.question import Question
from mailgateway.ids import MachineId, QuestionId
from mailgateway.store.database import Tx
from mailgateway.store.tables import decision_log


def append(
    tx: Tx, question: Question, act: Act, *, by: str, door: str, details: Mapping[str, str] | None = None
) -> LogEntry:
    """Add what was done to a question, which is given as it is afterwards, to the log of its machine."""
    last = tx.execute(
        select(decision_log.c.number, decision_log.c.digest)
        .where(decision_log.c.machine_id == question.machine_id)
        .order_by(decision_log.c.number.desc())
        .limit(1)
    ).one_or_none()
    entry = LogEntry(
        machine_id=question.machine_id,
        number=1 if last is None else last.number + 1,
        question_id=question.id,
        act=act,
        revision=question.revision,
        owner_revision=question.owner_revision,
        by=by,
        door=door,
        at=tx.now,
        details=details or {},
    ).chained("" if last is None else last.digest)
    tx.execute(
        decision_log.insert(),
        {
            "machine_id": entry.machine_id,
            "number": entry.number,
            "question_id": entry.question_id,
            "act": act.value,
            "revision": entry.revision,
            "owner_revision": entry.owner_revision,
            "by": entry.by,
            "door": entry.door,
            "at": entry.at,
            "details": canonical(entry.details),
            "digest": entry.digest,
        },
    )
    return entry


def of_question(tx: Tx, question_id: QuestionId, after: int, limit: int) -> tuple[LogEntry, ...]:
    """What was done to one question, oldest first, after a number of its machine's log."""
    its = (decision_log.c.question_id == question_id, decision_log.c.number > after)
    return _values(tx.execute(select(decision_log).where(*its).order_by(decision_log.c.number).limit(limit)))


def page(tx: Tx, machine: MachineId, after: int, limit: int) -> tuple[LogEntry, ...]:
    """The entries of one machine after a number, in their order."""
    mine = (decision_log.c.machine_id == machine, decision_log.c.number > after)
    return _values(tx.execute(select(decision_log).where(*mine).order_by(decision_log.c.number).limit(limit)))


def machines(tx: Tx) -> tuple[tuple[MachineId, int], ...]:
    """Every machine that has a log, with the number of its last entry."""
    rows = tx.execute(
        select(decision_log.c.machine_id, func.max(decision_log.c.number).label("last"))
        .group_by(decision_log.c.machine_id)
        .order_by(decision_log.c.machine_id)
    )
    return tuple((row.machine_id, row.last) for row in rows)


def _values(rows: "Sequence[Row[Any]] | Any") -> tuple[LogEntry, ...]:
    return tuple(
        LogEntry(
            machine_id=row.machine_id,
            number=row.number,
            question_id=row.question_id,
            act=row.act,
            revision=row.revision,
            owner_revision=row.owner_revision,
            by=row.by,
            door=row.door,
            at=row.at,
            details=_details(row.details),
            digest=row.digest,
        )
        for row in rows
    )


def _details(text: str) -> Mapping[str, str]:
    """What the row says; of one that somebody has spoiled, the text itself, which fits no digest."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"spoiled": text}
