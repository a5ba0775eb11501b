"""Deliveries from the outside: look, wait, claim, give back, ack, fetch."""

from attrs import evolve

from mailgateway.domain.envelope import AttachmentInfo
from mailgateway.ids import EnvelopeId, SessionId
from tests.http.case import ENVELOPE, RouteCase, file
from tests.http.rig import BOUND, request


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
                "leftOut": [],
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
        """Another machine's key cannot reach our deliveries, not even by their ids and places."""
        theirs = evolve(ENVELOPE, id=EnvelopeId("m-" + "2" * 24), session_id=SessionId("theirs"), source=None)
        file(self.rig)
        file(self.rig, theirs)
        found = self.ask("GET", "/pending", key=BOUND).json["deliveries"]
        self.assertEqual([delivery["id"] for delivery in found], [theirs.id])
        for target in ({"id": ENVELOPE.id}, {"id": "m-1111"}, {"uid": 42}, {"uid": 42, "folder": "INBOX"}):
            answer = self.ask("POST", "/claim", {"instanceId": "j", **target}, key=BOUND)
            self.refused(answer, 403, "not_yours")
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

    def test_what_is_claimed_does_not_end_a_poll(self) -> None:
        """Else its client would ask again and again; released it does, and at the end it is listed."""
        file(self.rig)
        target = {"instanceId": "i", "id": ENVELOPE.id}
        self.ask("POST", "/claim", target)
        waiting, patient = self.rig.connect(), self.rig.connect()
        waiting.feed(request("GET", "/pending?wait=30"))
        patient.feed(request("GET", "/pending?wait=5"))
        self.ask("POST", "/claim", target)
        self.assertIsNone(waiting.answer())
        self.rig.clock.advance(5)
        over = patient.answer()
        assert over is not None
        self.assertEqual([each["state"] for each in over.json["deliveries"]], ["claimed"])
        (listed,) = self.ask("GET", "/pending").json["deliveries"]
        self.assertEqual(listed["state"], "claimed")
        self.ask("POST", "/release", target)
        answer = waiting.answer()
        assert answer is not None
        self.assertEqual([each["state"] for each in answer.json["deliveries"]], ["new"])

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
