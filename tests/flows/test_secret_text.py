"""Mail that holds a secret is refused before anything is written, and the refusal does not tell it."""

from typing import Any

from attrs import evolve

from mailgateway.ids import AttachmentId
from mailgateway.mail.secret_text import Guard, Known
from mailgateway.store import outbox, uploads
from tests.flows.outbound import IDENTITY, S1, OutboundTestCase

KEY = "c0ffee" * 10


class RefusalTests(OutboundTestCase):
    """A gateway that knows a key."""

    def setUp(self) -> None:
        super().setUp()
        guard = Guard((Known("the session key", KEY),))
        self.gateway.sender = evolve(self.gateway.sender, guard=guard)

    def upload(self, data: bytes, filename: str = "log.txt") -> AttachmentId:
        """A file for a mail to come."""
        upload_id = AttachmentId(f"a-{len(self.gateway.files)}")
        self.gateway.files[upload_id] = data
        at = self.at()
        self.gateway.rows(
            lambda tx: uploads.add(tx, uploads.Upload(upload_id, S1, filename, len(data), upload_id, at))
        )
        return upload_id

    def test_every_word_counts(self) -> None:
        """Subject, text, options and recommendation; nothing is queued, and no value is in the words."""
        parts: tuple[dict[str, Any], ...] = (
            {"subject": f"Is {KEY} right?"},
            {"text": f"export KEY={KEY}"},
            {"options": ("yes", KEY)},
            {"recommendation": KEY},
        )
        for fields in parts:
            refusal = self.refused(self.submitting("decision", **fields))
            self.assertEqual(
                (refusal.code, refusal.details), ("secret_in_text", {"field": next(iter(fields))})
            )
            self.assertIn("the session key", refusal.message)
            self.assertNotIn(KEY, refusal.message + repr(refusal))
        self.assertEqual(self.gateway.rows(lambda tx: outbox.waiting(tx, IDENTITY.machine_id)), 0)
        self.submit("decision")

    def test_files(self) -> None:
        """What a file holds, and how it is called."""
        for data, filename in (
            (KEY.encode(), "log.txt"),
            (b"x", f"{KEY}.txt"),
            (b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 64, "picture.png"),
        ):
            refusal = self.refused(self.submitting(attachments=(self.upload(data, filename),)))
            self.assertEqual((refusal.code, refusal.details), ("secret_in_text", {"field": "attachments"}))
        self.submit(attachments=(self.upload(b"all is well"),))

    def test_the_title_of_the_session(self) -> None:
        """It stands in every mail."""
        self.ping(title=f"rotate {KEY}")
        self.assertEqual(self.refused(self.submitting()).code, "secret_in_text")
