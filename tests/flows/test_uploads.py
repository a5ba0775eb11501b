"""Uploads get a row, a safe name, and a bound."""

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.flows import uploads
from mailgateway.ids import AttachmentId, SessionId
from mailgateway.store import uploads as rows
from tests.flows.outbound import IDENTITY, S1, S2, OutboundTestCase


class UploadTests(OutboundTestCase):
    """What a client uploaded, until it is used or forgotten."""

    def test_a_row_for_the_session_that_uploaded(self) -> None:
        """Another session does not find it."""
        self._add("a-1", "plan.md", 6)
        found = self.gateway.rows(lambda tx: rows.find(tx, AttachmentId("a-1"), S1))
        assert found is not None
        self.assertEqual((found.filename, found.size, found.path), ("plan.md", 6, "/state/a-1"))
        self.assertIsNone(self.gateway.rows(lambda tx: rows.find(tx, AttachmentId("a-1"), S2)))

    def test_only_the_last_part_of_the_name_is_kept(self) -> None:
        """A name is a label and never a path, and has no control characters."""
        names = {
            "../../etc/passwd": "passwd",
            "C:\\Users\\robin\\plan.md": "plan.md",
            "a\r\nb\x00.txt": "ab.txt",
            "": "file",
            "/": "file",
            "x" * 300 + ".txt": "x" * 251 + ".txt",
        }
        for number, (given, kept) in enumerate(names.items()):
            self._add(f"a-{number}", given, 1)
            found = self.gateway.rows(lambda tx, n=number: rows.find(tx, AttachmentId(f"a-{n}"), S1))  # type: ignore[misc]
            assert found is not None
            self.assertEqual(found.filename, kept)

    def test_too_much_is_refused(self) -> None:
        """One file, and all of a session together; another session is not hindered."""
        self.assertEqual(self.refused(self._adding("a-0", "x", uploads.UPLOAD_LIMIT + 1)).code, "too_large")
        for number in range(uploads.HELD_LIMIT // uploads.UPLOAD_LIMIT):
            self._add(f"a-{number}", "x", uploads.UPLOAD_LIMIT)
        self.assertEqual(self.refused(self._adding("a-9", "x", 1)).code, "too_large")
        self._add("a-9", "x", 1, S2)

    def test_old_ones_are_found_and_forgotten(self) -> None:
        """The sweeper asks for those older than an hour."""
        self._add("a-1", "x", 1)
        self.gateway.later(minutes=61)
        self._add("a-2", "x", 1)
        look = self.gateway.rows
        old = look(lambda tx: rows.older_than(tx, tx.now - timedelta(hours=1), 10))
        self.assertEqual([each.id for each in old], ["a-1"])
        look(lambda tx: rows.remove(tx, AttachmentId("a-1")))
        self.assertIsNone(look(lambda tx: rows.find(tx, AttachmentId("a-1"), S1)))

    def test_ids(self) -> None:
        """They say what they are."""
        self.assertEqual(uploads.attachment_id_of(b"\1" * 16), "a-" + "01" * 12)

    def _adding(
        self, upload_id: str, name: str, size: int, session: SessionId = S1
    ) -> Coroutine[Deferred[Any], Any, AttachmentId]:
        return uploads.add(
            self.gateway.database,
            IDENTITY,
            session,
            AttachmentId(upload_id),
            name,
            size,
            f"/state/{upload_id}",
        )

    def _add(self, upload_id: str, name: str, size: int, session: SessionId = S1) -> None:
        self.now(self._adding(upload_id, name, size, session))
