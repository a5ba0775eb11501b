"""The routes of sessions and of the service itself."""

import hmac

from mailgateway.domain.account import AccountState
from mailgateway.flows.ports import AccountStatus, ScanSummary
from tests.http.case import AT, ENVELOPE, WHO, RouteCase, file
from tests.http.rig import KEY, PERSON


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
                    "muted",
                    "held",
                    "withheld",
                ),
            },
        )
        self.assertEqual((health["status"], health["pending"], health["clients"]), ("ok", 1, 1))
        self.assertEqual(health["lastScan"]["refused"], {"automatic": 2})
        for word in ("robin", "example.org", "do it", "Re: x", "main", "bench"):
            self.assertNotIn(word.encode(), answer.body)

    def test_health_says_when_an_account_is_not_well(self) -> None:
        """A login that was refused waits for a person, and the status shows it."""
        self.rig.control.states[:] = [AccountStatus(AccountState.REFUSED, AT, None)]
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
