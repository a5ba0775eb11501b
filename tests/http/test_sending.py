"""Mail that leaves, from the outside: notifications, decisions, files."""

import os
import shutil
from datetime import UTC, datetime, time

from attrs import evolve

from mailgateway.domain.attention import Attention, QuietHours
from mailgateway.domain.outbox import OutboxState, RecipientOutcome, RecipientVerdict
from mailgateway.errors import StoreUnavailable
from mailgateway.flows import outbox
from mailgateway.ids import AccountName
from mailgateway.shapes.outbox import OPEN, STATES
from tests.http.case import MAIL, WHO, RouteCase
from tests.http.rig import BOUND, done, request


class SendTests(RouteCase):
    """Mail that leaves."""

    def conclude(self, verdict: RecipientVerdict, code: int) -> None:
        """Play the sender: one attempt with this outcome."""
        rig = self.rig
        claimed = done(outbox.claim_next(rig.database, rig.identity, AccountName("main"), lease_seconds=600))
        outcomes = [RecipientOutcome(address, verdict, code, "words") for address in claimed.recipients]
        error = "" if verdict is RecipientVerdict.ACCEPTED else f"{code} words"
        done(outbox.conclude(rig.database, rig.bell, claimed, outcomes, error=error))

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

    def test_what_is_held_back_says_until_when(self) -> None:
        """The submission, the row and the health; nobody waits for a decision that is held back."""
        always = QuietHours(time(0), time(23, 59), UTC), QuietHours(time(23, 59), time(0), UTC)
        quiet = next(each for each in always if each.until(datetime.now(UTC)) is not None)
        usual = self.rig.doors.sender()
        held = Attention(quiet=quiet, quiet_decisions=True)
        self.rig.doors.sender = lambda: evolve(usual, attention=held)
        for kind in ("notification", "decision"):
            answer = self.ask("POST", "/send", {**MAIL, "kind": kind})
            self.assertEqual((answer.status, answer.json["state"]), (200, "queued"))
            row = self.ask("GET", f"/outbox/{answer.json['outboxId']}").json
            self.assertEqual(row["heldUntil"], answer.json["heldUntil"])
        health = self.ask("GET", "/health", key=None).json
        self.assertEqual((health["held"], health["heldUntil"]), (2, answer.json["heldUntil"]))

    def test_the_outbox(self) -> None:
        """Listed page by page, tried, dropped; a key of other sessions sees and moves nothing."""
        ids = [self.ask("POST", "/send", MAIL).json["outboxId"] for _ in range(3)]
        page = self.ask("GET", "/outbox?state=open&limit=2").json
        self.assertEqual([mail["id"] for mail in page["mails"]], [ids[2], ids[1]])
        rest = self.ask("GET", f"/outbox?state=open&limit=2&cursor={page['nextCursor']}").json
        self.assertEqual(([mail["id"] for mail in rest["mails"]], "nextCursor" in rest), ([ids[0]], False))
        self.assertEqual(self.ask("GET", "/outbox", key=BOUND).json["mails"], [])
        for order in ("retry", "drop"):
            self.refused(self.ask("POST", f"/outbox/{ids[0]}/{order}", {}, key=BOUND), 403, "not_yours")
            self.refused(self.ask("POST", f"/outbox/none/{order}", {}), 404, "unknown")
        self.conclude(RecipientVerdict.UNCLEAR, 0)
        self.refused(self.ask("POST", f"/outbox/{ids[0]}/retry", {}), 409, "may_have_arrived")
        tried = self.ask("POST", f"/outbox/{ids[0]}/retry", {"unclear": True}).json
        self.assertEqual((tried["id"], tried["state"]), (ids[0], "unclear"))
        self.assertEqual(self.ask("POST", f"/outbox/{ids[1]}/drop").json["state"], "cancelled")
        self.refused(self.ask("POST", f"/outbox/{ids[1]}/retry", {}), 409, "settled")
        for query in ("state=lost", "limit=0", "cursor=x", "state=open&state=sent"):
            self.refused(self.ask("GET", f"/outbox?{query}"), 400, "invalid")

    def test_the_states_are_those_of_the_domain(self) -> None:
        """What may be asked for is what a mail may be."""
        self.assertEqual(set(STATES) - {OPEN}, {state.value for state in OutboxState})

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
        self.assertEqual(self.ask("POST", "/send", {**MAIL, "kind": "decision"}).json["state"], "queued")

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

    def test_what_an_earlier_run_left_behind_is_removed(self) -> None:
        """Half uploads of a crash must not fill the disk; fresh ones may still have a row."""
        old, fresh = self.rig.uploads / "old", self.rig.uploads / "fresh"
        for path, age in ((old, 7_300), (fresh, 3_000)):
            path.write_bytes(b"x")
            os.utime(path, (path.stat().st_mtime - age,) * 2)
        self.ask("POST", "/attachments", b"y", headers={"X-Session-Id": "s", "X-Filename": "a"})
        self.assertFalse(old.exists())
        self.assertTrue(fresh.exists())

    def test_a_full_disk_is_said(self) -> None:
        """A body that cannot be stored is refused in the one shape, and the connection closes."""
        shutil.rmtree(self.rig.uploads)
        self.rig.uploads.write_bytes(b"in the way")
        answer = self.ask("POST", "/attachments", b"y", headers={"X-Session-Id": "s", "X-Filename": "a"})
        self.refused(answer, 503, "store_unavailable")
        self.assertEqual(answer.headers["connection"], "close")
