"""Questions: sessions ask, change and read them, people answer them; and who waits for them.

A session speaks for itself alone: its key, its instance and the question's owner must agree.  People see and
answer all questions that their key may see.
"""

from typing import TypeVar

from twisted.internet.defer import Deferred

from mailgateway.domain.question_list import Scope
from mailgateway.errors import Refusal
from mailgateway.flows import (
    decision_log,
    question_answers,
    question_reading,
    question_updates,
    waiting_questions,
)
from mailgateway.flows import questions as flow
from mailgateway.flows.question_reading import Reader
from mailgateway.flows.question_updates import Person, Seen
from mailgateway.flows.questions import Asker
from mailgateway.http import shapes_of_questions as shapes_of
from mailgateway.http.deliveries import TOO_MANY
from mailgateway.http.doors import Doors
from mailgateway.http.routes import Call, Reply
from mailgateway.ids import MachineId, QuestionId, SessionId
from mailgateway.settings import Role
from mailgateway.shapes.questions import (
    AnswerQuery,
    AnswerRequest,
    BatchRequest,
    CancelRequest,
    HistoryQuery,
    LogQuery,
    OwnedRequest,
    QuestionQuery,
    QuestionRequest,
    QuestionsQuery,
    ReparentRequest,
    ReviseRequest,
    SupersedeRequest,
    TakeoverRequest,
    TransferRequest,
    WaitQuery,
)
from mailgateway.shapes.requests import SessionRequest

T = TypeVar("T")

RANDOM_BYTES = 12


async def create(doors: Doors, call: Call) -> Reply:
    """Ask one question; it is there when this is answered, and stays whatever becomes of the asker."""
    wanted = call.body(QuestionRequest)
    asked = await flow.create(
        doors.database,
        doors.bell,
        doors.identity,
        Asker(wanted.session_id, wanted.instance_id),
        shapes_of.draft(wanted),
        doors.mint(RANDOM_BYTES),
    )
    return Reply(shapes_of.asked(asked))


async def create_batch(doors: Doors, call: Call) -> Reply:
    """Ask several questions, up to the first that is refused."""
    wanted = call.body(BatchRequest)
    outcomes = await flow.create_batch(
        doors.database,
        doors.bell,
        doors.identity,
        Asker(wanted.session_id, wanted.instance_id),
        [shapes_of.item(each) for each in wanted.items],
        doors.mint(RANDOM_BYTES * len(wanted.items)),
    )
    return Reply(shapes_of.batch(outcomes))


async def revise(doors: Doors, call: Call) -> Reply:
    """Give a question a new text."""
    wanted = call.body(ReviseRequest)
    changed = await question_updates.revise(
        doors.database, doors.bell, *_seen(call, wanted), shapes_of.content(wanted)
    )
    return Reply(shapes_of.handle(changed))


async def cancel(doors: Doors, call: Call) -> Reply:
    """End a question without an answer: by its owner, or by a person."""
    wanted = call.body(CancelRequest)
    if wanted.session_id is None and call.bearer.role is Role.PERSON:
        ended = await question_updates.cancel_by_person(
            doors.database,
            doors.bell,
            _person(call),
            QuestionId(call.parameters["id"]),
            wanted.expected_revision,
            wanted.note,
        )
        return Reply(shapes_of.handle(ended))
    owned = OwnedRequest(
        session_id=_given(wanted.session_id, "sessionId"),
        instance_id=_given(wanted.instance_id, "instanceId"),
        expected_revision=wanted.expected_revision,
        expected_owner_revision=_given(wanted.expected_owner_revision, "expectedOwnerRevision"),
    )
    ended = await question_updates.cancel(doors.database, doors.bell, *_seen(call, owned), wanted.note)
    return Reply(shapes_of.handle(ended))


async def supersede(doors: Doors, call: Call) -> Reply:
    """Put another question in the place of one."""
    wanted = call.body(SupersedeRequest)
    ended = await question_updates.supersede(
        doors.database, doors.bell, *_seen(call, wanted), wanted.replacement_question_id
    )
    return Reply(shapes_of.handle(ended))


async def reparent(doors: Doors, call: Call) -> Reply:
    """Put a question below another one, or below none."""
    wanted = call.body(ReparentRequest)
    changed = await question_updates.reparent(
        doors.database, doors.bell, *_seen(call, wanted), wanted.parent_question_id
    )
    return Reply(shapes_of.handle(changed))


async def transfer(doors: Doors, call: Call) -> Reply:
    """Give a question to another session."""
    wanted = call.body(TransferRequest)
    changed = await question_updates.transfer(
        doors.database, doors.bell, *_seen(call, wanted), wanted.expected_owner, wanted.owner
    )
    return Reply(shapes_of.handle(changed))


async def take_over(doors: Doors, call: Call) -> Reply:
    """Take the question of an owner that is offline."""
    wanted = call.body(TakeoverRequest)
    changed = await question_updates.take_over(
        doors.database, doors.bell, *_seen(call, wanted), wanted.expected_owner, call.bearer.sessions
    )
    return Reply(shapes_of.handle(changed))


async def answer(doors: Doors, call: Call) -> Reply:
    """Answer a question, if nobody was faster."""
    wanted = call.body(AnswerRequest)
    answered = await question_answers.answer(
        doors.database,
        doors.bell,
        _person(call),
        QuestionId(call.parameters["id"]),
        wanted.expected_revision,
        wanted.selected_values,
        wanted.note,
        doors.mint(RANDOM_BYTES),
    )
    return Reply(shapes_of.answered(answered))


async def listing(doors: Doors, call: Call) -> Reply:
    """List questions: those that need attention, or those that the filters name."""
    wanted = call.query(QuestionsQuery)
    reader = _reader(call, wanted.session, wanted.scope)
    page = await question_reading.listing(
        doors.database, shapes_of.wanted(wanted, reader), wanted.cursor, wanted.limit
    )
    return Reply(shapes_of.page(page))


async def one(doors: Doors, call: Call) -> Reply:
    """Show one question as a whole; looking does not read its answer."""
    wanted = call.query(QuestionQuery)
    reader = _reader(call, wanted.session, wanted.scope)
    found, read = await question_reading.one(doors.database, reader, QuestionId(call.parameters["id"]))
    return Reply(shapes_of.whole(found, read))


async def read_answer(doors: Doors, call: Call) -> Reply:
    """Read how a question ended; never waits.  HEAD, and a person without a session, only look."""
    wanted = call.query(AnswerQuery)
    if wanted.session is None and call.bearer.role is not Role.PERSON:
        _given(wanted.session, "session")
    if wanted.session is not None:
        call.bearer.require(wanted.session)
    ending = await question_reading.read_answer(
        doors.database,
        doors.bell,
        Reader(wanted.session, call.bearer.sessions),
        QuestionId(call.parameters["id"]),
        recover=wanted.recover,
        look=call.request.method == b"HEAD",
    )
    return Reply(shapes_of.ending(ending))


async def history(doors: Doors, call: Call) -> Reply:
    """Tell what was done to a question, oldest first."""
    wanted = call.query(HistoryQuery)
    found = await question_reading.history(
        doors.database,
        _reader(call, wanted.session, wanted.scope),
        QuestionId(call.parameters["id"]),
        wanted.cursor,
        wanted.limit,
    )
    return Reply(shapes_of.history(found))


async def wait(doors: Doors, call: Call) -> Reply:
    """Wait until a question of the session has ended; the session is blocked meanwhile."""
    wanted = call.query(WaitQuery)
    who = call.body(SessionRequest)
    with doors.waiting.place(call.bearer, TOO_MANY):
        woken = await doors.unless_closed(
            Deferred.fromCoroutine(
                waiting_questions.wait(
                    doors.database,
                    doors.bell,
                    doors.reactor,
                    doors.questions,
                    Asker(who.session_id, who.instance_id),
                    wanted.wait,
                )
            ),
            waiting_questions.TIMEOUT,
        )
    return Reply(shapes_of.woken(woken))


async def log(doors: Doors, call: Call) -> Reply:
    """Give the log of decisions of one machine, for whoever wants to check its chain."""
    wanted = call.query(LogQuery)
    machine = doors.identity.machine_id if wanted.machine is None else MachineId(wanted.machine)
    found = await decision_log.page(doors.database, machine, wanted.after, wanted.limit)
    return Reply(shapes_of.log(*found))


def _seen(call: Call, wanted: OwnedRequest) -> tuple[Asker, Seen]:
    return (
        Asker(wanted.session_id, wanted.instance_id),
        Seen(QuestionId(call.parameters["id"]), wanted.expected_revision, wanted.expected_owner_revision),
    )


def _person(call: Call) -> Person:
    """Who answers: at this machine with its own key, or from elsewhere with another one."""
    return Person(call.bearer.name, "terminal" if call.bearer.own else "api", call.bearer.sessions)


def _reader(call: Call, session: SessionId | None, scope: str | None) -> Reader:
    """Who looks: a session sees its own questions, and more when it says so; a person sees all."""
    if session is not None:
        call.bearer.require(session)
    elif scope not in {None, Scope.GLOBAL} or (scope is None and call.bearer.role is not Role.PERSON):
        raise Refusal("invalid", "`session` is missing; or ask with `scope=global`", {"field": "session"})
    usual = Scope.GLOBAL if session is None else Scope.OWN
    return Reader(session, call.bearer.sessions, usual if scope is None else Scope(scope))


def _given(value: T | None, name: str) -> T:
    if value is None:
        raise Refusal("invalid", f"`{name}` is missing", {"field": name})
    return value
