"""Filing mail: what becomes an envelope, what is only counted, and that nothing happens twice."""

from datetime import timedelta

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from mailgateway.domain import token
from mailgateway.domain.envelope import EnvelopeKind, Trust
from mailgateway.domain.judge import Refused
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import OutboxState
from mailgateway.errors import StaleWrite, StoreUnavailable
from mailgateway.flows import fates as fates_flow
from mailgateway.flows import leases, mode, sessions
from mailgateway.flows.bell import EventKind
from mailgateway.flows.from_person import CUT
from mailgateway.flows.receive import NOTICES
from mailgateway.flows.sessions import Ping
from mailgateway.ids import (
    InstanceId,
    MachineId,
    SessionId,
    envelope_id_of_mail,
    machine_digest,
)
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.mime import PART_LIMIT
from mailgateway.mail.reply import LINES_LIMIT
from mailgateway.mail.verdict import Verdict
from mailgateway.settings import Authentication, SingleMailboxProof
from mailgateway.store import envelopes, machines, questions
from mailgateway.store.fates import Fate
from tests.flows.inbound import AGENT, INBOX, KEY, OWN, InboundTestCase, letter
from tests.flows.outbound import ACCOUNT, IDENTITY, PERSON, S1, Interrupted

ELSEWHERE = MachineId("machine-two")


class DeliveredTests(InboundTestCase):
    """A person's words reach the session that asked."""

    def test_a_reply_becomes_an_envelope(self) -> None:
        """All that the session reads is there; the words are the typed ones, the subject is human."""
        quoted = (
            "PostgreSQL, please.\n\n"
            "On Mon, 30 Nov 2026 at 10:00, Coding agents <agent@example.org> wrote:\n"
            "> SQLite or PostgreSQL?\n"
        )
        received = self.receive(self.reply(quoted))
        self.assertEqual((received.routed, dict(received.refused)), (1, {}))
        (found,) = self.pending()
        self.assertEqual(received.envelopes, (found.id,))
        self.assertEqual(found.id, envelope_id_of_mail(ACCOUNT, INBOX, 7, 1))
        self.assertEqual((found.kind, found.trust), (EnvelopeKind.USER, Trust.OWNER))
        self.assertEqual(found.body.strip(), "PostgreSQL, please.")
        self.assertIn("SQLite or PostgreSQL?", found.quoted)
        self.assertNotIn("[mg:", found.subject)
        self.assertEqual((found.from_address, found.session_id), (PERSON, S1))
        self.assertEqual((found.machine_id, found.device), (IDENTITY.machine_id, "laptop"))
        self.assertEqual(found.in_reply_to, self.sent.message_id)
        self.assertEqual(found.route_id, self.sent.route_id)
        assert found.source is not None
        self.assertEqual((found.source.uid_validity, found.source.uid), (7, 1))
        self.assertEqual(self.cursor(), (7, 1))
        self.assertEqual(self.gateway.kinds(), [EventKind.DELIVERY])

    def test_by_tag_alone_and_by_chain_alone(self) -> None:
        """Either leads to the session."""
        self.receive(
            self.reply("by tag", replies_to=""), self.reply("by chain", subject="Re: something else")
        )
        self.assertEqual(self.words(), ["by tag", "by chain"])

    def test_without_threading_the_chain_leads_nowhere(self) -> None:
        """The setting that turns off routing by the reply chain turns off that alone."""
        mails = (self.reply("by chain", subject="Re: x"), self.reply("by tag"))
        received = self.receive(*mails, header_threading=False)
        self.assertEqual(dict(received.refused), {"no-token": 1})
        self.assertEqual(self.words(), ["by tag"])

    def test_plus_address(self) -> None:
        """Where the account has plus-addresses, the route in one leads to the session."""
        local, _, domain = AGENT.partition("@")
        mail = letter("by plus", subject="no tag", to=f"{local}+{self.sent.route_id}@{domain}")
        self.assertEqual(dict(self.receive(mail).refused), {"no-token": 1})
        self.own = evolve(OWN, plus_addresses={AGENT: True})
        self.receive(mail + b"again")
        self.assertEqual(len(self.pending()), 1)

    def test_signed_token(self) -> None:
        """A token of our key leads to its session; another key's, or none in force, leads nowhere."""
        expiry = self.at() + timedelta(hours=1)

        def mail(words: str, key: str) -> bytes:
            return letter(words, subject=f"[mg:{token.mint(S1, 'laptop', expiry, key)}] run")

        self.receive(mail("ours", KEY), mail("forged", "00" * 32), token_key=KEY)
        self.receive(mail("nobody checks", KEY))
        self.assertEqual(self.words(), ["ours"])
        self.assertIsNone(self.pending()[0].route_id)

    def test_a_token_for_an_unknown_session_leads_nowhere(self) -> None:
        """The session must be known here."""
        text = token.mint(SessionId("nobody"), "laptop", self.at() + timedelta(hours=1), KEY)
        received = self.receive(letter("x", subject=f"[mg:{text}]"), token_key=KEY)
        self.assertEqual(dict(received.refused), {"no-token": 1})

    def test_a_former_device_name_still_verifies(self) -> None:
        """Renaming the machine strands no token."""
        text = token.mint(S1, "laptop", self.at() + timedelta(hours=1), KEY)
        self.gateway.rows(lambda tx: machines.introduce(tx, IDENTITY.machine_id, "renamed"))
        self.receive(letter("x", subject=f"[mg:{text}]"), token_key=KEY)
        self.assertEqual(self.words(), ["x"])

    def test_attachments(self) -> None:
        """Parts are kept with safe names; a reply that is nothing but a part arrives too."""
        self.receive(self.reply("", parts=[("../plan.bin", b"\x00\x01"), ("b.bin", b"zz")]))
        (found,) = self.pending()
        self.assertEqual([(part.id, part.size) for part in found.attachments], [("a1", 2), ("a2", 2)])
        self.assertNotIn("/", found.attachments[0].filename)

    def test_a_mail_that_was_cut_says_so(self) -> None:
        """Of too long a text and of too many parts the session learns that there is more; of others not."""
        part = "--b\r\nContent-Type: text/plain\r\n\r\n"
        many = (
            letter("", subject=f"Re: {self.sent.subject}").replace(
                b'text/plain; charset="utf-8"', b"multipart/mixed; boundary=b"
            )
            + (f"{part}the first\r\n" + f"{part}\r\n" * PART_LIMIT + "--b--\r\n").encode()
        )
        self.receive(self.reply("word\n" * (LINES_LIMIT + 1)), many, self.reply("all of it"))
        long, parts, whole = self.words()
        self.assertEqual(long.splitlines()[-3:], ["word", "", CUT])
        self.assertEqual((parts.splitlines()[0], parts.splitlines()[-1]), ("the first", CUT))
        self.assertEqual(whole, "all of it")

    def test_oldest_first(self) -> None:
        """Envelopes of one window are in the order of their UIDs, however they were handed over."""
        uids = self.folder.put(*(self.reply(f"answer {n}") for n in range(5)))
        self.now(self.receiving(*map(self.examined, reversed(uids))))
        self.assertEqual(self.words(), [f"answer {n}" for n in range(5)])

    def test_mode_off_files_all_the_same(self) -> None:
        """What comes while the gateway is off is kept, hidden, and there when it is on again."""
        gateway = self.gateway
        self.now(mode.change(gateway.database, gateway.bell, IDENTITY, Mode.OFF, by="session"))
        self.assertEqual(self.receive(self.reply("while off")).routed, 1)
        self.assertEqual(self.words(), [])
        self.now(mode.change(gateway.database, gateway.bell, IDENTITY, Mode.ON, by="session"))
        self.assertEqual(self.words(), ["while off"])

    def test_a_session_that_moved_gets_its_mail_where_it_is(self) -> None:
        """The holder of the folder files for whatever machine of the database runs the session now."""
        gateway = self.gateway
        moved = evolve(IDENTITY, machine_id=ELSEWHERE, name="shed")
        gateway.rows(lambda tx: machines.introduce(tx, ELSEWHERE, "shed"))
        self.now(sessions.ping(gateway.database, gateway.bell, moved, Ping(S1, InstanceId("other"))))
        self.receive(self.reply("over there"))
        self.assertEqual(self.words(), [])
        found = gateway.rows(lambda tx: envelopes.waiting(tx, ELSEWHERE, S1, None, 10))
        self.assertEqual([(each.body.strip(), each.device) for each in found], [("over there", "shed")])


class DecisionTests(InboundTestCase):
    """A reply answers the question, once."""

    def setUp(self) -> None:
        super().setUp()
        self.asked = self.submit("decision", options=("SQLite", "PostgreSQL"))
        self.gateway.kinds()

    def test_the_first_reply_answers(self) -> None:
        """Choice and note stand on the envelope; who waits for the question is rung."""
        self.receive(self.reply("2\n\nbut not on the laptop", self.asked))
        (found,) = self.pending()
        self.assertEqual(found.question_id, self.asked.question_id)
        self.assertEqual((found.choice, found.note), ("PostgreSQL", "but not on the laptop"))
        self.assertEqual(sorted(self.gateway.kinds()), [EventKind.DELIVERY, EventKind.QUESTION])
        assert self.asked.question_id is not None
        question_id = self.asked.question_id
        won = self.gateway.rows(lambda tx: questions.answer_of(tx, question_id))
        assert won is not None
        self.assertEqual((won.by, won.door, won.choice), (PERSON, "mail", "PostgreSQL"))

    def test_later_replies_are_plain_words(self) -> None:
        """They reach the session, but answer nothing any more."""
        self.receive(self.reply("1", self.asked), self.reply("2", self.asked))
        first, second = self.pending()
        self.assertEqual((first.choice, second.choice, second.question_id), ("SQLite", None, None))

    def test_words_that_choose_nothing_answer_in_words(self) -> None:
        """What is no option is an answer all the same; nothing is guessed."""
        self.receive(self.reply("What would that cost?", self.asked))
        (found,) = self.pending()
        self.assertEqual((found.question_id, found.choice), (self.asked.question_id, None))

    def test_once_the_decision_is_settled_the_tag_goes_before_the_chain(self) -> None:
        """Nothing can be decided wrongly any more; the reply goes by the order of the rules."""
        self.receive(self.reply("1", self.asked))
        received = self.receive(
            self.reply("and then?", subject=f"Re: {self.asked.subject}", replies_to=self.sent.message_id)
        )
        self.assertEqual((received.routed, dict(received.refused)), (1, {}))
        self.assertEqual(self.pending()[-1].route_id, self.asked.route_id)

    def test_two_that_disagree_are_ambiguous(self) -> None:
        """For a decision, tag and chain must name the same route."""
        received = self.receive(
            self.reply("1", subject=f"Re: {self.asked.subject}", replies_to=self.sent.message_id)
        )
        self.assertEqual(dict(received.refused), {"ambiguous": 1})
        self.assertEqual(self.words(), [])


class RefusedTests(InboundTestCase):
    """What is not a person's word for us is counted, and told only when it concerns us."""

    def fates(self) -> list[tuple[str, str]]:
        """Verdict and step of each fate, oldest first."""
        found: tuple[Fate, ...] = self.now(fates_flow.fates(self.gateway.database, since=None, limit=100))
        return [(each.verdict, each.step) for each in reversed(found)]

    def test_strangers_leave_no_row(self) -> None:
        """A thousand strange mails grow nothing; the cursor passes them."""
        before = self.picture("cursor")
        received = self.receive(*(letter(f"buy {n}", sender="eve@evil.example") for n in range(50)))
        self.assertEqual((received.routed, dict(received.refused)), (0, {"not-allowed": 50}))
        self.assertEqual(self.picture("cursor"), before)
        self.assertEqual(self.cursor(), (7, 50))

    def test_what_concerns_us_is_told(self) -> None:
        """A stranger with a tag of ours, and whatever an allowed person wrote."""
        self.receive(
            self.reply("evil", sender="Eve <eve@evil.example>"),
            letter("lunch?", subject="lunch?"),
            self.reply("forged", results="mx.example.net; dkim=fail; dmarc=fail header.from=example.org"),
            self.reply("no evidence", results=""),
            self.reply("", replies_to=""),
            self.reply("away", headers={"Auto-Submitted": "auto-replied"}),
            self.reply("fine"),
        )
        self.assertEqual(
            self.fates(),
            [
                ("not-allowed", "received"),
                ("no-token", "parsed"),
                ("forged", "received"),
                ("unauthenticated", "received"),
                ("empty", "routed"),
                ("automatic", "received"),
                ("delivered", "delivered"),
            ],
        )

    def test_a_guessed_tag_of_a_stranger_is_not_told(self) -> None:
        """A tag that we never issued is nobody's concern."""
        self.receive(letter("x", subject="[mg:abcdef] x", sender="eve@evil.example"))
        self.assertEqual(self.fates(), [])

    def test_expired(self) -> None:
        """After the life of the route nothing resolves any more."""
        self.gateway.later(hours=169)
        self.assertEqual(dict(self.receive(self.reply("late")).refused), {"expired-token": 1})

    def test_another_machine(self) -> None:
        """A reply to what a machine sent that does not share our database is not ours."""
        foreign = f"<mg.abcdef.0123456789abcdef.{machine_digest(ELSEWHERE)}@example.org>"
        received = self.receive(letter("x", subject="Re: [mg:abcdef] x", replies_to=foreign))
        self.assertEqual(dict(received.refused), {"other-device": 1})

    def test_single_mailbox_needs_a_thread(self) -> None:
        """Where agent and person share a mailbox, a tag alone proves nothing; our Message-ID does."""
        self.own = evolve(
            OWN, authentication=Authentication.SINGLE_MAILBOX, single_mailbox_proof=SingleMailboxProof.THREAD
        )
        received = self.receive(
            self.reply("tag alone", replies_to="", results=""), self.reply("in the thread", results="")
        )
        self.assertEqual(dict(received.refused), {"proof-required": 1})
        self.assertEqual(self.words(), ["in the thread"])

    def test_single_mailbox_never_trusts_an_unknown_thread(self) -> None:
        """An id that only looks like ours, and one whose time is over, prove nothing."""
        self.own = evolve(
            OWN, authentication=Authentication.SINGLE_MAILBOX, single_mailbox_proof=SingleMailboxProof.THREAD
        )
        mine = f"<mg.{self.sent.route_id}.0123456789abcdef.{machine_digest(IDENTITY.machine_id)}@example.org>"
        received = self.receive(self.reply("made up", replies_to=mine, results=""))
        self.assertEqual(dict(received.refused), {"proof-required": 1})
        self.gateway.later(hours=169)
        received = self.receive(self.reply("too late", results=""))
        self.assertEqual(dict(received.refused), {"proof-required": 1})

    def test_a_bounce_is_told_to_the_session(self) -> None:
        """In our words, as a notice; nothing of the report is repeated."""
        self.conclude(self.claim())
        report = _bounce(self.sent.message_id)
        received = self.receive(report)
        self.assertEqual((received.routed, dict(received.refused)), (0, {"bounce": 1}))
        (found,) = self.pending()
        self.assertEqual((found.kind, found.trust), (EnvelopeKind.NOTICE, Trust.SYSTEM))
        self.assertNotIn("mailbox full of spam", found.body + found.quoted + found.subject)
        self.assertEqual(found.in_reply_to, self.sent.message_id)

    def test_a_bounce_of_nothing_of_ours_is_counted(self) -> None:
        """No thread, no notice, no row."""
        self.receive(_bounce("<mg.abcdef.0123456789abcdef.00112233@example.org>"))
        self.assertEqual((self.words(), self.fates()), ([], []))

    def test_too_large_is_a_notice(self) -> None:
        """The session of an allowed person's mail that cannot be read is told; nothing of it is shown."""
        (uid,) = self.folder.put(self.reply("secret words"))
        inbound = read(self.folder.mails[uid])
        assert isinstance(inbound, Inbound)
        judged = Refused(verdict=Verdict.TOO_LARGE, reason="too large", inbound=inbound)
        received = self.now(self.receiving(self.examined(uid, judged)))
        self.assertEqual(dict(received.refused), {"too-large": 1})
        (found,) = self.pending()
        self.assertEqual(found.kind, EnvelopeKind.NOTICE)
        self.assertNotIn("secret", found.body + found.subject)

    def test_notices_cannot_flood_a_session(self) -> None:
        """Nobody vouches for what they tell of, so only a few wait at a time."""
        uids = self.folder.put(*(self.reply(f"long {number}") for number in range(NOTICES + 5)))
        mails = []
        for uid in uids:
            inbound = read(self.folder.mails[uid])
            assert isinstance(inbound, Inbound)
            refused = Refused(verdict=Verdict.TOO_LARGE, reason="too large", inbound=inbound)
            mails.append(self.examined(uid, refused))
        self.now(self.receiving(*mails))
        self.assertEqual(len(self.pending()), NOTICES)

    def test_malformed_is_counted(self) -> None:
        """A mail that cannot be read stops nothing."""
        (uid, _) = self.folder.put(b"\xff\x00", self.reply("after it"))
        mails = [
            self.examined(uid, Refused(verdict=Verdict.MALFORMED, reason="no header")),
            self.examined(uid + 1),
        ]
        received = self.now(self.receiving(*mails))
        self.assertEqual(dict(received.refused), {"malformed": 1})
        self.assertEqual(self.words(), ["after it"])


def _bounce(message_id: str, number: int = 0) -> bytes:
    return (
        "Return-Path: <>\r\nFrom: Mail Delivery System <MAILER-DAEMON@example.org>\r\n"
        f"To: {AGENT}\r\nSubject: Undelivered\r\nMessage-ID: <b{number}@example.org>\r\n"
        f"In-Reply-To: {message_id}\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nmailbox full of spam\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx\r\n\r\n"
        "Final-Recipient: rfc822; robin@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n"
        f"--b\r\nContent-Type: message/rfc822\r\n\r\nMessage-ID: {message_id}\r\nSubject: x\r\n\r\nx\r\n"
        "--b--\r\n"
    ).encode()


class OnceTests(InboundTestCase):
    """Nothing is filed twice and nothing is passed over."""

    def test_an_empty_window_moves_the_cursor(self) -> None:
        """A window without candidates is one transaction too."""
        self.now(self.receiving(through=41))
        self.assertEqual(self.cursor(), (7, 41))

    def test_the_cursor_never_goes_back(self) -> None:
        """A scan that was overtaken does not undo what the other has read."""
        self.now(self.receiving(through=41))
        self.now(self.receiving(through=12))
        self.assertEqual(self.cursor(), (7, 41))

    def test_a_window_may_be_repeated(self) -> None:
        """What was filed before is known by its place, whatever happened to it meanwhile."""
        self.receive(self.reply("one"), self.reply("two"))
        self.take(self.pending()[0])
        before = self.picture("cursor")
        received = self.now(self.receiving(self.examined(1), self.examined(2)))
        self.assertEqual((received.routed, dict(received.refused)), (0, {}))
        self.assertEqual(self.picture("cursor"), before)

    def test_a_replay_with_another_header_around_the_same_words_is_a_duplicate(self) -> None:
        """Whoever has a genuine reply must not be able to have it done again."""
        date = {"Date": "Mon, 30 Nov 2026 10:00:00 +0000"}
        genuine = self.reply("deploy now", headers=date)
        self.assertEqual(self.receive(genuine).routed, 1)
        replay = genuine.replace(b"From: ", b"Received: from evil.example by mx.example.net\r\nFrom: ", 1)
        spaced = replay.replace(b"deploy now", b"deploy  now ")
        for again in (replay, spaced):
            self.assertEqual(dict(self.receive(again).refused), {"duplicate": 1})

    def test_a_replay_under_another_message_id_that_is_not_signed_is_a_duplicate(self) -> None:
        """What the signature leaves out says nothing about the mail; what it covers does."""
        for signed, routed in (("from:date:subject", 1), ("from:date:subject:message-id", 2)):
            headers = {
                "Date": f"Mon, 30 Nov 2026 10:00:0{routed} +0000",
                "DKIM-Signature": f"v=1; a=rsa-sha256; d=example.org; s=x; h={signed}; bh=eA==; b=eA==",
            }
            genuine = self.reply("deploy now", headers=headers)
            again = genuine.replace(b"Message-ID: <", b"Message-ID: <other")
            found = self.receive(genuine).routed + self.receive(again).routed
            self.assertEqual(found, routed, signed)

    def test_a_replay_with_other_blanks_is_a_duplicate(self) -> None:
        """A relaxed signature lets anybody change blanks in header and body, which may change the reading."""
        headers = {
            "Date": "Mon, 30 Nov 2026 10:00:00 +0000",
            "DKIM-Signature": "v=1; a=rsa-sha256; d=example.org; s=x; h=from:date:subject; bh=eA==; b=eA==",
        }
        genuine = self.reply("deploy now\n\nOn Mon, Eve wrote:\n> rm -rf /\n", headers=headers)
        self.assertEqual(self.receive(genuine).routed, 1)
        for old, new in (
            (b"Mon, 30 Nov", b"Mon,  30  Nov"),
            (b"deploy now", b"deploy   now  "),
            (b"text/plain", b"text/html"),
            (b"wrote:\r\n", b"wrote: \r\n"),
        ):
            again = genuine.replace(old, new, 1)
            self.assertNotEqual(again, genuine)
            self.assertEqual(dict(self.receive(again).refused), {"duplicate": 1}, new)

    def test_the_same_words_at_another_time_are_said_again(self) -> None:
        """A person may say yes twice."""
        for second in (1, 2):
            mail = self.reply("yes", headers={"Date": f"Mon, 30 Nov 2026 10:00:0{second} +0000"})
            self.assertEqual(self.receive(mail).routed, 1)

    def test_a_copy_is_a_duplicate(self) -> None:
        """The same bytes under another UID, in the same window or later, acked or not."""
        mail = self.reply("one")
        self.assertEqual(dict(self.receive(mail, mail).refused), {"duplicate": 1})
        self.take(self.pending()[0])
        self.assertEqual(dict(self.receive(mail).refused), {"duplicate": 1})
        self.assertEqual(self.words(), [])

    def test_mails_without_a_digest_are_never_copies(self) -> None:
        """What is not known cannot be known again."""
        uids = self.folder.put(self.reply("one"), self.reply("two"))
        mails = [evolve(self.examined(uid), raw_sha256="") for uid in uids]
        self.assertEqual(self.now(self.receiving(*mails)).routed, 2)

    def test_a_crash_before_the_commit_repeats(self) -> None:
        """Killed with all statements done: nothing has happened, and the next scan does all of it."""
        uids = self.folder.put(self.reply("one"), letter("x", sender="eve@evil.example"), self.reply("two"))
        before = self.picture()
        self.gateway.database.interrupted = True
        self.failureResultOf(Deferred.fromCoroutine(self.receiving(*map(self.examined, uids))), Interrupted)
        self.assertEqual(self.picture(), before)
        self.assertEqual(self.gateway.kinds(), [])
        self.now(self.receiving(*map(self.examined, uids)))
        self.assertEqual(self.words(), ["one", "two"])

    def test_a_store_that_fails_rings_no_bell(self) -> None:
        """Nobody is woken for what did not happen."""
        self.folder.put(self.reply("one"))
        self.gateway.database.failures.append(StoreUnavailable("full"))
        self.failureResultOf(Deferred.fromCoroutine(self.receiving(self.examined(1))), StoreUnavailable)
        self.assertEqual(self.gateway.kinds(), [])

    def test_a_reply_shows_that_its_question_arrived(self) -> None:
        """A mail of unclear fate that was answered is sent; a second copy would only ask again."""
        self.conclude(self.claim(), "unclear", None)
        self.assertIs(self.row(self.sent).state, OutboxState.UNCLEAR)
        self.gateway.kinds()
        self.receive(self.reply("it came"))
        self.assertIs(self.row(self.sent).state, OutboxState.SENT)
        self.assertIn(EventKind.OUTBOX, self.gateway.kinds())

    def test_a_stale_holder_files_nothing(self) -> None:
        """Whoever has lost the folder to another machine is refused with all he brings."""
        resource = leases.folder_resource(ACCOUNT, INBOX)
        database = self.gateway.database
        mine = self.now(leases.acquire(database, resource, IDENTITY.machine_id))
        assert mine is not None
        self.fence = mine.fence
        self.receive(self.reply("in time"))
        self.gateway.later(seconds=21)
        self.assertIsNotNone(self.now(leases.acquire(database, resource, ELSEWHERE)))
        (uid,) = self.folder.put(self.reply("too late"))
        self.failureResultOf(Deferred.fromCoroutine(self.receiving(self.examined(uid))), StaleWrite)
        self.assertEqual(self.words(), ["in time"])
        self.assertEqual(self.cursor(), (7, 1))


class WindowTests(InboundTestCase):
    """However a folder is cut into windows."""

    def test_windows_may_be_cut_and_repeated_at_will(self) -> None:
        """However the mails are spread over windows, and whichever are repeated, each arrives once."""
        mails = [self.reply(f"answer {n}") for n in range(6)]
        fresh = self.make_again

        @settings(max_examples=20)
        @given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6))
        def check(windows: list[tuple[int, int]]) -> None:
            fresh()
            uids = self.folder.put(*(mail + self.sent.route_id.encode() for mail in mails))
            for first, last in [*windows, (0, 6)]:
                if first <= last:
                    chosen = [self.examined(uid) for uid in uids[first:last]]
                    self.now(self.receiving(*chosen, through=0))
            self.assertEqual(sorted(each.source.uid for each in self.pending() if each.source), uids)

        check()

    def make_again(self) -> None:
        """Begin with an empty database."""
        self.gateway.database.close()
        self.setUp()
