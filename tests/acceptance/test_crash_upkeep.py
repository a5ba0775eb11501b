"""The rest of the crash matrix: what sessions say of themselves, upkeep, uploads, and kills at any moment.

The points of both walks stand in ``test_crash``; here are the transactions beside them, and the walks of
submission and renumbering on a server.
"""

import contextlib
import random
import time
from collections.abc import Callable

from sqlalchemy import func, select

from mailgateway.client import ApiRefused, ServiceUnreachable
from mailgateway.store.tables import envelope, machine_name, question, session
from tests.acceptance import test_crash
from tests.acceptance.harness import Asked
from tests.acceptance.tables import OnPostgres
from tests.acceptance.test_crash import CrashTestCase
from tests.fakes.dovecot import eventually

SEED = 20
KILLS = 6


class SessionsTests(CrashTestCase):
    """What sessions say of themselves: before the commit it was never said, after it it holds."""

    def at_both_edges(self, point: str, act: Callable[[], object], held: Callable[[], object]) -> None:
        """Die at each edge of a transaction; ``held`` looks at the rows whether it happened."""
        self.gateway.kill()
        self.die_at(f"{point}:before-commit", act)
        self.assertFalse(held(), f"{point} before its commit")
        self.die_at(f"{point}:after-commit", act)
        self.assertTrue(held(), f"{point} after its commit")
        self.gateway.start()

    def statuses(self) -> list[str]:
        """Where each question stands."""
        return self.rows(lambda tx: list(tx.execute(select(question.c.status)).scalars()))

    def left(self) -> int:
        """How many sessions have said bye."""
        query = select(func.count()).where(session.c.left_at.is_not(None))
        return self.rows(lambda tx: int(tx.execute(query).scalar_one()))

    def test_sessions(self) -> None:
        """Ping, reservation, its end, bye and the mode; whoever asks again is answered as if once."""
        client = self.gateway.client
        known = select(func.count()).select_from(session)

        self.at_both_edges(
            "sessions.ping",
            lambda: client.ping("s", "i"),
            lambda: self.rows(lambda tx: tx.execute(known).scalar_one()),
        )
        self.at_both_edges(
            "sessions.reserve", lambda: client.register("s", "i"), lambda: self.statuses() == ["reserved"]
        )
        refused = self.assertRaises(ApiRefused, client.register, "s", "i")
        self.assertEqual(refused.code, "decision_outstanding")
        self.at_both_edges(
            "sessions.free", lambda: client.unregister("s", "i"), lambda: self.statuses() == ["cancelled"]
        )
        self.at_both_edges("sessions.bye", lambda: client.bye("s", "i"), self.left)
        client.bye("s", "i")
        self.assertEqual((self.left(), client.health()["registry"]), (1, 0))
        self.gateway.kill()
        self.die_at("mode.change:before-commit", lambda: client.set_mode("off"))
        self.gateway.start()
        self.assertEqual(client.mode(), "on")
        self.gateway.kill()
        self.die_at("mode.change:after-commit", lambda: client.set_mode("off"))
        self.gateway.start()
        self.assertEqual(client.mode(), "off")
        self.gateway.kill()
        names = select(func.count()).select_from(machine_name)
        before = self.rows(lambda tx: tx.execute(names).scalar_one())
        for edge in ("before", "after"):
            self.die_at(f"start.introduce:{edge}-commit", client.reload)
        self.gateway.start()
        self.assertEqual(self.rows(lambda tx: tx.execute(names).scalar_one()), before)

    def test_uploads(self) -> None:
        """A file without its row is removed by the next start; one that has its row stays for its hour."""
        client = self.gateway.client
        folder = self.gateway.state_dir / "uploads"
        self.gateway.kill()
        self.die_at("uploads.add:before-commit", lambda: client.upload("a.txt", b"a", "s"))
        self.assertEqual(len(list(folder.iterdir())), 1)
        self.gateway.start()
        eventually("nothing is left of it", lambda: not list(folder.iterdir()))
        self.gateway.kill()
        self.die_at("uploads.add:after-commit", lambda: client.upload("a.txt", b"a", "s"))
        (kept,) = folder.iterdir()
        self.gateway.start()
        again = client.upload("b.txt", b"b", "s")
        sent = client.send("notification", "s", "With a file", "text", attachments=(again,))
        self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        self.assertTrue(kept.exists())


class UpkeepTests(CrashTestCase):
    """The sweep dies in the middle of its two transactions."""

    def state(self) -> str:
        """Where the one envelope stands."""
        return self.rows(lambda tx: str(tx.execute(select(envelope.c.state)).scalar_one()))

    def test_a_dead_claim(self) -> None:
        """It is released once, by whichever sweep comes to its commit; a release of its own likewise."""
        asked = self.ask()
        self.deliver_reply(asked, "yes")
        delivery = self.poll(asked)
        client = self.gateway.client
        client.claim(delivery["id"], asked.instance)
        self.gateway.kill()
        self.die_at("deliver.release:before-commit", lambda: client.release(delivery["id"], asked.instance))
        self.assertEqual(self.state(), "claimed")
        self.die_at("deliver.release:after-commit", lambda: client.release(delivery["id"], asked.instance))
        self.assertEqual(self.state(), "new")
        self.gateway.start()
        client.claim(delivery["id"], asked.instance, pid=self.gateway.pid, started=1.0)  # nobody's
        self.gateway.kill()
        self.die_at("sweep.sweep:before-commit")
        self.assertEqual(self.state(), "claimed")
        self.die_at("sweep.sweep:after-commit")
        self.assertEqual(self.state(), "new")
        for edge in ("before", "after"):
            self.die_at(f"sweep.sweep:{edge}-commit:2")
        self.start_watching()
        self.take(asked, self.poll(asked))
        eventually("the flag is set", lambda: all("\\Seen" in f for f in self.flags()))
        self.gateway.kill()
        self.assert_consumed(delivery["id"])

    def flags(self) -> list[set[str]]:
        """The flags of each mail."""
        return list(self.dovecot.flags("agent@example.org").values())


class RandomKillsTests(CrashTestCase):
    """Kills at any moment while replies come and are taken."""

    def test_random_kills(self) -> None:
        """Each reply is one envelope, acked and journaled once; the seed tells the moments."""
        chance = random.Random(SEED)  # noqa: S311 (it repeats a run)
        asked = [self.ask(f"Question {number}?") for number in range(KILLS)]
        taken: dict[str, str] = {}
        for number, each in enumerate(asked):
            self.deliver_reply(each, f"answer {number}")
            working = self.threads.submit(self.take_if_up, asked, taken)
            time.sleep(chance.uniform(0.0, 0.9))
            self.gateway.kill()
            working.result(30)
            self.gateway.start()
        end = time.monotonic() + 60
        while len(taken) < KILLS and time.monotonic() < end:
            self.take_if_up(asked, taken)
        self.assertEqual(sorted(taken), sorted(each.session for each in asked))
        eventually(
            "no flag is owed",
            lambda: all(self.seen(name) for name in self.dovecot.flags("agent@example.org")),
        )
        self.gateway.kill()
        self.assert_consumed(*taken.values())

    def take_if_up(self, asked: list[Asked], taken: dict[str, str]) -> None:
        """Claim and ack what is there, until nothing is or the service dies."""
        with contextlib.suppress(ServiceUnreachable), self.gateway.another_client() as client:
            for _ in range(4):
                for each in asked:
                    for delivery in client.pending(each.session, wait=0.1):
                        client.claim(delivery["id"], each.instance)
                        client.ack(delivery["id"], each.instance)
                        self.assertEqual(taken.setdefault(each.session, delivery["id"]), delivery["id"])


class PostgresSubmissionTests(OnPostgres, test_crash.SubmissionTests):
    """Into the outbox, on a server."""


class PostgresRenumberingTests(OnPostgres, test_crash.RenumberingTests):
    """A restored mailbox, on a server."""


class PostgresSessionsTests(OnPostgres, SessionsTests):
    """What sessions say, on a server."""
