"""Pages are written here: templates, and how times, states and doors are put into words.

Everything that is not ours is escaped, and a name that is missing is an error and no empty place.
"""

from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mailgateway.domain.presence import Activity, Presence
from mailgateway.domain.question import QuestionStatus
from mailgateway.flows.inbox import From, Row

TEMPLATES = Path(__file__).parent.parent / "templates"

_DOORS = {
    "mail": "by mail",
    "web": "in the web inbox",
    "terminal": "in the terminal",
    "api": "by a program",
    "session": "by its session",
    "gateway": "",
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def ago(at: datetime, now: datetime) -> str:
    """How long ago, or in how long, in one word of size."""
    seconds = (now - at).total_seconds()
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            count = f"{abs(seconds) // size:.0f} {unit}"
            return f"{count} ago" if seconds > 0 else f"in {count}"
    return "just now" if seconds >= 0 else "in a moment"


def exact(at: datetime) -> str:
    """The whole time."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def state_of(asker: From) -> tuple[str, str]:
    """What a session does, by a word and by the dot that says it once more."""
    match asker.presence:
        case Presence.OFFLINE:
            return "Offline", "offline"
        case Presence.STALE:
            return "Silent", "offline"
        case Presence.LIVE | Presence.UNKNOWN:
            pass
    match asker.activity:
        case Activity.BLOCKED:
            return "Waits for you", "needs"
        case Activity.WORKING:
            return "Working", "working"
        case Activity.IDLE:
            return "Idle", "done"
        case Activity.UNKNOWN:
            return "Unknown", "offline"


def status_of(row: Row) -> tuple[str, str]:
    """Where a question stands, by a word and a dot."""
    match row.question.status:
        case QuestionStatus.OPEN | QuestionStatus.RESERVED:
            return "Needs you", "needs"
        case QuestionStatus.ANSWERED:
            return "Answered", "done"
        case QuestionStatus.CANCELLED:
            return "Cancelled", "offline"
        case QuestionStatus.EXPIRED:
            return "Expired", "offline"
        case QuestionStatus.SUPERSEDED:
            return "Replaced", "offline"


def by_whom(row: Row) -> str:
    """Who answered and by which door, as words behind "Answered"; ``""`` where nobody did."""
    won = row.answer
    if won is None:
        return ""
    person = f"by {won.by}" if "@" in won.by else ""
    return " ".join(each for each in (person, _DOORS.get(won.door, won.door)) if each)


def chosen(row: Row) -> list[str]:
    """The labels of what was chosen; words alone choose nothing."""
    if row.answer is None:
        return []
    labels = {each.value: each.label for each in row.question.options}
    return [labels.get(value, "In your own words") for value in row.answer.values]


def version_of(row: Row) -> str:
    """Tells whether what is shown of a question is still true."""
    question = row.question
    read = row.answer is not None and row.answer.read_at is not None
    return f"{question.status}-{question.revision}-{question.owner_revision}-{int(read)}"


def environment() -> Environment:
    """The templates, ready for use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        ago=ago,
        exact=exact,
        state=state_of,
        status=status_of,
        by_whom=by_whom,
        chosen=chosen,
        version=version_of,
    )
    return made
