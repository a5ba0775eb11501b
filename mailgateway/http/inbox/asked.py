"""Questions on people's pages: the queue, one card, its answer, and what has ended."""

from mailgateway.domain.question import OTHER, AnswerMode, Question, QuestionKind, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows import inbox as flow
from mailgateway.flows import question_answers, question_updates
from mailgateway.flows.question_updates import Person
from mailgateway.http.inbox.house import House, me
from mailgateway.http.inbox.visit import Page, Visit, see_other
from mailgateway.ids import QuestionId

LONGEST_NOTE = 10_000
RANDOM_BYTES = 12

CHANGED = "The question has changed meanwhile. Your note is kept; read the new text and choose again."
CHOOSE = "Choose one of the options, or write a note that says what you want."
SAY = "Write what you want to say."
SAY_WHAT = "Say in the note what you want instead."
NONE = "That is none of the options. Choose one of them."
ONE = "Choose one of the options; this question takes only one."
ODD = "This form is not as the page was; here it is anew. Choose again."
TOO_LONG = f"The note is too long: {LONGEST_NOTE} characters are taken."


async def queue(house: House, visit: Visit) -> Page:  # noqa: ARG001 (every page has the same signature)
    """What waits."""
    doors = house.doors
    found = await flow.queue(doors.database, doors.identity.machine_id, house.waits)
    return house.page("queue.html", here="/inbox", queue=found, now=found.now)


async def to_queue(house: House, visit: Visit) -> Page:  # noqa: ARG001 (as above)
    """The queue, as people may type its address."""
    return see_other("/inbox")


async def row(house: House, visit: Visit) -> Page:
    """One line of the queue, for the script that keeps it up to date."""
    found, now = await flow.row(house.doors.database, house.waits, QuestionId(visit.parts["id"]))
    return house.page("row.html", row=found, now=now)


async def card(house: House, visit: Visit) -> Page:
    """One question."""
    return await _card(house, visit)


async def _card(
    house: House,
    visit: Visit,
    *,
    notice: str = "",
    note: str = "",
    picked: tuple[str, ...] = (),
    status: int = 200,
) -> Page:
    found = await flow.card(house.doors.database, house.waits, QuestionId(visit.parts["id"]))
    question = found.row.question
    named = {each for option in question.options for each in (option.value, option.label)}
    return house.page(
        "card.html",
        status=status,
        here="/inbox/questions",
        card=found,
        now=found.now,
        text=found.text,
        ambiguity=found.ambiguity,
        below=bool(found.ambiguity) and not question.subject.endswith("…"),
        multi=question.mode is AnswerMode.MULTI,
        own_words=all(option.value != OTHER for option in question.options),
        recommended=question.recommendation in named,
        notice=notice,
        note=note,
        picked=picked,
        token=visit.token,
    )


async def answer(house: House, visit: Visit) -> Page:
    """Answer a question or end it, if nobody was faster; who was slower sees who was first."""
    doors = house.doors
    question_id = QuestionId(visit.parts["id"])
    note = visit.field("note").strip()
    picked = tuple(dict.fromkeys(visit.form.get("choice", [])))[:50]
    revision = visit.field("revision")
    person = Person(me(visit).person, "web")
    there = f"/inbox/questions/{question_id}"
    try:
        if len(note) > LONGEST_NOTE:
            raise Refusal("invalid_selection", TOO_LONG)
        act = visit.field("act")
        if act not in {"answer", "cancel"} or not (
            revision.isascii() and revision.isdigit() and len(revision) < 10
        ):
            raise Refusal("invalid_selection", ODD)
        if act == "cancel":
            await question_updates.cancel_by_person(
                doors.database, doors.bell, person, question_id, int(revision), note or None
            )
            return see_other(there)
        question = (await flow.row(doors.database, house.waits, question_id))[0].question
        seen = question.status is QuestionStatus.OPEN and question.revision == int(revision)
        values = _values(question, picked, note) if seen else picked
        await question_answers.answer(
            doors.database,
            doors.bell,
            person,
            question_id,
            int(revision),
            values,
            note or None,
            doors.mint(RANDOM_BYTES),
        )
    except Refusal as refusal:
        match refusal.code:
            case "stale_revision":
                return await _card(house, visit, notice=CHANGED, note=note, status=409)
            case "already_resolved" | "question_terminal":
                return await _late(house, visit, note, picked)
            case "invalid_selection":
                return await _card(house, visit, notice=refusal.message, note=note, picked=picked, status=400)
            case _:
                raise
    return see_other(there)


def _values(question: Question, picked: tuple[str, ...], note: str) -> tuple[str, ...]:
    """The values that are meant; ``Refusal("invalid_selection")`` in words for people."""
    if not question.options and question.kind is QuestionKind.DECISION:
        if not note:
            raise Refusal("invalid_selection", SAY)
        return ()
    if not picked and not note:
        raise Refusal("invalid_selection", CHOOSE if question.options else SAY)
    values = picked or (OTHER,)
    if len(values) > 1 and question.mode is AnswerMode.SINGLE:
        raise Refusal("invalid_selection", ONE)
    known = {option.value for option in question.options}
    if not known.issuperset(set(values) - {OTHER}):
        raise Refusal("invalid_selection", NONE)
    if OTHER in values and OTHER not in known and not note:
        raise Refusal("invalid_selection", SAY_WHAT)
    return values


async def _late(house: House, visit: Visit, note: str, picked: tuple[str, ...]) -> Page:
    """Somebody was faster; or it was this very answer, sent twice."""
    found = await flow.row(house.doors.database, house.waits, QuestionId(visit.parts["id"]))
    won = found[0].answer
    same = (
        won is not None
        and won.door == "web"
        and won.by == me(visit).person
        and (won.note or "") == note
        and (won.values == picked or not picked)
    )
    if same:
        return see_other(f"/inbox/questions/{visit.parts['id']}")
    notice = "This was answered before yours came." if won is not None else "This question is over."
    return await _card(house, visit, notice=notice, note=note, status=409)


async def history(house: House, visit: Visit) -> Page:
    """What has ended, and the search in it."""
    words = visit.asked("q")[:200].strip()
    wanted = visit.asked("status") or "answered"
    status = next((each for each in flow.ENDED if each.value == wanted), None)
    if status is None:
        raise Refusal("invalid", "there is no such list; go back and try again")
    found = await flow.history(
        house.doors.database, house.waits, status, words, visit.asked("cursor") or None
    )
    return house.page(
        "history.html", here="/inbox/history", found=found, now=found.now, words=words, ending=status.value
    )
