"""The shapes that the client promises are those that the service gives."""

from collections.abc import Mapping
from typing import Any

from attrs import AttrsInstance
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import answers
from mailgateway.shapes import answers as shapes
from mailgateway.shapes.fields import members

PAIRS: Mapping[Any, type[AttrsInstance]] = {
    answers.AccountState: shapes.AccountState,
    answers.LastScan: shapes.LastScan,
    answers.Health: shapes.Health,
    answers.Presence: shapes.PresenceShape,
    answers.Attachment: shapes.AttachmentShape,
    answers.Delivery: shapes.DeliveryShape,
    answers.Sent: shapes.Sent,
    answers.Recipient: shapes.Recipient,
    answers.Outbox: shapes.OutboxRow,
    answers.Fate: shapes.Fate,
    answers.Reloaded: shapes.Reloaded,
}


class AnswerTests(SynchronousTestCase):
    """Two descriptions of one thing, kept apart for the start time of the client."""

    def test_the_same_fields(self) -> None:
        """A field that the service gives and the client does not know, or the other way round, is a drift."""
        for promised, given in PAIRS.items():
            names = {member.name for member in members(given)}
            self.assertEqual(set(promised.__annotations__), names, given.__name__)

    def test_what_may_be_absent(self) -> None:
        """What the service leaves out when there is nothing to say is not required by the client."""
        for promised, given in PAIRS.items():
            optional = {member.name for member in members(given) if not member.required}
            self.assertEqual(set(promised.__optional_keys__), optional, given.__name__)
