"""Claim, give back, ack: who may, the codes, and that of all orders of events none delivers twice."""

from typing import Any

from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.delivery import DeliveryState
from mailgateway.domain.envelope import Envelope, EnvelopeKind
from mailgateway.domain.mode import Mode
from mailgateway.errors import Refusal
from mailgateway.flows import deliver, flag, mode
from mailgateway.flows.bell import Bell, EventKind
from mailgateway.flows.deliver import Claimant, Target
from mailgateway.ids import AccountName, EnvelopeId, InstanceId, SessionId
from mailgateway.store import envelopes, journal, tables
from mailgateway.store.database import Tx
from tests.fakes.database import ImmediateDatabase
from tests.flows.inbound import INBOX, InboundTestCase
from tests.flows.outbound import ACCOUNT, IDENTITY, S1, S2
from tests.store.values import HERE, envelope, filed, introduce
from tests.store.values import IDENTITY as STORE_IDENTITY


class DeliverTestCase(InboundTestCase):
    """Two replies wait."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()
        self.receive(self.reply("one"), self.reply("two"))
        self.one, self.two = self.pending()
        self.gateway.kinds()

    def flags(self) -> tuple[int, ...]:
        """UIDs whose flag is to be set."""
        return self.now(flag.due(self.gateway.database, ACCOUNT, INBOX, 7))


class ClaimTests(DeliverTestCase):
    """One instance at a time."""

    def test_life(self) -> None:
        """Claimed, shown as claimed, acked, gone; the bell tells of each."""
        claimed = self.claim_envelope(self.one)
        self.assertEqual((claimed.state, claimed.claimant), (DeliveryState.CLAIMED, "instance-one"))
        assert claimed.lease_until is not None
        self.assertLess(abs((claimed.lease_until - self.at()).total_seconds() - 60), 5)
        self.assertEqual(self.pending(), (claimed, self.two))
        self.now(self.acking(self.one))
        self.assertEqual(self.pending(), (self.two,))
        self.assertEqual(self.flags(), (1,))
        found = self.gateway.rows(lambda tx: journal.find(tx, self.one.id))
        assert found is not None
        self.assertEqual((found.session_id, found.instance_id), (S1, "instance-one"))
        self.assertEqual(self.gateway.kinds(), [EventKind.DELIVERY, EventKind.FLAGGING, EventKind.DELIVERY])

    def test_another_instance_waits(self) -> None:
        """Neither claims, nor gives back, nor acks what is somebody else's."""
        self.claim_envelope(self.one, "a")
        self.assertEqual(self.refused(self.claiming(self.one, "b")).code, "already_claimed")
        self.assertEqual(self.refused(self.releasing(self.one, "b")).code, "not_claimant")
        self.assertEqual(self.refused(self.acking(self.one, "b")).code, "not_claimant")
        self.assertEqual(self.flags(), ())

    def test_an_ack_needs_a_claim(self) -> None:
        """So does giving back."""
        self.assertEqual(self.refused(self.acking(self.one)).code, "not_claimant")
        self.assertEqual(self.refused(self.releasing(self.one)).code, "not_claimant")

    def test_released_is_new(self) -> None:
        """Another may claim; the former claimant has no say any more."""
        self.claim_envelope(self.one, "a")
        released = self.now(self.releasing(self.one, "a"))
        self.assertEqual(released, self.one)
        self.assertEqual(self.refused(self.acking(self.one, "a")).code, "not_claimant")
        self.claim_envelope(self.one, "b")
        self.assertEqual(self.refused(self.acking(self.one, "a")).code, "not_claimant")

    def test_claiming_again_renews(self) -> None:
        """The lease begins anew."""
        first = self.claim_envelope(self.one)
        self.gateway.later(seconds=30)
        second = self.claim_envelope(self.one)
        assert first.lease_until is not None
        assert second.lease_until is not None
        self.assertGreater(second.lease_until, first.lease_until)
        self.gateway.later(seconds=40)
        self.assertEqual(self.refused(self.claiming(self.one, "b")).code, "already_claimed")

    def test_after_the_lease(self) -> None:
        """It shows as new; the late ack counts as long as nobody else has claimed."""
        self.claim_envelope(self.one, "a")
        self.claim_envelope(self.two, "a")
        self.gateway.later(seconds=61)
        self.assertEqual([each.state for each in self.pending()], [DeliveryState.NEW] * 2)
        self.now(self.acking(self.one, "a"))
        self.claim_envelope(self.two, "b")
        self.assertEqual(self.refused(self.acking(self.two, "a")).code, "not_claimant")
        self.now(self.acking(self.two, "b"))

    def test_acked_is_the_end(self) -> None:
        """The same instance hears the same again; nobody claims it any more."""
        self.take(self.one, "a")
        before = self.picture()
        for _ in range(3):
            self.now(self.acking(self.one, "a"))
        self.assertEqual(self.refused(self.acking(self.one, "b")).code, "not_claimant")
        self.assertEqual(self.refused(self.claiming(self.one, "a")).code, "acked")
        self.assertEqual(self.refused(self.releasing(self.one, "a")).code, "acked")
        self.assertEqual(self.picture(), before)

    def test_mode_off(self) -> None:
        """Nothing new is handed out; what was taken before can be finished."""
        self.claim_envelope(self.one)
        gateway = self.gateway
        self.now(mode.change(gateway.database, gateway.bell, IDENTITY, Mode.OFF, by="session"))
        self.assertEqual(self.pending(), ())
        self.assertEqual(self.refused(self.claiming(self.two)).code, "mode_off")
        self.now(self.acking(self.one))


class TargetTests(DeliverTestCase):
    """How an envelope is named."""

    def code(self, **target: Any) -> str:
        """The refusal of a claim."""
        return self.refused(self.claiming(Target(**target))).code

    def test_by_prefix(self) -> None:
        """Four hex digits and more will do, when they fit one."""
        self.assertEqual(self.claim_envelope(Target(id=self.one.id[:10])).id, self.one.id)
        self.assertEqual(self.code(id=self.one.id[:5]), "unknown")
        twin = evolve(self.one, id=EnvelopeId(self.one.id[:-1] + _other(self.one.id[-1])))
        self.gateway.rows(lambda tx: envelopes.add(tx, evolve(twin, source=None)))
        self.assertEqual(self.code(id=self.one.id[:-1]), "ambiguous_id")

    def test_unknown(self) -> None:
        """Names that nobody has, and names that are none."""
        for name in (
            "m-" + "0" * 24,
            "m-",
            "",
            "m-%%%%%%",
            "m-____",
            "x" * 5_000,
            "m-ABCDEF",
            self.one.id + "0",
        ):
            self.assertEqual(self.code(id=name), "unknown", name)
        self.assertEqual(self.code(), "invalid")
        self.assertEqual(self.code(uid=99), "unknown")
        self.assertEqual(self.code(uid=99, uid_validity=7, account=ACCOUNT), "unknown")
        self.assertEqual(self.code(uid=1, account="other"), "unknown")
        self.assertEqual(self.code(uid=1, uid_validity=7, account=ACCOUNT, folder="Archive"), "unknown")

    def test_by_uid(self) -> None:
        """With its numbering and account, or without when only one fits."""
        self.assertEqual(self.claim_envelope(Target(uid=1)).id, self.one.id)
        self.assertEqual(
            self.claim_envelope(Target(uid=2, uid_validity=7, account=ACCOUNT, folder=INBOX)).id, self.two.id
        )

    def test_stale_space(self) -> None:
        """Another numbering than the row's, or than the folder's."""
        self.assertEqual(self.code(uid=1, uid_validity=8, account=ACCOUNT), "stale-space")
        self.assertEqual(self.code(uid=99, uid_validity=8, account=ACCOUNT), "stale-space")
        self.assertEqual(self.code(id=self.one.id, uid_validity=8), "stale-space")

    def test_a_uid_in_two_accounts(self) -> None:
        """Is ambiguous until more is said, unless only one of them waits."""
        assert self.one.source is not None
        twin = evolve(
            self.one,
            id=EnvelopeId("m-" + "ab" * 12),
            source=evolve(self.one.source, account=AccountName("other")),
        )
        self.gateway.rows(lambda tx: envelopes.add(tx, twin))
        self.assertEqual(self.code(uid=1), "ambiguous_id")
        self.assertEqual(self.code(uid=1, uid_validity=7), "ambiguous_id")
        self.take(Target(uid=1, account=ACCOUNT))
        self.assertEqual(self.claim_envelope(Target(uid=1)).id, twin.id)


class WhoTests(DeliverTestCase):
    """Who may touch an envelope."""

    def test_not_yours(self) -> None:
        """An instance that speaks for other sessions only is refused, whatever it wants."""
        self.ping(S2, InstanceId("of-two"))
        for flow in (self.claiming, self.acking, self.releasing):
            self.assertEqual(self.refused(flow(self.one, "of-two")).code, "not_yours")
        self.ping(S1, InstanceId("of-two"))
        self.claim_envelope(self.one, "of-two")

    def test_whoever_speaks_for_other_sessions_is_refused(self) -> None:
        """However the envelope is named and whatever its state; knowing its claimant's name does not help."""
        self.receive(self.reply("with a part", parts=[("plan.bin", b"x")]))
        claimed = self.pending()[-1]
        self.claim_envelope(claimed)
        self.take(self.two)
        gateway = self.gateway
        stranger = evolve(self.by(), sessions=frozenset({S2}))
        before = self.picture()
        for found in (self.one, self.two, claimed):
            assert found.source is not None
            place = found.source
            for target in (
                Target(id=found.id),
                Target(id=found.id[:10]),
                Target(uid=place.uid),
                Target(uid=place.uid, folder=place.folder),
                Target(uid=place.uid, uid_validity=7, account=place.account, folder=place.folder),
            ):
                for flow in (deliver.claim, deliver.release, deliver.ack):
                    refusal = self.refused(flow(gateway.database, gateway.bell, IDENTITY, target, stranger))
                    self.assertEqual(refusal.code, "not_yours", (flow, target))
        fetching = deliver.attachment(gateway.database, IDENTITY, claimed.id, "a1", stranger)
        self.assertEqual(self.refused(fetching).code, "not_yours")
        self.assertEqual(self.picture(), before)
        mine = evolve(stranger, sessions=frozenset({S1, S2}))
        self.now(deliver.ack(gateway.database, gateway.bell, IDENTITY, Target(id=claimed.id), mine))

    def test_a_listing_of_some_sessions_is_full_of_theirs(self) -> None:
        """What waits for others takes no place in it, however much that is."""
        for number in range(deliver.LIMIT):
            stuffing = evolve(self.one, id=EnvelopeId(f"m-{number:024x}"), source=None, session_id=S2)
            self.gateway.rows(lambda tx, each=stuffing: envelopes.add(tx, each))  # type: ignore[misc]
        late = evolve(self.one, id=EnvelopeId("m-" + "f" * 24), source=None, session_id=SessionId("late"))
        self.gateway.rows(lambda tx: envelopes.add(tx, late, order=deliver.LIMIT))

        def listing(*among: str, session: SessionId | None = None) -> Any:
            theirs = frozenset(map(SessionId, among))
            return self.now(
                deliver.pending(self.gateway.database, IDENTITY, session=session, kind=None, among=theirs)
            )

        self.assertNotIn(late, listing())
        self.assertEqual(listing("late"), (late,))
        self.assertEqual(listing("late", S1), (self.one, self.two, late))
        self.assertEqual(listing("late", session=S1), ())

    def test_foreign_device(self) -> None:
        """A session of another machine takes its mail there."""
        self.gateway.rows(lambda tx: _move_to_another_machine(tx, self.one))
        for flow in (self.claiming, self.acking, self.releasing):
            self.assertEqual(self.refused(flow(self.one)).code, "foreign-device")
        self.assertEqual(self.pending(), (self.two,))

    def test_attachments_are_the_claimants(self) -> None:
        """Nobody else fetches them; after the ack the claimant still may."""
        self.receive(self.reply("with a part", parts=[("plan.bin", b"\x00\x01")]))
        found = self.pending()[-1]

        def fetching(instance: str, part: str = "a1") -> Any:
            return deliver.attachment(self.gateway.database, IDENTITY, found.id, part, self.by(instance))

        self.assertEqual(self.refused(fetching("a")).code, "not_claimant")
        self.claim_envelope(found, "a")
        info, data = self.now(fetching("a"))
        self.assertEqual((info.filename, data), ("plan.bin", b"\x00\x01"))
        self.assertEqual(self.refused(fetching("b")).code, "not_claimant")
        self.assertEqual(self.refused(fetching("a", "a2")).code, "unknown")
        self.now(self.acking(found, "a"))
        self.assertEqual(self.now(fetching("a"))[1], b"\x00\x01")

    def test_kinds(self) -> None:
        """A listing may ask for one kind."""
        found = self.now(
            deliver.pending(self.gateway.database, IDENTITY, session=S1, kind=EnvelopeKind.NOTICE)
        )
        self.assertEqual(found, ())
        found = self.now(deliver.pending(self.gateway.database, IDENTITY, session=S1, kind=EnvelopeKind.USER))
        self.assertEqual(found, (self.one, self.two))

    def test_ten_thousand_of_others_are_not_read(self) -> None:
        """A listing for one session finds its rows by an index, however many wait for others."""

        def plan(tx: Tx) -> str:
            statement = (
                "EXPLAIN QUERY PLAN SELECT * FROM envelope WHERE state IN ('new', 'claimed')"
                " AND (machine_id = 'm' OR machine_id IS NULL) AND kind <> 'answer'"
                " AND session_id = 's' ORDER BY number, id LIMIT 1000"
            )
            return str(tx.connection.exec_driver_sql(statement).all())

        self.assertIn("envelope_open (session_id=? AND state=?)", self.gateway.rows(plan))


def _other(digit: str) -> str:
    return "0" if digit != "0" else "1"


def _move_to_another_machine(tx: Tx, found: Envelope) -> None:
    tx.execute(
        tables.envelope.update().where(tables.envelope.c.id == found.id).values(machine_id="machine-two")
    )


# --- against a model --------------------------------------------------------------------------------------

UIDS = st.integers(1, 2)
INSTANCES = st.sampled_from(["a", "b"])  # few, so that they often meet
LEASE = 60


class DeliveryMachine(RuleBasedStateMachine):
    """Claims, acks, releases and ends of leases in any order, against a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.database = ImmediateDatabase()
        self.bell = Bell()
        self.database.now(introduce)
        self.database.now(lambda tx: filed(tx, *map(envelope, range(1, 3))))
        self.clock = 0.0
        self.model: dict[int, tuple[str, str | None, float]] = dict.fromkeys(range(1, 3), ("new", None, 0.0))
        """For each uid its state, who claimed last, and when the lease ends."""
        self.acks: dict[int, list[str]] = {uid: [] for uid in range(1, 3)}

    def teardown(self) -> None:
        """Forget the database."""
        self.database.close()

    def outcome(self, flow: Any) -> str:
        """``ok``, or the code of the refusal."""
        results: list[str] = []
        Deferred.fromCoroutine(flow).addCallbacks(
            lambda _: results.append("ok"), lambda failure: results.append(_code(failure))
        )
        return results[0]

    def flow(self, which: Any, uid: int, instance: str) -> str:
        """Run one of the three flows."""
        claimant = Claimant(InstanceId(instance), HERE)
        target = Target(id=envelope(uid).id)
        return self.outcome(which(self.database, self.bell, STORE_IDENTITY, target, claimant))

    @rule(uid=UIDS, instance=INSTANCES)
    def claim(self, uid: int, instance: str) -> None:
        """Only what is free, run out, or one's own."""
        state, claimant, until = self.model[uid]
        if state == "acked":
            expected = "acked"
        elif state == "claimed" and claimant != instance and until > self.clock:
            expected = "already_claimed"
        else:
            expected = "ok"
            self.model[uid] = ("claimed", instance, self.clock + LEASE)
        assert self.flow(deliver.claim, uid, instance) == expected

    @rule(uid=UIDS, instance=INSTANCES)
    def ack(self, uid: int, instance: str) -> None:
        """Whoever claimed last, also late, also again."""
        state, claimant, until = self.model[uid]
        if claimant == instance:
            expected = "ok"
            if state != "acked":
                self.acks[uid].append(instance)
            self.model[uid] = ("acked", instance, until)
        else:
            expected = "not_claimant"
        assert self.flow(deliver.ack, uid, instance) == expected

    @rule(uid=UIDS, instance=INSTANCES)
    def release(self, uid: int, instance: str) -> None:
        """Only what one holds."""
        state, claimant, _ = self.model[uid]
        if state == "acked":
            expected = "acked"
        elif state == "claimed" and claimant == instance:
            expected = "ok"
            self.model[uid] = ("new", None, 0.0)
        else:
            expected = "not_claimant"
        assert self.flow(deliver.release, uid, instance) == expected

    @rule(seconds=st.sampled_from([1, 59, 61]))
    def pass_time(self, seconds: int) -> None:
        """Leases run out by the database's clock."""
        self.clock += seconds
        self.database.advance(seconds=seconds)

    @precondition(lambda self: any(state == "claimed" for state, _, _ in self.model.values()))
    @rule()
    def sweep(self) -> None:
        """Ending dead claims makes them new and forgets nobody."""

        def work(tx: Tx) -> None:
            for claimed in envelopes.claimed(tx, 100):
                if claimed.envelope.lease_until is None or claimed.envelope.lease_until <= tx.now:
                    envelopes.end_lease(tx, claimed.envelope)

        self.database.now(work)
        for uid, (state, claimant, until) in self.model.items():
            if state == "claimed" and until <= self.clock:
                self.model[uid] = ("new", claimant, 0.0)

    @invariant()
    def what_waits_is_what_the_model_says(self) -> None:
        """The listing shows the open ones, claimed only under a living lease; nothing is acked twice."""
        found: list[tuple[Envelope, ...]] = []
        Deferred.fromCoroutine(
            deliver.pending(self.database, STORE_IDENTITY, session=SessionId("session-one"), kind=None)
        ).addCallback(found.append)
        shown = {each.source.uid: each.state.value for each in found[0] if each.source}
        expected = {
            uid: "claimed" if state == "claimed" and until > self.clock else "new"
            for uid, (state, _, until) in self.model.items()
            if state != "acked"
        }
        assert shown == expected, (shown, expected)
        assert all(len(each) <= 1 for each in self.acks.values())


def _code(failure: Any) -> str:
    failure.trap(Refusal)
    code: str = failure.value.code
    return code


class ModelTests(SynchronousTestCase):
    """trial does not collect Hypothesis' own test case, so it is run from here."""

    def test_any_order_of_events(self) -> None:
        """However claims, acks, releases, time and sweeps follow each other, the model is right."""
        run_state_machine_as_test(DeliveryMachine, settings=settings(max_examples=40, stateful_step_count=20))
