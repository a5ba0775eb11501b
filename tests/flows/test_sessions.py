"""Sessions ping, reserve, free and leave."""

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.question import QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows import mode, sessions, settle, start
from mailgateway.flows.bell import EventKind
from mailgateway.ids import InstanceId, MachineId, QuestionId, SessionId, session_digest
from mailgateway.store import questions, settles
from mailgateway.store import sessions as rows
from mailgateway.store.database import Tx, transact
from mailgateway.store.tables import session
from tests.flows.outbound import I1, IDENTITY, S1, S2, OutboundTestCase

I2 = InstanceId("instance-two")


class PingTests(OutboundTestCase):
    """A ping registers, tells, and keeps alive."""

    def test_the_first_ping_registers(self) -> None:
        """The session is found by its id, its digest and its instance."""
        self.assertEqual(self.ping(title="Port the parser"), sessions.Presence(Mode.ON, 0))
        look = self.gateway.rows
        found = look(lambda tx: rows.find(tx, S1))
        assert found is not None
        self.assertEqual(
            (found.title, found.machine_id, found.left_at), ("Port the parser", IDENTITY.machine_id, None)
        )
        self.assertEqual(look(lambda tx: rows.by_digest(tx, session_digest(S1).hex())), [S1])
        self.assertEqual(look(lambda tx: rows.of_instance(tx, I1)), {S1})
        self.assertEqual(look(lambda tx: rows.machine_of(tx, S1)), IDENTITY.machine_id)
        self.assertIsNone(look(lambda tx: rows.machine_of(tx, S2)))

    def test_no_more_are_remembered_than_may_be(self) -> None:
        """Those that are silent longest are forgotten for a new one; live ones never."""
        self.patch(sessions, "KEPT_SESSIONS", 3)
        names = [SessionId(f"s{number}") for number in range(6)]
        for name in names[:4]:
            self.ping(name, InstanceId(f"of {name}"))
            self.gateway.later(seconds=10)
        self.assertEqual(self._remembered(), names[:4])
        self.gateway.later(minutes=5)
        self.ping(names[3])
        self.ping(names[4])
        self.assertEqual(self._remembered(), names[2:5])
        self.assertEqual(self.gateway.rows(lambda tx: rows.of_instance(tx, InstanceId("of s0"))), set())
        self.ping(names[0])
        self.assertEqual(self._remembered(), [names[0], *names[3:5]])

    def _remembered(self) -> list[SessionId]:
        found = self.gateway.rows(lambda tx: list(tx.execute(session.select().order_by("id"))))
        return [row.id for row in found]

    def test_absent_facts_keep_what_is_known(self) -> None:
        """A bare ping wipes nothing out; ``dirty=False`` is a fact."""
        self.ping(title="A", project="p", dirty=True, state="idle")
        self.ping()
        found = self._found()
        self.assertEqual((found.title, found.project, found.dirty, found.state), ("A", "p", True, "idle"))
        self.ping(title="B", dirty=False)
        found = self._found()
        self.assertEqual((found.title, found.project, found.dirty), ("B", "p", False))

    def test_only_news_rings(self) -> None:
        """Every session pings every ten seconds: subscribers hear of changes alone."""
        self.ping(state="working")
        self.assertEqual(self.gateway.kinds(), [EventKind.SESSION])
        self.ping(state="working")
        self.ping()
        self.assertEqual(self.gateway.kinds(), [])
        self.ping(state="blocked")
        self.assertEqual(self.gateway.kinds(), [EventKind.SESSION])

    def test_facts_are_bounded(self) -> None:
        """A title of a megabyte is cut, not stored."""
        self.ping(title="x" * 1_000_000, harness="y" * 100)
        found = self._found()
        self.assertEqual((len(found.title), len(found.harness)), (sessions.TEXT_LIMIT, 64))

    def test_off_is_told_and_shows_nothing_pending(self) -> None:
        """The ping is how a session learns of the mode."""
        self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.OFF, by="person"))
        self.assertEqual(self.ping(), sessions.Presence(Mode.OFF, 0))

    def test_one_instance_may_run_several_sessions(self) -> None:
        """And one session may move to another machine."""
        self.ping(S1)
        self.ping(S2)
        self.assertEqual(self.gateway.rows(lambda tx: rows.of_instance(tx, I1)), {S1, S2})
        other = MachineId("machine-two")
        self.now(start.introduce(self.gateway.database, other, "desktop"))
        self.gateway.identity = Identity(other, "desktop", "2f" * 16)
        self.ping(S1)
        self.assertEqual(self.gateway.rows(lambda tx: rows.machine_of(tx, S1)), other)

    def test_ten_thousand_live_sessions_are_enough(self) -> None:
        """The next new one is refused, a known one is not; those that fell silent make room."""
        self.ping()

        def fill(tx: Tx) -> None:
            tx.execute(
                session.insert(),
                [
                    {
                        "id": f"s{number}",
                        "machine_id": IDENTITY.machine_id,
                        "digest": "",
                        "first_seen_at": tx.now,
                        "last_ping_at": tx.now,
                    }
                    for number in range(sessions.LIVE_SESSIONS - 1)
                ],
            )

        self.gateway.rows(fill)
        ping = sessions.Ping(S2, I1)
        refusal = self.refused(sessions.ping(self.gateway.database, self.gateway.bell, IDENTITY, ping))
        self.assertEqual(refusal.code, "registry_full")
        self.ping(S1)
        self.gateway.later(seconds=121)
        self.ping(S2)
        self.assertEqual(self.gateway.rows(lambda tx: rows.live(tx, IDENTITY.machine_id)), 1)

    def test_working_cancels_a_settle_that_waits(self) -> None:
        """The turn goes on, so nobody is told that it is over."""
        self._settle()
        self.ping(state="idle")
        self.assertIsNotNone(self._settle_due())
        self.gateway.kinds()
        self.ping(state="working")
        self.assertIsNone(self._settle_due())
        self.assertIn(EventKind.SETTLE, self.gateway.kinds())

    def test_long_silent_sessions_are_forgotten(self) -> None:
        """With their runtimes; a session that still pings stays."""
        self.ping(S1)
        self.gateway.later(days=31)
        self.ping(S2, I2)
        look = self.gateway.rows
        self.assertEqual(look(lambda tx: rows.forget_offline(tx, tx.now - timedelta(days=30))), 1)
        self.assertIsNone(look(lambda tx: rows.find(tx, S1)))
        self.assertEqual(look(lambda tx: rows.of_instance(tx, I1)), set())
        self.assertEqual(look(lambda tx: rows.of_instance(tx, I2)), {S2})

    def _found(self) -> rows.Session:
        found = self.gateway.rows(lambda tx: rows.find(tx, S1))
        assert found is not None
        return found

    def _settle(self) -> None:
        gateway = self.gateway
        delay = timedelta(seconds=20)
        self.now(settle.note(gateway.database, gateway.bell, IDENTITY, S1, I1, "Done.", False, delay=delay))

    def _settle_due(self) -> object:
        return self.gateway.rows(lambda tx: settles.next_due(tx, IDENTITY.machine_id))


class ByeTests(OutboundTestCase):
    """Leaving."""

    def test_the_last_instance_takes_the_session_along(self) -> None:
        """While another instance runs it, the session stays; a later ping brings it back."""
        self.ping(instance=I1)
        self.ping(instance=I2)
        self._bye(I1)
        self.assertIsNone(self._left_at())
        self._bye(I2)
        self.assertIsNotNone(self._left_at())
        self.assertEqual(self.gateway.rows(lambda tx: rows.live(tx, IDENTITY.machine_id)), 0)
        self.ping(instance=I1)
        self.assertIsNone(self._left_at())

    def test_bye_frees_the_reservation(self) -> None:
        """Of one that was not used, and of an open question, which stays answerable."""
        self.ping()
        self.now(sessions.reserve(self.gateway.database, self.gateway.bell, IDENTITY, S1, b"r" * 12))
        self._bye(I1)
        self.assertEqual(self._count(), 0)
        sent = self.submit("decision")
        self.assertEqual(self._count(), 1)
        self._bye(I1)
        self.assertEqual(self._count(), 0)
        question_id = sent.question_id
        assert question_id is not None
        found = self.gateway.rows(lambda tx: questions.find(tx, question_id))
        assert found is not None
        self.assertEqual(found.status, QuestionStatus.OPEN)

    def test_a_stale_instance_does_not_free_the_decision_of_the_live_one(self) -> None:
        """Whoever was succeeded, or never ran the session, says bye for itself alone."""
        self.ping(instance=I1)
        self.gateway.later(seconds=10)
        self.ping(instance=I2)
        self._reserve()
        for stale in (I1, I1, InstanceId("stranger")):
            self._bye(stale)
            self.assertEqual(self._count(), 1, stale)
        self._bye(I2)
        self.assertEqual(self._count(), 0)

    def test_the_successor_of_a_silent_instance_frees_the_decision(self) -> None:
        """Its predecessor ended without a word: live by its last ping still, but it has not pinged since."""
        self.ping(instance=I1)
        self.gateway.later(seconds=10)
        self.ping(instance=I2)
        self._reserve()
        self._bye(I2)
        self.assertEqual(self._count(), 0)
        self.assertIsNone(self._left_at())

    def test_bye_of_a_stranger_does_no_harm(self) -> None:
        """A session that never pinged may say bye."""
        self._bye(I1)

    def _bye(self, instance: InstanceId) -> None:
        self.now(sessions.bye(self.gateway.database, self.gateway.bell, S1, instance))

    def _reserve(self) -> None:
        gateway = self.gateway
        self.now(sessions.reserve(gateway.database, gateway.bell, IDENTITY, S1, b"r" * 12))

    def _left_at(self) -> object:
        found = self.gateway.rows(lambda tx: rows.find(tx, S1))
        assert found is not None
        return found.left_at

    def _count(self) -> int:
        return self.gateway.rows(lambda tx: questions.count_blocking(tx, IDENTITY.machine_id))


class ReserveTests(OutboundTestCase):
    """One blocking decision for a session."""

    def test_reserved_once(self) -> None:
        """A second one is refused, also after a restart, until the first is freed."""
        first = self._reserve()
        self.start()
        refusal = self.refused(self._reserving())
        self.assertEqual((refusal.code, refusal.details), ("decision_outstanding", {"questionId": first}))
        self._free()
        self.assertNotEqual(self._reserve(), first)
        found = self.gateway.rows(lambda tx: questions.find(tx, first))
        assert found is not None
        self.assertEqual(found.status, QuestionStatus.CANCELLED)

    def test_sessions_do_not_hinder_each_other(self) -> None:
        """The count is of all sessions of the machine."""
        self._reserve(S1)
        self._reserve(S2)
        self.assertEqual(self.gateway.rows(lambda tx: questions.count_blocking(tx, IDENTITY.machine_id)), 2)

    def test_freeing_nothing_is_fine(self) -> None:
        """And rings nothing."""
        self._free()
        self.assertEqual(self.gateway.kinds(), [])

    def test_of_twenty_at_once_one_wins(self) -> None:
        """Threads on one file, each in its own transaction."""
        engine = self.contested_engine()
        results: list[str] = []

        def reserve(tx: Tx, number: int) -> None:
            if (found := questions.blocking(tx, S1)) is not None:
                sessions.outstanding(found)
            questions.reserve(tx, QuestionId(f"q-{number}"), S1, IDENTITY.machine_id)

        def go(number: int) -> None:
            try:
                transact(engine, lambda tx: reserve(tx, number))
                results.append("reserved")
            except Refusal as refusal:
                results.append(refusal.code)

        self.at_once(20, go)
        self.assertEqual(sorted(results), ["decision_outstanding"] * 19 + ["reserved"])

    def _reserving(self, session_id: SessionId = S1) -> Coroutine[Deferred[Any], Any, QuestionId]:
        gateway = self.gateway
        return sessions.reserve(gateway.database, gateway.bell, IDENTITY, session_id, gateway.mint(12))

    def _reserve(self, session_id: SessionId = S1) -> QuestionId:
        return self.now(self._reserving(session_id))

    def _free(self) -> None:
        self.now(sessions.free(self.gateway.database, self.gateway.bell, S1))
