"""Questions in the same moment, and many of them: one act is done, and lists go along an index."""

from typing import Any

from attrs import evolve
from sqlalchemy import Engine, text
from twisted.internet.defer import Deferred

from mailgateway.domain.question import Question, QuestionKind, QuestionStatus
from mailgateway.domain.question_list import Scope, Wanted
from mailgateway.errors import Refusal
from mailgateway.flows import question_answers, question_reading, question_updates
from mailgateway.flows import questions as flow
from mailgateway.flows.question_reading import Read, Reader
from mailgateway.flows.question_updates import Person, Seen
from mailgateway.flows.questions import Asker, Draft
from mailgateway.ids import InstanceId, MachineId, QuestionId, SessionId
from mailgateway.store import machines, question_changes
from mailgateway.store import sessions as session_rows
from mailgateway.store.database import Tx, transact
from mailgateway.store.question_lists import query
from tests.flows.outbound import IDENTITY, S1, ContestedDatabase, Gateway, OutboundTestCase
from tests.flows.test_question_model import OPTIONS, ROBIN, content


class RaceTests(OutboundTestCase):
    """Many threads at the same moment; one of them does it."""

    def ask(self, engine: Engine, **fields: Any) -> Question:
        """An open question of ``S1``."""

        def work(tx: Tx) -> Question:
            asked = Question(
                id=QuestionId("q-1"),
                session_id=S1,
                creator_id=S1,
                machine_id=MachineId("machine-one"),
                blocking=False,
                status=QuestionStatus.OPEN,
                kind=QuestionKind.QUESTION,
                revision=1,
                subject="s",
                prompt="p",
                options=OPTIONS,
                recommendation="",
                route_id=None,
                created_at=tx.now,
                expires_at=None,
            )
            asked = evolve(asked, **fields)
            question_changes.add(tx, asked, request_id=None)
            return asked

        return transact(engine, work)

    def race(self, engine: Engine, act: Any) -> list[Any]:
        """What each of ten threads got, or was refused with."""
        results: list[Any] = []
        database = Gateway(ContestedDatabase(engine))

        def go(number: int) -> None:
            one = Gateway(ContestedDatabase(engine))
            got: list[Any] = []
            Deferred.fromCoroutine(act(one, number)).addCallbacks(
                got.append, lambda each: got.append(each.value)
            )
            results.append(got[0])

        database.kinds()
        self.at_once(10, go)
        return [each.code if isinstance(each, Refusal) else "done" for each in results]

    def test_two_doors(self) -> None:
        """One answer wins, whatever door; the others hear so."""
        engine = self.contested_engine()
        asked = self.ask(engine)

        def act(one: Gateway, number: int) -> Any:
            person = Person("robin", "web" if number % 2 else "terminal")
            random = bytes([number]) * 12
            return question_answers.answer(one.database, one.bell, person, asked.id, 1, ["a"], None, random)

        codes = self.race(engine, act)
        self.assertEqual(sorted(codes), ["already_resolved"] * 9 + ["done"])
        count = transact(engine, lambda tx: tx.execute(text("SELECT count(*) FROM envelope")).scalar())
        self.assertEqual(count, 1)

    def test_ten_takers(self) -> None:
        """One gets it."""
        engine = self.contested_engine()
        asked = self.ask(engine, session_id=SessionId("gone"))
        transact(engine, self._introduce)

        def act(one: Gateway, number: int) -> Any:
            asker = Asker(SessionId(f"taker {number}"), InstanceId(f"i{number}"))
            return question_updates.take_over(
                one.database, one.bell, asker, Seen(asked.id, 1, 1), SessionId("gone")
            )

        self.assertEqual(sorted(self.race(engine, act)), ["done"] + ["stale_owner_revision"] * 9)

    def _introduce(self, tx: Tx) -> None:
        machines.introduce(tx, MachineId("machine-one"), "laptop")
        for number in range(10):
            session_rows.ensure(tx, SessionId(f"taker {number}"), MachineId("machine-one"))

    def test_answer_against_cancel_and_revise(self) -> None:
        """Whatever commits first holds; all that follows is refused with its code."""
        for _ in range(3):
            engine = self.contested_engine()
            asked = self.ask(engine)

            def act(one: Gateway, number: int, asked: Question = asked) -> Any:
                asker, seen = Asker(S1, InstanceId("i")), Seen(asked.id, 1, 1)
                match number % 3:
                    case 0:
                        return question_updates.cancel(one.database, one.bell, asker, seen, None)
                    case 1:
                        return question_updates.revise(one.database, one.bell, asker, seen, content("new"))
                    case _:
                        random = bytes([number]) * 12
                        return question_answers.answer(
                            one.database, one.bell, ROBIN, asked.id, 1, ["a"], None, random
                        )

            codes = self.race(engine, act)
            self.assertEqual(codes.count("done"), 1, codes)
            late = {"done", "question_terminal", "already_resolved", "stale_revision"}
            self.assertLessEqual(set(codes), late)

    def test_first_readers(self) -> None:
        """Of ten that read at once, one finds the answer unread."""
        engine = self.contested_engine()
        asked = self.ask(engine)
        one = Gateway(ContestedDatabase(engine))
        self.now(question_answers.answer(one.database, one.bell, ROBIN, asked.id, 1, ["a"], None, b"n" * 12))
        first: list[bool] = []

        async def read(one: Gateway) -> None:
            found = await question_reading.read_answer(
                one.database, one.bell, Reader(S1), asked.id, recover=False, look=False
            )
            assert isinstance(found, Read)
            first.append(not found.already)

        self.race(engine, lambda one, _number: read(one))
        self.assertEqual(sum(first), 1)
        self.assertEqual(len(first), 10)

    def test_the_same_request_at_once(self) -> None:
        """Ten that ask under one request id ask once."""
        engine = self.contested_engine()
        transact(engine, self._introduce)
        names: list[str] = []

        async def ask(one: Gateway, number: int) -> None:
            draft = Draft(content("one"), request_id="r")
            random = bytes([number]) * 12
            asker = Asker(S1, InstanceId("i"))
            names.append(
                (await flow.create(one.database, one.bell, IDENTITY, asker, draft, random)).question.id
            )

        self.assertEqual(self.race(engine, ask), ["done"] * 10)
        self.assertEqual(len(set(names)), 1)


class ManyTests(OutboundTestCase):
    """Ten thousand questions that wait."""

    def test_lists_go_along_an_index(self) -> None:
        """No list of the usual kinds sorts or looks at all rows."""
        statements = {
            "all": Wanted(None, Scope.GLOBAL),
            "own": Wanted(S1, Scope.OWN),
            "own pending": Wanted(S1, Scope.OWN, QuestionStatus.OPEN),
            "pending": Wanted(None, Scope.GLOBAL, QuestionStatus.OPEN),
            "answered": Wanted(None, Scope.GLOBAL, QuestionStatus.ANSWERED),
            "unread": Wanted(None, Scope.GLOBAL, read=False),
        }

        def plans(tx: Tx) -> dict[str, str]:
            found = {}
            for name, wanted in statements.items():
                statement = query(tx, wanted, None, 25)
                compiled = statement.compile(tx.connection, compile_kwargs={"literal_binds": False})
                rows = tx.connection.exec_driver_sql(
                    f"EXPLAIN QUERY PLAN {compiled}", tuple(compiled.params.values())
                )
                found[name] = "; ".join(row[3] for row in rows)
            return found

        if self.gateway.database.engine.dialect.name != "sqlite":
            return
        for name, plan in self.gateway.rows(plans).items():
            self.assertIn("USING INDEX question_", plan, name)
            self.assertNotIn("TEMP B-TREE", plan, name)
            self.assertNotIn("SCAN question", plan.replace("SCAN question USING INDEX", ""), name)
