"""Values that tests of the store and of the flows begin with."""

from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import evolve

from mailgateway.domain.envelope import Envelope, EnvelopeKind, Source, Trust
from mailgateway.domain.identity import Identity
from mailgateway.ids import (
    AccountName,
    EnvelopeId,
    InstanceId,
    MachineId,
    SessionId,
    envelope_id_of_mail,
)
from mailgateway.store import envelopes, machines, modes, sessions
from mailgateway.store.database import Tx

MAIN = AccountName("main")
INBOX = "INBOX"
HERE = MachineId("machine-here")
ELSEWHERE = MachineId("machine-elsewhere")
IDENTITY = Identity(HERE, "desk", "1f" * 16)
SESSION = SessionId("session-one")
RECEIVED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def envelope(uid: int = 1, **changes: Any) -> Envelope:
    """A new envelope of a person's mail at this UID."""
    found = Envelope(
        id=envelope_id_of_mail(MAIN, INBOX, 7, uid),
        kind=EnvelopeKind.USER,
        trust=Trust.OWNER,
        session_id=SESSION,
        machine_id=HERE,
        subject=f"subject {uid}",
        body=f"words {uid}",
        quoted="",
        from_address="robin@example.org",
        from_name="Robin",
        received_at=RECEIVED,
        device="desk",
        source=Source(MAIN, INBOX, 7, uid),
        message_id=f"<{uid}@example.org>",
    )
    return evolve(found, **changes)


def introduce(tx: Tx) -> None:
    """This machine and its session."""
    machines.introduce(tx, HERE, "desk")
    machines.introduce(tx, ELSEWHERE, "shed")
    modes.start(tx, HERE)
    sessions.ensure(tx, SESSION, HERE)


def filed(tx: Tx, *wanted: Envelope) -> None:
    """File envelopes in this order."""
    for order, each in enumerate(wanted):
        envelopes.add(tx, each, order)


def claim(tx: Tx, instance: str, envelope_id: EnvelopeId, seconds: float = 60) -> Envelope:
    """Read and claim, as a flow does."""
    found = envelopes.find(tx, envelope_id)
    assert found is not None
    until = tx.now + timedelta(seconds=seconds)
    return envelopes.claim(tx, found, envelopes.Claim(InstanceId(instance), HERE, until))
