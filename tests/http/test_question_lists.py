"""Lists, cursors, histories and the log of questions, from the outside."""

import base64
import json
from typing import Any

from mailgateway.domain.decision_log import Chain
from mailgateway.operator.decision_log import verify
from tests.http.question_case import ASK, OPTIONS, QuestionCase
from tests.http.rig import BOUND, KEY, PERSON


class ListTests(QuestionCase):
    """Which questions are found, and in which order."""

    def setUp(self) -> None:
        super().setUp()
        self.rig.database.advance(seconds=1)

    def three(self) -> dict[str, str]:
        """One that is open, one whose answer was not read, one whose answer was, and a cancelled one."""
        made = {name: self.create() for name in ("open", "unread", "read", "cancelled")}
        self.answer(made["unread"], "sqlite")
        self.answer(made["read"], "sqlite")
        self.read(made["read"])
        self.changed("cancel", made["cancelled"])
        return {handle["questionId"]: name for name, handle in made.items()}

    def test_every_filter_alone_and_with_others(self) -> None:
        """Conditions hold together; only answers are read or unread."""
        names = self.three()
        expected = {
            "": {"open", "unread"},
            "status=pending": {"open"},
            "status=answered": {"unread", "read"},
            "status=cancelled": {"cancelled"},
            "status=expired": set(),
            "status=superseded": set(),
            "read=false": {"unread"},
            "read=true": {"read"},
            "status=answered&read=false": {"unread"},
            "status=answered&read=true": {"read"},
            "status=pending&read=false": set(),
            "status=pending&read=true": set(),
            "status=cancelled&read=false": set(),
            "status=cancelled&read=true": set(),
        }
        for query, wanted in expected.items():
            for place in ("session=s", "session=s&scope=own", "scope=global", "session=t&scope=global"):
                found = [names[each] for each in self.ids(f"{place}&{query}".rstrip("&"))]
                self.assertEqual(set(found), wanted, query)
                self.assertEqual(len(found), len(wanted))
            self.assertEqual({names[each] for each in self.ids(query, key=PERSON)}, wanted)
            self.assertEqual(self.ids(f"session=t&{query}".rstrip("&")), [])

    def test_only_answers_have_a_read_flag(self) -> None:
        """And only answered questions an answer id: an ending is not one."""
        self.three()
        for status, read in (("pending", None), ("cancelled", None), ("answered", False)):
            (line, *_) = self.good("GET", f"/questions?session=s&status={status}")["questions"][::-1]
            self.assertEqual(line.get("read"), read if status != "answered" else line["read"])
            self.assertEqual("read" in line, status == "answered")
            whole = self.good("GET", f"/questions/{line['questionId']}?session=s")
            self.assertEqual("answerId" in whole, status == "answered")
            ending = self.good("GET", f"/questions/{line['questionId']}/answer?session=s")
            self.assertEqual("answerId" in ending, status == "answered")
            self.assertEqual("alreadyRead" in ending, status == "answered")

    def test_the_most_urgent_first_then_the_oldest(self) -> None:
        """And what is over, the newest first."""
        made = []
        for urgency in ("low", "normal", "high", "normal", "high"):
            made.append(self.create(urgency=urgency)["questionId"])
            self.rig.database.advance(seconds=1)
        self.assertEqual(self.ids("session=s"), [made[index] for index in (2, 4, 1, 3, 0)])
        for each in made:
            self.answer({"questionId": each, "revision": 1}, "sqlite")
        self.assertEqual(self.ids("session=s&status=answered"), made[::-1])

    def test_scopes_are_seen_from_the_session(self) -> None:
        """By what it told of itself; what it did not tell makes it see itself alone."""
        places = {
            "s": {"project": "p", "branch": "main", "worktree": "/w"},
            "branch": {"project": "p", "branch": "main", "worktree": "/other"},
            "tree": {"project": "p", "branch": "fix", "worktree": "/w"},
            "elsewhere": {"project": "q", "branch": "main", "worktree": "/else"},
            "silent": {},
        }
        made = {}
        for name, facts in places.items():
            self.ping(name, f"of {name}", **facts)
            made[self.create(sessionId=name, instanceId=f"of {name}")["questionId"]] = name
        for scope, wanted in {
            "own": {"s"},
            "feature": {"s", "branch"},
            "worktree": {"s", "tree"},
            "repository": {"s", "branch", "tree"},
            "global": set(places),
        }.items():
            found = {made[each] for each in self.ids(f"session=s&scope={scope}")}
            self.assertEqual(found, wanted, scope)
            alone = {made[each] for each in self.ids(f"session=silent&scope={scope}")}
            self.assertEqual(alone, set(places) if scope == "global" else {"silent"})
            for question, owner in made.items():
                answer = self.ask("GET", f"/questions/{question}?session=s&scope={scope}")
                self.assertEqual(answer.status, 200 if owner in wanted else 403)

    def test_a_scope_is_a_word_of_ours(self) -> None:
        """A path or an id is refused: it would find nothing, and look as if there were nothing."""
        for query in (
            "session=s&scope=/home/robin/project",
            "session=s&scope=s",
            "scope=own",
            "scope=worktree",
        ):
            self.refused(self.ask("GET", f"/questions?{query}"), 400, "invalid")
        self.refused(self.ask("GET", "/questions"), 400, "invalid")
        self.refused(self.ask("GET", "/questions?session=s", key=BOUND), 403, "not_yours")

    def test_pages_skip_nothing(self) -> None:
        """Whatever is asked, answered or taken out between them, also the row that the page began behind."""
        made = [self.create()["questionId"] for _ in range(7)]
        first = self.good("GET", "/questions?session=s&status=pending&limit=3")
        seen = [each["questionId"] for each in first["questions"]]
        self.assertEqual(sorted(seen), sorted(seen))
        self.answer({"questionId": seen[-1], "revision": 1}, "sqlite")
        self.answer({"questionId": seen[0], "revision": 1}, "sqlite")
        self.create(urgency="high")
        late = self.create(urgency="low")["questionId"]
        page = first
        while "nextCursor" in page:
            self.assertLessEqual(len(page["nextCursor"]), 1_024)
            page = self.good(
                "GET", f"/questions?session=s&status=pending&limit=3&cursor={page['nextCursor']}"
            )
            seen += [each["questionId"] for each in page["questions"]]
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(set(seen), {*made, late})

    def test_the_newest_first_pages_too(self) -> None:
        """The other order, to its end and no further."""
        made = [self.create() for _ in range(5)]
        for each in made:
            self.changed("cancel", each)
        seen: list[str] = []
        page: dict[str, Any] = {"nextCursor": ""}
        while "nextCursor" in page:
            more = f"&cursor={page['nextCursor']}" if page["nextCursor"] else ""
            page = self.good("GET", f"/questions?session=s&status=cancelled&limit=2{more}")
            seen += [each["questionId"] for each in page["questions"]]
        self.assertEqual(len(seen), 5)
        self.assertEqual(set(seen), {each["questionId"] for each in made})

    def test_a_cursor_is_of_one_query(self) -> None:
        """Another session, scope, filter or key, and what was made up, are refused."""
        for _ in range(3):
            self.create()
        cursor = self.good("GET", "/questions?session=s&limit=1")["nextCursor"]
        for query in (
            "session=t",
            "session=s&scope=global",
            "session=s&status=pending",
            "session=s&read=false",
            "scope=global",
        ):
            answer = self.ask("GET", f"/questions?{query}&cursor={cursor}")
            self.refused(answer, 400, "invalid")
            self.assertEqual(answer.json["field"], "cursor")
        digest = json.loads(base64.urlsafe_b64decode(cursor + "=="))[0]
        forgeries: tuple[Any, ...] = (
            ["x", 0, 0, "q"],
            [digest],
            [digest, "0", 0, "q"],
            [digest, -1, 0, "q"],
            {},
            "x",
            7,
        )
        for made_up in forgeries:
            forged = base64.urlsafe_b64encode(json.dumps(made_up).encode()).decode().rstrip("=")
            self.refused(self.ask("GET", f"/questions?session=s&cursor={forged}"), 400, "invalid")
        for garbage in ("%00", "a", "====", "x" * 1_025, "%F0%9F%98%80"):
            self.refused(self.ask("GET", f"/questions?session=s&cursor={garbage}"), 400, "invalid")

    def test_pages_are_bounded(self) -> None:
        """25, and 100 at most."""
        for _ in range(30):
            self.create()
        self.assertEqual(len(self.ids("session=s")), 25)
        self.assertEqual(len(self.ids("session=s&limit=100")), 30)
        for limit in ("0", "101", "-1", "x", "1e1", "9" * 30):
            self.refused(self.ask("GET", f"/questions?session=s&limit={limit}"), 400, "invalid")

    def test_a_list_holds_no_words_but_the_subject(self) -> None:
        """The first line of the prompt, cut; the rest is asked for by id."""
        self.create(prompt=f"\n  Which   database?\nsecret words\n{'x' * 300}", ambiguity="private")
        self.create(prompt="y" * 300)
        lines = self.good("GET", "/questions?session=s")["questions"]
        self.assertEqual([each["subject"] for each in lines], ["Which database?", "y" * 119 + "…"])
        for word in ("secret", "private", "SQLite"):
            self.assertNotIn(word, str(lines))


class HistoryTests(QuestionCase):
    """Who did what."""

    def test_a_history_tells_what_changed(self) -> None:
        """Not the whole text again: the parts that were replaced."""
        root = self.create()
        handle = self.create()
        handle = self.changed("revise", handle, prompt="New?", ambiguity=ASK["ambiguity"], options=OPTIONS)
        handle = self.changed("reparent", handle, parentQuestionId=root["questionId"])
        handle = self.changed("transfer", handle, expectedOwner="s", owner="t")
        self.answer(handle, "sqlite", note="Because.")
        lines = self.good("GET", f"/questions/{handle['questionId']}/history?session=t")["history"]
        told = [
            (each["act"], each["revision"], each["ownerRevision"], each["door"], each["by"]) for each in lines
        ]
        self.assertEqual(
            told,
            [
                ("created", 1, 1, "session", "s"),
                ("revised", 2, 1, "session", "s"),
                ("reparented", 3, 1, "session", "s"),
                ("transferred", 3, 2, "session", "s"),
                ("answered", 3, 2, "terminal", "person"),
            ],
        )
        words = ("prompt", "ambiguity", "options", "mode", "urgency")
        self.assertEqual(
            [[name for name in words if name in each] for each in lines[:3]], [[*words], ["prompt"], []]
        )
        self.assertEqual(lines[2]["details"], {"from": "", "to": root["questionId"]})
        self.assertEqual(lines[3]["details"], {"from": "s", "to": "t"})
        self.assertNotIn("Because", str(lines))

    def test_a_history_has_pages(self) -> None:
        """Of one question; its cursor is good for no other."""
        handle = self.create()
        for number in range(4):
            text = {"prompt": f"{number}?", "ambiguity": "x", "options": OPTIONS}
            handle = self.changed("revise", handle, **text)
        path = f"/questions/{handle['questionId']}/history?session=s&limit=2"
        page = self.good("GET", path)
        acts = [each["revision"] for each in page["history"]]
        cursor = page["nextCursor"]
        other = self.create()["questionId"]
        self.refused(self.ask("GET", f"/questions/{other}/history?session=s&cursor={cursor}"), 400, "invalid")
        while "nextCursor" in page:
            page = self.good("GET", f"{path}&cursor={page['nextCursor']}")
            acts += [each["revision"] for each in page["history"]]
        self.assertEqual(acts, [1, 2, 3, 4, 5])


class LogTests(QuestionCase):
    """The chain, as it is served."""

    def test_everything_is_in_the_log_and_it_holds(self) -> None:
        """Each act of each question, mailed ones too; for people alone."""
        first, second = self.create(), self.create()
        self.answer(first, "sqlite", note="Ünïcode\n")
        self.changed("cancel", second, note="x")
        page = self.good("GET", "/log", key=PERSON)
        acts = [(each["number"], each["act"]) for each in page["entries"]]
        self.assertEqual(acts, [(1, "created"), (2, "created"), (3, "answered"), (4, "cancelled")])
        machine = self.rig.identity.machine_id
        self.assertEqual(page["machines"], [{"machineId": machine, "number": 4}])
        self.assertEqual(self.good("GET", "/log?after=4", key=PERSON)["entries"], [])
        self.assertEqual(self.good("GET", "/log?machine=other", key=PERSON)["entries"], [])
        for key in (KEY, BOUND):
            self.refused(self.ask("GET", "/log", key=key), 403, "person_required")
        (checked,) = verify(self)
        self.assertEqual((checked.broken, checked.chain), (None, Chain(4, page["entries"][-1]["digest"])))

    def log(self, machine: str | None = None, after: int = 0) -> dict[str, Any]:
        """Hand pages over, as the client does."""
        name = machine or self.rig.identity.machine_id
        page: dict[str, Any] = self.good("GET", f"/log?machine={name}&after={after}&limit=2", key=PERSON)
        return page

    def test_a_refused_act_is_not_in_the_log(self) -> None:
        """Nothing was done, so nothing is told."""
        handle = self.create()
        self.answer(handle, "mysql")
        self.change("cancel", handle, sessionId="t", instanceId="j")
        self.change("revise", handle, prompt="x", ambiguity="x", options=OPTIONS, expectedRevision=2)
        self.assertEqual(
            [each["act"] for each in self.good("GET", "/log", key=PERSON)["entries"]], ["created"]
        )
