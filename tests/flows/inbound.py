"""The stage of the inbound tests: a gateway that has asked, a folder, and people who write."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from typing import Any

from attrs import define, field

from mailgateway.domain.envelope import Envelope
from mailgateway.domain.judge import Judged, judge
from mailgateway.flows import deliver, folders
from mailgateway.flows.deliver import Claimant, Target
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.folders import Continue, FirstLook, Renumbered
from mailgateway.flows.receive import Examined, Received, Window, receive
from mailgateway.flows.submit import Submitted
from mailgateway.flows.troubles import Writer
from mailgateway.ids import InstanceId, SessionId
from mailgateway.mail.own import Own
from mailgateway.store.tables import metadata
from tests.flows.outbound import ACCOUNT, I1, IDENTITY, PERSON, S1, SENDER, OutboundTestCase

AGENT = "agent@example.org"
INBOX = "INBOX"
TTL = timedelta(hours=168)
KEY = "5e" * 32
RESULTS = "mx.example.net; dkim=pass header.d=example.org; dmarc=pass header.from=example.org"
OWN = Own(addresses=[AGENT], allowed=[PERSON], trusted_authserv_ids=["mx.example.net"])


def letter(
    words: str,
    *,
    subject: str = "Re: hello",
    sender: str = PERSON,
    to: str = AGENT,
    replies_to: str = "",
    results: str = RESULTS,
    parts: Sequence[tuple[str, bytes]] = (),
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A mail as the receiving server hands it over."""
    message = EmailMessage()
    if results:
        message["Authentication-Results"] = results
    message["From"] = sender
    message["To"] = to
    message["Subject"] = subject
    message["Message-ID"] = f"<{hashlib.sha256((words + subject).encode()).hexdigest()[:16]}@example.org>"
    if replies_to:
        message["In-Reply-To"] = replies_to
    for name, value in (headers or {}).items():
        message[name] = value
    message.set_content(words)
    for name, data in parts:
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return message.as_bytes().replace(b"\n", b"\r\n")


@define
class Folder:
    """A folder of the tests: mails by UID, under one UIDVALIDITY."""

    uid_validity: int = 7
    uid_next: int = 1
    mails: dict[int, bytes] = field(factory=dict)

    def put(self, *mails: bytes) -> list[int]:
        """Deliver mails; their UIDs."""
        uids = []
        for mail in mails:
            self.mails[self.uid_next] = mail
            uids.append(self.uid_next)
            self.uid_next += 1
        return uids


class InboundTestCase(OutboundTestCase):
    """A session has asked a person; what comes back lies in ``self.folder``."""

    def setUp(self) -> None:
        super().setUp()
        self.ping()
        self.sent = self.submit()
        self.folder = Folder()
        self.own = OWN
        self.writer: Writer | None = Writer(IDENTITY, SENDER, self.gateway.mint)
        self.may_command = {PERSON}
        self.may_approve: set[str] = set()
        self.fence: int | None = None
        self.gateway.kinds()

    # --- folders ----------------------------------------------------------------------------------

    def open(self, **options: Any) -> FirstLook | Continue | Renumbered:
        """Open the folder."""
        return self.now(
            folders.open_folder(
                self.gateway.database,
                ACCOUNT,
                INBOX,
                self.folder.uid_validity,
                self.folder.uid_next,
                route_ttl=TTL,
                fence=self.fence,
                **options,
            )
        )

    def examined(self, uid: int, judged: Judged | None = None) -> Examined:
        """One mail of the folder as a scan hands it over."""
        raw = self.folder.mails[uid]
        return Examined(
            uid,
            datetime.fromisoformat("2026-11-30T12:00:00+00:00"),
            len(raw),
            hashlib.sha256(raw).hexdigest(),
            judged or judge(raw, self.own),
        )

    def receiving(
        self,
        *mails: Examined,
        through: int | None = None,
        token_key: str | None = None,
        header_threading: bool = True,
    ) -> Any:
        """The flow that files a window, not yet run."""
        window = Window(
            ACCOUNT,
            INBOX,
            self.folder.uid_validity,
            self.folder.uid_next - 1 if through is None else through,
            self.fence,
        )
        return receive(
            self.gateway.database,
            self.gateway.bell,
            FilingRules(
                IDENTITY,
                self.own,
                token_key,
                header_threading,
                self.writer,
                frozenset(self.may_command),
                frozenset(self.may_approve),
            ),
            window,
            mails,
        )

    def receive(self, *mails: bytes, **options: Any) -> Received:
        """Deliver mails to the folder and file them."""
        uids = self.folder.put(*mails)
        received: Received = self.now(self.receiving(*map(self.examined, uids), **options))
        return received

    def scan(self) -> int:
        """Open the folder and file all that is new, as a scan does; envelopes dropped by renumbering."""
        match self.open():
            case Continue(uid) | FirstLook(uid):
                self.now(self.receiving(*(self.examined(each) for each in self.folder.mails if each > uid)))
                return 0
            case Renumbered():
                self.now(self.receiving(*map(self.examined, self.folder.mails)))
                return self.finish()

    def finish(self) -> int:
        """Finish a renumbering."""
        return self.now(
            folders.finish_renumbering(
                self.gateway.database,
                self.gateway.bell,
                ACCOUNT,
                INBOX,
                self.folder.uid_validity,
                self.folder.uid_next - 1,
                fence=self.fence,
            )
        )

    def cursor(self) -> tuple[int, int] | None:
        """Where the cursor stands."""
        return self.now(folders.cursor(self.gateway.database, ACCOUNT, INBOX))

    # --- deliveries -------------------------------------------------------------------------------

    def reply(self, words: str, sent: Submitted | None = None, **options: Any) -> bytes:
        """A person's reply to a mail of ours."""
        answered = sent or self.sent
        options.setdefault("subject", f"Re: {answered.subject}")
        options.setdefault("replies_to", answered.message_id)
        return letter(words, **options)

    def pending(self, session: SessionId | None = S1) -> tuple[Envelope, ...]:
        """What waits."""
        return self.now(deliver.pending(self.gateway.database, IDENTITY, session=session, kind=None))

    def words(self) -> list[str]:
        """The words that wait, without their last line ends."""
        return [each.body.strip() for each in self.pending()]

    def by(self, instance: str = I1, **process: Any) -> Claimant:
        """A claimant on this machine."""
        return Claimant(InstanceId(instance), IDENTITY.machine_id, **process)

    def claiming(self, target: Target | Envelope, instance: str = I1, **process: Any) -> Any:
        """The flow that claims, not yet run."""
        return deliver.claim(
            self.gateway.database, self.gateway.bell, IDENTITY, _target(target), self.by(instance, **process)
        )

    def claim_envelope(self, target: Target | Envelope, instance: str = I1, **process: Any) -> Envelope:
        """Claim."""
        claimed: Envelope = self.now(self.claiming(target, instance, **process))
        return claimed

    def acking(self, target: Target | Envelope, instance: str = I1) -> Any:
        """The flow that acks, not yet run."""
        return deliver.ack(
            self.gateway.database, self.gateway.bell, IDENTITY, _target(target), self.by(instance)
        )

    def releasing(self, target: Target | Envelope, instance: str = I1) -> Any:
        """The flow that gives back, not yet run."""
        return deliver.release(
            self.gateway.database, self.gateway.bell, IDENTITY, _target(target), self.by(instance)
        )

    def take(self, target: Target | Envelope, instance: str = I1) -> None:
        """Claim and ack."""
        self.claim_envelope(target, instance)
        self.now(self.acking(target, instance))

    def picture(self, *without: str) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table but some, for tests that nothing has changed."""
        return self.gateway.rows(
            lambda tx: {
                table.name: sorted(map(tuple, tx.execute(table.select())), key=repr)
                for table in metadata.sorted_tables
                if table.name not in without
            }
        )


def _target(target: Target | Envelope) -> Target:
    return target if isinstance(target, Target) else Target(id=target.id)
