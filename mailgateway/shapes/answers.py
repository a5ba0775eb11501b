"""What answers say: one frozen class for each shape of answer."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from attrs import field, frozen

from mailgateway.shapes.fields import Named


@frozen
class AccountState:
    """How one account goes; it bears no name here."""

    state: str
    since: datetime | None
    next_attempt_at: datetime | None
    remarks: tuple[str, ...] | None = None


@frozen
class LastScan:
    """What the last scan that examined a mail did; ``refused`` counts by verdict."""

    at: datetime
    examined: int
    routed: int
    refused: Mapping[str, int]


@frozen
class Health:
    """The service's state, without an address, a name or a word of anybody."""

    status: str
    version: str
    api_version: int
    capabilities: tuple[str, ...]
    instance: str
    mode: str
    pending: int
    registry: int
    sessions: int
    clients: int
    last_ping_at: datetime | None
    subscribers: int
    config_loaded_at: datetime
    last_scan: LastScan | None
    accounts: tuple[AccountState, ...]
    muted: int
    held: int
    withheld: int
    held_until: datetime | None = None
    proof: str | None = None


@frozen
class PresenceShape:
    """What a session learns from its ping."""

    mode: str
    pending: int


@frozen
class Mode:
    """The mode of this machine."""

    mode: str


@frozen
class LoginLink:
    """A link that logs a person in once: ``url``, or the address to which it was mailed."""

    expires_at: datetime
    url: str | None = field(default=None, repr=False)
    mailed_to: str | None = field(default=None, repr=False)


@frozen
class AttachmentShape:
    """A part of a mail that the claimant may fetch; ``size`` in bytes."""

    id: str
    filename: str = field(repr=False)
    content_type: str
    size: int


@frozen
class LeftOutShape:
    """A file of a mail that is not kept, and why; ``size`` in bytes."""

    filename: str = field(repr=False)
    content_type: str
    size: int
    reason: str


@frozen
class DeliveryShape:
    """One envelope on its way to its session."""

    id: str
    session_id: str
    kind: str
    trust: str
    state: str
    subject: str = field(repr=False)
    body: str = field(repr=False)
    rendered: str = field(repr=False)
    from_address: Annotated[str, Named("from")] = field(repr=False)
    from_name: str = field(repr=False)
    received_at: datetime
    attachments: tuple[AttachmentShape, ...]
    left_out: tuple[LeftOutShape, ...]
    device: str
    account: str | None
    folder: str | None
    uid: int | None
    uid_validity: int | None
    message_id: str
    route: str | None
    quoted: str | None = field(default=None, repr=False)
    in_reply_to: str | None = None
    question_id: str | None = None
    choice: str | None = field(default=None, repr=False)
    note: str | None = field(default=None, repr=False)
    lease_until: datetime | None = None


@frozen
class Pending:
    """Deliveries, oldest first."""

    deliveries: tuple[DeliveryShape, ...]


@frozen
class Sent:
    """What became of a mail that was asked for; ``held_until`` where it waits for its time."""

    message_id: str
    route: str
    subject: str = field(repr=False)
    outbox_id: str
    state: str
    question_id: str | None = None
    held_until: datetime | None = None


@frozen
class Recipient:
    """One address of a mail that leaves, and what its server said."""

    address: str = field(repr=False)
    state: str


@frozen
class OutboxRow:
    """How far a mail that leaves has come; ``carried_by`` is the mail that it left within, if any."""

    id: str
    kind: str
    session_id: str
    subject: str = field(repr=False)
    message_id: str
    created_at: datetime
    state: str
    attempts: int
    last_error: str
    recipients: tuple[Recipient, ...]
    next_attempt_at: datetime | None = None
    question_id: str | None = None
    held_until: datetime | None = None
    carried_by: str | None = None


@frozen
class Fate:
    """What became of one mail that concerns us."""

    received_at: datetime
    from_address: Annotated[str, Named("from")] = field(repr=False)
    subject: str = field(repr=False)
    verdict: str
    step: str
    reason: str
    delivery_id: str | None = None
    reply_id: str | None = None


@frozen
class Fates:
    """Fates, newest first."""

    fates: tuple[Fate, ...]


@frozen
class Reloaded:
    """When the settings in force were read; ``warning`` says why the old ones stay."""

    config_loaded_at: datetime
    warning: str | None = None
