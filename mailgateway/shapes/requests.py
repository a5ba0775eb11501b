"""What requests say: bodies, queries and headers of every route of the core."""

from datetime import datetime
from typing import Annotated

from attrs import field, frozen

from mailgateway.contract import LONGEST_WAIT
from mailgateway.errors import Refusal
from mailgateway.ids import AttachmentId, InstanceId, SessionId
from mailgateway.shapes.fields import Named
from mailgateway.shapes.kinds import (
    FLAG,
    ID,
    TIME,
    choice_kind,
    line_kind,
    list_kind,
    real_kind,
    seconds_kind,
    text_kind,
    whole_kind,
)

LONGEST_TEXT = 1_000_000
LARGEST_UID = 2**32 - 1

PLACE = line_kind(4096)
LABEL = line_kind(500)


@frozen
class Nothing:
    """A body without fields; it may also be absent."""


@frozen
class NoQuery:
    """A query string without parameters."""


@frozen
class SessionRequest:
    """A session and the running instance that speaks for it."""

    session_id: Annotated[SessionId, ID]
    instance_id: Annotated[InstanceId, ID]


@frozen
class PingRequest:
    """A session says that it lives, and what it is about; absent fields keep what is known."""

    session_id: Annotated[SessionId, ID]
    instance_id: Annotated[InstanceId, ID]
    harness: Annotated[str, line_kind(64)] = ""
    title: Annotated[str, LABEL] = field(default="", repr=False)
    cwd: Annotated[str, PLACE] = ""
    project: Annotated[str, LABEL] = ""
    branch: Annotated[str, LABEL] = ""
    worktree: Annotated[str, PLACE] = ""
    head: Annotated[str, line_kind(64)] = ""
    dirty: Annotated[bool | None, FLAG] = None
    state: Annotated[str | None, choice_kind("working", "blocked", "idle")] = None


@frozen
class SettleRequest:
    """A session's turn is over; ``aborted`` when a person or an error ended it."""

    session_id: Annotated[SessionId, ID]
    instance_id: Annotated[InstanceId, ID]
    summary: Annotated[str, text_kind(100_000)] = field(repr=False)
    aborted: Annotated[bool, FLAG] = False


@frozen
class TargetRequest:
    """Which delivery, and who acts: ``id`` (or the beginning of one), or the mail's place."""

    instance_id: Annotated[InstanceId, ID]
    id: Annotated[str | None, line_kind(64, 1)] = None
    uid: Annotated[int | None, whole_kind(1, LARGEST_UID)] = None
    uid_validity: Annotated[int | None, whole_kind(0, LARGEST_UID)] = None
    account: Annotated[str | None, line_kind(255, 1)] = None
    folder: Annotated[str | None, line_kind(255, 1)] = None
    pid: Annotated[int | None, whole_kind(1, 2**31 - 1)] = None
    process_started_at: Annotated[float | None, real_kind(0, 1e15)] = None

    def __attrs_post_init__(self) -> None:
        if (self.id is None) == (self.uid is None):
            raise Refusal(
                "invalid", "name the delivery by `id` or by `uid`, and not by both", {"field": "id"}
            )


@frozen
class ModeRequest:
    """What the machine's mode shall be."""

    mode: Annotated[str, choice_kind("on", "off")]


@frozen
class SendBody:
    """One mail to the person: a notification, a settle, or a decision that waits for an answer."""

    kind: Annotated[str, choice_kind("notification", "settle", "decision")]
    session_id: Annotated[SessionId, ID]
    subject: Annotated[str, line_kind(998)] = field(repr=False)
    text: Annotated[str, text_kind(LONGEST_TEXT)] = field(repr=False)
    options: Annotated[tuple[str, ...], list_kind(line_kind(500, 1), 50)] = field(default=(), repr=False)
    recommendation: Annotated[str, text_kind(10_000)] = field(default="", repr=False)
    attachments: Annotated[tuple[AttachmentId, ...], list_kind(ID, 20)] = ()
    idempotency_key: Annotated[str | None, ID] = None


@frozen
class PendingQuery:
    """Which deliveries, and how long to wait for one, in seconds."""

    session: Annotated[SessionId | None, ID] = None
    kind: Annotated[str | None, choice_kind("user", "peer", "channel", "notice", "answer")] = None
    wait: Annotated[float, seconds_kind(LONGEST_WAIT)] = 0.0


@frozen
class EventsQuery:
    """Whose events; absent: all that the key may see."""

    session: Annotated[SessionId | None, ID] = None


@frozen
class HealthQuery:
    """A challenge of the client's making, by whose proof it knows that we hold the key."""

    challenge: Annotated[str | None, line_kind(128, 1)] = None

    def __attrs_post_init__(self) -> None:
        if self.challenge is not None and not self.challenge.isascii():
            raise Refusal("invalid", "`challenge` must be ASCII", {"field": "challenge"})


@frozen
class InboundQuery:
    """Since when fates are asked for; absent: all that are kept."""

    since: Annotated[datetime | None, TIME] = None


@frozen
class UploadHeaders:
    """The header fields of an upload: whose it is, and how the file is called."""

    x_session_id: Annotated[SessionId, ID, Named("X-Session-Id")]
    x_filename: Annotated[str, line_kind(255, 1), Named("X-Filename")] = field(repr=False)


@frozen
class ClaimantHeaders:
    """The header field of a fetch: the instance that claimed the delivery."""

    x_instance_id: Annotated[InstanceId, ID, Named("X-Instance-Id")]
