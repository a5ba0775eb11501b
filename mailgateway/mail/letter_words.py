"""Our own words around what a session says: its state, how to answer, until when, what happens else.

One place for both bodies of a mail, so that they never say different things.
"""

from datetime import datetime, timedelta

from attrs import frozen

from mailgateway.mail.letter import Letter, LetterKind

HOW_TO_ANSWER = "How to answer"
OPTIONS = "Options"
OPTIONS_AGAIN = "or just reply in your own words"
OPTIONS_BY_REPLY = "Reply with a number, or in your own words"
RECOMMENDED = "recommended"
FROM_SESSION = "The session writes"
REPLY_TO_THIS = "Reply to this session"
MORE = "More from the session"
REST = "The rest"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@frozen
class State:
    """What kind of mail this is, by a word; ``dot`` names the colour that says it once more."""

    word: str
    dot: str


def state_of(letter: Letter) -> State | None:
    """What the first line begins with; ``None`` for our own words."""
    match letter.kind:
        case LetterKind.DECISION:
            return State("Needs you", "needs")
        case LetterKind.REMINDER:
            return State("Still needs you", "needs")
        case LetterKind.SETTLE:
            return State("Idle", "done")
        case LetterKind.NOTIFICATION | LetterKind.DIGEST:
            return State("News", "news")
        case LetterKind.ANSWER:
            return None


def who_line(letter: Letter) -> str:
    """Who speaks, after the state: the session, or the gateway itself."""
    if letter.kind is LetterKind.ANSWER:
        return " · ".join(each for each in ("mailgateway", letter.who.device) if each)
    return letter.who.line


def foot(letter: Letter, *, tappable: bool) -> tuple[str, ...]:
    """How to answer, until when, and what happens without an answer; each a sentence or two."""
    match letter.kind:
        case LetterKind.DECISION | LetterKind.REMINDER:
            return _foot_of_question(letter, tappable=tappable)
        case LetterKind.NOTIFICATION:
            lines = ["Reply to write to the session. No answer is needed."]
        case LetterKind.SETTLE:
            lines = ["The session has stopped working and does nothing more by itself. Reply to go on."]
        case LetterKind.DIGEST:
            if any(item.route for item in letter.items):
                return (
                    "No answer is needed. To write to a session, use the link or the tag below its words.",
                )
            lines = ["Reply to write to the session. No answer is needed."]
        case LetterKind.ANSWER:
            return ()
    if letter.expires_at is not None:
        lines.append(f"Replies arrive until {exact_time(letter.expires_at)}{_from(letter)}.")
    return tuple(lines)


def _foot_of_question(letter: Letter, *, tappable: bool) -> tuple[str, ...]:
    if not letter.options:
        how = "Reply in your own words."
    elif tappable and letter.multi:
        how = "Tap an option and send the mail that opens; for several, reply with numbers (such as 1, 2)."
    elif tappable:
        how = "Tap an option and send the mail that opens, or reply in your own words."
    elif letter.multi:
        how = "Reply with the numbers of your choice (such as 1, 2), or in your own words."
    else:
        how = "Reply with the number of an option, or in your own words."
    lines = [how]
    if letter.expires_at is not None:
        lines.append(f"You can answer until {exact_time(letter.expires_at)}{_from(letter)}.")
    lines.append("The session waits for you; without an answer it does not go on with this.")
    return tuple(lines)


def asked_line(letter: Letter) -> str:
    """Since when a question waits that is asked again."""
    if letter.asked_at is None:
        return ""
    ago = span(letter.date - letter.asked_at)
    return f"Asked {exact_time(letter.asked_at)}, {ago} ago, and not yet answered."


def exact_time(moment: datetime) -> str:
    """``Mon 7 Dec 2026, 10:00 UTC``: the same in every language of the machine."""
    day = f"{_DAYS[moment.weekday()]} {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
    return f"{day}, {moment:%H:%M} {moment.tzname() or ''}".rstrip()


def span(length: timedelta) -> str:
    """A length of time, roughly, for people."""
    minutes = max(0, round(length.total_seconds() / 60))
    for size, word in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= 2 * size or (minutes >= size and word != "day"):
            count = round(minutes / size)
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    return "a moment"


def _from(letter: Letter) -> str:
    left = timedelta(0) if letter.expires_at is None else letter.expires_at - letter.date
    return f" ({span(left)} from now)" if left > timedelta(0) else ""
