"""From a session's request to a mail that is ready to be queued: all that is slow, before the transaction.

Composing renders Markdown and encodes files, so it happens in a reading transaction, which keeps no writer
waiting.  Nothing is decided here that another submission could change: a route id that somebody takes
meanwhile is noticed when the mail is placed.
"""

import hashlib
import json
import mimetypes
from collections.abc import Callable
from datetime import datetime, timedelta

from attrs import field, frozen

from mailgateway.contract import FILES_OF_A_MAIL
from mailgateway.domain.attention import ALWAYS, Attention
from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import MailKind
from mailgateway.errors import Refusal
from mailgateway.flows.secret_text import refuse_secrets
from mailgateway.ids import (
    AccountName,
    AttachmentId,
    MessageId,
    OutboxId,
    QuestionId,
    RouteId,
    SessionId,
    machine_digest,
)
from mailgateway.mail.compose import Composed, compose, usable_ids
from mailgateway.mail.letter import Enclosure, Letter, LetterKind, Offer, Who
from mailgateway.mail.secret_text import Guard
from mailgateway.mail.tag import own_message_id, plus_address
from mailgateway.store import questions, routes, sessions, threads, uploads
from mailgateway.store.database import Tx

Mint = Callable[[int], bytes]
"""So many fresh random bytes."""

ReadUpload = Callable[[str], bytes]
"""The bytes of an uploaded file, by the path in its row; ``OSError`` when it is gone.

Called on a database thread.
"""

ATTACHMENTS_LIMIT = FILES_OF_A_MAIL
"""All files of one mail, in octets: encoded they stay below the 25 MB that providers take."""

ANCESTORS = 10
"""So many of the session's earlier mails are named in References."""

LONG_ROUTES = 4

NO_ROUTE = RouteId("000000")
"""Stands in the Message-ID of an answer that has no route; such a Message-ID leads nowhere."""


@frozen(kw_only=True)
class Sender:
    """The account that sends, and what the settings say about sending.

    ``domain`` is that of the account's address; ``recipient`` the person who is notified; ``tag`` the word
    in front of the route in a subject; ``budget_per_minute`` bounds notifications; ``attention`` says which
    of it has to wait.

    ``plus`` says that ``local+route@domain`` reaches the account, ``one_tap`` that a person's mail is
    believed that is no reply; ``public_url`` is where people reach the web inbox (``""``: nowhere).
    """

    account: AccountName
    address: str
    from_name: str
    domain: str
    tag: str
    recipient: str
    budget_per_minute: int
    route_ttl: timedelta
    attention: Attention = ALWAYS
    guard: Guard = field(factory=Guard, eq=False, repr=False)
    """The secrets that must not leave."""
    plus: bool = False
    one_tap: bool = True
    public_url: str = ""

    def reply_address(self, route_id: RouteId) -> str:
        """Where replies to a mail with this route go."""
        return plus_address(self.address, route_id) if self.plus else self.address

    def card_url(self, question_id: QuestionId) -> str:
        """Where people see a question in the web inbox; a GET changes nothing there.  Else ``""``."""
        base = self.public_url.rstrip("/")
        return f"{base}/inbox/questions/{question_id}" if base else ""


@frozen(kw_only=True)
class SendRequest:
    """What a session wants to say.  ``text`` is Markdown; ``options`` and ``recommendation`` of a decision.

    ``idempotency_key`` names the submission within its session: the same key sends one mail.  ``by`` is the
    name of the key that it came with, whose budget it counts against.
    """

    kind: MailKind
    session: SessionId
    subject: str = field(repr=False)
    text: str = field(repr=False)
    options: tuple[str, ...] = field(default=(), repr=False)
    recommendation: str = field(default="", repr=False)
    attachments: tuple[AttachmentId, ...] = ()
    idempotency_key: str | None = None
    by: str = ""

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """All that is said, each part with its name."""
        options = (("options", option) for option in self.options)
        parts = ("subject", self.subject), ("text", self.text), ("recommendation", self.recommendation)
        return (*parts, *options)

    @property
    def digest(self) -> str:
        """SHA-256 of all that is said, in hex: tells whether a repeated key says the same."""
        content = [
            self.kind.value,
            self.subject,
            self.text,
            list(self.options),
            self.recommendation,
            list(self.attachments),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


@frozen(kw_only=True)
class Answer:
    """What the gateway itself says to a person, in the thread of the person's mail.

    ``recipient`` is the address that was verified, never a Reply-To.  ``route_id`` is where a reply to the
    answer goes, ``None``: nowhere; it stands in the subject when ``tagged``.  ``text`` is Markdown.
    """

    recipient: str
    subject: str = field(repr=False)
    text: str = field(repr=False)
    route_id: RouteId | None = None
    tagged: bool = True
    in_reply_to: MessageId | None = None
    references: tuple[MessageId, ...] = ()
    expires_at: datetime
    """Until when a reply to the answer is recognised."""


@frozen
class Chance:
    """The random parts of one mail, drawn before its transaction."""

    outbox_id: OutboxId
    question_id: QuestionId
    message: bytes
    routes: tuple[RouteId, ...]
    """The first has 6 hex digits, the others, for when it is taken, 8."""

    @classmethod
    def draw(cls, mint: Mint) -> "Chance":
        """Draw them."""
        return cls(
            outbox_id=OutboxId("o-" + mint(12).hex()),
            question_id=QuestionId("q-" + mint(12).hex()),
            message=mint(8),
            routes=tuple(RouteId(mint(size).hex()) for size in (3, *[4] * LONG_ROUTES)),
        )


@frozen(kw_only=True)
class Ready:
    """A mail that is composed and waits for its place in the outbox.

    ``text`` is all that a reply may quote of it.
    """

    outbox_id: OutboxId
    question_id: QuestionId
    route_id: RouteId
    message_id: MessageId
    subject: str = field(repr=False)
    raw: bytes = field(repr=False)
    text: str = field(repr=False)
    expires_at: datetime

    @classmethod
    def of(
        cls,
        composed: Composed,
        chance: Chance,
        route_id: RouteId,
        message_id: MessageId,
        expires_at: datetime,
    ) -> "Ready":
        """Put together what was composed, and by which ids it is known."""
        return cls(
            outbox_id=chance.outbox_id,
            question_id=chance.question_id,
            route_id=route_id,
            message_id=message_id,
            subject=composed.subject,
            raw=composed.raw,
            text=composed.quotable,
            expires_at=expires_at,
        )


def prepare(
    tx: Tx,
    identity: Identity,
    sender: Sender,
    request: SendRequest,
    chance: Chance,
    read_upload: ReadUpload,
) -> Ready:
    """Compose the mail; refuses attachments that are not there (``unknown``) or too much (``too_large``).

    Refuses ``secret_in_text`` where the words or the files hold what must not leave.
    """
    who, enclosures = who_of(tx, identity, request.session), _enclosures(tx, request, read_upload)
    refuse_secrets(sender.guard, [*request.words, ("session's title", who.line)], enclosures)
    route_id = free_route(tx, chance)
    message_id = own_message_id(route_id, chance.message, machine_digest(identity.machine_id), sender.domain)
    before = threads.of_session(tx, request.session, sender.recipient, ANCESTORS)
    expires_at = tx.now + sender.route_ttl
    asks = request.kind is MailKind.DECISION
    composed = compose(
        Letter(
            kind=LetterKind(request.kind.value),
            sender_address=sender.address,
            sender_name=sender.from_name,
            recipient=sender.recipient,
            tag=sender.tag,
            route=route_id,
            subject=request.subject,
            text=request.text,
            message_id=message_id,
            date=tx.now.replace(microsecond=0),
            instance=identity.instance,
            outbox_id=chance.outbox_id,
            who=who,
            options=tuple(Offer(label=option, value=option) for option in request.options),
            recommendation=request.recommendation or None,
            in_reply_to=before[-1] if before else None,
            references=before,
            attachments=enclosures,
            reply_address=sender.reply_address(route_id),
            one_tap=sender.one_tap,
            card_url=sender.card_url(_question_id(tx, request, chance)) if asks else "",
            expires_at=expires_at.astimezone(sender.attention.zone),
        )
    )
    return Ready.of(composed, chance, route_id, message_id, expires_at)


def free_route(tx: Tx, chance: Chance) -> RouteId:
    """The shortest route id of these that nobody has."""
    return next((each for each in chance.routes if not routes.taken(tx, each)), chance.routes[-1])


def _question_id(tx: Tx, request: SendRequest, chance: Chance) -> QuestionId:
    """The question that a decision becomes: the session's own reservation, or a new one."""
    reserved = questions.blocking(tx, request.session)
    return chance.question_id if reserved is None else reserved.id


def prepare_answer(tx: Tx, identity: Identity, sender: Sender, answer: Answer, chance: Chance) -> Ready:
    """Compose what the gateway itself says; short enough for a writing transaction.

    Refuses (``invalid``) a recipient that cannot stand in a header.
    """
    route_id = answer.route_id or NO_ROUTE
    message_id = own_message_id(route_id, chance.message, machine_digest(identity.machine_id), sender.domain)
    replied = usable_ids([answer.in_reply_to] if answer.in_reply_to is not None else [])
    composed = compose(
        Letter(
            kind=LetterKind.ANSWER,
            sender_address=sender.address,
            sender_name=sender.from_name,
            recipient=answer.recipient,
            tag=sender.tag,
            route=answer.route_id if answer.tagged and answer.route_id is not None else RouteId(""),
            subject=answer.subject,
            text=answer.text,
            message_id=message_id,
            date=tx.now.replace(microsecond=0),
            instance=identity.instance,
            outbox_id=chance.outbox_id,
            who=Who(device=identity.name),
            in_reply_to=replied[0] if replied else None,
            references=(*usable_ids(answer.references), *replied),
        )
    )
    return Ready.of(composed, chance, route_id, message_id, answer.expires_at)


def who_of(tx: Tx, identity: Identity, session_id: SessionId) -> Who:
    """The session that speaks, as far as it has told about itself."""
    session = sessions.find(tx, session_id)
    if session is None:
        return Who(device=identity.name)
    return Who(title=session.title, project=session.project, branch=session.branch, device=identity.name)


def _enclosures(tx: Tx, request: SendRequest, read_upload: ReadUpload) -> tuple[Enclosure, ...]:
    found = []
    for attachment in dict.fromkeys(request.attachments):
        upload = uploads.find(tx, attachment, request.session)
        if upload is None:
            raise Refusal(
                "unknown",
                f"this session has no uploaded file {attachment}; it is kept for an hour: upload again",
            )
        found.append(upload)
    if sum(upload.size for upload in found) > ATTACHMENTS_LIMIT:
        raise Refusal("too_large", f"the files of one mail may have {ATTACHMENTS_LIMIT} bytes together")
    enclosures = []
    for upload in found:
        try:
            data = read_upload(upload.path)
        except OSError:
            raise Refusal("unknown", f"the uploaded file {upload.id} is gone; upload it again") from None
        guessed = mimetypes.guess_type(upload.filename)[0]
        content_type = guessed or "application/octet-stream"
        enclosures.append(Enclosure(upload.filename, content_type, data, upload.id))
    return tuple(enclosures)
