"""Questions from the outside: asked, changed, answered and read, each by whom it may be."""

from datetime import UTC, datetime, timedelta
from typing import Any

from mailgateway.ids import SessionId
from mailgateway.store import sessions
from mailgateway.store.database import Tx
from tests.http.question_case import ASK, OPTIONS, QuestionCase
from tests.http.rig import BOUND, BOUND_PERSON, PERSON, request


class CreateTests(QuestionCase):
    """Asking."""

    def test_the_handle_is_all_that_is_needed(self) -> None:
        """Id, both revisions, status, and whether it is new."""
        handle = self.create()
        self.assertRegex(handle.pop("questionId"), "^q-[0-9a-f]{24}$")
        self.assertEqual(
            handle, {"revision": 1, "ownerRevision": 1, "status": "pending", "disposition": "created"}
        )

    def test_what_was_said_is_kept(self) -> None:
        """All of it, with the place in the session where it was asked."""
        source = {"path": "/home/robin/.pi/s.jsonl", "leaf": "leaf-7"}
        handle = self.create(mode="multi", urgency="high", source=source)
        whole = self.good("GET", f"/questions/{handle['questionId']}?session=s")
        self.assertEqual(whole["prompt"], ASK["prompt"])
        self.assertEqual(whole["ambiguity"], ASK["ambiguity"])
        self.assertEqual((whole["mode"], whole["urgency"], whole["source"]), ("multi", "high", source))
        self.assertEqual([each["impact"] for each in whole["options"]], ["One writer.", ""])
        self.assertEqual((whole["owner"], whole["creator"], whole["kind"]), ("s", "s", "question"))
        self.assertNotIn("expiresAt", whole)

    def test_a_repeated_request_makes_no_second_question(self) -> None:
        """It finds the first, as it stands by now; with other words it is refused."""
        first = self.create(requestId="r")
        again = self.create(requestId="r", source={"path": "", "leaf": "later"})
        self.assertEqual(again, {**first, "disposition": "idempotent"})
        self.refused(
            self.ask("POST", "/questions", {**ASK, "requestId": "r", "prompt": "x"}), 409, "key_reused"
        )
        self.assertEqual(self.answer(first, "sqlite").status, 200)
        self.assertEqual(self.create(requestId="r")["status"], "answered")
        self.assertEqual(len(self.ids("session=s")), 1)
        other = self.create(requestId="r", sessionId="t", instanceId="j")
        self.assertEqual(other["disposition"], "created")

    def test_wrong_questions_are_refused_by_name(self) -> None:
        """Blank, empty, too many, told twice, unknown, over."""
        wrong: list[tuple[str, Any]] = [
            ("prompt", " \n"),
            ("ambiguity", ""),
            ("ambiguity", None),
            ("options", []),
            ("options", [*OPTIONS, OPTIONS[0]]),
            ("options", [{"value": str(n), "label": "x"} for n in range(21)]),
            ("options", [{"value": "x" * 201, "label": "x"}]),
            ("options", [{"value": "x", "label": "x", "context": "y"}]),
            ("options", ["x"]),
            ("mode", "any"),
            ("urgency", "now"),
            ("requestId", "x" * 201),
            ("source", {"page": 1}),
            ("expiresAt", "2020-01-01T00:00:00Z"),
            ("context", "x"),
        ]
        for name, value in wrong:
            answer = self.ask("POST", "/questions", {**ASK, name: value})
            self.refused(answer, 400, "invalid")
            self.assertEqual(answer.json["field"], name)
        self.assertEqual(self.ids("scope=global", key=PERSON), [])

    def test_a_client_that_hangs_up_has_asked(self) -> None:
        """The question is there, whether or not anybody hears that."""
        client = self.rig.connect()
        client.feed(request("POST", "/questions", ASK))
        client.hang_up()
        self.assertEqual(len(self.ids("session=s")), 1)
        self.good("POST", "/bye", {"sessionId": "s", "instanceId": "i"})
        self.assertEqual(len(self.ids("session=s")), 1)

    def test_families_are_bounded(self) -> None:
        """Five children, four levels; a word before it is too late; what came to nothing leaves its place."""
        root = self.create()
        nudges = []
        for _ in range(5):
            child = self.create(parentQuestionId=root["questionId"])
            nudges.append("nudge" in child)
        self.assertEqual(nudges, [False, False, False, True, False])
        below = {**ASK, "parentQuestionId": root["questionId"]}
        self.refused(self.ask("POST", "/questions", below), 409, "child_limit_reached")
        self.changed("cancel", child)
        child = self.create(parentQuestionId=root["questionId"])
        for level in (3, 4):
            child = self.create(parentQuestionId=child["questionId"])
            self.assertEqual("nudge" in child, level == 4)
        deep = {**ASK, "parentQuestionId": child["questionId"]}
        self.refused(self.ask("POST", "/questions", deep), 409, "depth_limit_reached")

    def test_parents_must_be_own_and_open(self) -> None:
        """Unknown, another session's, come to nothing."""
        theirs = self.create(sessionId="t", instanceId="j")["questionId"]
        gone = self.changed("cancel", self.create())["questionId"]
        for parent, status, code in (
            ("q-none", 404, "unknown"),
            (theirs, 403, "wrong_owner"),
            (gone, 409, "question_terminal"),
        ):
            self.refused(self.ask("POST", "/questions", {**ASK, "parentQuestionId": parent}), status, code)


class BatchTests(QuestionCase):
    """Asking several."""

    def batch(self, *items: dict[str, Any]) -> dict[str, Any]:
        """Ask these; what has become of them."""
        whole = [{**{n: ASK[n] for n in ("prompt", "ambiguity", "options")}, **item} for item in items]
        made: dict[str, Any] = self.good(
            "POST", "/questions/batch", {"sessionId": "s", "instanceId": "i", "items": whole}
        )
        return made

    def test_a_family_is_asked_at_once(self) -> None:
        """Items name those before them."""
        made = self.batch({"localRef": "a"}, {"localRef": "b", "parentLocalRef": "a"})
        self.assertEqual(made["batchStatus"], "created")
        first, second = made["items"]
        self.assertEqual([first["localRef"], second["localRef"]], ["a", "b"])
        whole = self.good("GET", f"/questions/{second['questionId']}?session=s")
        self.assertEqual(whole["parentQuestionId"], first["questionId"])

    def test_what_stands_before_a_refused_item_is_asked(self) -> None:
        """And what stands behind it is not; each says why."""
        for wrong, code in (
            ({"localRef": "b", "parentLocalRef": "c"}, "forward_parent_reference"),
            ({"localRef": "b", "parentQuestionId": "q-none"}, "unknown"),
            ({"localRef": "b", "prompt": ""}, "invalid"),
            ({"localRef": "b", "nonsense": 1}, "invalid"),
            ({"localRef": "a"}, "invalid"),
        ):
            made = self.batch({"localRef": "a"}, wrong, {"localRef": "c"})
            self.assertEqual(made["batchStatus"], "partial")
            self.assertEqual([each.get("error") for each in made["items"]], [None, code, "batch_aborted"])
            self.assertEqual(made["items"][0]["localRef"], "a")
        self.assertEqual(len(self.ids("session=s")), 5)
        made = self.batch({"localRef": "b", "prompt": ""}, {"localRef": "c"})
        self.assertEqual(made["batchStatus"], "rejected")
        self.assertEqual(len(self.ids("session=s")), 5)

    def test_bounds_hold_for_items(self) -> None:
        """The sixth child of a batch is refused, and typed."""
        made = self.batch(
            {"localRef": "root"}, *({"localRef": f"{n}", "parentLocalRef": "root"} for n in range(6))
        )
        self.assertEqual([each.get("error") for each in made["items"]], [None] * 6 + ["child_limit_reached"])

    def test_items_are_repeated_one_by_one(self) -> None:
        """By the request id of each; a new child may stand below a repeated parent."""
        first = self.batch({"localRef": "a", "requestId": "r"})["items"][0]
        made = self.batch({"localRef": "a", "requestId": "r"}, {"localRef": "b", "parentLocalRef": "a"})
        self.assertEqual([each["disposition"] for each in made["items"]], ["idempotent", "created"])
        self.assertEqual(made["items"][0]["questionId"], first["questionId"])

    def test_a_batch_has_items(self) -> None:
        """One at least, fifty at most, and no key of its own."""
        who = {"sessionId": "s", "instanceId": "i"}
        self.refused(self.ask("POST", "/questions/batch", {**who, "items": []}), 400, "invalid")
        self.refused(self.ask("POST", "/questions/batch", {**who, "items": [{}] * 51}), 400, "invalid")
        wrong = {**who, "items": [{}], "requestId": "r"}
        self.refused(self.ask("POST", "/questions/batch", wrong), 400, "invalid")


class ChangeTests(QuestionCase):
    """What an owner may do."""

    def test_revise_replaces_the_whole(self) -> None:
        """Nothing of the old text stays, and the old revision is refused."""
        handle = self.create(urgency="high", mode="multi")
        text = {
            "prompt": "Which port?",
            "ambiguity": "Is 80 free?",
            "options": [{"value": "80", "label": "80"}],
        }
        new = self.changed("revise", handle, **text)
        self.assertEqual((new["revision"], new["ownerRevision"]), (2, 1))
        whole = self.good("GET", f"/questions/{handle['questionId']}?session=s")
        self.assertEqual(
            (whole["prompt"], whole["mode"], whole["urgency"]), ("Which port?", "single", "normal")
        )
        self.refused(self.change("revise", handle, **text), 409, "stale_revision")
        self.refused(self.answer(handle, "sqlite"), 409, "stale_revision")
        self.assertEqual(self.answer(new, "80").status, 200)
        for name in text:
            self.refused(self.change("revise", new, **{**text, name: None}), 400, "invalid")

    def test_what_ended_stays_ended(self) -> None:
        """No act is possible any more, and each says so."""
        handle = self.create()
        other = self.create()
        ended = self.changed("cancel", handle, note="not needed")
        self.assertEqual((ended["status"], ended["revision"]), ("cancelled", 1))
        text = {name: ASK[name] for name in ("prompt", "ambiguity", "options")}
        acts: dict[str, dict[str, Any]] = {
            "revise": text,
            "cancel": {},
            "supersede": {"replacementQuestionId": other["questionId"]},
            "reparent": {},
            "transfer": {"expectedOwner": "s", "owner": "t"},
            "takeover": {"expectedOwner": "s"},
        }
        for act, fields in acts.items():
            answer = self.change(act, handle, **fields)
            self.refused(answer, 409, "question_terminal")
            self.assertEqual(answer.json["status"], "cancelled")
        self.refused(self.answer(handle, "sqlite"), 409, "question_terminal")

    def test_supersede_names_what_stands_in_its_place(self) -> None:
        """An own question that has not come to nothing, and not itself."""
        handle, new = self.create(), self.create(prompt="Better?")
        theirs = self.create(sessionId="t", instanceId="j")["questionId"]
        for replacement, status, code in (
            ("q-none", 404, "unknown"),
            (theirs, 403, "wrong_owner"),
            (handle["questionId"], 400, "invalid"),
        ):
            self.refused(self.change("supersede", handle, replacementQuestionId=replacement), status, code)
        self.changed("supersede", handle, replacementQuestionId=new["questionId"])
        ending = self.read(handle).json
        self.assertEqual((ending["type"], ending["status"]), ("lifecycle", "superseded"))
        self.assertEqual(ending["replacementQuestionId"], new["questionId"])

    def test_reparent_makes_no_cycle(self) -> None:
        """The family comes along; the bounds hold for all of it."""
        root = self.create()
        child = self.create(parentQuestionId=root["questionId"])
        grandchild = self.create(parentQuestionId=child["questionId"])
        for parent in (root, child, grandchild):
            answer = self.change("reparent", root, parentQuestionId=parent["questionId"])
            self.refused(answer, 409, "parent_cycle")
        other = self.create()
        below = self.create(parentQuestionId=other["questionId"])
        answer = self.change("reparent", root, parentQuestionId=below["questionId"])
        self.refused(answer, 409, "depth_limit_reached")
        moved = self.changed("reparent", root, parentQuestionId=other["questionId"])
        self.assertEqual(moved["revision"], 2)
        self.assertEqual(self.good("GET", f"/questions/{child['questionId']}?session=s")["revision"], 1)
        self.changed("reparent", moved)
        whole = self.good("GET", f"/questions/{root['questionId']}?session=s")
        self.assertNotIn("parentQuestionId", whole)
        self.assertEqual(whole["revision"], 3)

    def test_transfer_counts_owners(self) -> None:
        """The text stays, and so does who asked; the old owner can do nothing any more."""
        handle = self.create()
        self.refused(self.change("transfer", handle, expectedOwner="s", owner="nobody"), 404, "unknown")
        answer = self.change("transfer", handle, expectedOwner="t", owner="t")
        self.refused(answer, 409, "stale_owner_revision")
        given = self.changed("transfer", handle, expectedOwner="s", owner="t")
        self.assertEqual((given["revision"], given["ownerRevision"]), (1, 2))
        self.refused(self.change("cancel", handle), 403, "wrong_owner")
        stale = self.change("cancel", handle, sessionId="t", instanceId="j")
        self.refused(stale, 409, "stale_owner_revision")
        self.assertEqual(stale.json["ownerRevision"], 2)
        whole = self.good("GET", f"/questions/{handle['questionId']}?session=t")
        self.assertEqual((whole["owner"], whole["creator"]), ("t", "s"))
        self.answer(handle, "sqlite")
        self.assertEqual([each["sessionId"] for each in self.deliveries("t")], ["t"])
        self.assertEqual(self.deliveries("s"), [])

    def deliveries(self, session: str) -> list[dict[str, Any]]:
        """What waits for a session."""
        found: list[dict[str, Any]] = self.good("GET", f"/pending?session={session}")["deliveries"]
        return found

    def test_takeover_needs_silence(self) -> None:
        """Live, stale: no.  Offline, or gone with a bye: yes, once."""
        handle = self.create()

        def take(seen: dict[str, Any] = handle) -> Any:
            return self.change("takeover", seen, sessionId="t", instanceId="j", expectedOwner="s")

        self.refused(take(), 409, "owner_not_offline")
        self.rig.database.advance(seconds=119)
        self.refused(take(), 409, "owner_not_offline")
        self.rig.database.advance(seconds=2)
        self.ping("s", "i")
        self.refused(take(), 409, "owner_not_offline")
        self.good("POST", "/bye", {"sessionId": "s", "instanceId": "i"})
        taken = take()
        self.assertEqual((taken.status, taken.json["ownerRevision"]), (200, 2))
        self.refused(take(), 409, "stale_owner_revision")
        self.ping("s", "i")
        self.refused(self.change("cancel", handle), 403, "wrong_owner")

    def test_an_owner_that_never_pings_is_never_offline(self) -> None:
        """Only hooks speak for it; their silence says nothing."""
        handle = self.create(sessionId="hooked", instanceId="h")
        self.rig.database.advance(hours=1)
        self.ping("t", "j")
        answer = self.change("takeover", handle, sessionId="t", instanceId="j", expectedOwner="hooked")
        self.refused(answer, 409, "owner_not_offline")

    def test_a_decision_stays_as_it_was_mailed(self) -> None:
        """Its owner may end it, and do nothing else with it."""
        decision = self.decision()
        text = {name: ASK[name] for name in ("prompt", "ambiguity", "options")}
        self.refused(self.change("revise", decision, **text), 409, "question_mailed")
        self.refused(self.change("transfer", decision, expectedOwner="s", owner="t"), 409, "question_mailed")
        self.changed("cancel", decision)
        self.decision()

    def decision(self) -> dict[str, Any]:
        """A decision by mail, as a question."""
        client = self.rig.connect()
        mail = {
            "kind": "decision",
            "sessionId": "s",
            "subject": "DB",
            "text": "Which?",
            "options": ["a", "b"],
        }
        client.feed(request("POST", "/send", mail))
        (line,) = self.good("GET", "/questions?session=s")["questions"]
        self.assertEqual(line["kind"], "decision")
        found: dict[str, Any] = line
        return found


class AnswerTests(QuestionCase):
    """What people answer, and what becomes of it."""

    def test_the_answer_is_told_by_ids_and_read_apart(self) -> None:
        """A notice without a word of it; reading it gives the values."""
        handle = self.create()
        answered = self.answer(handle, "sqlite", note="It is simpler.")
        self.assertEqual(answered.json["openDescendants"], [])
        (delivery,) = self.good("GET", "/pending?session=s")["deliveries"]
        self.assertEqual((delivery["kind"], delivery["trust"]), ("notice", "system"))
        self.assertEqual(delivery["questionId"], handle["questionId"])
        for word in ("sqlite", "simpler", "database"):
            self.assertNotIn(word, str(delivery).lower())
        ending = self.read(handle).json
        self.assertEqual(
            ending,
            {
                "type": "answer",
                "questionId": handle["questionId"],
                "answerId": answered.json["answerId"],
                "answer": ["sqlite"],
                "note": "It is simpler.",
                "alreadyRead": False,
            },
        )
        self.assertTrue(self.read(handle).json["alreadyRead"])

    def test_a_decision_is_answered_by_hand_too(self) -> None:
        """The delivery carries the choice and the note, as a reply by mail would."""
        client = self.rig.connect()
        mail = {
            "kind": "decision",
            "sessionId": "s",
            "subject": "DB",
            "text": "Which?",
            "options": ["a", "b"],
        }
        client.feed(request("POST", "/send", mail))
        (line,) = self.good("GET", "/questions?session=s")["questions"]
        self.assertEqual(self.answer(line, "a", note="Please.").status, 200)
        (delivery,) = self.good("GET", "/pending?session=s")["deliveries"]
        self.assertEqual((delivery["kind"], delivery["trust"]), ("user", "owner"))
        self.assertEqual((delivery["choice"], delivery["note"]), ("a", "Please."))
        self.assertEqual(delivery["body"], "a\n\nPlease.")
        self.assertEqual(self.ids("session=s"), [])

    def test_a_decision_without_options_is_answered_in_words(self) -> None:
        """Words are needed then."""
        client = self.rig.connect()
        mail = {"kind": "decision", "sessionId": "s", "subject": "Name", "text": "Which name?"}
        client.feed(request("POST", "/send", mail))
        (line,) = self.good("GET", "/questions?session=s")["questions"]
        self.refused(self.answer(line), 400, "invalid_selection")
        self.assertEqual(self.answer(line, note="Hazel").status, 200)
        ending = self.read(line).json
        self.assertEqual((ending["answer"], ending["note"]), ([], "Hazel"))

    def test_the_first_answer_wins(self) -> None:
        """The loser hears by whom, by which door, and when."""
        handle = self.create()
        self.answer(handle, "sqlite")
        late = self.answer(handle, "postgres")
        self.refused(late, 409, "already_resolved")
        self.assertEqual((late.json["by"], late.json["door"]), ("person", "terminal"))
        self.assertRegex(late.json["at"], r"^\d{4}-.*Z$")
        self.assertEqual(self.read(handle).json["answer"], ["sqlite"])

    def test_only_what_was_offered_is_an_answer(self) -> None:
        """One value in mode single, each once, none unknown; ``other`` says what it means."""
        single, multi = self.create(), self.create(mode="multi")
        for handle, values in (
            (single, []),
            (single, ["sqlite", "postgres"]),
            (single, ["mysql"]),
            (single, ["SQLite"]),
            (single, ["other"]),
            (multi, ["sqlite", "sqlite"]),
            (multi, ["sqlite", "mysql"]),
            (multi, []),
        ):
            self.refused(self.answer(handle, *values), 400, "invalid_selection")
        self.assertEqual(self.answer(single, "other", note="Neither.").status, 200)
        self.assertEqual(self.answer(multi, "postgres", "sqlite").status, 200)
        self.assertEqual(self.read(multi).json["answer"], ["postgres", "sqlite"])

    def test_open_descendants_are_named(self) -> None:
        """They stay open; whoever reads the answer hears of them, and what to do."""
        root = self.create()
        child = self.create(parentQuestionId=root["questionId"])
        grandchild = self.create(parentQuestionId=child["questionId"])
        self.changed("cancel", self.create(parentQuestionId=root["questionId"]))
        below = [child["questionId"], grandchild["questionId"]]
        answered = self.answer(root, "sqlite").json
        self.assertEqual(answered["openDescendants"], below)
        self.assertIn("supersede", answered["guidance"])
        self.assertEqual(self.read(root).json["openDescendants"], below)
        self.assertEqual(self.read(child).json["type"], "pending")

    def test_five_results_are_five(self) -> None:
        """Pending, answer, lifecycle, not there, not yours: each at once, and each different."""
        pending, cancelled = self.create(), self.create()
        self.changed("cancel", cancelled)
        theirs = self.create(sessionId="t", instanceId="j")
        self.assertEqual(
            self.read(pending).json,
            {"type": "pending", "questionId": pending["questionId"], "revision": 1},
        )
        ending = self.read(cancelled).json
        self.assertEqual((ending["type"], ending["status"]), ("lifecycle", "cancelled"))
        self.refused(self.read({"questionId": "q-none"}), 404, "unknown")
        self.refused(self.read(theirs), 403, "wrong_owner")

    def test_a_person_cancels(self) -> None:
        """With a word why; the owner is told as of an answer."""
        handle = self.create()
        body = {"expectedRevision": 1, "note": "Ask me tomorrow."}
        path = f"/questions/{handle['questionId']}/cancel"
        self.refused(
            self.ask("POST", path, {**body, "expectedRevision": 2}, key=PERSON), 409, "stale_revision"
        )
        self.assertEqual(self.good("POST", path, body, key=PERSON)["status"], "cancelled")
        self.refused(self.ask("POST", path, body, key=PERSON), 409, "question_terminal")
        (delivery,) = self.good("GET", "/pending?session=s")["deliveries"]
        self.assertEqual(delivery["questionId"], handle["questionId"])
        self.assertNotIn("tomorrow", str(delivery))
        ending = self.read(handle).json
        self.assertEqual((ending["status"], ending["note"]), ("cancelled", "Ask me tomorrow."))
        self.assertNotIn("answerId", ending)

    def test_an_expiry_ends_it(self) -> None:
        """At its time, before anybody has swept; and without one, never."""
        at = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        handle, forever = self.create(expiresAt=at), self.create()
        self.rig.database.advance(minutes=6)
        self.assertEqual(self.ids("session=s&status=pending"), [forever["questionId"]])
        self.refused(self.answer(handle, "sqlite"), 409, "question_terminal")
        self.refused(self.change("cancel", handle), 409, "question_terminal")
        self.assertEqual(self.read(handle).json["status"], "expired")
        self.assertEqual(self.ids("session=s&status=expired"), [handle["questionId"]])
        self.rig.database.advance(days=3650)
        self.assertEqual(self.answer(forever, "sqlite").status, 200)

    def test_recovery_reads_without_owning(self) -> None:
        """Only when the owner is offline; one reader is the first."""
        handle = self.create()
        self.answer(handle, "sqlite")
        self.refused(self.read(handle, "t"), 403, "wrong_owner")
        self.refused(self.read(handle, "t", recover="true"), 409, "owner_not_offline")
        self.rig.database.advance(seconds=121)
        ending = self.read(handle, "t", recover="true").json
        self.assertEqual((ending["answer"], ending["alreadyRead"]), (["sqlite"], False))
        self.ping("s", "i")
        self.assertTrue(self.read(handle).json["alreadyRead"])
        self.refused(self.change("cancel", handle, sessionId="t", instanceId="j"), 403, "wrong_owner")

    def test_looking_is_not_reading(self) -> None:
        """A person's look, HEAD, and the whole question leave the answer unread."""
        handle = self.create()
        self.answer(handle, "sqlite", note="Yes.")
        path = f"/questions/{handle['questionId']}"
        self.assertEqual(self.good("GET", f"{path}/answer", key=PERSON)["answer"], ["sqlite"])
        client = self.rig.connect()
        client.feed(request("HEAD", f"{path}/answer?session=s"))
        self.assertIn(b" 200 ", client.text()[:20])
        self.assertEqual(self.good("GET", f"{path}?session=s")["answer"], ["sqlite"])
        self.assertFalse(self.read(handle).json["alreadyRead"])


class ForeignTests(QuestionCase):
    """A session acts for itself alone, on every route."""

    def routes(self, handle: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
        """Every act in the name of ``s``."""
        name = handle["questionId"]
        seen = {"sessionId": "s", "expectedRevision": 1, "expectedOwnerRevision": 1}
        text = {each: ASK[each] for each in ("prompt", "ambiguity", "options")}
        return [
            ("POST", "/questions", {**ASK}),
            ("POST", "/questions/batch", {"sessionId": "s", "items": [{**text, "localRef": "a"}]}),
            ("POST", f"/questions/{name}/revise", {**seen, **text}),
            ("POST", f"/questions/{name}/cancel", {**seen}),
            ("POST", f"/questions/{name}/supersede", {**seen, "replacementQuestionId": "q-x"}),
            ("POST", f"/questions/{name}/reparent", {**seen}),
            ("POST", f"/questions/{name}/transfer", {**seen, "expectedOwner": "s", "owner": "t"}),
            ("POST", f"/questions/{name}/takeover", {**seen, "expectedOwner": "t"}),
            ("POST", "/wait?wait=0", {"sessionId": "s"}),
        ]

    def test_an_instance_of_another_session_is_refused(self) -> None:
        """It runs ``t``, and says that it is ``s``."""
        handle = self.create()
        for method, path, body in self.routes(handle):
            self.refused(self.ask(method, path, {**body, "instanceId": "j"}), 403, "not_yours")
        self.assertEqual(self.ids("session=s"), [handle["questionId"]])
        self.assertEqual(self.good("GET", f"/questions/{handle['questionId']}?session=s")["revision"], 1)

    def test_a_key_of_other_sessions_is_refused(self) -> None:
        """It speaks for ``theirs``, and says that it is ``s``; nor does it see what ``s`` asks."""
        handle = self.create()
        name = handle["questionId"]
        for method, path, body in self.routes(handle):
            answer = self.ask(method, path, {**body, "instanceId": "x"}, key=BOUND)
            self.refused(answer, 403, "not_yours")
        for path in ("", f"/{name}", f"/{name}/answer", f"/{name}/history"):
            self.refused(self.ask("GET", f"/questions{path}?session=s", key=BOUND), 403, "not_yours")
        self.assertEqual(self.ids("scope=global", key=BOUND), [])
        for path in (f"/{name}", f"/{name}/history"):
            self.refused(self.ask("GET", f"/questions{path}?scope=global", key=BOUND), 403, "wrong_owner")
        self.rig.database.advance(hours=1)
        recover = f"/questions/{name}/answer?session=theirs&recover=true"
        self.refused(self.ask("GET", recover, key=BOUND), 403, "wrong_owner")
        self.good("POST", "/ping", {"sessionId": "theirs", "instanceId": "x"}, key=BOUND)
        take = {
            "sessionId": "theirs",
            "instanceId": "x",
            "expectedRevision": 1,
            "expectedOwnerRevision": 1,
            "expectedOwner": "s",
        }
        self.refused(self.ask("POST", f"/questions/{name}/takeover", take, key=BOUND), 403, "wrong_owner")

    def test_another_session_cannot_act_on_it(self) -> None:
        """In its own name, with its own instance."""
        handle = self.create()
        text = {each: ASK[each] for each in ("prompt", "ambiguity", "options")}
        acts: dict[str, dict[str, Any]] = {
            "revise": text,
            "cancel": {},
            "supersede": {"replacementQuestionId": "q-x"},
            "reparent": {},
            "transfer": {"expectedOwner": "s", "owner": "t"},
        }
        for act, fields in acts.items():
            answer = self.change(act, handle, sessionId="t", instanceId="j", **fields)
            self.refused(answer, 403, "wrong_owner")
        for path in ("", "/answer", "/history"):
            answer = self.ask("GET", f"/questions/{handle['questionId']}{path}?session=t")
            self.refused(answer, 403, "wrong_owner")

    def test_sessions_do_not_answer(self) -> None:
        """Not even their own; and a person's key for some sessions answers for these alone."""
        handle = self.create()
        self.refused(self.answer(handle, "sqlite", key="s" * 64), 403, "person_required")
        self.refused(self.answer(handle, "sqlite", key=BOUND), 403, "person_required")
        self.refused(self.answer(handle, "sqlite", key=BOUND_PERSON), 403, "wrong_owner")
        cancel = f"/questions/{handle['questionId']}/cancel"
        self.refused(self.ask("POST", cancel, {"expectedRevision": 1}, key=BOUND_PERSON), 403, "wrong_owner")
        self.refused(self.ask("POST", cancel, {"expectedRevision": 1}), 400, "invalid")
        theirs = self.create(sessionId="theirs", instanceId="x")
        self.assertEqual(self.answer(theirs, "sqlite", key=BOUND_PERSON).status, 200)
        late = self.answer(theirs, "sqlite")
        self.assertEqual((late.json["by"], late.json["door"]), ("their person", "api"))

    def test_a_reservation_is_no_question(self) -> None:
        """Nobody sees or changes what was not asked."""
        reserved = self.good("POST", "/register", {"sessionId": "s", "instanceId": "i"})
        handle = {**reserved, "revision": 1, "ownerRevision": 1}
        self.assertEqual(self.ids("session=s"), [])
        self.refused(self.read(handle), 404, "unknown")
        self.refused(self.change("cancel", handle), 404, "unknown")
        self.refused(self.answer(handle, "sqlite"), 404, "unknown")
        self.refused(self.ask("GET", f"/questions/{reserved['questionId']}?session=s"), 404, "unknown")

    def test_an_unread_question_keeps_its_session_known(self) -> None:
        """People see who asks, however long it was silent."""
        self.create()
        self.rig.database.advance(days=40)

        def forget(tx: Tx) -> tuple[bool, bool]:
            sessions.forget_offline(tx, tx.now - timedelta(days=30))
            return sessions.find(tx, SessionId("s")) is not None, sessions.find(
                tx, SessionId("t")
            ) is not None

        self.assertEqual(self.rig.database.now(forget), (True, False))
