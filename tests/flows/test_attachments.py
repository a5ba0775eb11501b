"""The files of mails, as sessions get them: kept with their envelope, bounded, for the claimant alone."""

from typing import Any

from mailgateway.domain.envelope import rendered
from mailgateway.flows import attachments, deliver
from mailgateway.store import attachments as rows
from mailgateway.store import envelopes
from mailgateway.store.tables import attachment
from tests.flows.inbound import InboundTestCase
from tests.flows.outbound import IDENTITY, S1


class KeptTests(InboundTestCase):
    """What hangs on an envelope."""

    def fetching(self, name: str, instance: str = "instance-one") -> Any:
        """The flow that gives one file, not yet run."""
        [envelope] = self.pending()
        return deliver.attachment(self.gateway.database, IDENTITY, envelope.id, name, self.by(instance))

    def test_the_claimant_fetches(self) -> None:
        """Only who has claimed; what is left out is named, and cannot be fetched."""
        self.receive(self.reply("see", parts=[("notes.md", b"# notes"), ("setup.exe", b"MZ")]))
        self.assertEqual(self.refused(self.fetching("a1")).code, "not_claimant")
        [envelope] = self.pending()
        self.claim_envelope(envelope)
        info, data = self.now(self.fetching("a1"))
        self.assertEqual((info.filename, data), ("notes.md", b"# notes"))
        self.assertEqual(self.refused(self.fetching("a2")).code, "unknown")
        self.assertEqual([each.filename for each in envelope.left_out], ["setup.exe"])
        text = rendered(envelope)
        self.assertIn("Attachment a1: notes.md (application/octet-stream, 7 bytes)", text)
        self.assertIn("Not kept: setup.exe (application/octet-stream, 2 bytes): programs are not kept", text)
        self.assertNotIn(b"MZ", [row.data for row in self.gateway.rows(_rows)])

    def test_the_thirty_first(self) -> None:
        """It is named in the delivery."""
        self.receive(self.reply("many", parts=[(f"{number}.txt", b"x") for number in range(32)]))
        [envelope] = self.pending()
        self.assertEqual((len(envelope.kept), len(envelope.left_out)), (30, 2))
        self.assertIn("Not kept: 30.txt", rendered(envelope))

    def test_a_file_alone(self) -> None:
        """It is worth saying without a word; one that is not kept is, too: the session hears of it."""
        self.receive(
            self.reply("", parts=[("photo.jpg", b"\xff\xd8")]), self.reply("", parts=[("a.exe", b"MZ")])
        )
        self.assertEqual(len(self.pending()), 2)

    def test_a_full_session(self) -> None:
        """What is kept for a session is bounded in number and bytes; the rest is named and in the mailbox."""
        self.patch(attachments, "FILES_LIMIT", 3)
        self.receive(
            self.reply("one", parts=[("a", b"1"), ("b", b"2")]),
            self.reply("two", parts=[("c", b"3"), ("d", b"4")]),
        )
        _, second = self.pending()
        self.assertEqual([each.filename for each in second.kept], ["c"])
        self.assertEqual([each.left_out for each in second.left_out], ["session-full"])
        self.patch(attachments, "FILES_LIMIT", 100)
        self.patch(attachments, "BYTES_LIMIT", 5)
        self.receive(self.reply("three", parts=[("e", b"12345"), ("f", b"12")]))
        third = self.pending()[-1]
        self.assertEqual([each.filename for each in third.kept], ["f"])
        self.assertEqual(self.gateway.rows(lambda tx: rows.held_for(tx, S1)), (4, 5))

    def test_taken_files_count(self) -> None:
        """A session that acks each message at once is bounded like one that lets them wait."""
        self.patch(attachments, "FILES_LIMIT", 1)
        self.receive(self.reply("one", parts=[("a", b"1")]))
        self.take(self.pending()[0])
        self.receive(self.reply("two", parts=[("b", b"2")]))
        [second] = self.pending()
        self.assertEqual([each.left_out for each in second.left_out], ["session-full"])
        self.assertIn("too many files are kept for this session", rendered(second))

    def test_they_go_with_the_words(self) -> None:
        """What is pruned of an acked envelope makes room again."""
        self.receive(self.reply("one", parts=[("a", b"1")]))
        self.take(self.pending()[0])
        self.gateway.later(days=31)
        self.gateway.rows(lambda tx: envelopes.prune_bodies(tx, tx.now))
        self.assertEqual(self.gateway.rows(lambda tx: rows.held_for(tx, S1)), (0, 0))


def _rows(tx: Any) -> list[Any]:
    return list(tx.execute(attachment.select()))
