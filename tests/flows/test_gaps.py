"""Mails that become visible below the cursor: taken in, once, and no old one with them."""

from attrs import evolve
from twisted.internet.defer import Deferred

from mailgateway.errors import PeerError, ProtocolViolation, StaleWrite, Unreachable
from mailgateway.flows.gaps import LOOKS, OVERLAP, Gaps
from mailgateway.flows.scan import Scanned
from mailgateway.store import tables
from mailgateway.store.database import Tx
from tests.fakes.mailbox import FakeMailbox
from tests.flows.test_scan import ScanTestCase, mail

STRANGER = "sale@elsewhere.example"


class GapTestCase(ScanTestCase):
    """A folder in which mails are hidden for a while."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()  # the first look

    def come(self, words: str, *, hidden: bool = False, sender: str = "") -> int:
        """A mail comes, visible or not yet; its UID."""
        what = mail(words, self.subject, sender) if sender else mail(words, self.subject)
        uid = self.mailbox.deliver(what)
        if hidden:
            self.mailbox.hidden.add(uid)
            self.mailbox.unscanned -= 1
        return uid

    def appear(self, uid: int, *, told: bool = True) -> None:
        """A hidden mail becomes visible."""
        self.mailbox.hidden.discard(uid)
        self.mailbox.unscanned += told

    def words(self) -> list[str]:
        """What was filed, in its order."""
        return sorted(envelope.body.strip() for envelope in self.pending())

    def rows(self) -> list[int]:
        """The gaps that are written down."""

        def work(tx: Tx) -> list[int]:
            return sorted(row.uid for row in tx.execute(tables.gap.select()))

        return self.gateway.rows(work)

    def restart(self) -> None:
        """Another process, on another connection."""
        self.scanner = self.make_scanner(self.gateway.database)
        self.reconnect()

    def reconnect(self) -> None:
        """Another connection to the same folder."""
        before = self.mailbox
        self.mailbox = FakeMailbox(
            mails=before.mails, arrivals=before.arrivals, hidden=before.hidden, next_uid=before.next_uid
        )


class LateTests(GapTestCase):
    """Row 26: a mail with a lower UID becomes visible after one with a higher."""

    def test_it_is_taken_in(self) -> None:
        """When the server tells of it, or at the next look without news."""
        for told in (True, False):
            self.setUp()
            late = self.come("late", hidden=True)
            self.come("early")
            self.scan()
            self.assertEqual(self.words(), ["early"])
            self.appear(late, told=told)
            self.scan()
            self.assertEqual(self.words(), ["early", "late"])
            for _ in range(3):
                self.scan()
            self.assertEqual((self.words(), self.rows()), (["early", "late"], []))

    def test_news_do_not_wait_for_it(self) -> None:
        """A scan that finds all that was announced asks for nothing more."""
        self.come("late", hidden=True)
        self.come("early")
        self.scan()
        self.come("next")
        self.scan()
        self.assertEqual(self.mailbox.searches, [])
        self.scan()
        self.assertEqual(len(self.mailbox.searches), 1)

    def test_over_a_restart(self) -> None:
        """The numbers are written down before the cursor passes them."""
        late = self.come("late", hidden=True)
        self.come("early")
        self.scan()
        self.restart()
        self.appear(late)
        self.scan()
        self.assertEqual(self.words(), ["early", "late"])

    def test_over_a_lost_connection(self) -> None:
        """A look that failed is made again."""
        late = self.come("late", hidden=True)
        self.come("early")
        self.scan()
        self.appear(late)
        self.mailbox.outage = Unreachable("reset")
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), Unreachable)
        self.reconnect()
        self.scan()
        self.assertEqual(self.words(), ["early", "late"])

    def test_nothing_comes_twice(self) -> None:
        """Though everything is asked for again."""
        hidden = [self.come(f"late {number}", hidden=True) for number in range(5)]
        for number in range(5):
            self.come(f"early {number}")
        self.scan()
        for uid in hidden:
            self.appear(uid)
            self.scan()
            self.restart()
            self.scan()
        self.assertEqual(len(self.words()), 10)

    def test_a_lost_lease(self) -> None:
        """Who does not hold the folder any more writes none down, and takes none away."""
        late = self.come("late", hidden=True)
        self.come("early")
        self.scan()
        gaps = Gaps(self.gateway.database)
        for writing in (gaps.passing(self.mailbox, 99, 5, 9, [9]), gaps.looked(self.mailbox, 99, [])):
            self.failureResultOf(Deferred.fromCoroutine(writing), StaleWrite)
        self.assertEqual(self.rows(), [late])

    def test_a_stranger_s_mail(self) -> None:
        """It is counted like any other, once."""
        late = self.come("late", hidden=True, sender=STRANGER)
        self.come("early")
        self.scan()
        self.appear(late, told=False)
        self.assertEqual(self.scan().refused, {"not-allowed": 1})
        self.assertEqual(self.scan().refused, {})

    def test_a_gap_in_a_long_catch_up(self) -> None:
        """Only what lies right below the cursor is looked for."""
        lost = [self.come(f"hidden {number}", hidden=True) for number in range(3)]
        for number in range(OVERLAP + 10):
            self.come(f"mail {number}", sender=STRANGER)
        late = self.come("late", hidden=True)
        self.come("last")
        self.scan()
        self.assertEqual(self.rows(), [late])
        self.appear(lost[0], told=False)
        self.appear(late, told=False)
        self.scan()
        self.assertEqual(self.words(), ["last", "late"])


class EndTests(GapTestCase):
    """A number is not looked for without end, and not all are looked for."""

    def test_a_mail_that_is_gone(self) -> None:
        """Ten looks, over restarts too; then nothing is asked any more."""
        self.come("gone", hidden=True)
        self.come("there")
        self.scan()
        asked = 0
        for _ in range(3 * LOOKS):
            self.scan()
            asked += len(self.mailbox.searches)
            self.restart()
        self.assertEqual((asked, self.rows()), (LOOKS, []))

    def test_a_folder_without_gaps_is_asked_nothing(self) -> None:
        """And nothing is written."""
        for number in range(3):
            self.come(f"mail {number}")
            self.scan()
            self.scan()
        self.assertEqual((self.mailbox.searches, self.rows()), ([], []))

    def test_no_old_mail_at_the_first_look(self) -> None:
        """Nor at any later one, however full of gaps the folder is."""
        self.mailbox = FakeMailbox(folder="Other")
        old = [self.come("old", hidden=number % 2 == 0) for number in range(20)]
        self.scan()
        self.come("new")
        self.scan()
        for uid in old:
            self.appear(uid, told=False)
        for _ in range(3):
            self.scan()
        self.assertEqual((self.words(), self.mailbox.searches), (["new"], []))

    def test_renumbered(self) -> None:
        """Numbers of another numbering mean nothing."""
        self.come("gone", hidden=True)
        there = self.come("there")
        self.scan()
        self.mailbox = self.mailbox.renumbered([there], 8)
        self.scan()
        self.scan()
        self.assertEqual((self.mailbox.searches, self.words()), ([], ["there"]))


class UnnamedTests(GapTestCase):
    """Row 29: a mail that is there, and that the server leaves out of its answers."""

    def test_it_is_named_later(self) -> None:
        """Then it is taken in."""
        uid = self.come("moody")
        self.mailbox.unnamed.add(uid)
        self.come("other")
        self.scan()
        self.scan()
        self.assertEqual(self.words(), ["other"])
        self.mailbox.unnamed.clear()
        self.scan()
        self.assertEqual(self.words(), ["moody", "other"])

    def test_a_server_that_hangs_up_on_it(self) -> None:
        """However often: it is given up, visibly, and the folder is watched again."""
        for poison, most in ((ProtocolViolation("nonsense"), 3), (Unreachable("gone"), 11)):
            self.setUp()
            uid = self.come("poisoned", hidden=True)
            self.come("other")
            self.scan()
            self.mailbox.poison = poison
            self.mailbox.poisoned_headers.add(uid)
            self.appear(uid, told=False)
            lost = 0
            while (scanned := self.outcome()) is None:
                self.mailbox = evolve(self.mailbox)  # another connection
                lost += 1
                self.assertLessEqual(lost, most)
            self.assertEqual(dict(scanned.refused), {"malformed": 1})
            self.assertEqual((self.words(), self.rows()), (["other"], []))

    def outcome(self) -> Scanned | None:
        """What one scan comes to; ``None`` when the connection is lost."""
        outcome: list[Scanned | None] = []
        scanning: Deferred[Scanned | None] = Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None))
        scanning.addErrback(lambda failure: failure.trap(PeerError) and None)
        scanning.addCallback(outcome.append)
        return outcome[0]

    def test_it_is_never_named(self) -> None:
        """After ten looks it is given up visibly, and others were not held up."""
        uid = self.come("moody")
        self.mailbox.unnamed.add(uid)
        self.come("other")
        refused = [self.scan().refused for _ in range(LOOKS + 5)]
        self.assertEqual([each for each in refused if each], [{"malformed": 1}])
        self.assertEqual(self.words(), ["other"])
