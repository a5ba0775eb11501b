"""The routes: what is asked, what is answered, and what a client never sees."""

import hmac
import re
from datetime import UTC, datetime
from pathlib import Path

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from mailgateway.domain.envelope import AttachmentInfo, Envelope, EnvelopeKind, Source, Trust
from mailgateway.domain.outbox import RecipientOutcome, RecipientVerdict
from mailgateway.errors import StaleWrite, StoreUnavailable
from mailgateway.flows import outbox
from mailgateway.flows.bell import Event, EventKind
from mailgateway.flows.ports import AccountStatus, ScanSummary
from mailgateway.http.openapi import GENERAL_CODES
from mailgateway.http.problems import STATUS
from mailgateway.http.table import ROUTES
from mailgateway.ids import AccountName, EnvelopeId, SessionId
from mailgateway.store import attachments, envelopes
from mailgateway.store.database import T, Work
from tests.fakes.database import ImmediateDatabase
from tests.http.rig import BOUND, KEY, PERSON, Answer, Rig, done, request

AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
WHO = {"sessionId": "s", "instanceId": "i"}
MAIL = {"kind": "notification", "sessionId": "s", "subject": "x", "text": "y"}

ENVELOPE = Envelope(
    id=EnvelopeId("m-" + "1" * 24),
    kind=EnvelopeKind.USER,
    trust=Trust.OWNER,
    session_id=SessionId("s"),
    machine_id=None,
    subject="Re: x",
    body="do it",
    quoted="> shall I?",
    from_address="robin@example.org",
    from_name="Robin",
    received_at=AT,
    source=Source(AccountName("main"), "INBOX", 7, 42),
    message_id="<a@example.org>",
)


def file(
    rig: Rig, envelope: Envelope = ENVELOPE, parts: list[tuple[AttachmentInfo, bytes]] | None = None
) -> None:
    """Put an envelope where the watcher would, and ring."""
    rig.database.now(lambda tx: envelopes.add(tx, envelope))
    if parts:
        rig.database.now(lambda tx: attachments.add(tx, envelope.id, parts))
    rig.bell.ring(Event(EventKind.DELIVERY, envelope.id, envelope.session_id))


class RouteCase(SynchronousTestCase):
    """A fresh service for each test."""

    def setUp(self) -> None:
        self.rig = Rig()
        self.ask = self.rig.ask

    def refused(self, answer: Answer, status: int, code: str) -> None:
        """The answer is this problem, with a sentence."""
        self.assertEqual((answer.status, answer.code), (status, code))
        self.assertGreater(len(answer.json["message"]), 10)


class DeliveryTests(RouteCase):
    """Look, claim, release, ack, fetch."""

    def test_a_delivery_has_every_field_of_the_contract(self) -> None:
        """Named as the contract names them; absent ones are left out."""
        file(self.rig)
        (delivery,) = self.ask("GET", "/pending?session=s").json["deliveries"]
        rendered = delivery.pop("rendered")
        self.assertIn("do it", rendered)
        self.assertEqual(
            delivery,
            {
                "id": ENVELOPE.id,
                "sessionId": "s",
                "kind": "user",
                "trust": "owner",
                "state": "new",
                "subject": "Re: x",
                "body": "do it",
                "quoted": "> shall I?",
                "from": "robin@example.org",
                "fromName": "Robin",
                "receivedAt": "2026-01-02T03:04:05.678900Z",
                "attachments": [],
                "device": "",
                "account": "main",
                "folder": "INBOX",
                "uid": 42,
                "uidValidity": 7,
                "messageId": "<a@example.org>",
                "route": None,
            },
        )

    def test_claim_and_ack(self) -> None:
        """By a prefix of the id; the ack is the same however often."""
        file(self.rig)
        target = {"instanceId": "i", "id": ENVELOPE.id[:8]}
        claimed = self.ask("POST", "/claim", {**target, "pid": 1, "processStartedAt": 1.5})
        self.assertEqual((claimed.status, claimed.json["state"]), (200, "claimed"))
        self.assertRegex(claimed.json["leaseUntil"], r"^\d{4}-\d\d-\d\dT[\d:.]{15}Z$")
        self.refused(self.ask("POST", "/claim", {**target, "instanceId": "j"}), 409, "already_claimed")
        self.refused(self.ask("POST", "/ack", {**target, "instanceId": "j"}), 409, "not_claimant")
        for _ in range(2):
            self.assertEqual(self.ask("POST", "/ack", target).json, {"acked": True})
        self.refused(self.ask("POST", "/claim", target), 409, "acked")
        self.assertEqual(self.ask("GET", "/pending").json, {"deliveries": []})

    def test_release_makes_it_new(self) -> None:
        """By the place of the mail."""
        file(self.rig)
        target = {"instanceId": "i", "uid": 42, "uidValidity": 7, "account": "main"}
        self.ask("POST", "/claim", target)
        self.assertEqual(self.ask("POST", "/release", target).json["state"], "new")
        self.refused(self.ask("POST", "/claim", {**target, "uidValidity": 8}), 409, "stale-space")

    def test_an_attachment_is_never_shown_in_place(self) -> None:
        """As a file, by a safe name and type, to the claimant only."""
        parts = [
            (AttachmentInfo("a1", 'x"\r\n/é.html', "text/html", 3), b"<b>"),
            (AttachmentInfo("a2", "", 'odd"type', 1), b"y"),
        ]
        file(self.rig, parts=parts)
        path = f"/deliveries/{ENVELOPE.id}/attachments/"
        self.refused(self.ask("GET", path + "a1"), 400, "invalid")
        self.refused(self.ask("GET", path + "a1", headers={"X-Instance-Id": "i"}), 409, "not_claimant")
        self.ask("POST", "/claim", {"instanceId": "i", "id": ENVELOPE.id})
        answer = self.ask("GET", path + "a1", headers={"X-Instance-Id": "i"})
        self.assertEqual((answer.status, answer.body), (200, b"<b>"))
        self.assertEqual(answer.headers["content-type"], "text/html")
        self.assertEqual(answer.headers["content-disposition"], "attachment; filename*=UTF-8''%C3%A9.html")
        self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        self.assertIn("sandbox", answer.headers["content-security-policy"])
        other = self.ask("GET", path + "a2", headers={"X-Instance-Id": "i"})
        self.assertEqual(other.headers["content-type"], "application/octet-stream")

    def test_a_bound_key_sees_and_claims_its_own_alone(self) -> None:
        """Another machine's key cannot reach our deliveries, not even by their ids."""
        theirs = evolve(ENVELOPE, id=EnvelopeId("m-" + "2" * 24), session_id=SessionId("theirs"), source=None)
        file(self.rig)
        file(self.rig, theirs)
        found = self.ask("GET", "/pending", key=BOUND).json["deliveries"]
        self.assertEqual([delivery["id"] for delivery in found], [theirs.id])
        for target in ({"id": ENVELOPE.id}, {"id": "m-1111"}, {"uid": 42}, {"id": "m-"}):
            answer = self.ask("POST", "/claim", {"instanceId": "j", **target}, key=BOUND)
            self.assertIn(answer.status, {403, 404}, target)
        claimed = self.ask("POST", "/claim", {"instanceId": "j", "id": theirs.id}, key=BOUND)
        self.assertEqual(claimed.status, 200)
        (ours,) = self.ask("GET", "/pending?session=s").json["deliveries"]
        self.assertEqual(ours["state"], "new")


class PollTests(RouteCase):
    """Waiting for a delivery."""

    def test_a_poll_ends_with_the_first_delivery(self) -> None:
        """Forty at once wake together, and change nothing."""
        clients = [self.rig.connect() for _ in range(40)]
        for client in clients:
            client.feed(request("GET", "/pending?session=s&wait=30"))
            self.assertIsNone(client.answer())
        other = self.rig.connect()
        other.feed(request("GET", "/pending?session=other&wait=30"))
        file(self.rig)
        for client in clients:
            answer = client.answer()
            assert answer is not None
            self.assertEqual([each["state"] for each in answer.json["deliveries"]], ["new"])
        self.assertIsNone(other.answer())

    def test_a_poll_ends_empty_in_its_time(self) -> None:
        """No sooner and no later."""
        client = self.rig.connect()
        client.feed(request("GET", "/pending?session=s&wait=2.5"))
        self.rig.clock.advance(2.4)
        self.assertIsNone(client.answer())
        self.rig.clock.advance(0.2)
        answer = client.answer()
        assert answer is not None
        self.assertEqual(answer.json, {"deliveries": []})

    def test_hanging_up_gives_everything_back(self) -> None:
        """No ticket, no timer, no traceback."""
        for _ in range(30):
            client = self.rig.connect()
            client.feed(request("GET", "/pending?wait=60"))
            client.hang_up()
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
        self.assertEqual(self.rig.bell._tickets, set())
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_switching_on_wakes_a_poll(self) -> None:
        """What came while the mode was off is handed out at once."""
        self.ask("POST", "/mode", {"mode": "off"})
        file(self.rig)
        client = self.rig.connect()
        client.feed(request("GET", "/pending?wait=60"))
        self.assertIsNone(client.answer())
        self.ask("POST", "/mode", {"mode": "on"})
        answer = client.answer()
        assert answer is not None
        self.assertEqual(len(answer.json["deliveries"]), 1)

    def test_the_end_of_the_service_ends_a_poll(self) -> None:
        """It answers what there is, and the connection closes."""
        client, idle = self.rig.connect(), self.rig.connect()
        client.feed(request("GET", "/pending?wait=60"))
        closed = self.rig.doors.close()
        answer = client.answer()
        assert answer is not None
        self.assertEqual((answer.status, answer.json), (200, {"deliveries": []}))
        self.assertEqual(answer.headers["connection"], "close")
        self.assertTrue(client.closed and idle.closed)
        self.assertNoResult(closed)
        client.hang_up()
        idle.hang_up()
        self.successResultOf(closed)
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])

    def test_the_end_does_not_wait_for_who_does_not_read(self) -> None:
        """After two seconds whoever is left is cut off."""
        client = self.rig.connect()
        closed = self.rig.doors.close()
        self.rig.clock.advance(2)
        self.successResultOf(closed)
        self.assertTrue(client.wire.disconnected)


class SessionTests(RouteCase):
    """Ping, bye, register, settle, mode."""

    def test_ping_tells_mode_and_pending(self) -> None:
        """For this session alone."""
        file(self.rig)
        facts = {"harness": "pi", "title": "t", "cwd": "/w", "dirty": False, "state": "working"}
        self.assertEqual(self.ask("POST", "/ping", {**WHO, **facts}).json, {"mode": "on", "pending": 1})
        other = {"sessionId": "other", "instanceId": "j"}
        self.assertEqual(self.ask("POST", "/ping", other).json["pending"], 0)
        self.refused(self.ask("POST", "/claim", {"instanceId": "j", "id": ENVELOPE.id}), 403, "not_yours")

    def test_one_decision_may_be_reserved(self) -> None:
        """Until it is freed, or the session says bye."""
        for free in (("DELETE", "/register"), ("POST", "/bye")):
            self.assertEqual(self.ask("POST", "/register", WHO).status, 200)
            self.refused(self.ask("POST", "/register", WHO), 409, "decision_outstanding")
            self.assertEqual(self.ask("GET", "/health", key=None).json["registry"], 1)
            self.assertEqual(self.ask(*free, WHO).json, {})
        self.assertEqual(self.ask("POST", "/register", WHO).status, 200)

    def test_settle_is_taken(self) -> None:
        """With a summary, which is required."""
        self.assertEqual(self.ask("POST", "/settle", {**WHO, "summary": "done"}).status, 200)
        self.refused(self.ask("POST", "/settle", WHO), 400, "invalid")

    def test_only_a_person_undoes_a_persons_off(self) -> None:
        """The key tells who asks."""
        self.ask("POST", "/mode", {"mode": "off"}, key=PERSON)
        self.refused(self.ask("POST", "/mode", {"mode": "on"}), 403, "person_required")
        self.assertEqual(self.ask("GET", "/mode").json, {"mode": "off"})
        self.assertEqual(self.ask("POST", "/mode", {"mode": "on"}, key=PERSON).json, {"mode": "on"})


class SendTests(RouteCase):
    """Mail that leaves."""

    def conclude(self, verdict: RecipientVerdict, code: int) -> None:
        """Play the sender: one attempt with this outcome."""
        rig = self.rig
        claimed = done(outbox.claim_next(rig.database, rig.identity, AccountName("main"), lease_seconds=600))
        outcomes = [RecipientOutcome(address, verdict, code, "words") for address in claimed.recipients]
        error = "" if verdict is RecipientVerdict.ACCEPTED else f"{code} words"
        done(outbox.conclude(rig.database, rig.bell, rig.identity, claimed, outcomes, error=error))

    def test_a_notification_is_queued(self) -> None:
        """And can be followed."""
        answer = self.ask("POST", "/send", MAIL)
        self.assertEqual((answer.status, answer.json["state"]), (200, "queued"))
        self.assertLessEqual({"messageId", "route", "subject", "outboxId"}, set(answer.json))
        row = self.ask("GET", f"/outbox/{answer.json['outboxId']}")
        self.assertEqual((row.json["state"], row.json["attempts"]), ("queued", 0))
        self.assertEqual([each["state"] for each in row.json["recipients"]], ["waiting"])
        self.refused(self.ask("GET", f"/outbox/{answer.json['outboxId']}", key=BOUND), 403, "not_yours")
        self.refused(self.ask("GET", "/outbox/none"), 404, "unknown")

    def test_the_budget_says_when_to_come_back(self) -> None:
        """In the body and in the header."""
        answers = [self.ask("POST", "/send", MAIL) for _ in range(11)]
        self.assertEqual({answer.status for answer in answers[:10]}, {200})
        self.refused(answers[10], 429, "send_budget")
        self.assertTrue(0 < answers[10].json["retryAfter"] <= 60)
        self.assertTrue(1 <= int(answers[10].headers["retry-after"]) <= 60)

    def test_a_decision_waits_for_the_first_attempt(self) -> None:
        """Accepted: sent, with the question's id."""
        client = self.rig.connect()
        client.feed(request("POST", "/send", {**MAIL, "kind": "decision", "options": ["yes", "no"]}))
        self.assertIsNone(client.answer())
        self.conclude(RecipientVerdict.ACCEPTED, 250)
        answer = client.answer()
        assert answer is not None
        self.assertEqual(answer.json["state"], "sent")
        self.assertRegex(answer.json["questionId"], "^q-")

    def test_a_decision_fails_when_the_mail_server_refuses(self) -> None:
        """With the server's code, and whether it is worth another try."""
        for code, verdict, temporary in (
            (550, RecipientVerdict.REJECTED, False),
            (451, RecipientVerdict.TRY_LATER, True),
        ):
            client = self.rig.connect()
            client.feed(request("POST", "/send", {**MAIL, "kind": "decision"}))
            self.conclude(verdict, code)
            answer = client.answer()
            assert answer is not None
            self.refused(answer, 502, "smtp_failed")
            self.assertEqual((answer.json["smtpCode"], answer.json["temporary"]), (code, temporary))

    def test_a_decision_without_an_outcome_is_queued(self) -> None:
        """After a minute, or when the service stops."""
        for end in (lambda: self.rig.clock.advance(60), self.rig.doors.close):
            client = self.rig.connect()
            client.feed(request("POST", "/send", {**MAIL, "kind": "decision"}))
            self.assertIsNone(client.answer())
            end()
            answer = client.answer()
            assert answer is not None
            self.assertEqual((answer.status, answer.json["state"]), (200, "queued"))
            self.ask("POST", "/bye", WHO)

    def test_an_upload_goes_with_a_mail(self) -> None:
        """The file is stored by a name of ours, and read when the mail is composed."""
        fields = {"X-Session-Id": "s", "X-Filename": "..%2F..%2Fnotes.txt"}
        answer = self.ask("POST", "/attachments", b"the file", headers=fields)
        self.assertEqual(answer.status, 200)
        (stored,) = self.rig.uploads.iterdir()
        self.assertEqual((stored.read_bytes(), stored.stat().st_mode & 0o777), (b"the file", 0o600))
        self.assertRegex(stored.name, "^[0-9a-f]{24}$")
        mail = {**MAIL, "attachments": [answer.json["attachmentId"]]}
        self.assertEqual(self.ask("POST", "/send", mail).status, 200)
        self.refused(self.ask("POST", "/send", {**MAIL, "attachments": ["a-none"]}), 404, "unknown")

    def test_a_refused_upload_leaves_no_file(self) -> None:
        """Without a session, for another's session, without a file, without a database."""
        good = {"X-Session-Id": "s", "X-Filename": "a"}
        self.refused(self.ask("POST", "/attachments", b"x", headers={"X-Filename": "a"}), 400, "invalid")
        self.refused(self.ask("POST", "/attachments", b"x", headers=good, key=BOUND), 403, "not_yours")
        self.refused(self.ask("POST", "/attachments", b"", headers=good), 400, "invalid")
        self.rig.database.failures.append(StoreUnavailable("gone"))
        self.refused(self.ask("POST", "/attachments", b"x", headers=good), 503, "store_unavailable")
        self.assertEqual(list(self.rig.uploads.iterdir()), [])


class ProcessTests(RouteCase):
    """The service itself."""

    def test_health_has_every_field_and_tells_nobody(self) -> None:
        """State and numbers; no address, no name, no word, no session."""
        file(self.rig)
        self.ask("POST", "/ping", WHO)
        self.rig.control.scan = ScanSummary(AT, 5, 1, {"automatic": 2})
        answer = self.ask("GET", "/health", key=None)
        health = answer.json
        self.assertEqual(
            set(health),
            {
                *(
                    "status",
                    "version",
                    "apiVersion",
                    "capabilities",
                    "instance",
                    "mode",
                    "pending",
                    "registry",
                ),
                *(
                    "sessions",
                    "clients",
                    "lastPingAt",
                    "subscribers",
                    "configLoadedAt",
                    "lastScan",
                    "accounts",
                ),
            },
        )
        self.assertEqual((health["status"], health["pending"], health["clients"]), ("ok", 1, 1))
        self.assertEqual(health["lastScan"]["refused"], {"automatic": 2})
        for word in ("robin", "example.org", "do it", "Re: x", "main", "bench"):
            self.assertNotIn(word.encode(), answer.body)

    def test_health_says_when_an_account_is_not_well(self) -> None:
        """A login that was refused waits for a person, and the status shows it."""
        self.rig.control.states[:] = [AccountStatus("refused", AT, None)]
        health = self.ask("GET", "/health", key=None).json
        self.assertEqual(health["status"], "degraded")
        account = {"state": "refused", "since": "2026-01-02T03:04:05.678900Z", "nextAttemptAt": None}
        self.assertEqual(health["accounts"], [account])

    def test_health_proves_that_we_hold_the_key(self) -> None:
        """So that a client sends its key only to us."""
        answer = self.ask("GET", "/health?challenge=abc123", key=None)
        expected = hmac.digest(KEY.encode(), b"mailgateway-health-1\0abc123", "sha256").hex()
        self.assertEqual(answer.json["proof"], expected)
        for challenge in ("", "x" * 129, "%C3%A9", "a%00b"):
            self.refused(self.ask("GET", f"/health?challenge={challenge}", key=None), 400, "invalid")

    def test_reload_and_prime(self) -> None:
        """What the process says is told."""
        self.assertNotIn("warning", self.ask("POST", "/reload").json)
        self.rig.control.warning = "daemon.port: must be a whole number"
        self.assertIn("daemon.port", self.ask("POST", "/reload").json["warning"])
        self.assertEqual(self.ask("POST", "/prime").json, {"moved": 2})
        self.assertEqual(self.rig.control.events, ["reload", "reload", "prime"])

    def test_shutdown_is_for_this_machine(self) -> None:
        """Not through a proxy, and not from afar; otherwise 202, and then the end."""
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
            self.refused(self.ask("POST", "/shutdown", headers={header: "x"}), 403, "not_local")
        far = self.rig.connect(peer="203.0.113.9")
        self.refused(self.ask("POST", "/shutdown", client=far), 403, "not_local")
        self.rig.clock.advance(1)
        self.assertEqual(self.rig.control.events, [])
        for client in (self.rig.connect(), self.rig.connect(unix=True), self.rig.connect(peer="::1")):
            self.assertEqual(self.ask("POST", "/shutdown", client=client).status, 202)
            self.rig.clock.advance(0)
        self.assertEqual(self.rig.control.events, ["shutdown"] * 3)

    def test_metrics_are_numbers_alone(self) -> None:
        """Counts by route and state; nobody's address or words."""
        file(self.rig)
        self.ask("GET", "/no-such-path")
        answer = self.ask("GET", "/metrics")
        text = answer.body.decode()
        self.assertIn("mailgateway_pending 1.0", text)
        self.assertIn('mailgateway_http_answers_total{route="other",status="404"} 1.0', text)
        self.assertNotRegex(text, "robin|example|no-such")
        self.assertTrue(answer.headers["content-type"].startswith("text/plain"))

    def test_fates_are_for_people(self) -> None:
        """An empty list, newest first; times are checked."""
        self.assertEqual(self.ask("GET", "/inbound", key=PERSON).json, {"fates": []})
        self.refused(self.ask("GET", "/inbound?since=now", key=PERSON), 400, "invalid")


@define(eq=False)
class SlowDatabase:
    """Commits at once and says so only when the gate opens."""

    fast: ImmediateDatabase
    gate: Deferred[None] = field(factory=Deferred)
    shared: bool = False

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``; fires after the gate has opened."""
        result = self.fast.run(work)
        return self.gate.addCallback(lambda _: result)

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` at once."""
        return self.fast.read(work)


class FailureTests(RouteCase):
    """When we fail."""

    def test_a_database_that_is_gone_is_said(self) -> None:
        """503, and the next request is answered again."""
        self.rig.database.failures.append(StoreUnavailable("the database cannot be used: disk full"))
        answer = self.ask("POST", "/ping", WHO)
        self.refused(answer, 503, "store_unavailable")
        self.assertNotIn(b"disk", answer.body)
        self.assertEqual(self.ask("POST", "/ping", WHO).status, 200)

    def test_a_lost_race_is_a_conflict(self) -> None:
        """Read again, and decide anew."""
        self.rig.database.failures.append(StaleWrite("m-1"))
        self.refused(self.ask("POST", "/ping", WHO), 409, "stale_write")

    def test_the_unexpected_is_told_without_its_words(self) -> None:
        """Neither the answer nor the log repeats a text that may be somebody's mail."""
        events: list[str] = []

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            events.append(repr(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.rig.database.failures.append(ValueError("very private words"))
        answer = self.ask("POST", "/ping", WHO)
        self.refused(answer, 500, "internal")
        logged = "".join(events)
        self.assertIn("POST /ping", logged)
        self.assertIn("ValueError", logged)
        self.assertNotIn("private", logged + answer.body.decode())

    def test_a_change_is_finished_when_the_client_hangs_up(self) -> None:
        """The commit has happened, so the bell must ring."""
        slow = SlowDatabase(self.rig.database)
        self.rig.doors.database = slow
        heard: list[EventKind] = []
        self.rig.bell.subscribe(lambda numbered: heard.append(numbered.event.kind))
        client = self.rig.connect()
        client.feed(request("POST", "/mode", {"mode": "off"}))
        client.hang_up()
        self.assertEqual(heard, [])
        slow.gate.callback(None)
        self.assertIn(EventKind.MODE, heard)
        self.assertEqual(self.flushLoggedErrors(), [])


class TableTests(RouteCase):
    """The table, the description and the documentation agree."""

    def test_every_route_is_served(self) -> None:
        """None is unknown, and none fails on an empty request."""
        for route in ROUTES:
            client = self.rig.connect()
            client.feed(request(route.method, re.sub(r"\{\w+\}", "none", route.path), key=PERSON))
            status = int(client.text()[9:12])
            self.assertIn(status, {200, 202, 400, 404}, route.name)
            self.assertNotIn(b"there is nothing at this path", client.text(), route.name)

    def test_every_route_is_described(self) -> None:
        """With its codes, and nothing that is not in the table."""
        described = self.ask("GET", "/openapi.json").json
        found = {f"{method.upper()} {path}" for path, each in described["paths"].items() for method in each}
        self.assertEqual(found, {route.name for route in ROUTES})
        for route in ROUTES:
            text = str(described["paths"][route.path][route.method.lower()])
            for code in (*GENERAL_CODES, *route.codes):
                self.assertIn(f"`{code}`", text, route.name)
        self.assertEqual(described["paths"]["/health"]["get"]["security"], [])

    def test_every_code_is_known_and_used(self) -> None:
        """The table of statuses holds what routes may answer with, and nothing else."""
        used = {*GENERAL_CODES, *(code for route in ROUTES for code in route.codes)}
        self.assertEqual(set(STATUS) - used, {"method_not_allowed"})
        self.assertEqual(used - set(STATUS), set())

    def test_every_refusal_of_the_flows_has_a_status(self) -> None:
        """A flow must not invent a code that no door knows."""
        package = Path(__file__).parents[2] / "mailgateway"
        codes = set()
        for folder in ("flows", "shapes", "http"):
            for path in (package / folder).rglob("*.py"):
                codes |= set(re.findall(r"Refusal\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8")))
        self.assertEqual(codes - set(STATUS), set())
        self.assertIn("send_budget", codes)

    def test_every_route_and_code_is_documented(self) -> None:
        """``docs/api.md`` lists them all."""
        text = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
        for route in ROUTES:
            self.assertIn(f"`{route.method} {route.path}`", text)
        for code, status in STATUS.items():
            self.assertRegex(text, rf"\| `{code}` \| {status} \|")
