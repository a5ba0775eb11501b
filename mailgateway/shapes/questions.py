"""Questions, as requests ask them: asked, changed, answered, listed and waited for."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from attrs import AttrsInstance, field, frozen

from mailgateway.contract import LONGEST_WAIT
from mailgateway.errors import Refusal
from mailgateway.ids import InstanceId, QuestionId, SessionId
from mailgateway.shapes.fields import read, schema
from mailgateway.shapes.kinds import (
    ID,
    TIME,
    Kind,
    Wrong,
    choice_kind,
    line_kind,
    list_kind,
    seconds_kind,
    text_kind,
    whole_kind,
)

SHORT = 2_000
LONG = 128_000
MOST_OPTIONS = 20
MOST_ITEMS = 50
MOST_ON_PAGE = 100
USUAL_ON_PAGE = 25
LONGEST_CURSOR = 1_024
MOST_ENTRIES = 500
LARGEST_REVISION = 2**31 - 1


def filled_kind(longest: int) -> Kind:
    """Text of any lines that says something."""
    text = text_kind(longest, 1)

    def check(value: Any) -> str:
        found: str = text.check(value)
        if not found.strip():
            raise Wrong("must not be blank")
        return found

    return Kind(check, text.schema)


def filled_line_kind(longest: int) -> Kind:
    """One line that says something."""
    line = line_kind(longest, 1)

    def check(value: Any) -> str:
        found: str = line.check(value)
        if found.isspace():
            raise Wrong("must not be blank")
        return found

    return Kind(check, line.schema)


def object_kind(made: type[AttrsInstance]) -> Kind:
    """An object inside of a request."""

    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Wrong("must hold objects")
        try:
            return read(made, value)
        except Refusal as refusal:
            raise Wrong(f"holds an object in which {refusal.message}") from None

    return Kind(check, schema(made))


def count_kind(low: int, high: int) -> Kind:
    """A whole number in a query string."""

    def check(value: Any) -> int:
        digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 16
        if not digits or not low <= int(value) <= high:
            raise Wrong(f"must be a whole number from {low} to {high}")
        return int(value)

    return Kind(check, {"type": "integer", "minimum": low, "maximum": high})


def word_kind() -> Kind:
    """A truth value in a query string."""

    def check(value: Any) -> bool:
        if value not in {"true", "false"}:
            raise Wrong("must be true or false")
        return bool(value == "true")

    return Kind(check, {"type": "boolean"})


REVISION = whole_kind(1, LARGEST_REVISION)
PROMPT = filled_kind(LONG)
NAME = line_kind(64, 1)
NOTE = text_kind(LONG)
SCOPE = choice_kind("own", "feature", "worktree", "repository", "global")
STATUS = choice_kind("pending", "answered", "cancelled", "expired", "superseded")
CURSOR = line_kind(LONGEST_CURSOR, 1)


@frozen
class OptionShape:
    """One answer to choose: its value for programs, its label for people."""

    value: Annotated[str, filled_line_kind(200)] = field(repr=False)
    label: Annotated[str, filled_kind(SHORT)] = field(repr=False)
    description: Annotated[str, text_kind(SHORT)] = field(default="", repr=False)
    impact: Annotated[str, text_kind(SHORT)] = field(default="", repr=False)
    preview: Annotated[str, text_kind(LONG)] = field(default="", repr=False)


@frozen
class SourceShape:
    """Where in the session's own record a question is asked."""

    path: Annotated[str, line_kind(4096)] = field(default="", repr=False)
    leaf: Annotated[str, line_kind(255)] = ""


OPTIONS = list_kind(object_kind(OptionShape), MOST_OPTIONS)
SOURCE = object_kind(SourceShape)
MODE = choice_kind("single", "multi")
URGENCY = choice_kind("low", "normal", "high")
REQUEST_ID = filled_line_kind(200)


def _distinct(options: tuple[OptionShape, ...]) -> None:
    """Refuse options that no answer could tell apart."""
    if not options:
        raise Refusal("invalid", "`options` must hold at least one option", {"field": "options"})
    if len({each.value for each in options}) != len(options):
        raise Refusal("invalid", "`options` holds a value twice", {"field": "options"})


@frozen
class QuestionRequest:
    """A question to be asked of the person, with the uncertainty that its answer is to resolve."""

    session_id: Annotated[SessionId, ID]
    instance_id: Annotated[InstanceId, ID]
    prompt: Annotated[str, PROMPT] = field(repr=False)
    ambiguity: Annotated[str, PROMPT] = field(repr=False)
    options: Annotated[tuple[OptionShape, ...], OPTIONS] = field(repr=False)
    mode: Annotated[str, MODE] = "single"
    request_id: Annotated[str | None, REQUEST_ID] = None
    parent_question_id: Annotated[QuestionId | None, NAME] = None
    urgency: Annotated[str, URGENCY] = "normal"
    expires_at: Annotated[datetime | None, TIME] = None
    source: Annotated[SourceShape, SOURCE] = SourceShape()

    def __attrs_post_init__(self) -> None:
        _distinct(self.options)


@frozen
class ItemRequest:
    """One question of a batch; ``parentLocalRef`` is the ``localRef`` of an item before it."""

    prompt: Annotated[str, PROMPT] = field(repr=False)
    ambiguity: Annotated[str, PROMPT] = field(repr=False)
    options: Annotated[tuple[OptionShape, ...], OPTIONS] = field(repr=False)
    local_ref: Annotated[str, filled_line_kind(200)]
    mode: Annotated[str, MODE] = "single"
    request_id: Annotated[str | None, REQUEST_ID] = None
    parent_question_id: Annotated[QuestionId | None, NAME] = None
    parent_local_ref: Annotated[str | None, filled_line_kind(200)] = None
    urgency: Annotated[str, URGENCY] = "normal"
    expires_at: Annotated[datetime | None, TIME] = None
    source: Annotated[SourceShape, SOURCE] = SourceShape()

    def __attrs_post_init__(self) -> None:
        _distinct(self.options)


def _item(value: Any) -> ItemRequest | Mapping[str, Any]:
    """An item that can be read, or what stands in its place: it is refused alone, not with all others."""
    if not isinstance(value, dict):
        raise Wrong("must hold objects")
    try:
        return read(ItemRequest, value)
    except Refusal as refusal:
        reference = value.get("localRef")
        return {"localRef": reference if isinstance(reference, str) else "", "refusal": refusal}


ITEM = Kind(_item, schema(ItemRequest))


@frozen
class BatchRequest:
    """Questions to be asked in their order, up to the first that is refused."""

    session_id: Annotated[SessionId, ID]
    instance_id: Annotated[InstanceId, ID]
    items: Annotated[tuple[Any, ...], list_kind(ITEM, MOST_ITEMS)] = field(repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.items:
            raise Refusal("invalid", "`items` must hold at least one question", {"field": "items"})


@frozen(kw_only=True)
class OwnedRequest:
    """A question of the session's own, as it has seen it."""

    session_id: Annotated[SessionId, ID]
    instance_id: Annotated[InstanceId, ID]
    expected_revision: Annotated[int, REVISION]
    expected_owner_revision: Annotated[int, REVISION]


@frozen(kw_only=True)
class ReviseRequest(OwnedRequest):
    """A question with a new text, as a whole: what is left out is not kept."""

    prompt: Annotated[str, PROMPT] = field(repr=False)
    ambiguity: Annotated[str, PROMPT] = field(repr=False)
    options: Annotated[tuple[OptionShape, ...], OPTIONS] = field(repr=False)
    mode: Annotated[str, MODE] = "single"
    urgency: Annotated[str, URGENCY] = "normal"

    def __attrs_post_init__(self) -> None:
        _distinct(self.options)


@frozen(kw_only=True)
class CancelRequest:
    """A question that needs no answer: by its owner, as seen; by a person, who names the revision alone."""

    expected_revision: Annotated[int, REVISION]
    session_id: Annotated[SessionId | None, ID] = None
    instance_id: Annotated[InstanceId | None, ID] = None
    expected_owner_revision: Annotated[int | None, REVISION] = None
    note: Annotated[str | None, NOTE] = field(default=None, repr=False)


@frozen(kw_only=True)
class SupersedeRequest(OwnedRequest):
    """A question in whose place another one stands."""

    replacement_question_id: Annotated[QuestionId, NAME]


@frozen(kw_only=True)
class ReparentRequest(OwnedRequest):
    """A question that is to stand below another one; absent: below none."""

    parent_question_id: Annotated[QuestionId | None, NAME] = None


@frozen(kw_only=True)
class TransferRequest(OwnedRequest):
    """A question that another session is to own."""

    expected_owner: Annotated[SessionId, ID]
    owner: Annotated[SessionId, ID]


@frozen(kw_only=True)
class TakeoverRequest(OwnedRequest):
    """A question of an owner that is offline, which the session is to own."""

    expected_owner: Annotated[SessionId, ID]


@frozen
class AnswerRequest:
    """A person's answer to a question, as it was shown."""

    expected_revision: Annotated[int, REVISION]
    selected_values: Annotated[tuple[str, ...], list_kind(line_kind(500, 1), MOST_OPTIONS + 1)] = field(
        repr=False
    )
    note: Annotated[str | None, NOTE] = field(default=None, repr=False)


@frozen
class QuestionsQuery:
    """Which questions, from whose place, and where the page begins."""

    session: Annotated[SessionId | None, ID] = None
    scope: Annotated[str | None, SCOPE] = None
    status: Annotated[str | None, STATUS] = None
    read: Annotated[bool | None, word_kind()] = None
    cursor: Annotated[str | None, CURSOR] = None
    limit: Annotated[int, count_kind(1, MOST_ON_PAGE)] = USUAL_ON_PAGE


@frozen
class QuestionQuery:
    """From whose place one question is looked at."""

    session: Annotated[SessionId | None, ID] = None
    scope: Annotated[str | None, SCOPE] = None


@frozen
class HistoryQuery:
    """From whose place a history is looked at, and where the page begins."""

    session: Annotated[SessionId | None, ID] = None
    scope: Annotated[str | None, SCOPE] = None
    cursor: Annotated[str | None, CURSOR] = None
    limit: Annotated[int, count_kind(1, MOST_ON_PAGE)] = USUAL_ON_PAGE


@frozen
class AnswerQuery:
    """Who reads an answer; ``recover`` in place of an owner that is offline."""

    session: Annotated[SessionId | None, ID] = None
    recover: Annotated[bool, word_kind()] = False


@frozen
class WaitQuery:
    """How long to wait, in seconds."""

    wait: Annotated[float, seconds_kind(LONGEST_WAIT)] = float(LONGEST_WAIT)


@frozen
class LogQuery:
    """Which machine's log of decisions, and after which number; absent: that of the service's own machine."""

    machine: Annotated[str | None, ID] = None
    after: Annotated[int, count_kind(0, 10**15)] = 0
    limit: Annotated[int, count_kind(1, MOST_ENTRIES)] = MOST_ENTRIES
