"""Questions against a model: whatever owners, others, people, time and power cuts do, in whatever order.

The model is a dictionary of what each question is.  The flows on a true database must agree with it after
every step, must refuse with the code that the model expects, and the log must hold.
"""

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import Engine
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.choice import Option
from mailgateway.domain.decision_log import Chain
from mailgateway.domain.question import Content, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows import question_answers, question_reading, question_updates, sessions, start, sweep
from mailgateway.flows import questions as flow
from mailgateway.flows.question_reading import Lifecycle, Pending, Read, Reader
from mailgateway.flows.question_updates import Person, Seen
from mailgateway.flows.questions import Asker, Draft
from mailgateway.flows.sessions import Ping
from mailgateway.ids import InstanceId, QuestionId, SessionId
from mailgateway.store import decision_log, question_changes, question_lists, questions
from mailgateway.store.database import Tx, sqlite_database_engine
from mailgateway.store.tables import metadata
from tests.flows.outbound import IDENTITY, S1, S2, ContestedDatabase, Gateway, Interrupted

OWNERS = {S1: InstanceId("one"), S2: InstanceId("two")}
WHO = st.sampled_from([S1, S2])
NTH = st.integers(0, 5)
OFF = st.sampled_from([0, 0, 0, 0, 1])
RARELY = st.sampled_from([False, False, False, False, True])
TEXTS = st.sampled_from(["one", "two"])
ROBIN = Person("robin", "terminal")
OPTIONS = (Option("a", "A"), Option("b", "B"))


def content(words: str) -> Content:
    """What a question says."""
    return Content(words, "why", OPTIONS)


@define(eq=False)
class Modelled:
    """What the model knows of one question."""

    owner: SessionId
    creator: SessionId
    words: str
    request: str | None
    status: QuestionStatus = QuestionStatus.OPEN
    revision: int = 1
    owner_revision: int = 1
    parent: QuestionId | None = None
    expires: float | None = None
    chosen: str = ""
    unread: bool = False
    first: str = field(default="")


class Questions(RuleBasedStateMachine):
    """Steps that may come in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = self.make_engine()
        self.gateway = Gateway(ContestedDatabase(self.engine))
        self.now = 0.0
        self.known: dict[QuestionId, Modelled] = {}
        self.heard = {S1: 0.0, S2: 0.0}
        self.entries = 0
        self.restart()
        for each in OWNERS:
            self.ping(each)

    def make_engine(self) -> Engine:
        """An empty database."""
        engine = sqlite_database_engine(None)
        metadata.create_all(engine)
        return engine

    def teardown(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    # --- how the flows are asked

    def go(self, coroutine: Coroutine[Any, Any, Any], *, killed: bool = False) -> Any:
        """The result, the refusal, or ``Interrupted`` when the power went out before the commit."""
        self.gateway.database.interrupted = killed
        results: list[Any] = []
        Deferred.fromCoroutine(coroutine).addCallbacks(
            results.append, lambda failed: results.append(failed.value)
        )
        self.gateway.database.interrupted = False
        (result,) = results
        assert not isinstance(result, Exception) or isinstance(result, Refusal | Interrupted), result
        return result

    def nth(self, number: int) -> QuestionId:
        """Some question, or one that is not there."""
        names = [*self.known]
        return names[number % len(names)] if names else QuestionId("q-none")

    def status(self, found: Modelled) -> QuestionStatus:
        """Where it stands now, swept or not."""
        over = found.expires is not None and found.expires <= self.now
        return QuestionStatus.EXPIRED if over and found.status is QuestionStatus.OPEN else found.status

    def expected(self, name: QuestionId, who: SessionId, revision: int, owner_revision: int) -> str | None:
        """The code with which an owner's act is refused."""
        found = self.known.get(name)
        if found is None:
            return "unknown"
        if found.owner != who:
            return "wrong_owner"
        if self.status(found) is not QuestionStatus.OPEN:
            return "question_terminal"
        if found.owner_revision != owner_revision:
            return "stale_owner_revision"
        return "stale_revision" if found.revision != revision else None

    def seen(self, name: QuestionId, late: int, owner_late: int) -> tuple[Seen, int, int]:
        """A question as somebody has seen it, now or before."""
        found = self.known.get(name)
        revision = (found.revision if found else 1) + late
        owner_revision = (found.owner_revision if found else 1) + owner_late
        return Seen(name, revision, owner_revision), revision, owner_revision

    def agree(self, result: Any, code: str | None) -> bool:
        """Whether the act was done; the code of its refusal must be the expected one."""
        if isinstance(result, Interrupted):
            return False
        assert (result.code if isinstance(result, Refusal) else None) == code, (result, code)
        if code is None:
            self.entries += 1
        return code is None

    # --- what happens

    @rule(who=WHO, words=TEXTS, request=st.sampled_from([None, None, "r1", "r2"]), lives=OFF, killed=RARELY)
    def create(self, who: SessionId, words: str, request: str | None, lives: int, killed: bool) -> None:
        """A session asks, maybe once more, maybe with an end."""
        before = next(
            (
                name
                for name, each in self.known.items()
                if request and (each.creator, each.request) == (who, request)
            ),
            None,
        )
        at = self.gateway.rows(_now) + timedelta(seconds=50) if lives and before is None else None
        draft = Draft(content(words), request_id=request, expires_at=at)
        gateway = self.gateway
        result = self.go(
            flow.create(
                gateway.database, gateway.bell, IDENTITY, Asker(who, OWNERS[who]), draft, gateway.mint(12)
            ),
            killed=killed,
        )
        if isinstance(result, Interrupted):
            return
        if before is not None:
            told = self.known[before]
            first = self.gateway.rows(lambda tx: questions.find(tx, before))
            assert first is not None
            if isinstance(result, Refusal):
                assert result.code == "key_reused"
                assert first.content_digest != draft.digest()
            else:
                assert result.question.id == before
                assert first.content_digest == draft.digest()
                assert result.question.revision == told.revision
            return
        expires = None if at is None else self.now + 50
        self.known[result.question.id] = Modelled(who, who, words, request, expires=expires)
        self.entries += 1

    @rule(who=WHO, nth=NTH, words=TEXTS, late=OFF, owner_late=OFF, killed=RARELY)
    def revise(self, who: SessionId, nth: int, words: str, late: int, owner_late: int, killed: bool) -> None:
        """Somebody gives it a new text."""
        name = self.nth(nth)
        seen, *revisions = self.seen(name, late, owner_late)
        code = self.expected(name, who, *revisions)
        gateway = self.gateway
        act = question_updates.revise(
            gateway.database, gateway.bell, Asker(who, OWNERS[who]), seen, content(words)
        )
        if self.agree(self.go(act, killed=killed), code):
            self.known[name].revision += 1
            self.known[name].words = words

    @rule(who=WHO, nth=NTH, late=OFF, owner_late=OFF)
    def cancel(self, who: SessionId, nth: int, late: int, owner_late: int) -> None:
        """Somebody needs no answer."""
        name = self.nth(nth)
        seen, *revisions = self.seen(name, late, owner_late)
        code = self.expected(name, who, *revisions)
        gateway = self.gateway
        act = question_updates.cancel(gateway.database, gateway.bell, Asker(who, OWNERS[who]), seen, None)
        if self.agree(self.go(act), code):
            self.known[name].status = QuestionStatus.CANCELLED

    @rule(who=WHO, nth=NTH, other=NTH)
    def supersede(self, who: SessionId, nth: int, other: int) -> None:
        """Another one stands in its place."""
        name, replacement = self.nth(nth), self.nth(other)
        seen, *revisions = self.seen(name, 0, 0)
        code = self.expected(name, who, *revisions)
        if code is None:
            there = self.known[replacement]
            if there.owner != who:
                code = "wrong_owner"
            elif replacement == name:
                code = "invalid"
            elif self.status(there) in {QuestionStatus.CANCELLED, QuestionStatus.EXPIRED}:
                code = "question_terminal"
        gateway = self.gateway
        act = question_updates.supersede(
            gateway.database, gateway.bell, Asker(who, OWNERS[who]), seen, replacement
        )
        if self.agree(self.go(act), code):
            self.known[name].status = QuestionStatus.SUPERSEDED

    @rule(who=WHO, to=WHO, nth=NTH, owner_late=OFF)
    def transfer(self, who: SessionId, to: SessionId, nth: int, owner_late: int) -> None:
        """It gets another owner."""
        name = self.nth(nth)
        seen, *revisions = self.seen(name, 0, owner_late)
        code = self.expected(name, who, *revisions)
        gateway = self.gateway
        act = question_updates.transfer(
            gateway.database, gateway.bell, Asker(who, OWNERS[who]), seen, who, to
        )
        if self.agree(self.go(act), code):
            self.known[name].owner = to
            self.known[name].owner_revision += 1

    @rule(who=WHO, nth=NTH, killed=RARELY)
    def take_over(self, who: SessionId, nth: int, killed: bool) -> None:
        """Somebody takes it from an owner that may be offline."""
        name = self.nth(nth)
        found = self.known.get(name)
        seen, *_ = self.seen(name, 0, 0)
        code = None
        if found is None:
            code = "unknown"
        elif self.status(found) is not QuestionStatus.OPEN:
            code = "question_terminal"
        elif self.now - self.heard[found.owner] < 120:
            code = "owner_not_offline"
        owner = found.owner if found else S1
        gateway = self.gateway
        act = question_updates.take_over(gateway.database, gateway.bell, Asker(who, OWNERS[who]), seen, owner)
        if self.agree(self.go(act, killed=killed), code):
            assert found is not None
            found.owner = who
            found.owner_revision += 1

    @rule(nth=NTH, value=st.sampled_from(["a", "b", "c"]), late=OFF, killed=RARELY)
    def answer(self, nth: int, value: str, late: int, killed: bool) -> None:
        """A person answers what they have seen."""
        name = self.nth(nth)
        found = self.known.get(name)
        revision = (found.revision if found else 1) + late
        code = None
        if found is None:
            code = "unknown"
        elif found.status is QuestionStatus.ANSWERED:
            code = "already_resolved"
        elif self.status(found) is not QuestionStatus.OPEN:
            code = "question_terminal"
        elif found.revision != revision:
            code = "stale_revision"
        elif value == "c":
            code = "invalid_selection"
        gateway = self.gateway
        act = question_answers.answer(
            gateway.database, gateway.bell, ROBIN, name, revision, [value], None, gateway.mint(12)
        )
        if self.agree(self.go(act, killed=killed), code):
            assert found is not None
            found.status, found.chosen, found.unread = QuestionStatus.ANSWERED, value, True

    @rule(who=WHO, nth=NTH, killed=RARELY)
    def read(self, who: SessionId, nth: int, killed: bool) -> None:
        """A session reads how it ended."""
        name = self.nth(nth)
        found = self.known.get(name)
        gateway = self.gateway
        act = question_reading.read_answer(
            gateway.database, gateway.bell, Reader(who), name, recover=False, look=False
        )
        result = self.go(act, killed=killed)
        if isinstance(result, Interrupted):
            return
        if found is None or found.owner != who:
            assert isinstance(result, Refusal)
            assert result.code == ("unknown" if found is None else "wrong_owner")
            return
        expires = found.status is QuestionStatus.OPEN and self.status(found) is QuestionStatus.EXPIRED
        if expires:
            found.status = QuestionStatus.EXPIRED
            self.entries += 1
        match found.status:
            case QuestionStatus.OPEN:
                assert isinstance(result, Pending)
                return
            case QuestionStatus.ANSWERED:
                assert isinstance(result, Read)
                assert result.values == (found.chosen,)
                assert result.already == bool(found.first), "one reader is the first"
                found.first = found.first or who
            case _:
                assert isinstance(result, Lifecycle)
        found.unread = False

    @rule(who=WHO)
    def ping(self, who: SessionId) -> None:
        """A session lives."""
        gateway = self.gateway
        self.go(sessions.ping(gateway.database, gateway.bell, IDENTITY, Ping(who, OWNERS[who])))
        self.heard[who] = self.now

    @rule(seconds=st.sampled_from([1, 40, 130]))
    def later(self, seconds: int) -> None:
        """Time goes by."""
        self.gateway.later(seconds=seconds)
        self.now += seconds

    @rule()
    def restart(self) -> None:
        """The process ends and begins again."""
        self.go(start.introduce(self.gateway.database, IDENTITY.machine_id, "laptop"))

    @rule()
    def sweep(self) -> None:
        """What is over is ended."""
        gateway = self.gateway
        self.go(
            sweep.sweep(
                gateway.database,
                gateway.bell,
                IDENTITY,
                bodies_days=30,
                route_ttl=timedelta(hours=168),
                alive=lambda _pid, _at: True,
                discard=lambda _path: None,
            )
        )
        for each in self.known.values():
            if each.status is QuestionStatus.OPEN and self.status(each) is QuestionStatus.EXPIRED:
                each.status, each.unread = QuestionStatus.EXPIRED, True
                self.entries += 1

    # --- what must hold

    @invariant()
    def rows_are_as_modelled(self) -> None:
        """Every question, its notice, and what a session that waits would hear of."""

        def work(tx: Tx) -> None:
            for name, each in self.known.items():
                found = questions.find(tx, name)
                assert found is not None
                told = (found.session_id, found.creator_id, found.prompt, found.status)
                assert told == (each.owner, each.creator, each.words, each.status)
                assert (found.revision, found.owner_revision) == (each.revision, each.owner_revision)
                assert found.attention == (each.status is QuestionStatus.OPEN or each.unread)
                kept = question_changes.revisions(tx, name, range(1, each.revision + 1))
                assert len(kept) == each.revision
                won = questions.answer_of(tx, name)
                assert (won.values if won else ()) == ((each.chosen,) if each.chosen else ())
            for who in OWNERS:
                ended = question_lists.next_ended(tx, who)
                unread = {name for name, each in self.known.items() if each.owner == who and each.unread}
                assert ended.id in unread if ended else not unread

        self.gateway.rows(work)

    @invariant()
    def the_log_holds(self) -> None:
        """One line for each thing that was done, and nothing for what was not."""

        def work(tx: Tx) -> Any:
            return Chain().follow(decision_log.page(tx, IDENTITY.machine_id, 0, 10_000))

        chain = self.gateway.rows(work)
        assert isinstance(chain, Chain), chain
        assert chain.number == self.entries


def _now(tx: Tx) -> Any:
    return tx.now


class ModelTests(SynchronousTestCase):
    """The machine, on SQLite."""

    def test_questions(self) -> None:
        """Forty steps, again and again."""
        run_state_machine_as_test(
            Questions, settings=settings(max_examples=20, stateful_step_count=40, deadline=None)
        )
