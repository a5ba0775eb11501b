"""Envelope: one message filed for one session, whatever door it came by.

A person's reply, an answer to a decision, a peer's message and a notice are all envelopes with one life
(``domain.delivery``).  The text that an agent reads is rendered here and nowhere else, so that the HTTP
API, the command line and every other door show the same.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from mailgateway.domain.delivery import DeliveryState
from mailgateway.ids import AccountName, EnvelopeId, InstanceId, MachineId, QuestionId, RouteId, SessionId
from mailgateway.mail.attachments import Reason


class EnvelopeKind(StrEnum):
    """What an envelope is."""

    USER = "user"
    """A person's words, also the reply to a decision."""
    PEER = "peer"
    """Another session's message."""
    CHANNEL = "channel"
    """From a person or machine that is not an owner."""
    NOTICE = "notice"
    """Automatic: an answer is available, a delivery failed."""
    ANSWER = "answer"
    """The record of a session's final text; never delivered."""


class Trust(StrEnum):
    """How far an agent may follow what it reads."""

    OWNER = "owner"
    CHANNEL = "channel"
    PEER = "peer"
    SYSTEM = "system"


@frozen
class Source:
    """Where a mail lies: the only names that no sender chooses (RFC 9051, section 2.3.1.1)."""

    account: AccountName
    folder: str
    uid_validity: int
    uid: int


@frozen
class AttachmentInfo:
    """One file that came with a mail; ``size`` in bytes.

    A claimant may fetch it, unless ``left_out`` says why it is only named.
    """

    id: str
    filename: str
    content_type: str
    size: int
    left_out: str = ""


@frozen
class Envelope:
    """One filed message with the state of its delivery."""

    id: EnvelopeId
    kind: EnvelopeKind
    trust: Trust
    session_id: SessionId
    machine_id: MachineId | None
    subject: str = field(repr=False)
    body: str = field(repr=False)
    quoted: str = field(repr=False)
    from_address: str = field(repr=False)
    from_name: str = field(repr=False)
    received_at: datetime
    state: DeliveryState = DeliveryState.NEW
    claimant: InstanceId | None = None
    lease_until: datetime | None = None
    route_id: RouteId | None = None
    device: str = ""
    source: Source | None = None
    message_id: str = ""
    in_reply_to: str = ""
    question_id: QuestionId | None = None
    choice: str | None = field(default=None, repr=False)
    note: str | None = field(default=None, repr=False)
    attachments: tuple[AttachmentInfo, ...] = ()

    @property
    def kept(self) -> tuple[AttachmentInfo, ...]:
        """The files that a claimant may fetch."""
        return tuple(each for each in self.attachments if not each.left_out)

    @property
    def left_out(self) -> tuple[AttachmentInfo, ...]:
        """The files that are only named."""
        return tuple(each for each in self.attachments if each.left_out)


LEFT_OUT: Mapping[str, str] = {
    Reason.TOO_MANY: "the mail has too many files",
    Reason.PROGRAM: "programs are not kept",
    Reason.DECORATION: "it belongs to the look of the mail",
    Reason.SESSION_FULL: "too many files are kept for this session",
}
"""Why a file is only named, in words."""


def rendered(envelope: Envelope) -> str:
    """The text that an agent reads: who speaks and how far to trust it, then the words, then what hangs on.

    The frame is ours and comes first, so that words of the mail cannot pretend to be it: every line of the
    frame stands before the first empty line.
    """
    sender = envelope.from_name or envelope.from_address or "mailgateway"
    address = f"<{envelope.from_address}>" if envelope.from_name and envelope.from_address else ""
    lines = [
        f"Message {envelope.id} ({envelope.kind}, trust: {envelope.trust})",
        f"From: {_one_line(f'{sender} {address}')}",
        f"Received: {envelope.received_at:%Y-%m-%d %H:%M:%S} UTC",
    ]
    if envelope.subject:
        lines.append(f"Subject: {_one_line(envelope.subject)}")
    if envelope.choice is not None:
        lines.append(f"Choice: {_one_line(envelope.choice)}")
    lines += [
        f"Attachment {part.id}: {_one_line(part.filename)} ({part.content_type}, {part.size} bytes)"
        for part in envelope.kept
    ]
    lines += [
        f"Not kept: {_one_line(part.filename)} ({part.content_type}, {part.size} bytes): "
        f"{LEFT_OUT.get(part.left_out, part.left_out)}"
        for part in envelope.left_out
        if part.left_out != Reason.DECORATION
    ]
    return "\n".join([*lines, "", envelope.body])


def _one_line(text: str) -> str:
    return " ".join(text.split())
