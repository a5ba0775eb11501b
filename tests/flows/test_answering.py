# ruff: noqa: RUF001 - options are in every alphabet
"""Replies to questions: who is first, who is late, and what leaves a question open."""

from datetime import timedelta

from mailgateway.domain.choice import Option
from mailgateway.domain.envelope import EnvelopeKind
from mailgateway.domain.question import (
    OTHER,
    Answered,
    AnswerMode,
    Content,
    Question,
    QuestionEvent,
    QuestionKind,
    QuestionStatus,
)
from mailgateway.domain.route import Purpose, Route
from mailgateway.flows.resolve import resolve
from mailgateway.flows.submit import Submitted
from mailgateway.ids import EnvelopeId, MessageId, OutboxId, QuestionId, RouteId
from mailgateway.mail.own import Own
from mailgateway.store import flagging, question_changes, questions, routes, threads, told
from mailgateway.store.database import Tx
from mailgateway.store.tables import journal as journal_table
from tests.flows.inbound import AGENT, INBOX, letter
from tests.flows.outbound import ACCOUNT, IDENTITY, PERSON, S1, S2
from tests.flows.test_notify_person import KIM, AnswersTestCase

OPTIONS = (Option("sqlite", "SQLite"), Option("postgres", "PostgreSQL"), Option("files", "Plain files"))


class AnsweringTestCase(AnswersTestCase):
    """Two people may write, and both may answer."""

    def setUp(self) -> None:
        super().setUp()
        self.own = Own(addresses=[AGENT], allowed=[PERSON, KIM], trusted_authserv_ids=["mx.example.net"])
        self.may_approve = {PERSON, KIM}

    def question(self, question_id: QuestionId | None) -> Question:
        """The question as it is now."""
        assert question_id is not None
        found = self.gateway.rows(lambda tx: questions.find(tx, question_id))
        assert found is not None
        return found

    def consumed(self, uid: int) -> bool:
        r"""Whether a mail was journaled, and ``\Seen`` is asked for."""

        def work(tx: Tx) -> bool:
            journaled = {row.instance_id for row in tx.execute(journal_table.select())}
            return "" in journaled and uid in flagging.due(tx, ACCOUNT, INBOX, self.folder.uid_validity, 100)

        return self.gateway.rows(work)


class LateTests(AnsweringTestCase):
    """The first answer wins; the loser is told."""

    def setUp(self) -> None:
        super().setUp()
        self.asked = self.submit("decision", S2, options=("SQLite", "PostgreSQL"), subject="Which one?")

    def test_another_person(self) -> None:
        """It reaches no session, is consumed, and its sender hears who was first, when, and by which door."""
        self.receive(self.reply("1", self.asked))
        received = self.receive(self.reply("2", self.asked, sender=KIM))
        self.assertEqual((received.routed, dict(received.refused)), (1, {}))
        self.assertEqual([each.choice for each in self.pending(S2)], ["SQLite"])
        [answer] = self.answers()
        self.assertEqual(answer["To"], KIM)
        self.assertIn(f"{PERSON} was first, and answered this question by mail, ", self.text())
        self.assertIn("UTC", self.text())
        self.assertIn("not handed on", self.text())
        fate = self.fate()
        self.assertEqual((fate.verdict, fate.step), ("late", "acked"))
        self.assertIsNotNone(fate.reply_id)
        self.assertTrue(self.consumed(2))

    def test_in_one_window(self) -> None:
        """Two replies that come together: the first of the folder wins."""
        self.receive(self.reply("1", self.asked), self.reply("2", self.asked, sender=KIM))
        self.assertEqual([each.choice for each in self.pending(S2)], ["SQLite"])
        self.assertEqual([each["To"] for each in self.answers()], [KIM])

    def test_another_door(self) -> None:
        """Whoever answered on the web and then by mail is late as well."""
        self._elsewhere("web", PERSON)
        self.receive(self.reply("2", self.asked))
        self.assertEqual(self.pending(S2), ())
        self.assertIn(f"{PERSON} was first, and answered this question in the web inbox", self.text())

    def test_the_same_person_once_more(self) -> None:
        """What the winner adds by mail is more words for the session."""
        self.receive(self.reply("1", self.asked))
        self.receive(self.reply("and mind the backups", self.asked))
        first, second = self.pending(S2)
        self.assertEqual((first.choice, second.choice, second.question_id), ("SQLite", None, None))
        self.assertEqual(second.body.strip(), "and mind the backups")
        self.assertEqual(self.answers(), [])

    def test_told_once(self) -> None:
        """Three late mails of one person are consumed, and answered once; another question is told anew."""
        self.receive(self.reply("1", self.asked))
        for words in ("2", "no, 2", "2 please"):
            self.receive(self.reply(words, self.asked, sender=KIM))
        self.assertEqual(len(self.answers()), 1)
        again = self.submit("decision", S2, options=("a", "b"), subject="And now?")
        self.receive(self.reply("1", again), self.reply("2", again, sender=KIM))
        self.assertEqual(len(self.answers()), 2)
        self.assertEqual(len(self.pending(S2)), 2)

    def test_the_way_to_the_session(self) -> None:
        """As the answer says: a reply to it arrives as words, and decides nothing."""
        self.receive(self.reply("1", self.asked))
        self.receive(self.reply("2", self.asked, sender=KIM))
        [answer] = self.answers()
        chain = f"{self.asked.message_id} {answer['Message-ID']}"
        self.receive(
            letter(
                "2 would be better",
                subject=f"Re: {answer['Subject']}",
                sender=KIM,
                replies_to=answer["Message-ID"],
                headers={"References": chain},
            )
        )
        found = self.pending(S2)[-1]
        self.assertEqual((found.body.strip(), found.kind), ("2 would be better", EnvelopeKind.USER))
        self.assertEqual((found.choice, found.question_id), (None, None))

    def test_withdrawn_and_over(self) -> None:
        """A question that ended without an answer says how."""

        def cancel(tx: Tx) -> None:
            assert self.asked.question_id is not None
            found = questions.find(tx, self.asked.question_id)
            assert found is not None
            questions.settle(tx, found, QuestionEvent.CANCEL)

        self.gateway.rows(cancel)
        self.receive(self.reply("1", self.asked))
        self.assertEqual(self.pending(S2), ())
        self.assertIn("withdrawn before your mail arrived", self.text())

    def test_a_copy_of_the_winner(self) -> None:
        """The answer that won, another time, is a duplicate and neither late nor more words."""
        self.receive(self.reply("1", self.asked))
        self.assertEqual(self.refused_as(self.folder.mails[1] + b" "), "duplicate")
        self.assertEqual(len(self.pending(S2)), 1)
        self.assertEqual(self.answers(), [])

    def test_another_look(self) -> None:
        """A folder that is numbered anew brings the late mail again, and nothing happens twice."""
        self.open()
        self.receive(self.reply("1", self.asked))
        self.receive(self.reply("2", self.asked, sender=KIM))
        mails = list(self.folder.mails.values())
        self.folder.mails, self.folder.uid_validity, self.folder.uid_next = {}, 8, 1
        self.folder.put(*mails)
        self.scan()
        self.assertEqual((len(self.pending(S2)), len(self.answers())), (1, 1))

    def test_a_command_is_obeyed_all_the_same(self) -> None:
        """In the thread of a question that is over."""
        self.receive(self.reply("1", self.asked))
        self.receive(self.reply("/help", self.asked, sender=PERSON))
        self.assertIn("/status", self.text())

    def _elsewhere(self, door: str, by: str) -> None:
        def work(tx: Tx) -> None:
            assert self.asked.question_id is not None
            done = resolve(
                tx,
                question_id=self.asked.question_id,
                expected_revision=1,
                values=("SQLite",),
                note=None,
                text="",
                by=by,
                door=door,
                random=b"r" * 12,
            )
            assert isinstance(done, Answered)

        self.gateway.rows(work)


class DecisionTests(AnsweringTestCase):
    """A decision is answered by whatever its person says."""

    def test_options_of_any_alphabet(self) -> None:
        """Number, label, and a note, in the letters of the option."""
        for number, (words, choice, note) in enumerate(
            (
                ("2", "Пока нет", None),
                ("1. Ja, größer", "Ja, größer", None),
                ("はい、進めて", "はい、進めて", None),
                ("Пока нет\n\nпосле обеда", "Пока нет", "после обеда"),
            )
        ):
            sent = self.submit(
                "decision", S2, options=("Ja, größer", "Пока нет", "はい、進めて"), subject=f"Q{number}"
            )
            self.receive(self.reply(words, sent))
            found = self.pending(S2)[-1]
            self.assertEqual((found.choice, found.note), (choice, note))

    def test_what_is_in_doubt_is_words(self) -> None:
        """The session reads them, nothing is chosen, and nobody is bothered: words are an answer."""
        sent = self.submit("decision", S2, options=("SQLite", "PostgreSQL"))
        self.receive(self.reply("1 or 2?", sent))
        [found] = self.pending(S2)
        self.assertEqual((found.choice, found.note, found.question_id), (None, None, sent.question_id))
        self.assertEqual(self.question(sent.question_id).status, QuestionStatus.ANSWERED)
        self.assertEqual(self.answers(), [])

    def test_a_reply_to_a_notification_answers_no_older_question(self) -> None:
        """Also one that looks like a choice: it goes to the session as words."""
        asked = self.submit("decision", S2, options=("SQLite", "PostgreSQL"))
        for kind in ("notification", "settle"):
            note = self.submit(kind, S2, subject="Done", text="1. SQLite\n2. PostgreSQL")
            self.receive(self.reply("1", note))
            found = self.pending(S2)[-1]
            self.assertEqual((found.body.strip(), found.choice, found.question_id), ("1", None, None))
        self.assertEqual(self.question(asked.question_id).status, QuestionStatus.OPEN)

    def test_a_tag_and_a_chain_of_two_questions(self) -> None:
        """Nothing is decided."""
        one = self.submit("decision", S1, options=("a", "b"))
        two = self.submit("decision", S2, options=("a", "b"))
        mail = letter("1", subject=f"Re: {one.subject}", replies_to=two.message_id)
        self.assertEqual(self.refused_as(mail), "ambiguous")
        for sent in (one, two):
            self.assertEqual(self.question(sent.question_id).status, QuestionStatus.OPEN)


class QuestionTests(AnsweringTestCase):
    """Other questions are answered by a choice alone, where they have options."""

    def test_a_choice(self) -> None:
        """The mail is consumed; the session gets a notice with the id, and nothing of the answer."""
        sent = self._mailed(Content("Which one?", "Both work.", OPTIONS))
        self.receive(self.reply("2, but not on the laptop", sent))
        [notice] = self.pending(S2)
        self.assertEqual((notice.kind, notice.question_id), (EnvelopeKind.NOTICE, sent.question_id))
        self.assertEqual((notice.choice, notice.note), (None, None))
        self.assertNotIn("laptop", notice.body)
        won = self.gateway.rows(lambda tx: questions.answer_of(tx, QuestionId("q-" + "0" * 24)))
        assert won is not None
        self.assertEqual((won.values, won.note, won.by), (("postgres",), "but not on the laptop", PERSON))
        self.assertEqual((self.fate().verdict, self.fate().step), ("answer", "acked"))
        self.assertTrue(self.consumed(1))
        self.assertEqual(self.answers(), [])

    def test_several(self) -> None:
        """Where several may be chosen."""
        sent = self._mailed(Content("Which ones?", "All work.", OPTIONS, mode=AnswerMode.MULTI))
        self.receive(self.reply("1, 3", sent))
        won = self.gateway.rows(lambda tx: questions.answer_of(tx, QuestionId("q-" + "0" * 24)))
        assert won is not None
        self.assertEqual(won.values, ("sqlite", "files"))

    def test_with_a_file(self) -> None:
        """What hangs on an answer has no other way: the mail goes to the session as well."""
        sent = self._mailed(Content("Which one?", "Both work.", OPTIONS))
        self.receive(self.reply("2", sent, parts=[("plan.pdf", b"%PDF-1.4 plan")]))
        self.assertEqual({each.kind for each in self.pending(S2)}, {EnvelopeKind.NOTICE, EnvelopeKind.USER})

    def test_doubt_and_prose_leave_it_open(self) -> None:
        """The words are handed on, the question stays open, and the person hears the choices once."""
        sent = self._mailed(Content("Which one?", "Both work.", OPTIONS))
        for words in ("2 or 3?", "4", "What do they cost?"):
            self.receive(self.reply(words, sent))
        self.assertEqual(self.question(sent.question_id).status, QuestionStatus.OPEN)
        self.assertEqual(
            [each.body.strip() for each in self.pending(S2)], ["2 or 3?", "4", "What do they cost?"]
        )
        self.assertEqual({each.choice for each in self.pending(S2)}, {None})
        self.assertEqual(len(self.answers()), 1)
        self.assertIn("still open", self.text())
        self.assertIn("2. PostgreSQL", self.text())
        [answer] = self.answers()
        self.receive(letter("2", subject=f"Re: {answer['Subject']}", replies_to=answer["Message-ID"]))
        self.assertEqual(self.question(sent.question_id).status, QuestionStatus.ANSWERED)

    def test_without_options(self) -> None:
        """Words answer it."""
        sent = self._mailed(Content("What is it called?", "It has no name.", ()))
        self.receive(self.reply("Call it mailgateway.", sent))
        won = self.gateway.rows(lambda tx: questions.answer_of(tx, QuestionId("q-" + "0" * 24)))
        assert won is not None
        self.assertEqual((won.values, won.note), ((OTHER,), "Call it mailgateway."))

    def test_an_older_text(self) -> None:
        """A reply to what it said before does not answer it; the new text comes, and a reply to that does."""
        sent = self._mailed(Content("Which one?", "Both work.", OPTIONS))
        newer = Content(
            "Which one, for the *server*?", "Both work.", (*OPTIONS[:2], Option("mdb", "MariaDB"))
        )
        self.gateway.rows(
            lambda tx: question_changes.revise(tx, self._found(tx), newer, by=S2),
        )
        self.receive(self.reply("3", sent))
        self.assertEqual(self.pending(S2), ())
        self.assertEqual(self.question(sent.question_id).status, QuestionStatus.OPEN)
        self.assertEqual((self.fate().verdict, self.fate().step), ("late", "acked"))
        self.assertIn("3. MariaDB", self.text())
        self.assertIn("server", self.text())
        [answer] = self.answers()
        chain = f"{sent.message_id} {answer['Message-ID']}"
        self.receive(
            letter(
                "3",
                subject=f"Re: {answer['Subject']}",
                replies_to=answer["Message-ID"],
                headers={"References": chain},
            )
        )
        won = self.gateway.rows(lambda tx: questions.answer_of(tx, QuestionId("q-" + "0" * 24)))
        assert won is not None
        self.assertEqual((won.values, won.revision), (("mdb",), 2))

    def _found(self, tx: Tx) -> Question:
        found = questions.find(tx, QuestionId("q-" + "0" * 24))
        assert found is not None
        return found

    def _mailed(self, content: Content) -> Submitted:
        """A question that was asked without blocking, and mailed."""
        question_id, route_id = QuestionId("q-" + "0" * 24), RouteId("0123ab")
        message_id = MessageId("<mg.0123ab.0011223344556677.00112233@example.org>")

        def work(tx: Tx) -> None:
            asked = Question(
                id=question_id,
                session_id=S2,
                creator_id=S2,
                machine_id=IDENTITY.machine_id,
                blocking=False,
                status=QuestionStatus.OPEN,
                kind=QuestionKind.QUESTION,
                revision=1,
                subject=content.subject(),
                prompt=content.prompt,
                ambiguity=content.ambiguity,
                options=content.options,
                mode=content.mode,
                recommendation="",
                route_id=route_id,
                created_at=tx.now,
                expires_at=None,
            )
            question_changes.add(tx, asked, request_id=None)
            until = tx.now + timedelta(days=7)
            routes.add(
                tx,
                Route(
                    id=route_id,
                    purpose=Purpose.QUESTION,
                    session_id=S2,
                    machine_id=IDENTITY.machine_id,
                    recipient=PERSON,
                    expires_at=until,
                    question_id=question_id,
                    revision=1,
                ),
            )
            threads.add(tx, message_id, route_id, OutboxId("o-1"), sent_text="", expires_at=until)

        self.gateway.rows(work)
        return Submitted(
            OutboxId("o-1"), message_id, route_id, "[mg:0123ab] Which?", question_id, state="sent"
        )


class MutedTests(AnsweringTestCase):
    """What could not be said is not taken for said."""

    def test_after_the_silence(self) -> None:
        """A person whose mail came to nothing while we were silent hears it with the next one."""
        self.gateway.rows(lambda tx: told.mute(tx, f"person:{PERSON}", tx.now + timedelta(hours=2)))
        self.receive(self.reply("", headers={"X-N": "1"}))
        self.assertEqual(self.answers(), [])
        self.gateway.later(hours=3)
        self.receive(self.reply("", headers={"X-N": "2"}))
        self.assertEqual(len(self.answers()), 1)
        self.assertEqual(EnvelopeId(self.fate().verdict), "empty")
