"""Two services on one PostgreSQL and one mailbox: one watches, and the other is there when it cannot."""

import signal
import time

from sqlalchemy import select, update

from mailgateway.client import ApiRefused, ServiceUnreachable
from mailgateway.client.answers import Delivery
from mailgateway.store.database import Tx
from mailgateway.store.tables import cursor, envelope, lease
from tests.acceptance.harness import AGENT, Asked, Gateway
from tests.acceptance.tables import OnPostgres, TablesTestCase
from tests.fakes.dovecot import eventually
from tests.fakes.stalling import StallingProxy

TAKE_OVER_SECONDS = 30.0


class TwoGatewaysTestCase(OnPostgres, TablesTestCase):
    """``gateway`` is the first to watch, ``other`` the one that stands by; each is a machine of its own."""

    def start_watching(self) -> None:
        """Start the first, which watches, then the other."""
        super().start_watching()
        settings: dict[str, dict[str, object]] = {**super().make_settings(), "device": {"name": "other"}}
        self.other = Gateway(self.folder / "other", settings)
        self.addCleanup(self.other.close)
        self.other.start()
        eventually("the other stands by", lambda: self.state(self.other) == "standby")

    def state(self, gateway: Gateway) -> str:
        """What a gateway tells about its account."""
        return gateway.client.health()["accounts"][0]["state"]

    def ask_at(self, gateway: Gateway, session: str) -> Asked:
        """Let a session of this gateway's machine ask."""
        gateway.client.ping(session, f"{session}-instance")
        sent = gateway.client.send("decision", session, f"{session}?", "Yes or no?")
        received = self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        return Asked(session, f"{session}-instance", received)

    def take_at(self, gateway: Gateway, asked: Asked, words: str, *, alone: bool = False) -> Delivery:
        """Wait for a reply at this gateway, and take it; it is offered nowhere else."""
        (delivery,) = gateway.client.pending(asked.session, wait=20)
        self.assertEqual(self.words(delivery), words)
        elsewhere = self.other if gateway is self.gateway else self.gateway
        if elsewhere.running and not alone:
            self.assertNotIn(delivery["id"], [each["id"] for each in elsewhere.client.pending()])
            refused = self.assertRaises(ApiRefused, elsewhere.client.claim, delivery["id"], "somebody")
            self.assertEqual(refused.code, "foreign-device")
        gateway.client.claim(delivery["id"], asked.instance)
        gateway.client.ack(delivery["id"], asked.instance)
        return delivery

    def wait_take_over(self, gateway: Gateway) -> float:
        """Wait until this gateway watches; how long that took."""
        begun = time.monotonic()
        eventually("it watches", lambda: self.state(gateway) == "watching", TAKE_OVER_SECONDS)
        return time.monotonic() - begun

    def end_lease(self) -> None:
        """Let the time pass after which a lease that is not renewed has run out."""
        self.rows(lambda tx: tx.execute(update(lease).values(until=tx.now)))

    def states(self) -> tuple[list[str], int]:
        """Where each envelope stands, and the cursor's UIDVALIDITY."""

        def work(tx: Tx) -> tuple[list[str], int]:
            query = select(envelope.c.state).order_by(envelope.c.number)
            validity = tx.execute(select(cursor.c.uid_validity)).scalar_one()
            return list(tx.execute(query).scalars()), validity

        return self.rows(work)


class TwoGatewaysTests(TwoGatewaysTestCase):
    """The holder dies or sleeps."""

    def test_the_holder_is_killed(self) -> None:
        """Each machine sends its own mail and gets its own replies; the other takes over in time."""
        here, there = self.ask_at(self.gateway, "here"), self.ask_at(self.other, "there")
        self.assertEqual(self.dovecot.logins(), 1)
        first, second = self.deliver_reply(here, "for here"), self.deliver_reply(there, "for there")
        self.take_at(self.gateway, here, "for here")
        self.take_at(self.other, there, "for there")
        self.wait_seen(first)
        self.wait_seen(second)  # acked at the one, flagged by the other
        late = self.ask_at(self.other, "late")
        orphan = self.ask_at(self.gateway, "orphan")
        self.gateway.kill()
        third = self.deliver_reply(late, "nobody watches")
        fourth = self.deliver_reply(orphan, "its machine is away")
        self.assertLess(self.wait_take_over(self.other), TAKE_OVER_SECONDS)
        self.take_at(self.other, late, "nobody watches")
        self.wait_seen(third)
        self.assertEqual(self.other.client.pending("orphan"), [])
        self.gateway.start()
        self.take_at(self.gateway, orphan, "its machine is away")
        self.assertEqual(self.state(self.gateway), "standby")
        self.wait_seen(fourth)
        self.assertEqual(len(self.sink.mails), 4)
        self.assertEqual(self.states()[0], ["acked"] * 4)

    def test_the_holder_sleeps(self) -> None:
        """It is stopped, overtaken, and wakes: it is fenced off, lets go, and nothing happens twice."""
        here, there = self.ask_at(self.gateway, "here"), self.ask_at(self.other, "there")
        self.gateway.send_signal(signal.SIGSTOP)
        first, second = self.deliver_reply(here, "for here"), self.deliver_reply(there, "for there")
        self.end_lease()
        self.wait_take_over(self.other)
        (delivery,) = self.other.client.pending("there", wait=20)
        self.assertEqual(self.words(delivery), "for there")
        before = self.states()
        self.gateway.send_signal(signal.SIGCONT)
        eventually("the sleeper stands by", lambda: self.state(self.gateway) == "standby")
        self.assertEqual(self.states(), before)
        self.assertEqual(before[0], ["new", "new"])
        self.assertEqual(before[1], self.dovecot.uid_validity(AGENT))
        self.take_at(self.other, there, "for there")
        self.take_at(self.gateway, here, "for here")
        self.wait_seen(first)
        self.wait_seen(second)
        self.assertEqual(self.other.stop(), 0)
        self.assertLess(self.wait_take_over(self.gateway), 15)  # a lease that is given back is taken soon
        again = self.ask_at(self.gateway, "again")
        self.deliver_reply(again, "after it all")
        self.take_at(self.gateway, again, "after it all")
        self.assertEqual(self.states()[0], ["acked"] * 3)
        self.assertNotIn("Traceback", self.gateway.log() + self.other.log())

    def test_the_holder_sleeps_in_the_middle_of_filing(self) -> None:
        """Its transaction does not keep the other waiting, and comes to nothing when it wakes."""
        self.gateway.kill()
        self.gateway.fault = "receive.receive:sleep-before-commit"
        self.gateway.start()
        self.dovecot.wait_idle(AGENT)
        there = self.ask_at(self.other, "there")
        message_id = self.deliver_reply(there, "for there")
        eventually("the holder sleeps", lambda: self.gateway.stopped)
        self.end_lease()
        self.wait_take_over(self.other)
        self.take_at(self.other, there, "for there", alone=True)
        self.wait_seen(message_id)
        before = self.states()
        self.gateway.send_signal(signal.SIGCONT)
        eventually("the sleeper stands by", lambda: self.state(self.gateway) == "standby")
        self.assertEqual(self.states(), before)
        self.assertEqual(before[0], ["acked"])
        self.assertNotIn("Traceback", self.gateway.log() + self.other.log())


class CutOffTests(TwoGatewaysTestCase):
    """The way between the holder and the database is blocked: nothing passes, and nobody is told."""

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Let the first reach its database by a way that can be blocked."""
        base, _, name = self.url.rpartition("/")
        start, _, port = base.rpartition(":")
        self.proxy = StallingProxy(int(port))
        self.addCleanup(self.proxy.close)
        return {
            **super().make_settings(),
            "daemon": {"database": f"{start}:{self.proxy.port}/{name}"},
        }

    def test_the_holder_is_cut_off(self) -> None:
        """Health answers and says so; the other takes over; afterwards nothing is lost, or happens twice."""
        here, there = self.ask_at(self.gateway, "here"), self.ask_at(self.other, "there")
        self.proxy.block()
        first, second = self.deliver_reply(here, "for here"), self.deliver_reply(there, "for there")
        began = time.monotonic()
        self.assertEqual(self.gateway.client.health()["status"], "store_unavailable")
        self.assertLess(time.monotonic() - began, 5)
        self.end_lease()
        self.wait_take_over(self.other)
        self.take_at(self.other, there, "for there", alone=True)
        self.wait_seen(second)
        before = self.states()
        refused = self.assertRaises((ApiRefused, ServiceUnreachable), self.gateway.client.ping, "here", "i")
        self.assertIn(getattr(refused, "code", ""), {"store_unavailable", ""})
        self.assertFalse(self.seen(first))
        self.proxy.open()
        eventually("the one that was cut off stands by", lambda: self.state(self.gateway) == "standby", 60)
        eventually("and is well", lambda: self.gateway.client.health()["status"] == "ok", 60)
        self.assertEqual(self.states()[1], before[1])
        self.take_at(self.gateway, here, "for here")
        self.wait_seen(first)
        self.assertEqual(self.states()[0], ["acked", "acked"])
        self.assertNotIn("Traceback", self.gateway.log() + self.other.log())
