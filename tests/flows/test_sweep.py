"""Upkeep: dead claims come back, dead questions end, and nothing grows for ever."""

from sqlalchemy import select

from mailgateway.flows import sessions, sweep, uploads
from mailgateway.flows.bell import EventKind
from mailgateway.flows.sweep import Swept
from mailgateway.ids import AttachmentId, InstanceId
from mailgateway.store import envelopes, questions, tables
from mailgateway.store import sessions as session_rows
from mailgateway.store.database import Tx
from tests.flows.inbound import TTL, InboundTestCase
from tests.flows.outbound import I1, IDENTITY, S1, S2


class SweepTests(InboundTestCase):
    """One sweep after the other."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()
        self.living: set[tuple[int, float | None]] = set()
        self.discarded: list[str] = []
        self.gateway.kinds()

    def sweep(self) -> Swept:
        """Sweep once."""
        return self.now(
            sweep.sweep(
                self.gateway.database,
                self.gateway.bell,
                IDENTITY,
                bodies_days=30,
                route_ttl=TTL,
                alive=lambda pid, started: (pid, started) in self.living,
                discard=self.discarded.append,
            )
        )

    def test_nothing_to_do(self) -> None:
        """A sweep of a fresh database changes nothing and rings nobody."""
        self.receive(self.reply("one"))
        self.gateway.kinds()
        before = self.picture()
        self.assertEqual(self.sweep(), Swept())
        self.assertEqual(self.picture(), before)
        self.assertEqual(self.gateway.kinds(), [])

    def test_claims_that_ran_out(self) -> None:
        """They are new again, who waits is rung, and the late ack still counts."""
        self.receive(self.reply("one"))
        (found,) = self.pending()
        self.claim_envelope(found)
        self.gateway.later(seconds=59)
        self.assertEqual(self.sweep().released, 0)
        self.gateway.later(seconds=2)
        self.gateway.kinds()
        self.assertEqual(self.sweep().released, 1)
        self.assertEqual(self.gateway.kinds(), [EventKind.DELIVERY])
        self.assertEqual(self.sweep().released, 0)
        self.now(self.acking(found))

    def test_claims_whose_process_died(self) -> None:
        """They do not wait for their lease; living ones and those without a process do."""
        self.receive(*(self.reply(f"answer {n}") for n in range(3)))
        living, dead, unknown = self.pending()
        self.living.add((7, 1.5))
        self.claim_envelope(living, "a", pid=7, process_started_at=1.5)
        self.claim_envelope(dead, "b", pid=7, process_started_at=99.0)
        self.claim_envelope(unknown, "c")
        self.assertEqual(self.sweep().released, 1)
        self.assertEqual([each.claimant for each in self.pending()], ["a", None, "c"])
        self.claim_envelope(dead, "d")

    def test_processes_of_other_machines_are_theirs_to_judge(self) -> None:
        """A pid says nothing here about a process there."""
        self.receive(self.reply("one"))
        self.claim_envelope(self.pending()[0], pid=7)
        self.gateway.rows(
            lambda tx: tx.execute(tables.envelope.update().values(claimant_machine="machine-two"))
        )
        self.assertEqual(self.sweep().released, 0)

    def test_questions_past_their_time(self) -> None:
        """They expire and block no longer; so do reservations that were never used."""
        asked = self.submit("decision")
        self.ping(S2, InstanceId("two"))
        gateway = self.gateway
        self.now(sessions.reserve(gateway.database, gateway.bell, IDENTITY, S2, b"r" * 12))
        self.assertEqual(self.sweep().expired, 0)
        gateway.later(hours=169)
        gateway.kinds()
        self.assertEqual(self.sweep().expired, 2)
        self.assertEqual(gateway.kinds(), [EventKind.QUESTION] * 2)
        assert asked.question_id is not None
        question_id = asked.question_id
        found = gateway.rows(lambda tx: questions.find(tx, question_id))
        assert found is not None
        self.assertEqual(found.status, "expired")
        self.assertIsNone(gateway.rows(lambda tx: questions.blocking(tx, S2)))
        self.assertEqual(self.sweep().expired, 0)

    def test_words_are_forgotten(self) -> None:
        """After the time that is set, of what was acked; what waits is kept, however old."""
        self.receive(self.reply("acked", parts=[("f", b"x")]), self.reply("waiting"))
        acked = self.pending()[0]
        self.take(acked)
        self.gateway.later(days=31)
        self.assertGreater(self.sweep().pruned, 0)
        found = self.gateway.rows(lambda tx: envelopes.find(tx, acked.id))
        assert found is not None
        self.assertEqual((found.body, found.quoted, found.attachments), ("", "", ()))
        self.assertEqual(self.words(), ["waiting"])
        self.now(self.acking(acked))

    def test_memories_end(self) -> None:
        """Long after, what was acked leaves its route and the log of decisions; what waits is known still."""
        asked = self.submit("decision")
        for _ in range(2):
            self.conclude(self.claim())
        self.receive(self.reply("acked", asked), self.reply("waiting"))
        self.take(self.pending()[0])
        self.gateway.later(days=200)
        self.sweep()
        self.assertEqual(self.words(), ["waiting"])

        def count(tx: Tx) -> dict[str, int]:
            counted = {
                table.name: len(tx.execute(table.select()).all()) for table in tables.metadata.sorted_tables
            }
            return {name: rows for name, rows in counted.items() if rows}

        self.assertEqual(
            self.gateway.rows(count),
            {
                "cursor": 1,
                "decision_log": 2,
                "envelope": 1,
                "fate": 2,
                "machine": 1,
                "machine_name": 1,
                "mode": 1,
                "route": 2,
                "source": 1,
            },
        )
        waiting = self.pending()[0].id
        digest = select(tables.source.c.raw_sha256).where(tables.source.c.envelope_id == waiting)
        self.assertTrue(self.gateway.rows(lambda tx: tx.execute(digest).scalar()))

    def test_offline_sessions(self) -> None:
        """A session that was silent for a month is forgotten."""
        self.gateway.later(days=20)
        self.ping(S2, InstanceId("two"))
        self.gateway.later(days=11)
        self.sweep()
        self.assertIsNone(self.gateway.rows(lambda tx: session_rows.find(tx, S1)))
        self.assertIsNotNone(self.gateway.rows(lambda tx: session_rows.find(tx, S2)))
        self.assertEqual(self.gateway.rows(lambda tx: session_rows.of_instance(tx, I1)), set())

    def test_uploads(self) -> None:
        """A file that nobody used within an hour goes, and its row with it."""
        self.now(
            uploads.add(
                self.gateway.database, IDENTITY, S1, AttachmentId("a-" + "0" * 24), "f.txt", 3, "/state/up/1"
            )
        )
        self.sweep()
        self.assertEqual(self.discarded, [])
        self.gateway.later(minutes=61)
        self.sweep()
        self.sweep()
        self.assertEqual(self.discarded, ["/state/up/1"])
