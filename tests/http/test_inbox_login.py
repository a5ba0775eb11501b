"""Logging in to people's pages: links, cookies, and how the pages are loaded."""

import re
from collections.abc import Callable
from datetime import timedelta
from email import message_from_bytes
from email.policy import default
from typing import Any
from urllib.parse import quote

from attrs import evolve
from twisted.internet.defer import Deferred

from mailgateway.domain.people import IDLE, LINK_LIFE, MOST_LOGINS
from mailgateway.settings import PersonDoor
from mailgateway.store import outbox
from mailgateway.store.tables import login, login_link
from tests.http.case import RouteCase
from tests.http.inbox_case import PUBLIC, Browser, InboxCase, words_of
from tests.http.inbox_case import code_of as code_in
from tests.http.rig import BOUND_PERSON, KEY, PERSON, Rig, request


class LinkTests(InboxCase):
    """A link logs one browser in, once, for ten minutes."""

    def test_only_a_person_gets_one(self) -> None:
        """Not a session, not a key that speaks for some sessions, not a stranger."""
        self.refused(self.ask("POST", "/logins", key=KEY), 403, "person_required")
        self.refused(self.ask("POST", "/logins", key=BOUND_PERSON), 403, "not_yours")
        self.refused(self.ask("POST", "/logins", key=None), 401, "unauthorized")

    def test_the_code_stands_in_the_fragment(self) -> None:
        """What a server, a proxy or a Referer sees of the link holds no code."""
        url = self.link()
        before, mark, code = url.partition("#")
        self.assertEqual((before, mark), (f"{PUBLIC}/login", "#"))
        self.assertGreaterEqual(len(code), 32)

    def test_it_works_once(self) -> None:
        """The second try is refused, and says what to do."""
        code = code_in(self.link())
        self.assertEqual(Browser(self.rig).enter(code).status, 303)
        again = Browser(self.rig)
        self.assertEqual(again.enter(code).status, 403)
        self.assertIn("Ask for a new one", words_of(again.last))
        self.assertEqual(again.cookie, "")

    def test_looking_uses_nothing_up(self) -> None:
        """A program that looks at links before the person does (GET, HEAD) changes nothing."""
        code = code_in(self.link())
        looking = Browser(self.rig)
        for path in ("/login", f"/login?code={code}", f"/login?to=/inbox&code={code}"):
            self.assertEqual(looking.get(path).status, 200)
        self.assertEqual(Browser(self.rig).enter(code).status, 303)

    def test_it_expires(self) -> None:
        """After ten minutes it opens nothing."""
        code = code_in(self.link())
        self.rig.database.offset = LINK_LIFE + timedelta(seconds=1)
        self.assertEqual(Browser(self.rig).enter(code).status, 403)

    def test_the_whole_link_may_be_pasted(self) -> None:
        """Where no script takes the code out of the address."""
        self.assertEqual(Browser(self.rig).enter(f"  {self.link()} ").status, 303)

    def test_where_it_leads(self) -> None:
        """To a page of ours, whatever the form says."""
        for to, there in (
            ("/inbox/questions/q-1", "/inbox/questions/q-1"),
            ("//evil.example/inbox", "/inbox"),
            ("https://evil.example/", "/inbox"),
            ("/inbox/../login", "/inbox"),
            ("/inbox\r\nSet-Cookie: a=b", "/inbox"),
            ("/inboxes", "/inbox"),
        ):
            answer = Browser(self.rig).enter(code_in(self.link()), to=to)
            self.assertEqual((answer.status, answer.headers["location"]), (303, there), to)

    def test_only_digests_are_stored(self) -> None:
        """Whoever reads the database logs in nowhere."""
        code = code_in(self.link())
        secret = self.browser.cookie.partition("=")[2]
        rows = self.rig.database.now(
            lambda tx: str([*tx.execute(login.select()), *tx.execute(login_link.select())])
        )
        self.assertNotIn(code, rows)
        self.assertNotIn(secret, rows)
        self.assertIn("Chrome on Linux", rows)

    def test_few_are_open_at_a_time(self) -> None:
        """Links that nobody uses cost a bounded amount, and the newest works."""
        for _ in range(30):
            code = code_in(self.link())
        rows = self.rig.database.now(lambda tx: len(tx.execute(login_link.select()).all()))
        self.assertEqual(rows, 20)
        self.assertEqual(Browser(self.rig).enter(code).status, 303)


class MailedTests(RouteCase):
    """With ``person_door = "web"`` there is no key of a person's: the link goes to the person by mail."""

    def setUp(self) -> None:
        super().setUp()
        settings = self.rig.settings
        self.rig.settings = evolve(settings, security=evolve(settings.security, person_door=PersonDoor.WEB))

    def test_nobody_at_the_machine_sees_it(self) -> None:
        """Whoever asks hears where it went; the code is in the mail alone, and works."""
        answer = self.ask("POST", "/logins")
        self.assertEqual(answer.status, 200)
        self.assertEqual(set(answer.json), {"expiresAt", "mailedTo"})
        self.assertEqual(answer.json["mailedTo"], "robin@example.org")
        mails = self.ask("GET", "/outbox").json["mails"]
        self.assertEqual([mail["subject"] for mail in mails], ["Log in to the web inbox"])
        raw = self.rig.database.now(lambda tx: outbox.bytes_of(tx, mails[0]["id"]).raw)
        mail = message_from_bytes(raw, policy=default)
        body = mail.get_body(("plain",))
        assert body is not None
        found = re.search(rf"{PUBLIC}/login#(\S{{38}})", body.get_content())
        assert found is not None, body.get_content()
        self.assertNotIn(found[1], answer.body.decode() + mails[0]["subject"])
        browser = Browser(self.rig)
        self.assertEqual(browser.enter(found[1]).status, 303)
        self.assertIn("robin@example.org", browser.text("/inbox/settings"))

    def test_agents_flood_nobody(self) -> None:
        """A few may be on their way, then one has to wait."""
        for _ in range(3):
            self.assertEqual(self.ask("POST", "/logins").status, 200)
        refused = self.ask("POST", "/logins")
        self.refused(refused, 429, "send_budget")
        self.assertIn("retry-after", refused.headers)
        self.rig.database.offset = LINK_LIFE
        self.assertEqual(self.ask("POST", "/logins").status, 200)


class CookieTests(InboxCase):
    """What a login is known by, and for how long."""

    def test_what_the_browser_is_told(self) -> None:
        """No script reads it, no other site sends it; over https no other host sets it."""
        plain = Browser(self.rig)
        plain.enter(code_in(self.link()))
        given = plain.last.headers["set-cookie"]
        for word in ("mailgateway=", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=2592000"):
            self.assertIn(word, given)
        self.assertNotIn("Domain", given)
        self.assertNotIn("Secure", given)
        behind = Browser(self.rig, host="gate.example.org")
        behind.enter(code_in(self.link()))
        given = behind.last.headers["set-cookie"]
        self.assertTrue(given.startswith("__Host-mailgateway="), given)
        self.assertIn("; Secure", given)
        self.assertEqual(behind.get("/inbox").status, 200)

    def test_behind_https_only_the_safe_name_counts(self) -> None:
        """A cookie that a plain connection could have set is none."""
        value = self.browser.cookie.partition("=")[2]
        outside = Browser(self.rig, host="gate.example.org", cookie=f"mailgateway={value}")
        self.assertEqual(outside.get("/inbox").status, 401)

    def test_fixation(self) -> None:
        """A cookie that somebody else has set is never taken over; the login gets a fresh one."""
        for planted in ("mailgateway=" + "A" * 43, self.browser.cookie):
            victim = Browser(self.rig, cookie=planted)
            self.assertEqual(victim.enter(code_in(self.link())).status, 303)
            self.assertNotEqual(victim.cookie, planted)
            self.assertEqual(victim.get("/inbox").status, 200)
            self.assertEqual(Browser(self.rig, cookie=planted).get("/inbox").status, 401)

    def test_two_of_one_name(self) -> None:
        """Somebody has slipped one in: none of them counts."""
        twice = f"{self.browser.cookie}; mailgateway={'A' * 43}"
        self.assertEqual(Browser(self.rig, cookie=twice).get("/inbox").status, 401)

    def test_it_lives_while_it_is_used(self) -> None:
        """Thirty days without a visit end it; a visit prolongs it."""
        cookie = self.browser.cookie
        self.assertNotIn("set-cookie", self.browser.get("/inbox").headers)
        self.rig.database.offset = IDLE - timedelta(hours=1)
        self.assertEqual(self.browser.get("/inbox").status, 200)
        self.assertIn("; Max-Age=2592000", self.browser.last.headers["set-cookie"])
        self.assertEqual(self.browser.cookie, cookie)
        self.rig.database.offset += IDLE - timedelta(hours=1)
        self.assertEqual(self.browser.get("/inbox").status, 200)
        self.rig.database.offset += IDLE + timedelta(seconds=1)
        self.assertEqual(self.browser.get("/inbox").status, 401)

    def test_devices_are_listed_and_logged_out(self) -> None:
        """Each by its name; one that is logged out is out at once, and so are its live events."""
        other = self.logged_in(agent="Mozilla/5.0 (iPhone; CPU iPhone OS 19_0) Version/19 Safari/604.1")
        listening = self.rig.connect()
        listening.feed(request("GET", "/inbox/events", key=None, headers={"Cookie": other.cookie}))
        self.assertIn(b"text/event-stream", listening.text())
        page = self.browser.get("/inbox/settings").body.decode()
        self.assertIn("Safari on iPhone", page)
        self.assertIn("(this device)", page)
        ids = self.rig.database.now(lambda tx: {row.name: row.id for row in tx.execute(login.select())})
        self.assertEqual(self.browser.send("/inbox/devices", ("login", ids["Safari on iPhone"])).status, 303)
        self.assertEqual(other.get("/inbox").status, 401)
        self.assertTrue(listening.text().endswith(b"0\r\n\r\n"), "the stream has ended")
        self.assertEqual(self.browser.send("/inbox/devices", ("login", "none")).status, 404)
        answer = self.browser.send("/inbox/devices", ("login", ids["Chrome on Linux"]))
        self.assertIn("Max-Age=0", answer.headers["set-cookie"])

    def test_there_are_not_endlessly_many(self) -> None:
        """The device that was used longest ago makes room."""
        for number in range(MOST_LOGINS):
            self.rig.database.offset = timedelta(seconds=number + 1)
            last = self.logged_in()
        self.assertEqual(self.browser.get("/inbox").status, 401)
        self.assertEqual(last.get("/inbox").status, 200)

    def test_a_name_forged_by_a_proxy_is_nobody(self) -> None:
        """Any local process can send the fields of Tailscale."""
        forged = Browser(self.rig).get(
            "/inbox", Tailscale_User_Login="robin@example.org", Authorization=f"Bearer {PERSON}"
        )
        self.assertEqual(forged.status, 401)


class LoadingTests(RouteCase):
    """The pages' code is loaded when the first person comes."""

    def test_requests_wait_for_it(self) -> None:
        """All that come meanwhile are answered, in their order, and whoever has gone is not."""
        loading: list[tuple[Callable[[], Any], Deferred[Any]]] = []

        def in_thread(call: Callable[[], Any]) -> Deferred[Any]:
            loading.append((call, Deferred()))
            return loading[-1][1]

        rig = Rig()
        rig.doors.in_thread = in_thread
        clients = [rig.connect() for _ in range(3)]
        for client in clients:
            client.feed(request("GET", "/login", key=None))
            self.assertIsNone(client.answer())
        clients[1].hang_up()
        [(call, ready)] = loading
        ready.callback(call())
        self.assertEqual([client.answer() is not None for client in clients], [True, False, True])
        self.assertEqual(rig.ask("GET", "/login?to=" + quote("/inbox"), key=None).status, 200)
