"""What the gateway says by itself to people, and to whom it says nothing."""

from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage

from twisted.internet.defer import Deferred

from mailgateway.domain import token
from mailgateway.domain.mode import Mode
from mailgateway.errors import StaleWrite
from mailgateway.flows import fates, mode
from mailgateway.flows.counts import counts
from mailgateway.flows.notify_person import ONCE_IN
from mailgateway.mail.decode import Malformed
from mailgateway.mail.inbound import read
from mailgateway.mail.own import Own
from mailgateway.store import told
from mailgateway.store.fates import Fate
from mailgateway.store.tables import outbox as outbox_table
from tests.flows.inbound import AGENT, KEY, InboundTestCase, letter
from tests.flows.outbound import IDENTITY, PERSON, S1, S2, Interrupted

KIM = "kim@example.org"


class AnswersTestCase(InboundTestCase):
    """Tests that look at what the gateway has written by itself."""

    def answers(self) -> list[EmailMessage]:
        """The gateway's own mails, oldest first."""
        rows = self.gateway.rows(
            lambda tx: list(
                tx.execute(
                    outbox_table.select()
                    .where(outbox_table.c.kind == "notice")
                    .order_by(outbox_table.c.number)
                )
            )
        )
        return [message_from_bytes(row.raw, policy=policy.default) for row in rows]

    def text(self, number: int = -1) -> str:
        """The plain text of one of them, on one line."""
        body = self.answers()[number].get_body(("plain",))
        assert body is not None
        return " ".join(body.get_content().split())

    def fate(self) -> Fate:
        """The newest fate."""
        found: Fate = self.now(fates.fates(self.gateway.database, since=None, limit=1))[0]
        return found

    def refused_as(self, mail: bytes) -> str:
        """The verdict of one mail."""
        [verdict] = self.receive(mail).refused
        return verdict


class ToldTests(AnswersTestCase):
    """A person whose mail could not be used is told so, once, in its thread."""

    def test_an_empty_reply(self) -> None:
        """Only quoted text: nothing is handed on, the person hears it, and the answer leads back."""
        self.assertEqual(self.refused_as(self.reply("> SQLite or PostgreSQL?\n")), "empty")
        [answer] = self.answers()
        raw = self.folder.mails[1]
        theirs = message_from_bytes(raw, policy=policy.default)["Message-ID"]
        self.assertEqual(answer["To"], PERSON)
        self.assertEqual(answer["From"].addresses[0].addr_spec, AGENT)
        self.assertEqual(answer["Auto-Submitted"], "auto-replied")
        self.assertTrue(answer["X-Mailgateway-Instance"])
        self.assertEqual(answer["In-Reply-To"], theirs)
        self.assertTrue(answer["References"].split()[-1] == theirs)
        self.assertTrue(answer["Subject"].startswith(f"[mg:{self.sent.route_id}] Re: "))
        self.assertIn("no words of yours", self.text())
        fate = self.fate()
        self.assertEqual((fate.verdict, fate.step), ("empty", "routed"))
        self.assertIsNotNone(fate.reply_id)
        self.assertIn("no words", fate.reason)

    def test_the_answer_can_be_answered(self) -> None:
        """Whoever replies to what we said reaches the session, and what we said is no word of theirs."""
        self.receive(self.reply("", replies_to=self.sent.message_id))
        answer = self.answers()[0]
        body = answer.get_body(("plain",))
        assert body is not None
        quoted = "\n".join(f"> {line}" for line in body.get_content().splitlines())
        self.receive(
            letter(
                f"PostgreSQL\n\n{quoted}", subject=f"Re: {answer['Subject']}", replies_to=answer["Message-ID"]
            )
        )
        self.assertEqual(self.words(), ["PostgreSQL"])

    def test_our_answer_that_comes_back_is_nobodys_word(self) -> None:
        """In a shared mailbox it lies beside the person's mail: it is our own, and gets no answer."""
        self.receive(self.reply("", replies_to=self.sent.message_id))
        raw = bytes(self.answers()[0])
        self.assertEqual(self.refused_as(raw), "own-mail")
        self.assertEqual(len(self.answers()), 1)

    def test_a_question_stays_open_and_it_says_so(self) -> None:
        """An empty reply answers nothing."""
        sent = self.submit("decision", S2, options=("yes", "no"))
        self.receive(self.reply("", sent))
        self.assertIn("the question is still open", self.text())

    def test_a_late_reply(self) -> None:
        """The thread is over: it says so, without the dead tag, and names what is open."""
        self.gateway.later(hours=169)
        self.ping()
        sent = self.submit("decision", S1, options=("yes", "no"), subject="Deploy now?")
        self.assertEqual(self.refused_as(self.reply("late")), "expired-token")
        [answer] = self.answers()
        self.assertNotIn(f"[mg:{self.sent.route_id}]", answer["Subject"])
        self.assertIn("7 days", self.text())
        self.assertIn(f"[mg:{sent.route_id}] Deploy now?", self.text())
        self.assertEqual(self.fate().step, "parsed")

    def test_two_questions_at_once(self) -> None:
        """Subject and thread name two open questions: nobody gets it, and both are named."""
        one = self.submit("decision", S1, options=("yes", "no"), subject="Deploy?")
        two = self.submit("decision", S2, options=("yes", "no"), subject="Delete?")
        mail = letter("yes", subject=f"Re: {one.subject}", replies_to=two.message_id)
        self.assertEqual(self.refused_as(mail), "ambiguous")
        for sent in (one, two):
            self.assertIn(f"[mg:{sent.route_id}]", self.text())
        self.assertNotRegex(self.answers()[0]["Subject"], r"\[mg:")
        self.receive(letter("yes", subject=f"about {one.subject}"))  # as the answer advises
        [envelope] = self.pending(S1)
        self.assertEqual(envelope.choice, "yes")

    def test_a_script_s_token(self) -> None:
        """Its mail names no thread of ours: the answer opens one, and a reply to it arrives."""
        text = token.mint(S1, "laptop", self.at() + timedelta(hours=1), KEY)
        self.receive(letter("", subject=f"[mg:{text}] run"), token_key=KEY)
        [answer] = self.answers()
        self.assertRegex(answer["Subject"], r"^\[mg:[0-9a-f]{6}\] Re: run$")
        self.receive(letter("go", subject=f"Re: {answer['Subject']}", replies_to=answer["Message-ID"]))
        self.assertEqual(self.words(), ["go"])
        self.gateway.later(hours=2)
        self.assertEqual(
            dict(self.receive(letter("late", subject=f"[mg:{text}] run"), token_key=KEY).refused),
            {"expired-token": 1},
        )
        self.assertEqual(self.answers()[-1]["Subject"], "Re: run")

    def test_an_encrypted_mail(self) -> None:
        """Sealed words are not handed on as a file that nobody can open."""
        mail = self.reply("").replace(
            b'text/plain; charset="utf-8"', b"application/pkcs7-mime; name=smime.p7m"
        )
        self.assertEqual(self.refused_as(mail), "malformed")
        self.assertIn("encrypted", self.text())
        self.assertEqual(self.fate().step, "routed")

    def test_once_a_day_for_each_reason(self) -> None:
        """The second empty mail of a day has its fate and no answer; the next day it has one again."""
        self.receive(self.reply("", headers={"X-N": "1"}), self.reply("", headers={"X-N": "2"}))
        self.assertEqual(len(self.answers()), 1)
        self.assertEqual((self.fate().verdict, self.fate().reply_id), ("empty", None))
        self.gateway.later(hours=25)
        self.receive(self.reply("", headers={"X-N": "3"}))
        self.assertEqual(len(self.answers()), 2)

    def test_only_the_verified_sender_hears(self) -> None:
        """Reply-To is anybody's word."""
        self.receive(
            self.reply("", headers={"Reply-To": "eve@evil.example", "Return-Path": "<eve@evil.example>"})
        )
        [answer] = self.answers()
        self.assertEqual(answer["To"], PERSON)
        self.assertNotIn("eve", str(answer))

    def test_the_mode_does_not_silence_it(self) -> None:
        """A person who switched the sessions off still hears what became of their own mail."""
        self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.OFF, by="person"))
        self.receive(self.reply(""))
        self.assertEqual(self.claim().recipients, (PERSON,))


class NotToldTests(AnswersTestCase):
    """Who hears nothing."""

    def test_strangers_machines_and_the_unproven(self) -> None:
        """Nobody but an authenticated allowed person, and no mail that names no session."""
        nobody = [
            self.reply("", sender="eve@evil.example"),
            self.reply("", results=""),
            self.reply("", results="mx.example.net; dkim=fail; dmarc=fail header.from=example.org"),
            self.reply("", headers={"Auto-Submitted": "auto-replied"}),
            self.reply("", headers={"Precedence": "bulk"}),
            self.reply("", headers={"List-Post": "<mailto:list@example.org>"}),
            letter("lunch?", subject="lunch?"),
            letter("", subject="[mg:abcdef] a tag that nobody issued"),
            letter("/off", subject="[mg:abcdef] a tag that nobody issued"),
        ]
        received = self.receive(*nobody)
        self.assertEqual(received.routed, 0)
        self.assertEqual(self.answers(), [])
        self.assertEqual(self.gateway.rows(lambda tx: told.last(tx, PERSON, "empty")), None)

    def test_where_nobody_writes(self) -> None:
        """Without an account that sends there are fates and no answers."""
        self.writer = None
        self.assertEqual(self.refused_as(self.reply("")), "empty")
        self.assertEqual(self.answers(), [])

    def test_an_address_that_we_cannot_write_to(self) -> None:
        """A local part that needs SMTPUTF8 is refused by composing; the mail has its fate all the same."""
        strange = "röbin@example.org"
        self.own = Own(addresses=[AGENT], allowed=[strange], trusted_authserv_ids=["mx.example.net"])
        mail = self.reply("", sender=PERSON).replace(PERSON.encode(), strange.encode())
        self.receive(mail)
        self.assertEqual(self.answers(), [])

    def test_ids_that_cannot_stand_in_a_header(self) -> None:
        """They are left out of the answer, which is sent all the same."""
        mail = self.reply("", headers={"References": "<a\x7fb@example.org> <fine@example.org>"})
        self.receive(mail)
        [answer] = self.answers()
        self.assertNotIn("\x7f", answer["References"])
        self.assertIn("<fine@example.org>", answer["References"])


class OnceTests(AnswersTestCase):
    """A crash, another look and a copy repeat nothing."""

    def test_a_crash_before_the_commit(self) -> None:
        """Nothing was said; the next look says it once."""
        uids = self.folder.put(self.reply(""))
        mails = [self.examined(uid) for uid in uids]
        self.gateway.database.interrupted = True
        self.failureResultOf(Deferred.fromCoroutine(self.receiving(*mails)), Interrupted)
        self.assertEqual(self.answers(), [])
        self.now(self.receiving(*mails))
        self.now(self.receiving(*mails))
        self.assertEqual(len(self.answers()), 1)

    def test_another_look_long_after(self) -> None:
        """A folder that is numbered anew brings the same mail again: it is known, also after a day."""
        self.open()
        self.receive(self.reply(""))
        self.gateway.later(hours=30)
        mails = list(self.folder.mails.values())
        self.folder.mails, self.folder.uid_validity, self.folder.uid_next = {}, 8, 1
        self.folder.put(*mails)
        self.scan()
        self.assertEqual(len(self.answers()), 1)

    def test_a_copy(self) -> None:
        """The same bytes another time are a duplicate, and no reason to write."""
        self.receive(self.reply(""))
        self.gateway.later(hours=30)
        self.assertEqual(self.refused_as(self.folder.mails[1]), "duplicate")
        self.assertEqual(len(self.answers()), 1)

    def test_a_lost_lease(self) -> None:
        """Who is no longer the holder of the folder says nothing."""
        self.fence = 3
        uids = self.folder.put(self.reply(""))
        self.failureResultOf(Deferred.fromCoroutine(self.receiving(*map(self.examined, uids))), StaleWrite)
        self.assertEqual(self.answers(), [])


class LoopTests(AnswersTestCase):
    """What is said by ourselves has an end."""

    def test_six_in_a_thread(self) -> None:
        """The seventh command of ten minutes is obeyed in silence, which is told; later we speak again."""
        for number in range(9):
            self.receive(self.reply("/status", headers={"Date": f"Mon, 30 Nov 2026 12:00:{number:02} +0000"}))
        self.assertEqual(len(self.answers()), 6)
        self.assertEqual(self.now(counts(self.gateway.database, IDENTITY)).muted, 1)
        other = self.submit("notification", S2, subject="Another thread")
        self.receive(self.reply("/status", other))
        self.assertEqual(len(self.answers()), 7)
        self.gateway.later(hours=3)
        self.assertEqual(self.now(counts(self.gateway.database, IDENTITY)).muted, 0)
        self.receive(self.reply("/status", headers={"Date": "Mon, 30 Nov 2026 16:00:00 +0000"}))
        self.assertEqual(len(self.answers()), 8)

    def test_twenty_to_a_person(self) -> None:
        """However many threads there are; another person still hears."""
        self.own = Own(addresses=[AGENT], allowed=[PERSON, KIM], trusted_authserv_ids=["mx.example.net"])
        self.may_command = {PERSON, KIM}
        for number in range(24):
            self.gateway.later(minutes=3)
            sent = self.submit("notification", subject=f"note {number}")
            self.receive(self.reply("/status", sent))
        self.assertEqual(len(self.answers()), 20)
        self.receive(self.reply("/status", sender=KIM))
        self.assertEqual([each["To"] for each in self.answers()][-1], KIM)

    def test_what_was_told_is_forgotten(self) -> None:
        """The memory of it does not grow: a day later it says nothing any more."""
        self.receive(self.reply(""))
        self.gateway.rows(lambda tx: told.mute(tx, "thread:x", tx.now))
        self.assertEqual(self.gateway.rows(lambda tx: told.prune(tx, tx.now - ONCE_IN)), 0)
        self.gateway.later(hours=25)
        self.assertEqual(self.gateway.rows(lambda tx: told.prune(tx, tx.now - ONCE_IN)), 2)

    def test_a_program_that_answers_back(self) -> None:
        """Somebody's program answers each of our answers with an empty mail and no mark: it ends at once."""
        mail = self.reply("")
        for _ in range(20):
            self.receive(mail)
            answers = self.answers()
            self.gateway.later(seconds=5)
            mail = letter("", subject=f"Re: {answers[-1]['Subject']}", replies_to=answers[-1]["Message-ID"])
        self.assertEqual(len(self.answers()), 1)


class LetterTests(AnswersTestCase):
    """What is composed is a mail that our own reader takes for ours."""

    def test_it_reads_back(self) -> None:
        """Both bodies, and one reply chain."""
        self.receive(self.reply("> SQLite or PostgreSQL?\n"))
        raw = bytes(self.answers()[0])
        inbound = read(raw)
        assert not isinstance(inbound, Malformed)
        self.assertEqual(len(inbound.in_reply_to), 1)
        self.assertEqual((len(inbound.texts), len(inbound.htmls)), (1, 1))


class AskedTests(AnswersTestCase):
    """Who may answer a question that another person was asked."""

    def setUp(self) -> None:
        super().setUp()
        self.own = Own(addresses=[AGENT], allowed=[PERSON, KIM], trusted_authserv_ids=["mx.example.net"])
        self.question = self.submit("decision", S2, options=("yes", "no"))

    def test_not_everybody(self) -> None:
        """Another allowed person decides nothing, hears so, and the one who was asked still may."""
        self.assertEqual(self.refused_as(self.reply("yes", self.question, sender=KIM)), "not-allowed")
        self.assertEqual(self.pending(S2), ())
        self.assertEqual(self.answers()[-1]["To"], KIM)
        self.assertIn("somebody else", self.text())
        self.assertEqual(self.fate().step, "routed")
        self.receive(self.reply("no", self.question))
        self.assertEqual(self.pending(S2)[0].choice, "no")

    def test_those_who_may_approve(self) -> None:
        """They answer for others."""
        self.may_approve = {KIM}
        self.receive(self.reply("yes", self.question, sender=KIM))
        [envelope] = self.pending(S2)
        self.assertEqual((envelope.choice, envelope.from_address), ("yes", KIM))

    def test_words_to_a_session(self) -> None:
        """To what is no question, whoever is allowed writes to the session."""
        self.receive(self.reply("by the way", sender=KIM))
        self.assertEqual(self.words(), ["by the way"])

    def test_who_may_not_is_told_first(self) -> None:
        """Nobody asks for better words before: also a mail without any hears that it is not theirs."""
        self.assertEqual(self.refused_as(self.reply("", self.question, sender=KIM)), "not-allowed")
        self.assertIn("somebody else", self.text())
