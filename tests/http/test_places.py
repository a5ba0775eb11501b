"""Places: no key keeps the others from waiting, and all that wait leave room for whoever only asks."""

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.http.keys import Bearer
from mailgateway.http.limits import BODY_SECONDS, IN_MEMORY, LARGEST_BODY, MOST_CONNECTIONS, Connections
from mailgateway.http.places import Places
from mailgateway.ids import SessionId
from mailgateway.settings import Role
from tests.http.case import ENVELOPE, MAIL, RouteCase, file
from tests.http.rig import BOUND, KEY, PERSON, Client, Rig, request


class WaitingTests(RouteCase):
    """Four places: three for one of our own keys, two for another's; five connections."""

    def setUp(self) -> None:
        self.rig = Rig(connections=Connections(most=5))
        self.ask = self.rig.ask
        places = self.rig.doors.waiting
        places.most, places.own, places.other = 4, 3, 2

    def wait(self, key: str = KEY) -> Client:
        """Begin to wait."""
        client = self.rig.connect()
        client.feed(request("GET", "/pending?wait=60", key=key))
        return client

    def turned_away(self, key: str) -> None:
        """There is no place for this key, and its client is told to come later."""
        answer = self.ask("GET", "/pending?wait=60", key=key)
        self.refused(answer, 429, "too_many_waiting")
        self.assertEqual(answer.headers["retry-after"], "5")

    def test_a_key_has_its_bound(self) -> None:
        """Over it that key waits no more, and another one does; whoever asks without waiting is served."""
        clients = [self.wait(BOUND) for _ in range(2)]
        self.turned_away(BOUND)
        clients.append(self.wait())
        for key in (BOUND, KEY, PERSON):
            self.assertEqual(self.ask("GET", "/pending", key=key).status, 200)
        self.assertEqual([client.answer() for client in clients], [None] * 3)

    def test_all_together_have_theirs(self) -> None:
        """Then everybody is told; the service itself still answers."""
        for _ in range(3):
            self.wait()
        self.turned_away(KEY)
        self.wait(PERSON)
        for key in (BOUND, PERSON):
            self.turned_away(key)
        self.assertEqual(self.ask("GET", "/health", key=None).status, 200)
        self.assertEqual(self.ask("POST", "/ping", {"sessionId": "s", "instanceId": "i"}).status, 200)

    def test_every_end_frees_the_place(self) -> None:
        """An answer, the end of the time, a hang-up."""
        self.rig.connections.most = 50  # those that are closed by us stay until the client has read
        for end in ("answered", "over", "gone"):
            clients = [self.wait(BOUND) for _ in range(2)]
            self.turned_away(BOUND)
            if end == "answered":
                file(self.rig, evolve(ENVELOPE, session_id=SessionId("theirs")))
                self.ask("POST", "/claim", {"instanceId": "i", "id": ENVELOPE.id})
            elif end == "over":
                self.rig.clock.advance(60)
            for client in clients:
                if end != "gone":
                    self.assertIsNotNone(client.answer(), end)
                client.hang_up()
        self.wait(BOUND)

    def test_a_decision_leaves_though_nobody_may_wait(self) -> None:
        """It is queued and answered at once: a mail must not be lost for want of a place."""
        for _ in range(3):
            self.wait()
        answer = self.ask("POST", "/send", {**MAIL, "kind": "decision"})
        self.assertEqual((answer.status, answer.json["state"]), (200, "queued"))

    def test_a_decision_takes_a_place(self) -> None:
        """While it waits for the mail server, and no longer."""
        client = self.rig.connect()
        client.feed(request("POST", "/send", {**MAIL, "kind": "decision"}))
        for _ in range(2):
            self.wait()
        self.turned_away(KEY)
        self.rig.clock.advance(60)
        self.assertIsNotNone(client.answer())
        self.assertIsNone(self.wait().answer())

    def test_the_bounds_leave_room(self) -> None:
        """As they are set: each key leaves places to wait, and all that wait leave connections."""
        places = Rig().doors.waiting
        self.assertLess(max(places.own, places.other), places.most)
        self.assertLess(places.most + 100, MOST_CONNECTIONS)


class BodyTests(RouteCase):
    """Large bodies: three at a time, two of one of our own keys, one of another's."""

    def setUp(self) -> None:
        super().setUp()
        places = self.rig.doors.bodies
        places.most, places.own, places.other = 3, 2, 1

    def begin(self, key: str = KEY, size: int = IN_MEMORY + 1) -> Client:
        """Send a body but for its end."""
        client = self.rig.connect()
        head = request("POST", "/ping", key=key).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        client.feed(head + b"%x\r\n%s\r\n" % (size, b" " * size))
        return client

    def turned_away(self, key: str) -> None:
        """There is no place for a large body of this key; the connection closes."""
        client = self.begin(key)
        answer = client.answer()
        assert answer is not None
        self.refused(answer, 429, "too_many_waiting")
        self.assertTrue(client.closed)

    def test_large_bodies_are_bounded(self) -> None:
        """By key and in all; small ones come at any time."""
        clients = [self.begin(), self.begin(BOUND)]
        self.turned_away(BOUND)
        clients.append(self.begin())
        for key in (KEY, PERSON):
            self.turned_away(key)
            self.assertIsNone(self.begin(key, IN_MEMORY).answer())
        self.assertEqual([client.answer() for client in clients], [None] * 3)

    def test_every_end_frees_the_place(self) -> None:
        """An answer, a refusal, a hang-up, the end of the time."""
        for end in ("answered", "too large", "gone", "late"):
            client = self.begin(BOUND)
            self.turned_away(BOUND)
            if end == "answered":
                client.feed(b"0\r\n\r\n")
            elif end == "too large":
                client.feed(b"%x\r\n%s\r\n" % (LARGEST_BODY, b" " * LARGEST_BODY))
            elif end == "late":
                self.rig.clock.advance(BODY_SECONDS)
            if end != "gone":
                self.assertIsNotNone(client.answer(), end)
            if end in {"gone", "late"}:
                client.hang_up()
        self.assertIsNone(self.begin(BOUND).answer())


class PlacesTests(SynchronousTestCase):
    """Places by themselves."""

    def test_a_key_of_the_settings_is_not_ours_by_its_name(self) -> None:
        """``[keys.session]`` is another key than ``secret.key``."""
        places = Places(most=9, own=2, other=1)
        ours, namesake = Bearer("session", Role.SESSION, own=True), Bearer("session", Role.SESSION)
        taken = [places.take(each) for each in (ours, namesake, namesake, ours, ours)]
        self.assertEqual(taken, [True, True, False, True, False])
        places.give_back(namesake)
        self.assertTrue(places.take(namesake))
