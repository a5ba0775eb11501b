"""A night with a real service: its clock is moved between its lives, and it is killed where it hurts."""

import re
import urllib.parse
from datetime import UTC, datetime, time, timedelta
from email.message import EmailMessage
from pathlib import Path

from sqlalchemy import func, select

from mailgateway.store.database import Tx
from mailgateway.store.tables import held_mail, outbox, reminder
from tests.acceptance.harness import AGENT, RESULTS, ROBIN, Asked
from tests.acceptance.test_crash import CrashTestCase
from tests.fakes.dovecot import eventually, require
from tests.fakes.smtp_sink import Received

_LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
"""What moves a process's clock; loaded by hand, since `faketime` itself stays between us and the service."""

_LINK = re.compile(r'href="(mailto:[^"]+)"')


class NightTests(CrashTestCase):
    """From eleven at night to the next morning."""

    def setUp(self) -> None:
        require("faketime", "faketime")
        begun = datetime.now(UTC)
        night = datetime.combine(begun.date() + timedelta(days=1), time(23), UTC)
        self.offset = night - begun
        super().setUp()

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Quiet at night; nobody is reminded at first."""
        settings = super().make_settings()
        night = {"quiet_hours": "22:00-07:00", "time_zone": "UTC", "remind_after_hours": 0}
        self.notify = {**settings["notify"], **night}
        return {**settings, "notify": self.notify}

    def start_watching(self) -> None:
        """Start the service with its clock as far ahead as it is to be."""
        self.set_clock()
        super().start_watching()

    def set_clock(self) -> None:
        """Let the next life of the service begin at its time."""
        moved = f"FAKETIME=+{round(self.offset.total_seconds())}s"
        self.gateway.wrapper = ("env", f"LD_PRELOAD={_LIBRARY}", moved, "FAKETIME_DONT_FAKE_MONOTONIC=1")

    def test_a_night(self) -> None:
        """Questions come at once; the rest in one digest, once; the question is brought to mind, once."""
        client = self.gateway.client
        client.ping("s", "i", title="Port the parser", project="api")
        client.ping("t", "j", title="Write the guide")
        first = client.send("notification", "s", "Halfway", "Seven of **14** done.")
        second = client.send("notification", "t", "Chapter one", "It stands.")
        client.settle("s", "i", "All 14 done. Nothing is left.")
        eventually("three mails are held back", lambda: client.health()["held"] == 3)
        self.assertEqual(first["heldUntil"][11:], second["heldUntil"][11:])
        self.assertEqual(client.outbox(first["outboxId"])["heldUntil"], first["heldUntil"])
        self.assertTrue(first["heldUntil"].endswith("T07:00:00.000000Z"), first["heldUntil"])
        asked = self.ask()
        self.assertEqual(
            [mail.mail["Message-ID"] for mail in self.sink.mails], [asked.question["Message-ID"]]
        )
        self.gateway.kill()
        self.offset += timedelta(hours=8, minutes=10)
        self.set_clock()
        self.die_at("digest._send_together:before-commit")
        self.assertEqual(self.held(), 3)
        self.die_at("digest._send_together:after-commit")
        self.assertEqual(self.held(), 0)
        self.start_watching()
        digest = self.arrived("3 messages from 2 sessions")
        eventually("it is sent", lambda: client.outbox(first["outboxId"])["state"] == "sent")
        self.assertIn("carriedBy", client.outbox(first["outboxId"]))
        self.gateway.kill()
        self.notify["remind_after_hours"] = 3
        self.die_at("reminders._nudge:before-commit")
        self.assertEqual(self.reminders(), 0)
        self.die_at("reminders._nudge:after-commit")
        self.assertEqual(self.reminders(), 1)
        self.start_watching()
        again = self.sink.wait(lambda mail: mail.mail["In-Reply-To"] == asked.question["Message-ID"])
        self.assertEqual(again.mail["Subject"], asked.question["Subject"])
        self.assertEqual(len(self.sink.mails), 3)

        self.answer_a_piece(digest, second["route"])
        self.answer_the_whole(digest, first["route"])
        self.deliver_reply(Asked(asked.session, asked.instance, again), "SQLite")
        delivery = self.poll(asked)
        self.assertIsNotNone(delivery.get("questionId"))
        self.take(asked, delivery)
        self.assertEqual(client.health()["registry"], 0)

    def answer_a_piece(self, digest: Received, route: str) -> None:
        """The link below a session's words opens a mail that reaches it."""
        page = digest.mail.get_body(("html",))
        assert page is not None
        links = [
            urllib.parse.urlsplit(each.replace("&amp;", "&")) for each in _LINK.findall(page.get_content())
        ]
        self.assertEqual(len(links), 3)
        subjects = [urllib.parse.parse_qs(each.query)["subject"][0] for each in links]
        (subject,) = [each for each in subjects if route in each]
        mail = EmailMessage()
        mail["Authentication-Results"] = RESULTS
        mail["From"], mail["To"], mail["Subject"] = ROBIN, AGENT, subject
        mail["Message-ID"] = "<a-piece@example.net>"
        mail.set_content("Go on with chapter two")
        self.dovecot.deliver(AGENT, mail.as_bytes().replace(b"\n", b"\r\n"), ROBIN)
        found = Asked("t", "j", digest)
        delivery = self.poll(found)
        self.assertEqual(self.words(delivery), "Go on with chapter two")
        self.take(found, delivery)

    def answer_the_whole(self, digest: Received, route: str) -> None:
        """A plain reply reaches nobody, and is told how to."""
        self.deliver_reply(Asked("s", "i", digest), "Well done")
        told = self.sink.wait(lambda mail: mail.mail["Auto-Submitted"] == "auto-replied")
        text = told.mail.get_body(("plain",))
        assert text is not None
        self.assertIn(f"[mg:{route}]", text.get_content())
        self.assertEqual(self.gateway.client.pending("s"), [])

    def arrived(self, words: str) -> Received:
        """The one mail with these words in its subject."""
        return self.sink.wait(lambda mail: words in mail.mail["Subject"])

    def held(self) -> int:
        """How many mails are held back."""
        return self.rows(lambda tx: int(tx.execute(select(func.count()).select_from(held_mail)).scalar_one()))

    def reminders(self) -> int:
        """How many reminders are in the outbox; as many as are remembered."""

        def work(tx: Tx) -> tuple[int, int]:
            mails = select(func.count()).select_from(outbox).where(outbox.c.kind == "reminder")
            times = select(func.coalesce(func.sum(reminder.c.times), 0))
            return tx.execute(mails).scalar_one(), tx.execute(times).scalar_one()

        mails, times = self.rows(work)
        self.assertEqual(mails, times)
        return mails
