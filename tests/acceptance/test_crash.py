r"""The service is killed at every point of both walks, again and again, and the oracle is asked.

The points are the edges of transactions (``mailgateway.store.faults``): between two of them the service only
talks to others.  A test drives one mail over its way and has the service killed at each point it comes to,
so the mail that arrives in the end has survived them all.  The oracle: nothing lost, nothing handed out
anew after its ack, acked and journaled once, never ``\Seen`` before its ack, one copy of what is sent but
for the one case in which nobody can know, reservations as they were.
"""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import func, select, update

from mailgateway.client import ServiceUnreachable
from mailgateway.client.answers import Delivery, Sent
from mailgateway.store.database import Tx
from mailgateway.store.tables import cursor, envelope, flagging, gap, journal, mode, outbox, question
from tests.acceptance.harness import AGENT, Asked
from tests.acceptance.tables import OnPostgres, TablesTestCase
from tests.fakes.dovecot import eventually


class CrashTestCase(TablesTestCase):
    """A world whose service dies where it is told to."""

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Settle at once."""
        return {**super().make_settings(), "notify": {"settle_delay_seconds": 0}}

    def die_at(self, point: str, provoke: Callable[[], object] | None = None) -> None:
        """Start the service so that it dies at ``point``: by itself, or when it is provoked."""
        self.gateway.fault = point
        if provoke is None:
            self.gateway.launch()
        else:
            self.gateway.start()
            with contextlib.suppress(ServiceUnreachable):
                provoke()
        try:
            self.gateway.wait_killed()
        except AssertionError as error:
            raise AssertionError(f"{point}: {error}") from None

    def cursor(self) -> int:
        """The UID up to which the folder was read."""
        return self.rows(lambda tx: int(tx.execute(select(cursor.c.uid)).scalar_one()))

    def envelope_states(self) -> list[str]:
        """Where each envelope stands, oldest first."""
        query = select(envelope.c.state).order_by(envelope.c.number)
        return self.rows(lambda tx: list(tx.execute(query).scalars()))

    def offered(self, asked: Asked) -> Delivery:
        """What is there for a session, be it claimed or not."""
        (delivery,) = self.gateway.client.pending(asked.session)
        return delivery

    def assert_consumed(self, *ids: str) -> None:
        r"""Exactly these envelopes exist; each was acked and journaled once, and no ``\Seen`` is owed."""

        def work(tx: Tx) -> tuple[list[str], list[str], int]:
            envelopes = tx.execute(select(envelope.c.id).where(envelope.c.state == "acked")).scalars()
            others = tx.execute(select(envelope.c.id).where(envelope.c.state != "acked")).scalars()
            entries = tx.execute(select(journal.c.envelope_id)).scalars()
            owed = tx.execute(select(func.count()).select_from(flagging)).scalar_one()
            return sorted(envelopes), [*others, *sorted(entries)], owed

        self.assertEqual(self.rows(work), (sorted(ids), sorted(ids), 0))


class WayInTests(CrashTestCase):
    """From the mail server to the session's ack."""

    def test_the_way_in(self) -> None:
        r"""Filing, claim, ack and flag: killed before and after each commit, in turn."""
        asked, other = self.ask("Which database?"), self.ask("Which port?")
        self.gateway.kill()
        before = self.cursor()
        mine, theirs = self.deliver_reply(asked, "SQLite"), self.deliver_reply(other, "4177")
        self.die_at("receive.receive:before-commit")
        self.assertEqual((self.cursor(), self.envelope_states()), (before, []))
        self.die_at("receive.receive:after-commit")
        self.assertGreater(self.cursor(), before)
        ids: list[str] = []

        def claim() -> None:
            ids.append(self.offered(asked)["id"])
            self.gateway.client.claim(ids[-1], asked.instance)

        def ack() -> None:
            claim()
            self.gateway.client.ack(ids[-1], asked.instance)

        self.die_at("deliver.claim:before-commit", claim)
        self.assertEqual(self.envelope_states(), ["new", "new"])
        self.die_at("deliver.claim:after-commit", claim)
        self.assertEqual(sorted(self.envelope_states()), ["claimed", "new"])
        self.die_at("deliver.ack:before-commit", ack)
        self.assertFalse(self.seen(mine) or self.seen(theirs))
        self.die_at("deliver.ack:after-commit", ack)
        self.assertEqual(sorted(self.envelope_states()), ["acked", "new"])
        self.die_at("flag.done:before-commit")
        self.assertTrue(self.seen(mine))
        self.die_at("flag.done:after-commit")
        self.start_watching()
        self.assertEqual(len(set(ids)), 1, "one mail, one id")
        self.gateway.client.ack(ids[0], asked.instance)  # whose answer was lost, asks again
        self.assert_nothing_pending(asked)
        delivery = self.poll(other)
        self.assertEqual(self.words(delivery), "4177")
        self.assertFalse(self.seen(theirs))
        self.take(other, delivery)
        self.wait_seen(theirs)
        self.assertEqual(self.gateway.client.health()["registry"], 0)
        self.gateway.kill()
        self.assert_consumed(ids[0], delivery["id"])
        self.assertEqual(
            self.rows(lambda tx: list(tx.execute(select(question.c.status)).scalars())), ["answered"] * 2
        )


class FirstLookTests(CrashTestCase):
    """The very first look at a folder."""

    def start_watching(self) -> None:
        """Die before and after the cursor has been set for the first time, then come up."""
        self.die_at("folders.open_folder:before-commit")
        self.die_at("folders.open_folder:after-commit")
        super().start_watching()

    def test_the_first_look(self) -> None:
        """What comes after it is read."""
        asked = self.ask()
        self.deliver_reply(asked, "the first")
        self.assertEqual(self.words(self.poll(asked)), "the first")


class RenumberingTests(CrashTestCase):
    """A mailbox that was restored from a backup, and a service that dies while it reads it anew."""

    def test_renumbering(self) -> None:
        """Ids, claims and acks survive; what came meanwhile is found; nothing comes again."""
        acked, claimed, new, late = (self.ask(f"Question {number}?") for number in range(4))
        ids = {}
        for asked in (acked, claimed, new):
            self.deliver_reply(asked, asked.session)
            ids[asked.session] = self.poll(asked)["id"]
        self.take(acked, self.poll(acked))
        self.gateway.client.claim(ids[claimed.session], claimed.instance)
        self.gateway.kill()
        self.dovecot.recreate(AGENT)
        self.deliver_reply(late, "late")
        self.die_at("receive.receive:before-commit")
        self.die_at("receive.receive:after-commit")
        self.die_at("folders.finish_renumbering:before-commit")
        self.die_at("folders.finish_renumbering:after-commit")
        self.start_watching()
        self.assert_nothing_pending(acked)
        for asked in (claimed, new):
            self.assertEqual(self.offered(asked)["id"], ids[asked.session])
        self.assertEqual(self.words(self.poll(late)), "late")
        ids[late.session] = self.poll(late)["id"]
        self.gateway.client.ack(ids[claimed.session], claimed.instance)  # the claim outlived it all
        for asked in (new, late):
            self.take(asked, self.poll(asked))
        eventually(r"all are \Seen", lambda: all("\\Seen" in f for f in self.dovecot.flags(AGENT).values()))
        self.gateway.kill()
        self.assert_consumed(*ids.values())


class WayOutTestCase(CrashTestCase):
    """From the session's request to the server's answer."""

    def copies(self, message_id: str) -> int:
        """How often the server has got a mail."""
        return sum(received.mail["Message-ID"] == message_id for received in self.sink.mails)

    def submit(self, subject: str) -> str:
        """Queue a notification, and die before it is sent; its outbox id."""
        self.die_at("submit._try:after-commit", lambda: self.notify(subject))
        query = select(outbox.c.id).where(outbox.c.subject.endswith(subject))
        return str(self.rows(lambda tx: tx.execute(query).scalar_one()))

    def notify(self, subject: str) -> Sent:
        """Send a notification; the same one when it is called again."""
        return self.gateway.client.send("notification", "s", subject, "text", idempotency_key=subject)

    def make_due(self, outbox_id: str) -> None:
        """Let the time pass after which a mail of unclear fate goes once more."""
        self.gateway.kill()
        now = datetime.now(UTC)
        changed = update(outbox).where(outbox.c.id == outbox_id, outbox.c.state == "unclear")
        found = self.rows(lambda tx: tx.execute(changed.values(next_attempt_at=now)).rowcount)
        self.assertEqual(found, 1)

    def wait_state(self, outbox_id: str, state: str) -> None:
        """Wait until a mail of the outbox has come so far."""
        client = self.gateway.client
        eventually(f"the mail is {state}", lambda: client.outbox(outbox_id)["state"] == state)

    def drain(self) -> None:
        """Let everything that is due go: what was queued before another mail has gone before it."""
        marker = f"marker {len(self.sink.mails)}"
        self.wait_state(self.notify(marker)["outboxId"], "sent")


class SubmissionTests(WayOutTestCase):
    """Into the outbox."""

    def test_submission(self) -> None:
        """A decision: before its commit there is nothing, after it there is one mail, and one reservation."""
        client, key = self.gateway.client, "once"

        def decide() -> Sent:
            client.ping("s", "i")
            return client.send("decision", "s", "Which?", "This or that?", idempotency_key=key)

        self.gateway.kill()
        self.die_at("submit._try:before-commit", decide)
        self.assertEqual(self.rows(lambda tx: tx.execute(select(question.c.id)).all()), [])
        self.die_at("submit._try:after-commit", decide)
        self.die_at("outbox.claim_next:before-commit")
        self.assertEqual(self.sink.mails, [])
        self.start_watching()
        sent = decide()
        self.wait_state(sent["outboxId"], "sent")
        self.assertEqual((self.copies(sent["messageId"]), client.health()["registry"]), (1, 1))
        asked = Asked("s", "i", self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"]))
        self.deliver_reply(asked, "This")
        self.take(asked, self.poll(asked))
        self.assertEqual((decide()["messageId"], client.health()["registry"]), (sent["messageId"], 0))
        self.drain()
        self.assertEqual(self.copies(sent["messageId"]), 1)

    def test_settle(self) -> None:
        """A turn that is over leaves its table with the mail that says so: never two, never none."""
        self.gateway.kill()
        self.die_at(
            "settle._send:before-commit", lambda: self.gateway.client.settle("s", "i", "All tests pass.")
        )
        self.die_at("settle._send:after-commit")
        self.gateway.start()
        self.drain()
        subjects = [mail.mail["Subject"].partition("] ")[2] for mail in self.sink.mails]
        self.assertEqual([subject.partition(":")[0] for subject in subjects], ["Done", "marker 0"])


class AnswerTests(WayOutTestCase):
    """What the gateway itself says to people."""

    def test_commands_and_what_cannot_be_used(self) -> None:
        r"""Obeyed and answered once, ``\Seen`` after that; a mail that vanished leaves its number behind."""
        asked = self.ask()
        self.gateway.kill()
        before = self.cursor()
        self.deliver_reply(asked, "taken back")
        with self.dovecot.client(AGENT) as mails:
            mails.select("INBOX")
            mails.store("1:*", "+FLAGS", r"(\Deleted)")
            mails.expunge()
        empty, command = self.deliver_reply(asked, ""), self.deliver_reply(asked, "/off")
        self.die_at("gaps._write:before-commit")
        self.assertEqual(self.gaps(), [])
        self.die_at("gaps._write:after-commit")
        self.assertEqual(self.gaps(), [before + 1])
        self.die_at("receive.receive:before-commit")
        self.assertEqual((self.cursor(), self.answers(empty), self.answers(command)), (before, 0, 0))
        self.assertEqual(self.rows(lambda tx: list(tx.execute(select(mode.c.mode)).scalars())), ["on"])
        self.die_at("receive.receive:after-commit")
        self.assertEqual(self.cursor(), before + 3)
        self.assertFalse(self.seen(command))
        self.die_at("outbox.conclude:after-commit")
        self.gateway.start()
        self.wait_seen(command)
        self.assertEqual(self.gateway.client.mode(), "off")
        eventually("both are answered", lambda: self.answers(empty) and self.answers(command))
        self.assertFalse(self.seen(empty))
        self.gateway.kill()
        self.assertEqual((self.answers(empty), self.answers(command)), (1, 1))

    def gaps(self) -> list[int]:
        """The numbers under which a mail may yet become visible."""
        return self.rows(lambda tx: list(tx.execute(select(gap.c.uid)).scalars()))

    def answers(self, message_id: str) -> int:
        """How often a mail was answered."""
        return sum(received.mail["In-Reply-To"] == message_id for received in self.sink.mails)


class SendingTests(WayOutTestCase):
    """Out of the outbox."""

    def test_sending(self) -> None:
        """Between claim and conclusion nobody knows: the mail rests, and goes once more; else one copy."""
        self.gateway.kill()
        unsent = self.submit("killed before dialling")
        self.die_at("outbox.claim_next:after-commit")
        self.gateway.start()
        self.drain()
        self.wait_state(unsent, "unclear")
        self.assertEqual(self.copies(self.notify("killed before dialling")["messageId"]), 0)
        self.make_due(unsent)
        self.gateway.start()
        self.wait_state(unsent, "sent")
        self.assertEqual(self.copies(self.notify("killed before dialling")["messageId"]), 1)
        self.gateway.kill()

        doubtful = self.submit("killed before it was written down")
        self.die_at("outbox.conclude:before-commit")
        self.gateway.start()
        self.drain()
        self.wait_state(doubtful, "unclear")
        name = self.notify("killed before it was written down")["messageId"]
        self.assertEqual(self.copies(name), 1)
        self.make_due(doubtful)
        self.gateway.start()
        self.wait_state(doubtful, "sent")
        self.assertEqual(self.copies(name), 2)  # never more, and known by one Message-ID
        self.gateway.kill()

        certain = self.submit("killed when it was written down")
        self.die_at("outbox.conclude:after-commit")
        self.gateway.start()
        self.drain()
        self.wait_state(certain, "sent")
        self.assertEqual(self.copies(self.notify("killed when it was written down")["messageId"]), 1)

    def test_after_the_final_dot(self) -> None:
        """The server has a decision and we die before its answer: a reply shows that it arrived."""
        self.gateway.client.ping("s", "i")
        self.sink.on_mail = self.gateway.kill
        with contextlib.suppress(ServiceUnreachable):
            self.gateway.client.send("decision", "s", "Which?", "This or that?")
        self.sink.on_mail = None
        received = self.sink.wait()
        self.start_watching()
        self.assertEqual(self.gateway.client.health()["registry"], 1)
        asked = Asked("s", "i", received)
        self.deliver_reply(asked, "This")
        self.take(asked, self.poll(asked))
        self.drain()
        self.gateway.kill()
        states = self.rows(lambda tx: tx.execute(select(outbox.c.state, outbox.c.next_attempt_at)).all())
        self.assertEqual([tuple(row) for row in states], [("sent", None)] * 2)
        self.assertEqual(self.copies(received.mail["Message-ID"]), 1)


class PostgresWayInTests(OnPostgres, WayInTests):
    """The way in, on a server."""


class PostgresSendingTests(OnPostgres, SendingTests):
    """Out of the outbox, on a server."""
