"""Mail whose evidence has not come: held over scans, restarts and new numbers, not lost, not run twice."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from attrs import define, field
from twisted.internet.defer import Deferred, succeed

from mailgateway.errors import CommandRefused, StaleWrite, StoreUnavailable
from mailgateway.flows import fates, held, sweep
from mailgateway.flows.evidence import Witnesses
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.ports import KeyLookup
from mailgateway.flows.scan import Scanned, Scanner, ScanRules
from mailgateway.ids import MessageId
from mailgateway.mail.dkim_key import KeyAnswer, KeyTexts, KeyTrouble
from mailgateway.mail.own import Own
from mailgateway.settings import Authentication
from mailgateway.store import held as rows
from tests.fakes.dkim_signer import Signer, rsa_key
from tests.fakes.sent import FakeSentFolder
from tests.flows.outbound import IDENTITY
from tests.flows.test_scan import PERSON, ScanTestCase
from tests.mail.mails import lay

AGENT = "agent@example.org"
SIGNER = Signer()


@define(eq=False)
class FakeKeys:
    """DNS in memory."""

    answer: KeyAnswer = field(factory=lambda: KeyTexts((SIGNER.record(),)))
    asked: list[tuple[str, ...]] = field(factory=list)

    async def find(self, names: Sequence[str]) -> Mapping[str, KeyAnswer]:
        """The same answer for every name."""
        self.asked.append(tuple(names))
        return dict.fromkeys(names, self.answer)


_proof: type[KeyLookup] = FakeKeys


class HeldTestCase(ScanTestCase):
    """A folder whose mail is believed by what the witnesses say."""

    own = Own(addresses=[AGENT], allowed=[PERSON])

    def setUp(self) -> None:
        super().setUp()
        self.keys = FakeKeys()
        self.sent_folder = FakeSentFolder()
        self.restart()
        self.scan()

    def restart(self) -> None:
        """Another run of the process, on the same database."""
        rules = ScanRules(FilingRules(IDENTITY, self.own, "k" * 64), timedelta(hours=168))
        self.scanner = Scanner(
            self.gateway.database,
            self.gateway.bell,
            rules,
            lambda judging: succeed(judging()),
            Witnesses(self.keys, self.sent_folder),
        )

    def letter(self, words: str, to: str = AGENT) -> bytes:
        """A mail as it was written."""
        return lay(
            [
                ("From", PERSON),
                ("To", to),
                ("Subject", self.subject),
                ("Date", datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")),
                ("Message-ID", f"<{words.replace(' ', '.')}@example.org>"),
            ],
            words,
        )

    def deliver(self, raw: bytes) -> int:
        """It arrives now; its UID."""
        return self.mailbox.deliver(raw, datetime.now(UTC))

    def later(self, **how: float) -> Scanned:
        """Time passes; one scan."""
        self.gateway.database.offset += timedelta(**how)
        return self.scan()

    def rows(self) -> int:
        """How many mails are held."""
        return self.gateway.rows(rows.count)

    def told(self) -> list[tuple[str, str]]:
        """The verdicts and reasons of the fates, newest first."""
        found = self.now(fates.fates(self.gateway.database, since=None, limit=10))
        return [(each.verdict, each.reason) for each in found]


class KeyTests(HeldTestCase):
    """Keys that DNS does not tell."""

    def test_a_signed_mail_is_believed_by_its_key(self) -> None:
        """The usual walk; a mail of a stranger is not looked up."""
        self.deliver(SIGNER.sign(self.letter("go on")))
        self.assertEqual(self.scan().routed, 1)
        self.assertEqual(self.words(), ["go on"])
        self.assertEqual(self.keys.asked, [(SIGNER.key_name,)])
        self.deliver(SIGNER.sign(self.letter("x").replace(PERSON.encode(), b"eve@evil.example")))
        self.scan()
        self.assertEqual(len(self.keys.asked), 1)

    def test_the_same_mail_again_is_a_duplicate(self) -> None:
        """Whoever replays it, with other fields around it."""
        signed = SIGNER.sign(self.letter("go on"))
        self.deliver(signed)
        self.scan()
        self.deliver(b"Received: from eve by x; y\r\n" + signed)
        self.assertEqual(dict(self.scan().refused), {"duplicate": 1})
        self.assertEqual(self.words(), ["go on"])

    def test_two_copies_that_wait(self) -> None:
        """One is delivered when the key comes, the other is its duplicate, and nothing is tried any more."""
        self.keys.answer = KeyTrouble("DNS does not answer in time")
        signed = SIGNER.sign(self.letter("late"))
        for _ in range(2):
            self.deliver(signed)
        self.scan()
        self.assertEqual(self.rows(), 2)
        self.keys.answer = KeyTexts((SIGNER.record(),))
        scanned = self.later(minutes=2)
        self.assertEqual((scanned.routed, dict(scanned.refused)), (1, {"duplicate": 1}))
        self.assertEqual((self.rows(), scanned.again_in, len(self.told())), (0, None, 2))
        self.assertEqual(self.words(), ["late"])

    def test_it_waits_for_dns(self) -> None:
        """The cursor moves on, nothing is refused, and the mail comes when the key does."""
        self.keys.answer = KeyTrouble("DNS does not answer in time")
        uid = self.deliver(SIGNER.sign(self.letter("late")))
        scanned = self.scan()
        self.assertEqual((scanned.routed, dict(scanned.refused)), (0, {}))
        self.assertLess(abs((scanned.again_in or 0) - 10), 1)
        self.assertEqual(self.cursor(), (7, uid))
        self.assertEqual(self.told(), [("held", "DNS does not answer in time")])
        self.deliver(SIGNER.sign(self.letter("another")))
        self.keys.answer = KeyTexts((SIGNER.record(),))
        self.scan()
        self.assertEqual(self.words(), ["another"])
        scanned = self.later(seconds=61)
        self.assertEqual((scanned.routed, scanned.again_in), (1, None))
        self.assertEqual(self.words(), ["another", "late"])
        self.assertEqual([verdict for verdict, _ in self.told()], ["delivered", "delivered"])
        self.assertEqual(self.rows(), 0)
        self.assertEqual(self.cursor(), (7, uid + 1))

    def test_pauses_grow_and_the_hour_ends(self) -> None:
        """Then it is refused, as what it is, and no more is asked."""
        self.keys.answer = KeyTrouble("DNS does not answer in time")
        self.deliver(SIGNER.sign(self.letter("never")))
        pauses = []
        scanned = self.scan()
        while scanned.again_in is not None:
            pauses.append(round(scanned.again_in, -1))
            scanned = self.later(seconds=scanned.again_in)
        self.assertEqual(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 570])
        self.assertEqual(dict(scanned.refused), {"unauthenticated": 1})
        self.assertEqual(self.told(), [("unauthenticated", "DNS does not answer in time")])
        asked = len(self.keys.asked)
        self.later(hours=2)
        self.assertEqual((len(self.keys.asked), self.rows(), self.words()), (asked, 0, []))

    def test_a_restart_changes_nothing(self) -> None:
        """The mail keeps its time and is fetched again."""
        self.keys.answer = KeyTrouble("no")
        self.deliver(SIGNER.sign(self.letter("late")))
        self.scan()
        self.restart()
        self.keys.answer = KeyTexts((SIGNER.record(),))
        self.assertEqual(self.scan().routed, 0)
        self.assertEqual(self.later(seconds=11).routed, 1)
        self.assertEqual(self.words(), ["late"])

    def test_nothing_is_asked_while_nothing_is_held(self) -> None:
        """A scan costs no look into the table then."""
        self.assertIsNone(self.scan().again_in)
        self.assertFalse(self.scanner._holds)
        self.keys.answer = KeyTrouble("no")
        self.deliver(SIGNER.sign(self.letter("late")))
        self.scan()
        self.assertTrue(self.scanner._holds)

    def test_a_mail_that_vanished(self) -> None:
        """Somebody took it out: it is held no more, and its fate says so."""
        self.keys.answer = KeyTrouble("no")
        uid = self.deliver(SIGNER.sign(self.letter("gone")))
        self.scan()
        del self.mailbox.mails[uid]
        self.assertIsNone(self.later(seconds=61).again_in)
        self.assertEqual(self.rows(), 0)
        ((verdict, reason),) = self.told()
        self.assertEqual(verdict, "unauthenticated")
        self.assertIn("taken out", reason)

    def test_new_numbers(self) -> None:
        """The folder is numbered anew: the mail waits under its new number, for what is left of its hour."""
        self.keys.answer = KeyTrouble("no")
        first = self.deliver(SIGNER.sign(self.letter("one")))
        second = self.deliver(SIGNER.sign(self.letter("two")))
        self.scan()
        self.gateway.database.offset += timedelta(minutes=50)
        self.mailbox = self.mailbox.renumbered([second, first], 8)
        self.scan()
        self.assertEqual(self.rows(), 2)
        self.assertEqual(len(self.told()), 2)
        self.later(minutes=11)
        self.assertEqual([verdict for verdict, _ in self.told()], ["unauthenticated", "unauthenticated"])
        self.assertEqual(self.rows(), 0)

    def test_new_numbers_and_the_key_is_there(self) -> None:
        """Each is delivered once; what is not found again is forgotten."""
        self.keys.answer = KeyTrouble("no")
        self.deliver(SIGNER.sign(self.letter("lost")))
        kept = self.deliver(SIGNER.sign(self.letter("kept")))
        self.scan()
        self.keys.answer = KeyTexts((SIGNER.record(),))
        self.mailbox = self.mailbox.renumbered([kept], 8)
        self.scan()
        self.later(minutes=2)
        self.assertEqual(self.words(), ["kept"])
        self.assertEqual(self.rows(), 0)

    def test_shrunken_numbers(self) -> None:
        """A restored mailbox with the same UIDVALIDITY: the places mean other mails."""
        self.keys.answer = KeyTrouble("no")
        for number in range(3):
            self.deliver(SIGNER.sign(self.letter(f"mail {number}")))
        self.scan()
        self.keys.answer = KeyTexts((SIGNER.record(),))
        self.mailbox = self.mailbox.renumbered([2], 7)
        self.scan()
        self.later(minutes=2)
        self.assertEqual(self.words(), ["mail 1"])
        self.assertEqual(self.rows(), 0)

    def test_a_flood_does_not_shut_out_who_comes_last(self) -> None:
        """Forged mail has taken all places: a person's mail whose key is late waits, and is delivered."""
        self.patch(held, "MOST", 3)
        self.keys.answer = KeyTrouble("DNS does not answer in time")
        for number in range(3):
            self.deliver(Signer(private=rsa_key(1024, 7)).sign(self.letter(f"forged {number}")))
            self.later(seconds=1)
        self.deliver(SIGNER.sign(self.letter("true")))
        scanned = self.later(seconds=1)
        self.assertEqual((dict(scanned.refused), self.rows()), ({"unauthenticated": 1}, 3))
        told = self.told()
        self.assertEqual([verdict for verdict, _ in told], ["held", "held", "held", "unauthenticated"])
        self.assertIn("too many mails waited", told[-1][1])
        self.keys.answer = KeyTexts((SIGNER.record(),))
        scanned = self.later(minutes=10)
        self.assertEqual((scanned.routed, self.words(), self.rows()), (1, ["true"], 0))
        self.assertEqual(len(self.told()), 4)

    def test_who_has_waited_longest_goes_and_not_who_is_due_first(self) -> None:
        """The pauses of the first have grown, so that others are due before it."""
        self.patch(held, "MOST", 2)
        self.keys.answer = KeyTrouble("no")
        self.deliver(SIGNER.sign(self.letter("first")))
        self.scan()
        for _ in range(6):
            self.later(minutes=5)
        second = self.deliver(SIGNER.sign(self.letter("second")))
        self.scan()
        third = self.deliver(SIGNER.sign(self.letter("third")))
        self.scan()
        kept = self.gateway.rows(lambda tx: rows.of_folder(tx, self.mailbox.account, "INBOX"))
        self.assertEqual({each.place.uid for each in kept}, {second, third})

    def test_a_flood_is_bounded(self) -> None:
        """Anybody may write such mail while DNS is down; what is over the bound is refused."""
        self.patch(held, "MOST", 2)
        self.keys.answer = KeyTrouble("no")
        for number in range(4):
            self.deliver(SIGNER.sign(self.letter(f"mail {number}")))
        self.assertEqual(dict(self.scan().refused), {"unauthenticated": 2})
        self.assertEqual(self.rows(), 2)

    def test_news_do_not_wait_for_a_flood(self) -> None:
        """A look at one may take seconds, so only a few are tried in one scan; the others at the next."""
        self.patch(held, "AT_ONCE", 2)
        self.keys.answer = KeyTrouble("DNS does not answer in time")
        for number in range(5):
            self.deliver(SIGNER.sign(self.letter(f"mail {number}")))
        self.scan()
        del self.keys.asked[:]
        self.keys.answer = KeyTexts((SIGNER.record(),))
        scans = [self.later(minutes=2), self.scan(), self.scan()]
        self.assertEqual([each.routed for each in scans], [2, 2, 1])
        self.assertEqual([each.again_in for each in scans], [0.0, 0.0, None])

    def test_a_mail_whose_text_is_not_given_any_more(self) -> None:
        """It is refused in the end, and that is told, though nothing of it can be read."""
        self.keys.answer = KeyTrouble("no")
        uid = self.deliver(SIGNER.sign(self.letter("late")))
        self.scan()
        self.mailbox.withheld.add(uid)
        self.later(minutes=2)
        for _ in range(3):
            self.scan()
        self.assertEqual(self.rows(), 0)
        ((verdict, _),) = self.told()
        self.assertEqual(verdict, "malformed")

    def test_an_account_that_is_watched_no_more(self) -> None:
        """Its rows go with all that is only remembered."""
        self.keys.answer = KeyTrouble("no")
        self.deliver(SIGNER.sign(self.letter("late")))
        self.scan()
        for days, left in ((29, 1), (200, 0)):
            self.gateway.database.offset += timedelta(days=days)
            self.now(
                sweep.sweep(
                    self.gateway.database,
                    self.gateway.bell,
                    IDENTITY,
                    bodies_days=30,
                    route_ttl=timedelta(hours=168),
                    alive=lambda _pid, _started: True,
                    discard=lambda _path: None,
                )
            )
            self.assertEqual(self.rows(), left)

    def test_a_lost_lease(self) -> None:
        """Who does not hold the folder any more writes nothing, also not that a mail vanished."""
        self.keys.answer = KeyTrouble("no")
        uid = self.deliver(SIGNER.sign(self.letter("late")))
        self.scan()
        del self.mailbox.mails[uid]
        place = (self.mailbox.account, "INBOX", 7, uid)
        losing = held.vanished(self.gateway.database, *place, 99)
        self.failureResultOf(Deferred.fromCoroutine(losing), StaleWrite)
        self.assertEqual(self.rows(), 1)


class SentTests(HeldTestCase):
    """One mailbox for person and agent."""

    own = Own(addresses=[PERSON], allowed=[PERSON], authentication=Authentication.SINGLE_MAILBOX)

    def wrote(self, words: str) -> tuple[bytes, MessageId]:
        """A mail of the owner to the own mailbox."""
        raw = self.letter(words, to=PERSON)
        return raw, MessageId(f"<{words.replace(' ', '.')}@example.org>")

    def test_the_copy_is_there(self) -> None:
        """The mail is delivered at once."""
        raw, known_as = self.wrote("do it")
        self.sent_folder.mails[known_as] = raw
        self.deliver(b"Received: from a by b; x\r\n" + raw)
        self.assertEqual(self.scan().routed, 1)
        self.assertEqual(self.words(), ["do it"])

    def test_the_copy_comes_later(self) -> None:
        """Programs put it there after they have sent the mail."""
        raw, known_as = self.wrote("do it")
        self.deliver(raw)
        scanned = self.scan()
        self.assertEqual(scanned.routed, 0)
        self.assertLess(abs((scanned.again_in or 0) - 5), 2)
        self.sent_folder.mails[known_as] = raw
        self.assertEqual(self.later(seconds=5).routed, 1)

    def test_the_copy_never_comes(self) -> None:
        """A stranger's mail under the owner's name waits ten minutes, and is refused."""
        self.deliver(self.wrote("rm -rf")[0])
        scanned, waited = self.scan(), 0.0
        while scanned.again_in is not None:
            waited += scanned.again_in
            scanned = self.later(seconds=scanned.again_in)
        self.assertLess(abs(waited - 600), 5)
        self.assertEqual(dict(scanned.refused), {"proof-required": 1})
        self.assertEqual(self.words(), [])

    def test_other_words_under_a_known_message_id(self) -> None:
        """Refused at once, as forged."""
        raw, known_as = self.wrote("do it")
        self.sent_folder.mails[known_as] = raw
        self.deliver(raw.replace(b"\r\n\r\ndo it", b"\r\n\r\nrm -rf"))
        self.assertEqual(dict(self.scan().refused), {"forged": 1})
        self.assertEqual(self.words(), [])

    def test_a_copy_is_good_for_one_delivery(self) -> None:
        """The same mail sent again by somebody is known."""
        raw, known_as = self.wrote("do it")
        self.sent_folder.mails[known_as] = raw
        self.deliver(raw)
        self.scan()
        self.deliver(b"X-Replayed: yes\r\n" + raw)
        self.assertEqual(dict(self.scan().refused), {"duplicate": 1})

    def test_nobody_can_look(self) -> None:
        """It waits as if the copy were not there; what is wrong is said."""
        raw, known_as = self.wrote("do it")
        self.sent_folder.mails[known_as] = raw
        self.sent_folder.outage = CommandRefused("no Sent folder", code="NOSENT")
        self.deliver(raw)
        self.scan()
        ((_, reason),) = self.told()
        self.assertIn("cannot be looked into", reason)
        self.sent_folder.outage = None
        self.assertEqual(self.later(seconds=6).routed, 1)

    def test_our_database_fails_meanwhile(self) -> None:
        """Looking there may take a login, which is written down: that this fails is no word on the mail."""
        raw, known_as = self.wrote("do it")
        self.sent_folder.mails[known_as] = raw
        self.sent_folder.outage = StoreUnavailable("disk full")
        self.deliver(raw)
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), StoreUnavailable)
        self.sent_folder.outage = None
        self.assertEqual(self.scan().routed, 1)

    def test_our_own_mail_is_not_looked_for(self) -> None:
        """The questions that the gateway mails to that mailbox."""
        raw, _ = self.wrote("a question")
        self.deliver(b"X-Mailgateway-Instance: i\r\n" + raw)
        self.scan()
        self.assertEqual(self.sent_folder.asked, [])


class PlainMailboxTests(HeldTestCase):
    """Without witnesses."""

    def test_nobody_to_ask(self) -> None:
        """A signed mail is refused at once; nothing waits for an answer that cannot come."""
        self.scanner.witnesses = Witnesses()
        self.deliver(SIGNER.sign(self.letter("x")))
        self.assertEqual(dict(self.scan().refused), {"unauthenticated": 1})
