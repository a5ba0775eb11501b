"""Identifiers: their types, their shapes, and how they are minted from random bytes that are given in.

Nothing here draws random numbers or reads a clock: a use case may run twice (a retried transaction), so
whatever chance it needs is drawn before and handed in.
"""

import hashlib
from typing import NewType

SessionId = NewType("SessionId", str)
InstanceId = NewType("InstanceId", str)
MachineId = NewType("MachineId", str)
AccountName = NewType("AccountName", str)
EnvelopeId = NewType("EnvelopeId", str)
RouteId = NewType("RouteId", str)
QuestionId = NewType("QuestionId", str)
OutboxId = NewType("OutboxId", str)
AttachmentId = NewType("AttachmentId", str)
MessageId = NewType("MessageId", str)
"""A Message-ID with its angle brackets, as in the header (RFC 5322, section 3.6.4)."""


def envelope_id_of_mail(account: AccountName, folder: str, uid_validity: int, uid: int) -> EnvelopeId:
    """The id of the envelope of one mail: ``m-`` and 24 hex digits, always the same for the same mail.

    It is derived from the mail's place (account, folder, UIDVALIDITY, UID) and from nothing that a sender
    chooses, so that filing the same mail twice meets itself.
    """
    place = "\0".join((account, folder, str(uid_validity), str(uid)))
    return EnvelopeId("m-" + hashlib.sha256(place.encode()).hexdigest()[:24])


def machine_digest(machine: MachineId) -> str:
    """The first 8 hex digits of the machine id's SHA-256: how a Message-ID names the machine."""
    return hashlib.sha256(machine.encode()).hexdigest()[:8]


def session_digest(session: SessionId) -> bytes:
    """The first 8 bytes of the session id's SHA-256: how a signed token names the session."""
    return hashlib.sha256(session.encode()).digest()[:8]


def device_digest(name: str) -> bytes:
    """The first 4 bytes of the device name's SHA-256: how a signed token names the device."""
    return hashlib.sha256(name.encode()).digest()[:4]
