"""Opening folders: where reading begins, and renumbering, which loses nothing and runs nothing twice."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mailgateway.domain.delivery import DeliveryState
from mailgateway.flows import flag, leases
from mailgateway.flows.deliver import Target
from mailgateway.flows.folders import Continue, FirstLook, Renumbered, cursor
from mailgateway.store import envelopes
from tests.flows.inbound import INBOX, TTL, Folder, InboundTestCase, letter
from tests.flows.outbound import ACCOUNT, IDENTITY


class OpenTests(InboundTestCase):
    """Where to read on."""

    def test_first_look(self) -> None:
        """A folder that was never seen begins with what comes from now on, and is remembered."""
        self.assertIsNone(self.cursor())
        self.folder.uid_next = 42
        self.assertEqual(self.open(), FirstLook(41))
        self.assertEqual(self.cursor(), (7, 41))
        self.folder.uid_next = 50
        self.assertEqual(self.open(), Continue(41))

    def test_a_stale_holder_opens_and_finishes_nothing(self) -> None:
        """Whoever slept while another read on must not take his old numbers for the server's new ones."""
        self.open()
        self.receive(self.reply("one"))
        resource = leases.folder_resource(ACCOUNT, INBOX)
        mine = self.now(leases.acquire(self.gateway.database, resource, IDENTITY.machine_id))
        assert mine is not None
        self.fence = mine.fence - 1
        self.folder.uid_next = 1
        for late in (self.open, self.finish):
            refused = self.assertRaises(self.failureException, late)
            self.assertIn("StaleWrite", str(refused))
        self.assertEqual(self.cursor(), (7, 1))

    def test_an_empty_folder(self) -> None:
        """UIDs begin at 1."""
        self.assertEqual(self.open(), FirstLook(0))
        self.assertEqual(self.open(), Continue(0))

    def test_prime(self) -> None:
        """Moves a cursor from whose folder nothing was ever filed; no other."""
        self.open()
        self.folder.uid_next = 10
        self.assertEqual(self.open(prime=True), FirstLook(9))
        self.receive(self.reply("words"))
        self.folder.uid_next = 30
        self.assertEqual(self.open(prime=True), Continue(10))

    def test_a_server_that_tells_no_uid_validity(self) -> None:
        """0 is never a change: neither from the first, nor when the server stops telling."""
        self.open()
        self.receive(self.reply("one"))
        self.folder.uid_validity = 0
        self.assertEqual(self.open(), Continue(1))
        self.receive(self.reply("two"))
        self.assertEqual(self.cursor(), (7, 2))
        self.folder.uid_validity = 7
        self.assertEqual(self.open(), Continue(2))
        self.assertEqual({each.source.uid_validity for each in self.pending() if each.source}, {7})

    def test_a_server_that_begins_to_tell(self) -> None:
        """What was filed under 0 is of the numbering that is told now."""
        self.folder.uid_validity = 0
        self.open()
        self.receive(self.reply("one"))
        self.assertEqual(self.cursor(), (0, 1))
        self.folder.uid_validity = 9
        self.assertEqual(self.open(), Continue(1))
        (found,) = self.pending()
        assert found.source is not None
        self.assertEqual(found.source.uid_validity, 9)

    def test_flags_without_uid_validity(self) -> None:
        """Flags are found under the numbering that is known."""
        self.open()
        self.receive(self.reply("one"))
        self.take(self.pending()[0])
        self.assertEqual(self.now(flag.due(self.gateway.database, ACCOUNT, INBOX, 0)), (1,))

    def test_cursors_are_of_one_folder(self) -> None:
        """Another folder has its own."""
        self.open()
        self.assertIsNone(self.now(cursor(self.gateway.database, ACCOUNT, "Archive")))


class RenumberingTestCase(InboundTestCase):
    """Four replies wait, and the server numbers the folder anew."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()
        self.folder.put(*(self.reply(f"answer {n}") for n in range(4)))
        self.scan()
        self.ids = {each.body.strip(): each.id for each in self.pending()}
        self.gateway.kinds()

    def renumber(self, *keep: int, uid_validity: int = 8, first: int = 1) -> None:
        """The folder is made anew with these mails (by their old UIDs) in this order."""
        old = self.folder
        self.folder = Folder(uid_validity=uid_validity, uid_next=first)
        self.folder.put(*(old.mails[uid] for uid in keep))


class RenumberingTests(RenumberingTestCase):
    """What becomes of what waited, was claimed, was acked."""

    def state(self, words: str) -> DeliveryState:
        """Where the envelope of these words stands."""
        found = self.gateway.rows(lambda tx: envelopes.find(tx, self.ids[words]))
        assert found is not None
        return found.state

    def flags(self, uid_validity: int) -> tuple[int, ...]:
        """UIDs whose flag is still to be set."""
        return self.now(flag.due(self.gateway.database, ACCOUNT, INBOX, uid_validity))

    def test_same_mails_other_order(self) -> None:
        """Ids, claims and acks stay; places are the new ones; nothing is dropped or filed."""
        one, two = self.pending()[:2]
        self.take(one)
        self.claim_envelope(two, "i2")
        self.renumber(4, 3, 2, 1)
        opened = self.open()
        assert isinstance(opened, Renumbered)
        self.assertLess(abs((self.at() - TTL - opened.since).total_seconds()), 60)
        self.assertEqual(self.scan(), 0)
        self.assertEqual(self.cursor(), (8, 4))
        self.assertEqual(
            [(each.id, each.source.uid, each.claimant) for each in self.pending() if each.source],
            [
                (self.ids["answer 1"], 3, "i2"),
                (self.ids["answer 2"], 2, None),
                (self.ids["answer 3"], 1, None),
            ],
        )
        self.assertEqual(self.state("answer 0"), DeliveryState.ACKED)
        self.assertEqual(self.refused(self.claiming(Target(id=one.id))).code, "acked")
        self.assertEqual(self.open(), Continue(4))
        self.now(self.acking(two, "i2"))

    def test_some_gone_some_new(self) -> None:
        """What is gone is dropped, what is new is filed, what is known stays."""
        self.renumber(2, 4)
        self.folder.put(self.reply("new"), letter("spam", sender="eve@evil.example"))
        self.assertEqual(self.scan(), 2)
        self.assertEqual(sorted(self.words()), ["answer 1", "answer 3", "new"])
        self.assertEqual(self.state("answer 0"), DeliveryState.DROPPED)
        self.assertEqual(self.scan(), 0)

    def test_places_of_the_former_numbering_are_stale(self) -> None:
        """A caller who still thinks in the old numbers is told so, and changes nothing."""
        found = self.pending()[0]
        old = Target(uid=1, uid_validity=7, account=ACCOUNT)
        self.renumber(2, 1, 3, 4)
        self.scan()
        for flow in (self.claiming(old), self.acking(old), self.releasing(old)):
            self.assertEqual(self.refused(flow).code, "stale-space")
        stale = Target(id=found.id, uid_validity=7)
        self.assertEqual(self.refused(self.claiming(stale)).code, "stale-space")
        self.assertEqual(self.claim_envelope(Target(uid=2, uid_validity=8, account=ACCOUNT)).id, found.id)

    def test_dropped_ones_are_stale(self) -> None:
        """A claimant whose mail is gone is told that the folder was numbered anew."""
        found = self.pending()[0]
        self.claim_envelope(found)
        self.renumber(2, 3, 4)
        self.scan()
        self.assertEqual(self.refused(self.acking(found)).code, "stale-space")
        self.assertEqual(self.refused(self.claiming(found)).code, "stale-space")

    def test_flags_go_along(self) -> None:
        r"""A ``\Seen`` that was not set yet is set under the new number; for a mail that is gone, never."""
        for each in self.pending()[:2]:
            self.take(each)
        self.renumber(3, 2)
        self.scan()
        self.assertEqual(self.flags(8), (2,))
        self.assertEqual(self.flags(7), ())

    def test_a_crash_anywhere_in_between(self) -> None:
        """Opened, received in part, received in full: beginning anew ends the same."""
        self.take(self.pending()[0])
        self.renumber(4, 1, 3)
        self.folder.put(self.reply("new"))
        self.open()
        self.now(self.receiving(self.examined(1), self.examined(2), through=2))
        self.assertIsInstance(self.open(), Renumbered)
        self.now(self.receiving(*map(self.examined, self.folder.mails)))
        middle = self.picture()
        self.assertIsInstance(self.open(), Renumbered)
        received = self.now(self.receiving(*map(self.examined, self.folder.mails)))
        self.assertEqual((received.routed, dict(received.refused)), (0, {}))
        self.assertEqual(self.picture(), middle)
        self.assertEqual(self.finish(), 1)
        self.assertEqual(sorted(self.words()), ["answer 2", "answer 3", "new"])
        after = self.picture("cursor")
        self.assertEqual(self.finish(), 0)
        self.assertEqual(self.picture("cursor"), after)

    def test_refusals_are_told_once(self) -> None:
        """A mail that was refused before the renumbering is refused again, but not told again."""
        self.folder.put(letter("lunch?", subject="lunch?"))
        self.scan()
        self.renumber(5, 1, 2, 3, 4)
        before = self.picture("cursor")["fate"]
        self.scan()
        self.assertEqual(self.picture("cursor")["fate"], before)

    def test_a_copy_stays_a_copy(self) -> None:
        """Of two with the same bytes one is the envelope's mail, before and after."""
        self.folder.put(self.folder.mails[1])
        self.scan()
        self.renumber(5, 1, 2, 3, 4)
        self.assertEqual(self.scan(), 0)
        self.assertEqual(len(self.pending()), 4)

    def test_twice(self) -> None:
        """A second renumbering works on what the first has made, and what comes back is delivered."""
        self.take(self.pending()[0])
        everything = dict(self.folder.mails)
        self.renumber(2)
        self.assertEqual(self.scan(), 2)
        self.folder = Folder(uid_validity=9)
        self.folder.put(*everything.values())
        self.assertEqual(self.scan(), 0)
        self.assertEqual(sorted(self.words()), ["answer 1", "answer 2", "answer 3"])

    def test_numbers_that_shrank(self) -> None:
        """A mailbox restored from a backup reuses numbers under the same UIDVALIDITY."""
        self.take(self.pending()[0])
        for round_ in range(3):
            self.renumber(*list(self.folder.mails)[:3][::-1], uid_validity=7)
            self.folder.uid_next = 4
            self.assertIsInstance(self.open(), Renumbered)
            # the old places are no more while the new ones are read
            self.assertEqual(
                self.refused(self.claiming(Target(uid=2, uid_validity=7, account=ACCOUNT))).code,
                "stale-space",
            )
            self.assertEqual(self.scan(), 1 if round_ == 0 else 0)
            self.assertEqual(self.open(), Continue(3))
            self.assertEqual(sorted(self.words()), ["answer 1", "answer 2"])
            self.folder.put(letter(f"lunch {round_}?", subject="lunch?"))
            self.scan()

    def test_a_reused_place_is_another_mail(self) -> None:
        """A new mail under a number that another mail had gets an envelope of its own."""
        self.renumber(uid_validity=7)
        self.folder.put(self.reply("fresh"))
        self.assertEqual(self.scan(), 4)
        (found,) = self.pending()
        self.assertEqual(found.body.strip(), "fresh")
        self.assertNotIn(found.id, self.ids.values())
        self.take(found)
        self.assertEqual(self.words(), [])

    def test_numbers_that_shrank_without_uid_validity(self) -> None:
        """The same where the server never tells a UIDVALIDITY."""
        self.renumber(1, 2, 3, 4, uid_validity=0)
        self.folder.uid_next = 3
        del self.folder.mails[3], self.folder.mails[4]
        self.assertIsInstance(self.open(), Renumbered)
        self.assertEqual(self.scan(), 2)
        self.assertEqual(self.words(), ["answer 0", "answer 1"])
        self.assertEqual(self.cursor(), (7, 2))


class HistoryTests(RenumberingTestCase):
    """Renumberings in any order with everything else."""

    def test_any_history(self) -> None:
        """Through any renumberings nothing is acked twice and nothing that is in the folder is lost."""

        @settings(max_examples=15)
        @given(st.integers(0, 2**32), st.lists(st.sampled_from(["new", "ack", "renumber", "shrink"])))
        def check(seed: int, history: list[str]) -> None:
            self.gateway.database.close()
            self.setUp()
            chance = random.Random(seed)  # noqa: S311 (a test's dice)
            acked: list[str] = []
            words = {mail: f"answer {n}" for n, mail in enumerate(self.folder.mails.values())}
            for number, step in enumerate(history):
                match step:
                    case "new":
                        mail = self.reply(f"new {number}")
                        words[mail] = f"new {number}"
                        self.folder.put(mail)
                    case "ack" if waiting := self.pending():
                        chosen = chance.choice(waiting)
                        acked.append(chosen.body.strip())
                        self.take(chosen)
                    case "renumber":
                        uids = list(self.folder.mails)
                        chance.shuffle(uids)
                        self.renumber(*uids, uid_validity=self.folder.uid_validity + 1)
                    case "shrink" if len(self.folder.mails) > 1:
                        uids = list(self.folder.mails)[1:]
                        self.renumber(*uids, uid_validity=self.folder.uid_validity)
                self.scan()
            there = {words[mail] for mail in self.folder.mails.values()}
            self.assertEqual(len(set(acked)), len(acked), "acked twice")
            self.assertEqual(sorted(self.words()), sorted(there - set(acked)), "lost, or offered twice")

        check()
