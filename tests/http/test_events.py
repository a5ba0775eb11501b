"""Server-sent events: ids only, bounded, caught up with, and let go."""

import json
import re
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.flows.bell import KEPT, Event, EventKind
from mailgateway.http.events import MOST_WAITING, PAUSED_SECONDS, PING_SECONDS
from mailgateway.ids import SessionId
from tests.http.rig import BOUND, Client, Rig, request

S, THEIRS = SessionId("s"), SessionId("theirs")


def delivery(number: int, session: SessionId = S) -> Event:
    """The event of one delivery."""
    return Event(EventKind.DELIVERY, f"m-{number}", session)


def events_of(client: Client) -> list[tuple[str, Any]]:
    """Kinds and data of what a subscriber got."""
    text = client.text().decode()
    return [(kind, json.loads(data)) for kind, data in re.findall(r"event: (.*)\ndata: (.*)\n\n", text)]


def ids_of(client: Client) -> list[str]:
    """Ids of what a subscriber got."""
    return re.findall(r"id: (.*)\n", client.text().decode())


class EventTests(SynchronousTestCase):
    """One stream and many."""

    def setUp(self) -> None:
        self.rig = Rig()

    def subscribe(self, *, key: str | None = None, last: str | None = None, path: str = "/events") -> Client:
        """Open a stream."""
        client = self.rig.connect()
        headers = {} if last is None else {"Last-Event-ID": last}
        client.feed(request("GET", path, headers=headers, **({"key": key} if key else {})))
        return client

    def test_what_changes_is_told_as_ids(self) -> None:
        """The kinds of the contract; what only wakes our own loops is not told."""
        client = self.subscribe()
        self.assertIn(b"200 OK", client.text())
        self.assertIn(b"Content-Type: text/event-stream", client.text())
        self.rig.bell.ring(
            delivery(1),
            Event(EventKind.MODE, "off"),
            Event(EventKind.QUESTION, "q-1", S),
            Event(EventKind.SESSION, "s", S),
            Event(EventKind.OUTBOX, "o-1"),
            Event(EventKind.FLAGGING),
            Event(EventKind.SETTLE),
        )
        self.assertEqual(
            events_of(client),
            [
                ("delivery", {"id": "m-1", "sessionId": "s"}),
                ("mode", {"id": "off"}),
                ("question", {"id": "q-1", "sessionId": "s"}),
                ("session", {"id": "s", "sessionId": "s"}),
            ],
        )

    def test_an_id_cannot_end_an_event_early(self) -> None:
        """Session ids are the clients' own words."""
        client = self.subscribe()
        self.rig.bell.ring(Event(EventKind.SESSION, "a\n\nevent: mode\ndata: {}\n\n", S))
        self.assertEqual([kind for kind, _ in events_of(client)], ["session"])

    def test_a_session_may_be_asked_for(self) -> None:
        """Its own events, and those of nobody."""
        client = self.subscribe(path="/events?session=s")
        self.rig.bell.ring(delivery(1), delivery(2, THEIRS), Event(EventKind.MODE, "off"))
        self.assertEqual([data["id"] for _, data in events_of(client)], ["m-1", "off"])

    def test_a_bound_key_hears_its_own_sessions(self) -> None:
        """Another machine learns nothing of our sessions, not even when something happens."""
        client = self.subscribe(key=BOUND)
        self.rig.bell.ring(delivery(1), delivery(2, THEIRS))
        self.assertEqual([data["id"] for _, data in events_of(client)], ["m-2"])

    def test_a_subscriber_that_comes_back_catches_up(self) -> None:
        """With its last id it gets what came since, and nothing twice."""
        first = self.subscribe()
        self.rig.bell.ring(*(delivery(number) for number in range(3)))
        last = ids_of(first)[0]
        first.hang_up()
        again = self.subscribe(last=last)
        self.assertEqual([data["id"] for _, data in events_of(again)], ["m-1", "m-2"])
        self.rig.bell.ring(delivery(9))
        self.assertEqual(len(events_of(again)), 3)
        self.assertEqual(len(set(ids_of(again))), 3)

    def test_an_id_that_is_not_known_gets_one_resync(self) -> None:
        """Of another run of the service, from the future, too old, or nonsense."""
        first = self.subscribe()
        self.rig.bell.ring(*(delivery(number) for number in range(KEPT + 5)))
        run = self.rig.doors.started
        for last in (f"{run}-2", f"{run}-{KEPT + 99}", "00000000-5", "5", "", "\xff", f"{run}-{'9' * 30}"):
            client = self.subscribe(last=last)
            self.assertEqual(events_of(client), [("resync", {})], last)
            self.assertEqual(ids_of(client), [ids_of(first)[-1]])

    def test_a_ping_is_said_every_15_seconds(self) -> None:
        """So that a peer that vanished is noticed."""
        client = self.subscribe()
        for _ in range(2):
            self.rig.clock.advance(PING_SECONDS)
        self.assertEqual(client.text().count(b": ping\n\n"), 2)

    def test_a_slow_reader_costs_little(self) -> None:
        """Equal events become one; what waits is told when there is room."""
        client = self.subscribe()
        client.channel.pauseProducing()
        for _ in range(1_000):
            self.rig.bell.ring(delivery(1), delivery(2))
        self.rig.clock.advance(PING_SECONDS)
        self.assertEqual(events_of(client), [])
        client.channel.resumeProducing()
        self.assertEqual([data["id"] for _, data in events_of(client)], ["m-1", "m-2"])
        self.assertEqual(ids_of(client)[-1], f"{self.rig.doors.started}-2000")

    def test_a_slow_reader_of_very_much_reads_everything_again(self) -> None:
        """Over the bound nothing is kept but the word that something was lost."""
        client = self.subscribe()
        client.channel.pauseProducing()
        self.rig.bell.ring(*(delivery(number) for number in range(MOST_WAITING * 3 + 1)))
        (stream,) = self.rig.doors.streams
        self.assertLessEqual(len(stream._waiting), MOST_WAITING)  # type: ignore[attr-defined]  # white box
        client.channel.resumeProducing()
        self.assertEqual(events_of(client)[0], ("resync", {}))
        self.assertEqual(len(events_of(client)), 1)

    def test_a_reader_that_has_stopped_is_cut_off(self) -> None:
        """After half a minute without reading."""
        client = self.subscribe()
        client.channel.pauseProducing()
        self.rig.clock.advance(PAUSED_SECONDS - 1)
        client.channel.resumeProducing()
        client.channel.pauseProducing()
        self.rig.clock.advance(PAUSED_SECONDS - 1)
        self.assertFalse(client.wire.disconnected)
        self.rig.clock.advance(1)
        self.assertTrue(client.wire.disconnected)

    def test_there_is_a_bound_and_places_are_freed(self) -> None:
        """The 101st is told so, and may come when another has gone."""
        clients = [self.subscribe() for _ in range(100)]
        self.assertEqual(self.rig.ask("GET", "/health", key=None).json["subscribers"], 100)
        answer = self.rig.ask("GET", "/events")
        self.assertEqual((answer.status, answer.code), (429, "too_many_subscribers"))
        clients[0].hang_up()
        self.assertIn(b"200 OK", self.subscribe().text())

    def test_another_machines_key_cannot_take_all_places(self) -> None:
        """It has a quarter of them."""
        for _ in range(25):
            self.subscribe(key=BOUND)
        answer = self.rig.ask("GET", "/events", key=BOUND)
        self.assertEqual((answer.status, answer.code), (429, "too_many_subscribers"))
        self.assertIn(b"200 OK", self.subscribe().text())

    def test_hanging_up_gives_everything_back(self) -> None:
        """No subscription, no clock, no traceback; also while paused."""
        for paused in (False, True):
            client = self.subscribe()
            if paused:
                client.channel.pauseProducing()
            client.hang_up()
            self.assertEqual(self.rig.clock.getDelayedCalls(), [])
            self.assertEqual((self.rig.doors.streams, self.rig.bell._subscribers), (set(), set()))
            self.assertEqual(self.rig.connections.streams, 0)
        self.rig.bell.ring(delivery(1))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_the_end_of_the_service_ends_the_stream(self) -> None:
        """Properly: with the last chunk, so that the client knows that nothing was cut."""
        client = self.subscribe()
        self.rig.doors.close()
        self.assertTrue(client.text().endswith(b"0\r\n\r\n"))
        self.assertTrue(client.closed)
        client.hang_up()
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
        answer = self.rig.ask("GET", "/events")
        self.assertEqual((answer.status, answer.code), (503, "stopping"))

    def test_the_header_alone_may_be_asked_for(self) -> None:
        """HEAD opens no stream."""
        client = self.rig.connect()
        client.feed(request("HEAD", "/events"))
        self.assertIn(b"Content-Type: text/event-stream", client.text())
        self.assertEqual(self.rig.doors.streams, set())
