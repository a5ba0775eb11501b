"""Guards: who gets in, and that whoever does not learns nothing and changes nothing."""

import re

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import StoreUnavailable
from mailgateway.http.guards import names_of
from mailgateway.http.table import ROUTES
from tests.http.rig import BOUND, HOST, KEY, PERSON, PORT, Rig, settings

EVIL = "evil.example"


class GuardTests(SynchronousTestCase):
    """Every request meets the guards before anything else."""

    def setUp(self) -> None:
        self.rig = Rig()

    def test_every_route_wants_a_key(self) -> None:
        """All but ``/health`` answer one and the same 401 to every wrong key."""
        answers = set()
        for route in ROUTES:
            if route.open:
                continue
            for key in (None, "A" * 64, KEY[:-1], KEY + "x", "", "\xe9" * 64):
                answer = self.rig.ask(route.method, route.path, key=key)
                self.assertEqual(answer.headers["mailgateway-api"], "1")
                self.assertEqual(answer.headers["www-authenticate"], "Bearer")
                answers.add((answer.status, answer.body))
        self.assertEqual(len(answers), 1)
        ((status, body),) = answers
        self.assertEqual(status, 401)
        self.assertIn(b'"error":"unauthorized"', body)

    def test_an_unknown_path_tells_nothing_without_a_key(self) -> None:
        """Nobody learns which paths there are."""
        self.assertEqual(self.rig.ask("GET", "/no-such-path", key=None).status, 401)
        answer = self.rig.ask("GET", "/no-such-path")
        self.assertEqual((answer.status, answer.code), (404, "unknown"))

    def test_other_schemes_and_places_are_no_key(self) -> None:
        """The key is a bearer token in the header, once, and nothing else."""
        for value in (f"Basic {KEY}", f"Token {KEY}", KEY, "Bearer", f"Bearer  {KEY} x"):
            answer = self.rig.ask("GET", "/pending", key=None, headers={"Authorization": value})
            self.assertEqual(answer.status, 401, value)
        self.assertEqual(self.rig.ask("GET", f"/pending?key={KEY}&access_token={KEY}", key=None).status, 401)
        twice = (
            f"GET /pending HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {KEY}\r\n"
            f"Authorization: Bearer {KEY}\r\n\r\n"
        )
        client = self.rig.connect()
        client.feed(twice.encode())
        self.assertIn(b" 401 ", client.text()[:20])

    def test_the_scheme_is_case_insensitive(self) -> None:
        """As RFC 9110 section 11.1 says."""
        answer = self.rig.ask("GET", "/pending", key=None, headers={"Authorization": f"bearer {KEY}"})
        self.assertEqual(answer.status, 200)

    def test_people_may_do_what_sessions_do_and_not_the_other_way_round(self) -> None:
        """The role of the key decides."""
        self.assertEqual(self.rig.ask("GET", "/pending", key=PERSON).status, 200)
        self.assertEqual(self.rig.ask("GET", "/inbound", key=PERSON).status, 200)
        answer = self.rig.ask("GET", "/inbound")
        self.assertEqual((answer.status, answer.code), (403, "person_required"))

    def test_a_bound_key_speaks_for_its_sessions_only(self) -> None:
        """The key of another machine must not act for our sessions."""
        ours = {"sessionId": "ours", "instanceId": "i"}
        theirs = {"sessionId": "theirs", "instanceId": "i"}
        for path in ("/ping", "/bye", "/register"):
            answer = self.rig.ask("POST", path, ours, key=BOUND)
            self.assertEqual((answer.status, answer.code), (403, "not_yours"), path)
            self.assertEqual(self.rig.ask("POST", path, theirs, key=BOUND).status, 200, path)
        self.assertEqual(self.rig.ask("GET", "/pending?session=ours", key=BOUND).code, "not_yours")
        self.assertEqual(self.rig.ask("GET", "/events?session=ours", key=BOUND).code, "not_yours")

    def test_a_foreign_host_is_misdirected(self) -> None:
        """DNS rebinding ends here, whatever the path and the key."""
        hosts = [
            EVIL,
            f"{EVIL}:{PORT}",
            "127.0.0.1.evil.example",
            f"localhost.evil.example:{PORT}",
            "attacker@127.0.0.1",
            f"127.0.0.1:{PORT + 1}",
            "127.0.0.1",
            "[::1",
            "",
            "\xff",
        ]
        for host in hosts:
            for path, key in (("/mode", KEY), ("/health", None), ("/no-such-path", None)):
                answer = self.rig.ask("GET", path, key=key, headers={"Host": host})
                self.assertEqual((answer.status, answer.code), (421, "misdirected"), (host, path))

    def test_our_own_names_are_ours(self) -> None:
        """Loopback names in any case, and the public address."""
        for host in (HOST, f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}", "gate.example.org"):
            self.assertEqual(self.rig.ask("GET", "/mode", headers={"Host": host}).status, 200, host)

    def test_a_request_names_one_host(self) -> None:
        """Two Host fields, none, or an address in the request line are refused."""
        for raw in (
            f"GET /mode HTTP/1.1\r\nHost: {HOST}\r\nHost: {EVIL}\r\n\r\n",
            f"GET /mode HTTP/1.1\r\nHost: {HOST}\r\nHost: {HOST}\r\n\r\n",
            "GET /mode HTTP/1.1\r\n\r\n",
            "GET /mode HTTP/1.0\r\n\r\n",
            f"GET http://{EVIL}/mode HTTP/1.1\r\nHost: {HOST}\r\n\r\n",
            f"OPTIONS * HTTP/1.1\r\nHost: {HOST}\r\n\r\n",
        ):
            client = self.rig.connect()
            client.feed(raw.encode())
            self.assertIn(b" 421 ", client.text()[:20], raw)

    def test_a_foreign_page_is_refused(self) -> None:
        """Also the Origin ``null`` of sandboxed pages; and nobody is given CORS permission."""
        origins = [
            f"http://{EVIL}",
            "https://127.0.0.1.evil.example",
            "null",
            f"http://127.0.0.1:{PORT + 1}",
            f"https://127.0.0.1:{PORT}",
            "file://",
            "",
        ]
        for origin in origins:
            answer = self.rig.ask("POST", "/mode", {"mode": "off"}, headers={"Origin": origin})
            self.assertEqual((answer.status, answer.code), (403, "forbidden_origin"), origin)
        preflight = {"Origin": f"http://{EVIL}", "Access-Control-Request-Method": "POST"}
        answer = self.rig.ask("OPTIONS", "/send", key=None, headers=preflight)
        self.assertEqual(answer.status, 403)
        self.assertEqual([name for name in answer.headers if name.startswith("access-control")], [])
        self.assertEqual(self.rig.ask("GET", "/mode").json, {"mode": "on"})

    def test_our_own_pages_are_let_in(self) -> None:
        """Loopback with our port, and the public address."""
        for origin in (f"http://{HOST}", f"http://localhost:{PORT}", "https://gate.example.org"):
            self.assertEqual(self.rig.ask("GET", "/mode", headers={"Origin": origin}).status, 200, origin)

    def test_another_version_is_refused_before_anything_changes(self) -> None:
        """A client of another version must not half understand us."""
        answer = self.rig.ask("POST", "/mode", {"mode": "off"}, headers={"Mailgateway-Api": "99"})
        self.assertEqual((answer.status, answer.code), (426, "incompatible"))
        self.assertEqual(self.rig.ask("GET", "/mode", headers={"Mailgateway-Api": "1"}).json, {"mode": "on"})

    def test_a_unix_socket_takes_any_host(self) -> None:
        """There the file's mode is the guard; pages of others stay out all the same."""
        client = self.rig.connect(unix=True)
        answer = self.rig.ask("GET", "/mode", headers={"Host": "whatever"}, client=client)
        self.assertEqual(answer.status, 200)
        foreign = {"Host": "x", "Origin": f"http://{EVIL}"}
        self.assertEqual(self.rig.ask("GET", "/mode", headers=foreign, client=client).status, 403)
        self.assertEqual(self.rig.ask("GET", "/mode", key=None, client=client).status, 401)

    def test_metrics_are_open_only_when_the_settings_say_so(self) -> None:
        """The switch is read at every request."""
        self.assertEqual(self.rig.ask("GET", "/metrics", key=None).status, 401)
        self.rig.settings = settings(metrics_open=True)
        self.assertEqual(self.rig.ask("GET", "/metrics", key=None).status, 200)

    def test_odd_paths_are_not_found(self) -> None:
        """No path is a failure, and none leaves its place."""
        for path in ("/%ff", "/%00", "/health/", "/outbox/../../etc/passwd", "/outbox/%2e%2e%2f"):
            answer = self.rig.ask("GET", path)
            self.assertIn(answer.status, {404, 405}, path)
            self.assertIn("message", answer.json)
        self.assertEqual(self.rig.ask("GET", "//health", key=None).status, 401)

    def test_no_control_character_reaches_the_database(self) -> None:
        """Written out or encoded, in any variable part of a path: not found, and nothing was looked up."""
        self.rig.database.failures.append(StoreUnavailable("nobody may ask"))
        for route in ROUTES:
            for name in re.findall(r"\{\w+\}", route.path):
                for odd in ("%00", "a%00b", "%0a", "%1f", "%7f", "%c2%85", "%e2%80%a8", "\0", "a\x7f"):
                    path = re.sub(r"\{\w+\}", "x", route.path.replace(name, odd))
                    answer = self.rig.ask(route.method, path, headers={"X-Instance-Id": "i"})
                    self.assertIn((answer.status, answer.code), {(404, "unknown"), (400, "malformed")}, path)
        self.assertEqual(len(self.rig.database.failures), 1)

    def test_another_method_says_which_there_are(self) -> None:
        """405 with Allow."""
        answer = self.rig.ask("PUT", "/mode", {"mode": "off"})
        self.assertEqual((answer.status, answer.code), (405, "method_not_allowed"))
        self.assertIn("POST", answer.headers["allow"])


class NamesTests(SynchronousTestCase):
    """Which names are ours."""

    def test_the_default_port_may_be_left_out(self) -> None:
        """Of the public address, and of loopback when we listen on 80."""
        hosts, origins = names_of(80, "https://Gate.example.org:443/path")
        self.assertTrue({b"127.0.0.1", b"gate.example.org", b"gate.example.org:443"} <= hosts)
        self.assertIn(b"https://gate.example.org", origins)
        self.assertNotIn(b"http://gate.example.org", origins)

    def test_another_port_may_not(self) -> None:
        """A page on port 80 of this machine is not ours."""
        hosts, _ = names_of(4177, "")
        self.assertEqual(hosts, {b"127.0.0.1:4177", b"localhost:4177", b"[::1]:4177"})
