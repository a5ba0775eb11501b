"""A session that can go on with nothing else waits for its questions: one wait at a time; it is *blocked*.

The wait ends at once when a question of the session has ended and was not read yet, or when none is open.
Ending it early, because the client has gone or the service stops, changes nothing but that.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field, frozen

from mailgateway.domain.presence import Waits
from mailgateway.domain.question import QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.questions import Asker, speak_for
from mailgateway.flows.waiting import Timers, wait_until
from mailgateway.ids import QuestionId, SessionId
from mailgateway.store import question_lists
from mailgateway.store.database import Database, Tx


@frozen
class Woken:
    """Why a wait has ended: ``answer``, ``lifecycle``, ``no_actionable_questions``, or ``timeout``."""

    type: str
    question_id: QuestionId | None = None


TIMEOUT = Woken("timeout")
NOTHING = Woken("no_actionable_questions")


@define(eq=False)
class Waiting:
    """Which sessions wait for their questions, in this process."""

    bell: Bell
    waits: Waits = field(factory=Waits)

    @contextmanager
    def blocked(self, session: SessionId) -> Iterator[None]:
        """The session waits; ``wait_already_active`` when it does so already."""
        if session in self.waits:
            raise Refusal(
                "wait_already_active", "this session waits already; one wait hears of all its questions"
            )
        self._tell(session, self.waits.begin(session))
        try:
            yield
        finally:
            self._tell(session, self.waits.end(session))

    def _tell(self, session: SessionId, changed: bool) -> None:
        if changed:
            self.bell.ring(Event(EventKind.SESSION, session, session))


async def wait(
    database: Database, bell: Bell, timers: Timers, waiting: Waiting, asker: Asker, seconds: float
) -> Woken:
    """Wait until a question of the session has ended, for so many seconds at most.

    Refusals: ``not_yours`` (the instance runs another session), ``wait_already_active``.
    """
    await database.read(lambda tx: speak_for(tx, asker))

    def look(tx: Tx) -> Woken:
        ended = question_lists.next_ended(tx, asker.session)
        if ended is not None:
            kind = "answer" if ended.status is QuestionStatus.ANSWERED else "lifecycle"
            return Woken(kind, ended.id)
        return TIMEOUT if question_lists.count_open(tx, asker.session) else NOTHING

    def concerns(event: Event) -> bool:
        return event.kind is EventKind.QUESTION and event.session == asker.session

    with waiting.blocked(asker.session):
        return await wait_until(
            timers, bell, database, concerns, look, seconds=seconds, enough=lambda woken: woken is not TIMEOUT
        )
