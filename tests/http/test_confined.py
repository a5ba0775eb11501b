"""Keys that speak for some sessions only: every route, against another session's things.

Each route of the table is here, so a new one cannot come without saying what it is to such a key: refused
because it concerns the whole machine, tried with whatever may name another session's things, or of no harm.
"""

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from mailgateway.domain.envelope import AttachmentInfo
from mailgateway.flows.bell import Event, EventKind
from mailgateway.http.routes import Route
from mailgateway.http.table import ROUTES
from mailgateway.ids import SessionId
from mailgateway.store.tables import metadata
from tests.http.case import ENVELOPE, MAIL, WHO, RouteCase, file
from tests.http.question_case import ASK
from tests.http.rig import BOUND, BOUND_PERSON, request

PLACE = {"uid": 42, "uidValidity": 7, "account": "main", "folder": "INBOX"}
TARGETS: tuple[dict[str, Any], ...] = (
    {"id": ENVELOPE.id},
    {"id": ENVELOPE.id[:8]},
    {"uid": 42},
    {"uid": 42, "folder": "INBOX"},
    PLACE,
)
FILE = {"X-Filename": "a"}
OURS = {"X-Session-Id": "s"}
THEIRS = {"sessionId": "theirs", "instanceId": "j"}

HARMLESS = {
    "GET /health": "asks for no key, and has counts only",
    "GET /mode": "a ping tells it too",
    "GET /outbox": "lists what is the key's own, see tests.http.test_sending",
    "GET /openapi.json": "the same for everybody",
    "POST /questions/{id}/answer": "for people, of the key's own sessions, see tests.http.test_questions",
}


@frozen
class Trial:
    """One request, and the refusal that it must meet."""

    path: str
    body: Any = None
    headers: dict[str, str] | None = None
    refusal: tuple[int, str] = (403, "not_yours")


class ConfinedTests(RouteCase):
    """The session ``s`` has one of everything; the key speaks for ``theirs``."""

    def setUp(self) -> None:
        super().setUp()
        self.ask("POST", "/ping", WHO)
        self.ask("POST", "/ping", THEIRS, key=BOUND)
        self.outbox = self.ask("POST", "/send", MAIL).json["outboxId"]
        self.uploaded = self.ask("POST", "/attachments", b"x", headers=OURS | FILE).json["attachmentId"]
        self.ask("POST", "/settle", {**WHO, "summary": "done"})
        self.ask("POST", "/register", WHO)
        self.question = self.ask("POST", "/questions", ASK).json["questionId"]
        file(self.rig, parts=[(AttachmentInfo("a1", "a", "text/plain", 1), b"x")])
        self.ask("POST", "/claim", {"instanceId": "i", "id": ENVELOPE.id})

    def trials(self) -> dict[str, list[Trial]]:
        """What is tried on each route that may name a session's things; also in the name of its instance."""
        acts = [{"instanceId": name, **target} for name in ("i", "j") for target in TARGETS]
        fetches = [
            Trial(f"/deliveries/{name}/attachments/a1", headers={"X-Instance-Id": instance})
            for name in (ENVELOPE.id, ENVELOPE.id[:8])
            for instance in ("i", "j")
        ]
        mail = {**MAIL, "sessionId": "theirs", "attachments": [self.uploaded]}
        who = [{**WHO, "instanceId": name} for name in ("i", "j")]
        own = f"/questions/{self.question}"
        text = {name: ASK[name] for name in ("prompt", "ambiguity", "options")}
        seen = {"expectedRevision": 1, "expectedOwnerRevision": 1}
        changes: dict[str, dict[str, Any]] = {
            "revise": text,
            "cancel": {"expectedRevision": 2},
            "supersede": {"replacementQuestionId": "q-none"},
            "reparent": {},
            "transfer": {"expectedOwner": "s", "owner": "theirs"},
            "takeover": {"expectedOwner": "s"},
        }
        return {
            "POST /questions": [Trial("/questions", ASK | each) for each in who],
            "POST /questions/batch": [
                Trial("/questions/batch", {**each, "items": [{**text, "localRef": "a"}]}) for each in who
            ],
            "GET /questions": [
                Trial(f"/questions?session=s&scope={scope}") for scope in ("own", "worktree", "global")
            ],
            "GET /questions/{id}": [
                Trial(f"{own}?session=s"),
                Trial(f"{own}?scope=global", refusal=(403, "wrong_owner")),
                Trial(f"{own}?session=theirs&scope=global", refusal=(403, "wrong_owner")),
            ],
            "GET /questions/{id}/history": [
                Trial(f"{own}/history?session=s"),
                Trial(f"{own}/history?scope=global", refusal=(403, "wrong_owner")),
            ],
            "GET /questions/{id}/answer": [
                Trial(f"{own}/answer?session=s"),
                Trial(f"{own}/answer?session=theirs&recover=true", refusal=(403, "wrong_owner")),
            ],
            **{
                f"POST /questions/{{id}}/{act}": [
                    Trial(f"{own}/{act}", {**each, **seen, **fields}) for each in who
                ]
                for act, fields in changes.items()
            },
            "POST /wait": [Trial("/wait?wait=5", each) for each in who],
            "POST /ping": [Trial("/ping", each) for each in who],
            "POST /bye": [Trial("/bye", each) for each in who],
            "POST /register": [Trial("/register", each) for each in who],
            "DELETE /register": [Trial("/register", each) for each in who],
            "POST /settle": [Trial("/settle", {**each, "summary": "x"}) for each in who],
            "GET /pending": [Trial("/pending?session=s"), Trial("/pending?session=s&wait=5&kind=user")],
            "GET /events": [Trial("/events?session=s", headers={"Last-Event-ID": "0"})],
            **{
                f"POST /{act}": [Trial(f"/{act}", each) for each in acts]
                for act in ("claim", "release", "ack")
            },
            "GET /deliveries/{id}/attachments/{aid}": fetches,
            "POST /attachments": [Trial("/attachments", b"x", OURS | FILE)],
            "POST /send": [
                Trial("/send", MAIL),
                Trial("/send", {**MAIL, "kind": "decision", "idempotencyKey": "k"}),
                Trial("/send", mail, refusal=(404, "unknown")),
            ],
            "GET /outbox/{id}": [Trial(f"/outbox/{self.outbox}")],
            "POST /outbox/{id}/retry": [Trial(f"/outbox/{self.outbox}/retry", {"unclear": True})],
            "POST /outbox/{id}/drop": [Trial(f"/outbox/{self.outbox}/drop")],
        }

    def machine_routes(self) -> Iterator[Route]:
        """Routes that concern the whole machine."""
        return (route for route in ROUTES if route.whole_machine)

    def picture(self) -> dict[str, list[Any]]:
        """Every row of every table."""
        return self.rig.database.now(
            lambda tx: {table.name: list(tx.execute(table.select())) for table in metadata.sorted_tables}
        )

    def test_every_route_is_looked_at(self) -> None:
        """And none in two ways."""
        ways = [*self.trials(), *(route.name for route in self.machine_routes()), *HARMLESS]
        self.assertEqual(sorted(ways), sorted(route.name for route in ROUTES))

    def test_the_things_of_another_session_are_refused(self) -> None:
        """On every route, by every name; and nothing has changed."""
        before = self.picture()
        for key in (BOUND, BOUND_PERSON):
            for name, trials in self.trials().items():
                for trial in trials:
                    answer = self.ask(name.split()[0], trial.path, trial.body, key=key, headers=trial.headers)
                    self.assertEqual((answer.status, answer.code), trial.refusal, trial)
                    self.assertNotIn(ENVELOPE.body.encode(), answer.body)
        self.assertEqual(self.picture(), before)

    def test_what_the_trials_try_exists(self) -> None:
        """The session's own key is not refused: so what the other was refused for is the key."""
        for name, trials in self.trials().items():
            if name == "GET /events":
                continue
            codes = set()
            for trial in trials:
                client = self.rig.connect()
                client.feed(request(name.split()[0], trial.path, trial.body, headers=trial.headers))
                self.rig.clock.advance(60)
                answer = client.answer()
                assert answer is not None
                codes.add(answer.status)
            self.assertTrue(codes & {200, 409}, name)

    def test_the_whole_machine_is_refused(self) -> None:
        """Whatever the role; nothing is done, and the sentence says why."""
        routes = list(self.machine_routes())
        self.assertLessEqual(
            {"POST /mode", "POST /prime", "POST /reload", "POST /shutdown", "GET /metrics", "GET /inbound"},
            {route.name for route in routes},
        )
        before = self.picture()
        for route in routes:
            body = {"mode": "off"} if route.path == "/mode" else None
            answer = self.ask(route.method, route.path, body, key=BOUND_PERSON)
            self.refused(answer, 403, "not_yours")
            self.assertIn("whole machine", answer.json["message"])
            self.assertEqual(self.ask(route.method, route.path, body, key=BOUND).status, 403, route.name)
        self.rig.clock.advance(1)
        self.assertEqual(self.rig.control.events, [])
        self.assertEqual(self.picture(), before)

    def test_listings_and_streams_leave_others_out(self) -> None:
        """Without a session named, a key hears of its own; of changes of no session everybody hears."""
        self.assertEqual(self.ask("GET", "/pending", key=BOUND).json, {"deliveries": []})
        poll, stream, late = (self.rig.connect() for _ in range(3))
        poll.feed(request("GET", "/pending?wait=60", key=BOUND))
        stream.feed(request("GET", "/events", key=BOUND))
        seen = {"Last-Event-ID": f"{self.rig.doors.started}-0"}
        late.feed(request("GET", "/events", key=BOUND, headers=seen))
        for kind in EventKind:
            self.rig.bell.ring(Event(kind, f"secret-{kind}", SessionId("s")))
        self.ask("POST", "/release", {"instanceId": "i", "id": ENVELOPE.id})
        self.ask("POST", "/mode", {"mode": "off"})
        self.ask("POST", "/mode", {"mode": "on"})
        self.assertIsNone(poll.answer())
        for client in (stream, late):
            self.assertIn(b"event: mode", client.text())
            for word in (b"secret", b'"s"', ENVELOPE.id.encode()):
                self.assertNotIn(word, client.text())
