"""The way out against a model: whatever sessions, servers, people and crashes do, in whatever order.

The model is a few dictionaries.  It knows who may ask, which key said what, and how many copies of each mail
a server may have; the flows on a true database must agree with it after every step.
"""

from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from attrs import define, evolve
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

from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import (
    UNCLEAR_REST,
    MailKind,
    OutboxState,
    RecipientOutcome,
    RecipientVerdict,
)
from mailgateway.domain.question import Answered, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows import mode, outbox, sessions, start
from mailgateway.flows.outbox import Claimed
from mailgateway.flows.resolve import resolve
from mailgateway.flows.submit import SendRequest, Submitted, submit
from mailgateway.ids import OutboxId, QuestionId, SessionId
from mailgateway.store import outbox as rows
from mailgateway.store import questions
from mailgateway.store.database import Tx, sqlite_database_engine
from mailgateway.store.tables import metadata
from tests.flows.outbound import ACCOUNT, IDENTITY, PERSON, S1, S2, SENDER, ContestedDatabase, Gateway

T = TypeVar("T")

SESSIONS = st.sampled_from([S1, S2])
KINDS = st.sampled_from([MailKind.NOTIFICATION, MailKind.SETTLE, MailKind.DECISION])
VERDICTS = st.sampled_from(RecipientVerdict)
RARELY = st.sampled_from([False, False, False, True])
BUDGET = 2


@define(eq=False)
class Mail:
    """What the model knows of one mail."""

    submitted: Submitted
    request: SendRequest
    at: datetime
    clear: int = 0
    unclear: int = 0
    rests_until: datetime | None = None
    over: bool = False


class Outbound(RuleBasedStateMachine):
    """Steps that may come in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = sqlite_database_engine(None)
        metadata.create_all(self.engine)
        self.gateway = Gateway(ContestedDatabase(self.engine))
        self.sender = evolve(SENDER, budget_per_minute=BUDGET)
        self.mails: dict[OutboxId, Mail] = {}
        self.keys: dict[tuple[SessionId, str], Mail] = {}
        self.blocking: dict[SessionId, QuestionId] = {}
        self.reserved: set[QuestionId] = set()
        self.flying: list[Claimed] = []
        self.mode = Mode.ON
        self.restart()

    def waiting(self) -> bool:
        """Whether a mail has not come to its end."""
        return not all(mail.over for mail in self.mails.values())

    def teardown(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    # --- what sessions do

    @rule(
        session=SESSIONS,
        kind=KINDS,
        key=st.sampled_from([None, None, "k1", "k2"]),
        text=st.sampled_from(["one", "two"]),
        killed=RARELY,
    )
    def submit(self, session: SessionId, kind: MailKind, key: str | None, text: str, killed: bool) -> None:
        """A session submits, maybe into a power cut."""
        request = SendRequest(kind=kind, session=session, subject="s", text=text, idempotency_key=key)
        expected = self._expected(request)
        gateway = self.gateway
        gateway.database.interrupted = killed
        outcome = self._outcome(
            submit(
                gateway.database,
                gateway.bell,
                IDENTITY,
                self.sender,
                request,
                mint=gateway.mint,
                read_upload=gateway.read_upload,
            )
        )
        interrupted = killed and not gateway.database.interrupted
        gateway.database.interrupted = False
        if interrupted:
            assert expected is None, f"{expected} was expected before anything is written"
            return
        match outcome:
            case Refusal():
                assert outcome.code == expected, (outcome.code, expected)
            case Submitted() if isinstance(expected, Mail):
                assert outcome.outbox_id == expected.submitted.outbox_id
            case _:
                assert expected is None, expected
                self._took(outcome, request)

    def _expected(self, request: SendRequest) -> Mail | str | None:
        """The mail of the same key, the code of a refusal, or ``None`` for a new mail."""
        if request.idempotency_key is not None:
            known = self.keys.get((request.session, request.idempotency_key))
            if known is not None:
                return known if known.request == request else "key_reused"
        if self.mode is Mode.OFF:
            return "mode_off"
        if request.kind is MailKind.NOTIFICATION:
            since = self._now() - timedelta(seconds=60)
            if (
                sum(m.request.kind is MailKind.NOTIFICATION and m.at > since for m in self.mails.values())
                >= BUDGET
            ):
                return "send_budget"
        question = self.blocking.get(request.session)
        if request.kind is MailKind.DECISION and question is not None and question not in self.reserved:
            return "decision_outstanding"
        return None

    def _took(self, submitted: Submitted, request: SendRequest) -> None:
        mail = Mail(submitted, request, self._row(submitted.outbox_id).created_at)
        self.mails[submitted.outbox_id] = mail
        if request.idempotency_key is not None:
            self.keys[request.session, request.idempotency_key] = mail
        if submitted.question_id is not None:
            assert self.blocking.get(request.session, submitted.question_id) == submitted.question_id
            self.blocking[request.session] = submitted.question_id
            self.reserved.discard(submitted.question_id)

    @rule(session=SESSIONS)
    def reserve(self, session: SessionId) -> None:
        """A session reserves its decision."""
        gateway = self.gateway
        outcome = self._outcome(
            sessions.reserve(gateway.database, gateway.bell, IDENTITY, session, gateway.mint(12))
        )
        if session in self.blocking:
            assert isinstance(outcome, Refusal)
            assert outcome.code == "decision_outstanding"
        else:
            self.blocking[session] = outcome
            self.reserved.add(outcome)

    @precondition(lambda self: self.blocking)
    @rule(session=SESSIONS)
    def free(self, session: SessionId) -> None:
        """A session frees its decision."""
        self._outcome(sessions.free(self.gateway.database, self.gateway.bell, session))
        self.blocking.pop(session, None)

    # --- what the sender and the server do

    @precondition(lambda self: self.waiting())
    @rule()
    def claim(self) -> None:
        """The sender takes what is due."""
        claimed = self._outcome(
            outbox.claim_next(self.gateway.database, IDENTITY, ACCOUNT, lease_seconds=900)
        )
        if claimed is None:
            return
        mail = self.mails[claimed.id]
        assert self.mode is Mode.ON
        assert not mail.over
        assert claimed.id not in {flying.id for flying in self.flying}
        assert mail.rests_until is None or mail.rests_until <= self._now()
        self.flying.append(claimed)

    @precondition(lambda self: self.flying)
    @rule(verdict=VERDICTS, data=st.data())
    def conclude(self, verdict: RecipientVerdict, data: st.DataObject) -> None:
        """The server answers, or falls silent."""
        self._conclude(self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1))), verdict)

    def _conclude(self, claimed: Claimed, verdict: RecipientVerdict) -> None:
        mail = self.mails[claimed.id]
        mail.clear += verdict is RecipientVerdict.ACCEPTED
        if verdict is RecipientVerdict.UNCLEAR:
            self._lost_sight(mail)
        gateway = self.gateway
        outcome = RecipientOutcome(PERSON, verdict)
        state = self._outcome(outbox.conclude(gateway.database, gateway.bell, claimed, [outcome], error=""))
        if not mail.over:
            self._settled(mail, state)

    def _lost_sight(self, mail: Mail) -> None:
        mail.unclear += 1
        mail.rests_until = self._now() + UNCLEAR_REST - timedelta(seconds=1)

    def _settled(self, mail: Mail, state: OutboxState) -> None:
        mail.over = state in {OutboxState.SENT, OutboxState.FAILED, OutboxState.CANCELLED}
        question = mail.submitted.question_id
        session = mail.request.session
        if state in {OutboxState.FAILED, OutboxState.CANCELLED} and self.blocking.get(session) == question:
            self.blocking.pop(session, None)
        if state is OutboxState.CANCELLED:
            assert mail.request.kind is MailKind.DECISION
            self.keys = {key: other for key, other in self.keys.items() if other is not mail}

    @precondition(lambda self: self.waiting() and self.mode is Mode.ON)
    @rule(verdict=VERDICTS)
    def attempt(self, verdict: RecipientVerdict) -> None:
        """The whole of an attempt, as soon as a mail is due: what a sender does all day."""
        due = self._outcome(outbox.next_due(self.gateway.database, IDENTITY, ACCOUNT))
        if due is None:
            return
        self.gateway.database.offset += max(due - self._now(), timedelta(0))
        self.claim()
        self._conclude(self.flying.pop(), verdict)

    @precondition(lambda self: self.flying)
    @rule()
    def restart(self) -> None:
        """The process is killed and starts again."""
        self._outcome(start.introduce(self.gateway.database, IDENTITY.machine_id, IDENTITY.name))
        for claimed in self.flying:
            mail = self.mails[claimed.id]
            self._lost_sight(mail)
            if not mail.over:
                self._settled(mail, self._row(claimed.id).state)
        self.flying.clear()

    @precondition(lambda self: self.mails)
    @rule(minutes=st.sampled_from([0.5, 2, 6, 11, 130]))
    def time_goes_by(self, minutes: float) -> None:
        """On the database's clock."""
        self.gateway.later(minutes=minutes)

    # --- what people do

    @precondition(lambda self: self.waiting())
    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        """A reply comes back, which shows that the mail arrived."""
        mail = data.draw(st.sampled_from(list(self.mails.values())))
        settled = self.gateway.rows(lambda tx: rows.arrived(tx, mail.submitted.route_id))
        if settled:
            assert settled == ((mail.submitted.outbox_id, mail.submitted.route_id),)
            assert not mail.over
            mail.over = True

    @precondition(lambda self: self.blocking)
    @rule(session=SESSIONS)
    def answer(self, session: SessionId) -> None:
        """A person answers the session's decision."""
        question = self.blocking.get(session)
        if question is None:
            return

        def work(tx: Tx) -> object:
            return resolve(
                tx,
                question_id=question,
                expected_revision=1,
                values=(),
                note=None,
                text="words",
                by=PERSON,
                door="mail",
                random=self.gateway.mint(12),
            )

        assert isinstance(self.gateway.rows(work), Answered) == (question not in self.reserved)
        if question not in self.reserved:
            self.blocking.pop(session)

    @rule(off=RARELY)
    def switch(self, off: bool) -> None:
        """A person switches the mode, mostly on."""
        wanted = Mode.OFF if off else Mode.ON
        if wanted is self.mode:
            return
        self._outcome(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, wanted, by="person"))
        self.mode = wanted

    # --- what always holds

    @invariant()
    def one_decision_for_a_session(self) -> None:
        """What blocks is what the model says."""
        for session in (S1, S2):
            found = self.gateway.rows(lambda tx, session=session: questions.blocking(tx, session))  # type: ignore[misc]
            assert (found.id if found else None) == self.blocking.get(session)
            if found is not None:
                assert (found.status is QuestionStatus.RESERVED) == (found.id in self.reserved)

    @invariant()
    def never_a_third_copy(self) -> None:
        """One clear copy at most, and with a doubtful one at most two."""
        for mail in self.mails.values():
            assert mail.clear <= 1
            assert mail.clear + mail.unclear <= 2

    def _row(self, outbox_id: OutboxId) -> Any:
        return self._outcome(outbox.row(self.gateway.database, outbox_id))

    def _now(self) -> datetime:
        def work(tx: Tx) -> datetime:
            return tx.now

        return self.gateway.rows(work)

    def _outcome(self, coroutine: Coroutine[Deferred[Any], Any, Any]) -> Any:
        """What a flow returned, or the refusal, or the interruption."""
        outcomes: list[Any] = []
        Deferred.fromCoroutine(coroutine).addBoth(outcomes.append)
        (outcome,) = outcomes
        error = getattr(outcome, "value", None)
        if isinstance(error, BaseException) and not isinstance(error, Refusal):
            return error
        return error if isinstance(error, Refusal) else outcome


class OutboundModelTests(SynchronousTestCase):
    """The model and the flows agree."""

    def test_whatever_happens(self) -> None:
        """Fifty stories of forty steps each."""
        run_state_machine_as_test(
            Outbound, settings=settings(max_examples=50, stateful_step_count=40, deadline=None)
        )
