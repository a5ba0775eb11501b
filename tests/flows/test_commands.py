"""What a person asks of the gateway itself by mail."""

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from mailgateway.domain.mode import Mode
from mailgateway.flows import deliver, flag, mode, sessions
from mailgateway.flows.bell import EventKind
from mailgateway.flows.sessions import Ping
from mailgateway.ids import MachineId
from mailgateway.mail.own import Own
from mailgateway.store import machines, modes
from mailgateway.store.tables import journal
from tests.flows.inbound import AGENT, INBOX, letter
from tests.flows.outbound import ACCOUNT, I1, IDENTITY, PERSON, S1, S2, Interrupted
from tests.flows.test_notify_person import KIM, AnswersTestCase

ELSEWHERE = MachineId("machine-two")


class CommandsTestCase(AnswersTestCase):
    """Tests with a session that asks, and a person who commands."""

    def mode(self) -> Mode:
        """The mode of the machine."""
        return self.now(mode.current(self.gateway.database, IDENTITY))

    def due_flags(self) -> tuple[int, ...]:
        r"""UIDs that are to become ``\\Seen``."""
        return self.now(flag.due(self.gateway.database, ACCOUNT, INBOX, self.folder.uid_validity))

    def command(self, words: str, second: int = 0, **options: Any) -> bytes:
        """A reply that is a command, each with a time of its own."""
        return self.reply(words, headers={"Date": f"Mon, 30 Nov 2026 12:00:{second:02} +0000"}, **options)


class ObeyTests(CommandsTestCase):
    """The whole reply is the command; it is done, journaled, flagged and answered."""

    def test_off_and_on(self) -> None:
        """A person's off is one that only a person undoes; the answer leaves all the same."""
        received = self.receive(self.command("/OFF\n"))
        self.assertEqual((received.routed, dict(received.refused)), (1, {}))
        self.assertEqual(self.mode(), Mode.OFF)
        self.assertIn(EventKind.MODE, self.gateway.kinds())
        self.assertIn("is off", self.text())
        self.assertEqual(self.claim().recipients, (PERSON,))
        refused = self.refused(
            mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.ON, by="session")
        )
        self.assertEqual(refused.code, "person_required")
        self.receive(self.command("/on", 1))
        self.assertEqual(self.mode(), Mode.ON)
        self.assertIn("is on", self.text())

    def test_its_fate(self) -> None:
        """It counts as routed and acked; no session sees it; its mail becomes seen."""
        self.receive(self.command("/help"))
        fate = self.fate()
        self.assertEqual((fate.verdict, fate.step, fate.reason), ("command", "acked", "/help"))
        self.assertIsNotNone(fate.reply_id)
        self.assertIsNone(fate.envelope_id)
        self.assertEqual(self.pending(None), ())
        self.assertEqual(self.due_flags(), (1,))
        [entry] = self.gateway.rows(lambda tx: list(tx.execute(journal.select())))
        self.assertEqual((entry.session_id, entry.instance_id), (S1, ""))

    def test_status_and_pending(self) -> None:
        """Numbers, live sessions, and the open questions with their tags."""
        self.ping(S2, title="Build the *docs*")
        sent = self.submit("decision", S2, options=("yes", "no"), subject="Deploy now?")
        self.receive(self.reply("hello"), self.command("/status"), self.command("/pending", 1))
        self.assertIn("Questions that wait for an answer: 1", self.text(0))
        self.assertIn("Messages that wait for their sessions: 1", self.text(0))
        self.assertIn("Build the *docs*", self.text(0))
        self.assertIn(f"[mg:{sent.route_id}] Deploy now?", self.text(1))

    def test_a_question_is_not_answered_by_a_command(self) -> None:
        """It stays open."""
        sent = self.submit("decision", S2, options=("yes", "no"))
        self.receive(self.command("/help", sent=sent))
        self.receive(self.reply("yes", sent))
        [envelope] = self.pending(S2)
        self.assertEqual(envelope.choice, "yes")

    def test_quotes_and_signatures_do_not_hide_it(self) -> None:
        """What a mail program puts around the word is not the word."""
        self.receive(self.command("/off\n\n-- \nRobin\n\n> SQLite or PostgreSQL?\n"))
        self.assertEqual(self.mode(), Mode.OFF)

    def test_another_machine_of_the_database(self) -> None:
        """The thread names the machine that is switched, whoever reads the mailbox."""
        gateway = self.gateway
        moved = evolve(IDENTITY, machine_id=ELSEWHERE, name="shed")
        gateway.rows(lambda tx: machines.introduce(tx, ELSEWHERE, "shed"))
        self.now(sessions.ping(gateway.database, gateway.bell, moved, Ping(S1, I1)))
        gateway.kinds()
        self.receive(self.command("/off"))
        self.assertEqual(self.mode(), Mode.ON)
        self.assertEqual(gateway.rows(lambda tx: modes.current(tx, ELSEWHERE)), Mode.OFF)
        self.assertNotIn(EventKind.MODE, gateway.kinds())
        self.assertIn("shed is off", self.text())


class TextTests(CommandsTestCase):
    """Everything else is text for the session."""

    def test_other_words(self) -> None:
        """Other words with a slash, a command with more around it, a path."""
        texts = [
            *("/compact", "/offline", "please /off", "/off now", "/ off"),
            *("/on\n/off", "/etc/passwd", "off", "//off"),
        ]
        received = self.receive(*(self.command(text, number) for number, text in enumerate(texts)))
        self.assertEqual(received.routed, len(texts))
        self.assertEqual(self.words(), texts)
        self.assertEqual(self.answers(), [])
        self.assertEqual(self.mode(), Mode.ON)

    def test_with_a_file(self) -> None:
        """Who sends a file has something to say to the session."""
        self.receive(self.reply("/status", parts=[("notes.md", b"# notes")]))
        self.assertEqual(self.words(), ["/status"])


class WhoTests(CommandsTestCase):
    """Who may."""

    def test_nobody_who_is_not_proven(self) -> None:
        """Strangers, forgers, machines; and no thread of ours."""
        self.receive(
            self.command("/off", sender="eve@evil.example"),
            self.command("/off", results=""),
            self.command("/off", results="mx.example.net; dkim=fail; dmarc=fail header.from=example.org"),
            self.reply("/off", headers={"Auto-Submitted": "auto-generated"}),
            letter("/off", subject="off, please"),
        )
        self.assertEqual(self.mode(), Mode.ON)
        self.assertEqual(self.answers(), [])

    def test_those_who_may_command(self) -> None:
        """An allowed person who may not is told so, and no session reads the word."""
        self.own = Own(addresses=[AGENT], allowed=[PERSON, KIM], trusted_authserv_ids=["mx.example.net"])
        self.assertEqual(self.refused_as(self.command("/off", sender=KIM)), "not-allowed")
        self.assertEqual(self.mode(), Mode.ON)
        self.assertEqual(self.pending(None), ())
        self.assertIn("may give commands", self.text())
        self.assertEqual(self.fate().step, "routed")

    def test_after_the_thread_is_over(self) -> None:
        """An old thread commands nothing; the person hears why."""
        self.gateway.later(hours=169)
        self.assertEqual(self.refused_as(self.command("/off")), "expired-token")
        self.assertEqual(self.mode(), Mode.ON)
        self.assertEqual(len(self.answers()), 1)


class BatchTests(CommandsTestCase):
    """An off stops what lies behind it."""

    def test_behind_an_off(self) -> None:
        """It is filed and neither offered nor claimable until a person switches on; then it comes."""
        received = self.receive(self.reply("first"), self.command("/off"), self.reply("second"))
        self.assertEqual(self.pending(), ())
        for envelope in received.envelopes:
            target = deliver.Target(id=envelope)
            self.assertEqual(self.refused(self.claiming(target)).code, "mode_off")
        self.assertEqual(self.due_flags(), (2,))
        self.receive(self.command("/on", 1))
        self.assertEqual(self.words(), ["first", "second"])

    def test_off_and_on_in_one_batch(self) -> None:
        """The last word counts."""
        self.receive(self.command("/off"), self.reply("between"), self.command("/on", 1))
        self.assertEqual(self.mode(), Mode.ON)
        self.assertEqual(self.words(), ["between"])


class OnceTests(CommandsTestCase):
    """A command is done once."""

    def test_another_look(self) -> None:
        """A folder numbered anew brings the old off again, long after the on."""
        self.open()
        self.receive(self.command("/off"), self.command("/on", 1))
        mails = list(self.folder.mails.values())
        self.folder.mails, self.folder.uid_validity, self.folder.uid_next = {}, 8, 1
        self.folder.put(*mails[:1])
        self.gateway.later(hours=30)
        self.scan()
        self.assertEqual(self.mode(), Mode.ON)
        self.assertEqual(len(self.answers()), 2)

    def test_a_replay_with_another_header_around_it(self) -> None:
        """Whoever has a true mail can put more header on it; the words and the Date are known."""
        self.receive(self.command("/off"), self.command("/on", 1))
        again = self.folder.mails[1].replace(b"\r\n\r\n", b"\r\nX-Again: 1\r\n\r\n", 1)
        self.assertEqual(self.refused_as(again), "duplicate")
        self.assertEqual(self.mode(), Mode.ON)

    def test_a_crash_before_the_commit(self) -> None:
        """Neither done nor answered; at the next look both, once."""
        uids = self.folder.put(self.command("/off"))
        mails = [self.examined(uid) for uid in uids]
        self.gateway.database.interrupted = True
        self.failureResultOf(Deferred.fromCoroutine(self.receiving(*mails)), Interrupted)
        self.assertEqual((self.mode(), self.answers()), (Mode.ON, []))
        self.now(self.receiving(*mails))
        self.assertEqual((self.mode(), len(self.answers())), (Mode.OFF, 1))

    def test_nobody_answers_without_an_account(self) -> None:
        """It is done all the same."""
        self.writer = None
        self.receive(self.command("/off"), self.command("/pending", 1))
        self.assertEqual((self.mode(), self.answers()), (Mode.OFF, []))
        self.assertEqual(self.fate().verdict, "command")
