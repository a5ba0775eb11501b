"""Whoever tries to get around the login of people's pages: forged requests, forms of others, floods."""

from mailgateway.domain.people import code_of, is_of_ours
from mailgateway.http.guards import PAGES
from mailgateway.http.inbox.app import ROUTES
from mailgateway.http.inbox.attempts import FOR_EACH, IN_ALL, MOST_ADDRESSES, Attempts
from tests.http.inbox_case import FORM, Browser, InboxCase, words_of
from tests.http.inbox_case import code_of as code_in
from tests.http.rig import KEY, PERSON, Client, request

POSTS = [route.rule for route in ROUTES if route.method == "POST" and not route.open]


class ForgedTests(InboxCase):
    """Pages of others, and forms that are not ours."""

    def test_foreign_origins_and_hosts(self) -> None:
        """On every page, for looking too; they learn nothing."""
        for place in PAGES:
            path = place.decode()
            for origin in ("https://evil.example", "null", "http://127.0.0.1:80"):
                self.refused(self.browser.get(path, Origin=origin), 403, "forbidden_origin")
                self.refused(self.browser.post(path, [], Origin=origin), 403, "forbidden_origin")
            for host in ("evil.example", "127.0.0.1:1", f"{self.browser.host}, x"):
                evil = Browser(self.rig, host=host, cookie=self.browser.cookie)
                self.refused(evil.get(path), 421, "misdirected")

    def test_forms_without_the_token_of_their_login(self) -> None:
        """Missing, foreign or wrong: nothing happens."""
        handle = self.create()
        other = self.logged_in().token()
        for rule in POSTS:
            path = rule.replace("<id>", handle["questionId"])
            for token in ([], [("token", other)], [("token", "0" * 64)], [("token", "ü")], [("token", "")]):
                fields = [*token, ("revision", "1"), ("choice", "sqlite"), ("act", "answer"), ("mode", "off")]
                self.assertEqual(self.browser.post(path, fields).status, 403, (rule, token))
        self.assertEqual(self.read(handle).json["type"], "pending")
        self.assertEqual(self.ask("GET", "/mode").json["mode"], "on")

    def test_forms_of_other_sites(self) -> None:
        """A browser that says where a form comes from is believed, with the right token, too."""
        for site in ("cross-site", "same-site"):
            answer = self.browser.post(
                "/inbox/mode", [("token", self.browser.token()), ("mode", "off")], Sec_Fetch_Site=site
            )
            self.assertEqual(answer.status, 403)
            self.assertEqual(Browser(self.rig).post("/login", [], Sec_Fetch_Site=site).status, 403)

    def test_looking_changes_nothing(self) -> None:
        """What a form does is not done by an address."""
        for rule in POSTS:
            answer = self.browser.get(f"{rule.replace('<id>', 'q-1')}?mode=off&token={self.browser.token()}")
            self.assertIn(answer.status, {200, 404, 405}, rule)
        self.assertEqual(self.ask("GET", "/mode").json["mode"], "on")

    def test_nobody_without_a_login(self) -> None:
        """Every page but the login and the files of the pages."""
        for route in ROUTES:
            path = route.rule.replace("<id>", "q-1").replace("<name>", "inbox.css")
            stranger = Browser(self.rig)
            answer = stranger.get(path) if route.method == "GET" else stranger.post(path, [])
            self.assertEqual(answer.status in {200, 403}, route.open, route.rule)
            if not route.open:
                self.assertEqual(answer.status, 401)
                self.assertIn("Log in", words_of(answer))

    def test_a_link_of_another_site(self) -> None:
        """A strict cookie does not come along with it: a page of ours sends the browser here again."""
        answer = Browser(self.rig).get("/inbox/questions/q-1", Sec_Fetch_Site="cross-site")
        self.assertEqual(answer.status, 200)
        self.assertIn(b'content="0; url=/inbox/questions/q-1"', answer.body)
        self.assertEqual(
            Browser(self.rig).get("/inbox/questions/q-1", Sec_Fetch_Site="same-origin").status, 401
        )

    def test_what_the_browser_is_forbidden(self) -> None:
        """On every page, also one that refuses."""
        for path in ("/login", "/inbox", "/inbox/none", "/static/inbox.js", "/static/none"):
            fields = self.browser.get(path).headers
            policy = fields["content-security-policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertIn("frame-ancestors 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(fields["x-content-type-options"], "nosniff")
            self.assertEqual(fields["cache-control"], "no-store")
            self.assertEqual(fields["referrer-policy"], "same-origin")
            self.assertEqual(fields["cross-origin-opener-policy"], "same-origin")

    def test_paths_outside_of_the_files(self) -> None:
        """No request names a path: what is not one of the files by its name is not there."""
        for name in ("../inbox/app.py", "%2e%2e/app.py", "..%2f..%2fapi.py", "/etc/passwd", "inbox.css/"):
            self.assertEqual(self.browser.get(f"/static/{name}").status, 404, name)
        self.assertEqual(self.browser.get("/static/").status, 404)
        for odd in ("/static/%00inbox.css", "/inbox/%ff", "/inbox/questions/%0d%0aSet-Cookie:%20a=b"):
            answer = self.browser.get(odd)
            self.assertIn(answer.status, {400, 404}, odd)
            self.assertNotIn("set-cookie", answer.headers)

    def test_methods(self) -> None:
        """HEAD is as GET without its body; what a page does not know is named, with what it knows."""
        head = self.rig.connect()
        head.feed(request("HEAD", "/inbox", key=None, headers={"Cookie": self.browser.cookie}))
        top, _, rest = head.text().partition(b"\r\n\r\n")
        self.assertTrue(top.startswith(b"HTTP/1.1 200 "), top)
        self.assertEqual(rest, b"")
        put = self.rig.connect()
        put.feed(request("PUT", "/inbox", key=None, headers={"Cookie": self.browser.cookie}))
        self.assertIn(b"HTTP/1.1 405 ", put.text())
        self.assertIn(b"Allow: GET, HEAD\r\n", put.text())
        self.assertEqual(self.browser.get("/inbox/").headers["location"], "/inbox")

    def test_bodies_are_small(self) -> None:
        """A form over its size is refused before it was read, and what is no form is none."""
        client = self.rig.connect()
        client.feed(request("POST", "/login", b"x" * 200_000, key=None))
        answer = client.answer()
        assert answer is not None
        self.refused(answer, 413, "too_large")
        self.assertEqual(self.browser.post("/login", [], Content_Type="application/json").status, 400)
        many = [(f"f{number}", "x") for number in range(500)]
        self.assertEqual(self.browser.post("/login", many).status, 400)


class LargeFormTests(InboxCase):
    """Strangers may fill little of our memory."""

    def test_few_large_forms_at_a_time(self) -> None:
        """Small ones come through all the same, and a place is given back with its connection."""

        def begin() -> Client:
            client = self.rig.connect()
            head = request("POST", "/login", b"x" * 50_000, key=None, headers={"Content-Type": FORM})
            client.feed(head[:-30_000])
            return client

        clients = [begin() for _ in range(21)]
        refused = clients[-1].answer()
        assert refused is not None
        self.refused(refused, 429, "too_many_waiting")
        self.assertTrue(all(client.answer() is None for client in clients[:-1]))
        self.assertEqual(Browser(self.rig).enter(code_in(self.link())).status, 303)
        clients[0].hang_up()
        self.assertIsNone(begin().answer())


class FloodTests(InboxCase):
    """Whoever tries codes gets nowhere, and keeps nobody out."""

    def test_a_thousand_a_minute(self) -> None:
        """Nearly all are told to wait; the owner's link works all the time, from the same address too."""
        code = code_in(self.link())
        statuses = []
        for number in range(1_000):
            guess = code_of(f"{number}", number.to_bytes(16, "big"))
            statuses.append(Browser(self.rig, peer=f"10.0.0.{number % 50}").enter(guess).status)
        self.assertLessEqual(statuses.count(403), IN_ALL)
        self.assertEqual(set(statuses), {403, 429})
        late = Browser(self.rig, peer="10.0.0.1")
        late.enter("x" * 38)
        self.assertEqual(late.last.status, 429)
        self.assertIn("retry-after", late.last.headers)
        self.assertEqual(late.enter(code).status, 303)
        self.rig.clock.advance(61)
        self.assertEqual(Browser(self.rig, peer="10.0.0.1").enter("x").status, 403)

    def test_the_memory_of_it_is_bounded(self) -> None:
        """Also when every try has an address of its own."""
        attempts = Attempts()
        for number in range(5 * MOST_ADDRESSES):
            attempts.failed(str(number), float(number))
        self.assertLessEqual(len(attempts._each), MOST_ADDRESSES)
        self.assertLessEqual(len(attempts._all), IN_ALL)

    def test_one_address(self) -> None:
        """Ten in a minute; then it waits until the oldest is a minute old."""
        attempts = Attempts()
        for second in range(FOR_EACH):
            self.assertEqual(attempts.wait("a", float(second)), 0)
            attempts.failed("a", float(second))
        self.assertEqual(attempts.wait("a", 10.0), 50.0)
        self.assertEqual(attempts.wait("b", 10.0), 0)
        self.assertEqual(attempts.wait("a", 60.0), 0)

    def test_codes_of_ours(self) -> None:
        """Another key, a changed letter, another length: none of ours."""
        code = code_of(KEY, b"0" * 16)
        self.assertTrue(is_of_ours(KEY, code))
        for wrong in ("", code[:-1], code + "A", "A" + code[1:], code.swapcase(), code_of(PERSON, b"0" * 16)):
            self.assertFalse(is_of_ours(KEY, wrong), wrong)
