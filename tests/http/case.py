"""What the tests of routes share: a service of their own, and an envelope to hand out."""

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.envelope import AttachmentInfo, Envelope, EnvelopeKind, Source, Trust
from mailgateway.flows.bell import Event, EventKind
from mailgateway.ids import AccountName, EnvelopeId, SessionId
from mailgateway.store import attachments, envelopes
from tests.http.rig import Answer, Rig

AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
WHO = {"sessionId": "s", "instanceId": "i"}
MAIL = {"kind": "notification", "sessionId": "s", "subject": "x", "text": "y"}

ENVELOPE = Envelope(
    id=EnvelopeId("m-" + "1" * 24),
    kind=EnvelopeKind.USER,
    trust=Trust.OWNER,
    session_id=SessionId("s"),
    machine_id=None,
    subject="Re: x",
    body="do it",
    quoted="> shall I?",
    from_address="robin@example.org",
    from_name="Robin",
    received_at=AT,
    source=Source(AccountName("main"), "INBOX", 7, 42),
    message_id="<a@example.org>",
)


def file(
    rig: Rig, envelope: Envelope = ENVELOPE, parts: list[tuple[AttachmentInfo, bytes]] | None = None
) -> None:
    """Put an envelope where the watcher would, and ring."""
    rig.database.now(lambda tx: envelopes.add(tx, envelope))
    if parts:
        rig.database.now(lambda tx: attachments.add(tx, envelope.id, parts))
    rig.bell.ring(Event(EventKind.DELIVERY, envelope.id, envelope.session_id))


class RouteCase(SynchronousTestCase):
    """A fresh service for each test."""

    def setUp(self) -> None:
        self.rig = self.make_rig()
        self.ask = self.rig.ask

    def make_rig(self) -> Rig:
        """The service."""
        return Rig()

    def refused(self, answer: Answer, status: int, code: str) -> None:
        """The answer is this problem, with a sentence."""
        self.assertEqual((answer.status, answer.code), (status, code))
        self.assertGreater(len(answer.json["message"]), 10)
