"""The shapes of the answers: what the API's JSON holds, field for field."""

from typing import Any, Literal, NotRequired, TypedDict

Mode = Literal["on", "off"]


class AccountState(TypedDict):
    """One account in ``/health``; it bears no name there."""

    state: str
    since: str | None
    nextAttemptAt: str | None
    remarks: NotRequired[list[str]]


class LastScan(TypedDict):
    """What the last scan of the mailbox found; ``refused`` counts by verdict."""

    at: str
    examined: int
    routed: int
    refused: dict[str, int]


class Health(TypedDict):
    """``GET /health``."""

    status: str
    version: str
    apiVersion: int
    capabilities: list[str]
    instance: str
    mode: Mode
    pending: int
    registry: int
    sessions: int
    clients: int
    lastPingAt: str | None
    subscribers: int
    configLoadedAt: str
    lastScan: LastScan | None
    accounts: list[AccountState]
    muted: int
    held: int
    withheld: int
    heldUntil: NotRequired[str]
    proof: NotRequired[str | None]


class LoginLink(TypedDict):
    """``POST /logins``: the link, or the address to which it was mailed."""

    expiresAt: str
    url: NotRequired[str]
    mailedTo: NotRequired[str]


class Presence(TypedDict):
    """``POST /ping``."""

    mode: Mode
    pending: int


class Attachment(TypedDict):
    """A file that came with a mail; its bytes are fetched apart."""

    id: str
    filename: str
    contentType: str
    size: int


class LeftOut(TypedDict):
    """A file of a mail that is not kept, and why."""

    filename: str
    contentType: str
    size: int
    reason: str


Delivery = TypedDict(
    "Delivery",
    {
        "id": str,
        "sessionId": str,
        "kind": str,
        "subject": str,
        "body": str,
        "quoted": NotRequired[str | None],
        "rendered": str,
        "from": str,
        "fromName": str,
        "receivedAt": str,
        "attachments": list[Attachment],
        "leftOut": list[LeftOut],
        "route": str | None,
        "device": str,
        "account": str | None,
        "folder": str | None,
        "uid": int | None,
        "uidValidity": int | None,
        "messageId": str,
        "inReplyTo": NotRequired[str | None],
        "questionId": NotRequired[str | None],
        "choice": NotRequired[str | None],
        "note": NotRequired[str | None],
        "state": Literal["new", "claimed"],
        "trust": str,
        "leaseUntil": NotRequired[str | None],
    },
)
"""One envelope as a session receives it."""


class Sent(TypedDict):
    """``POST /send``."""

    messageId: str
    route: str
    subject: str
    outboxId: str
    questionId: NotRequired[str | None]
    state: Literal["sent", "queued"]
    heldUntil: NotRequired[str]


class Recipient(TypedDict):
    """One recipient of a mail on its way."""

    address: str
    state: str


class Outbox(TypedDict):
    """``GET /outbox/{id}``."""

    id: str
    kind: str
    sessionId: str
    subject: str
    messageId: str
    createdAt: str
    nextAttemptAt: NotRequired[str | None]
    questionId: NotRequired[str | None]
    state: str
    attempts: int
    lastError: str
    recipients: list[Recipient]
    heldUntil: NotRequired[str]
    carriedBy: NotRequired[str]


class OutboxPage(TypedDict):
    """``GET /outbox``: the last submitted first."""

    mails: list[Outbox]
    nextCursor: NotRequired[str | None]


class Reloaded(TypedDict):
    """``POST /reload``; with ``warning`` the old settings stay."""

    configLoadedAt: str
    warning: NotRequired[str | None]


Fate = TypedDict(
    "Fate",
    {
        "receivedAt": str,
        "from": str,
        "subject": str,
        "verdict": str,
        "step": str,
        "reason": str,
        "deliveryId": NotRequired[str | None],
        "replyId": NotRequired[str | None],
    },
)
"""What became of one mail that concerns us."""


class Event(TypedDict):
    """One event of the stream: a hint to read the tables, never the thing itself."""

    id: str
    event: str
    data: Any


class QuestionLine(TypedDict):
    """One question of a list."""

    questionId: str
    revision: int
    ownerRevision: int
    status: str
    owner: str
    kind: str
    subject: str
    mode: str
    urgency: str
    createdAt: str
    parentQuestionId: NotRequired[str]
    expiresAt: NotRequired[str]
    resolvedAt: NotRequired[str]
    read: NotRequired[bool]


class Option(TypedDict):
    """One answer to choose."""

    value: str
    label: str
    description: str
    impact: str
    preview: str


class Question(QuestionLine):
    """``GET /questions/{id}``."""

    creator: str
    prompt: str
    ambiguity: str
    options: list[Option]
    source: dict[str, str]
    recommendation: NotRequired[str]
    replacementQuestionId: NotRequired[str]
    note: NotRequired[str]
    answerId: NotRequired[str]
    answer: NotRequired[list[str]]
