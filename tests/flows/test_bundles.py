"""What leaves together: bundles of a session, the order in a digest, and that each mail has one fate."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.attention import Attention, HeldFor, Hold
from mailgateway.domain.outbox import MailKind
from mailgateway.flows import digest
from mailgateway.ids import OutboxId, RouteId, SessionId
from mailgateway.store.held_mails import HeldMail
from tests.flows.outbound import S1, S2
from tests.flows.test_digest import NIGHT, HeldTestCase

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


class BundleTests(HeldTestCase):
    """Notifications of one session within a moment."""

    attention = Attention(bundle=timedelta(seconds=60))

    def test_they_leave_as_one(self) -> None:
        """A minute after the first, whatever came meanwhile; each session by itself."""
        first = self.submit(subject="One")
        self.gateway.later(seconds=50)
        second = self.submit(subject="Two")
        other = self.submit(subject="Three", session=S2)
        self.assertEqual(first.held_until, second.held_until)
        self.assertEqual(self.look(), ())
        self.gateway.later(seconds=10)
        (together,) = self.look()
        self.assertEqual(self.row(first).carried_by, together)
        self.assertEqual(self.row(second).carried_by, together)
        self.gateway.later(seconds=50)
        self.assertEqual(self.look(), (other.outbox_id,))

    def test_others_are_not_held(self) -> None:
        """Questions and settled turns leave at once."""
        for kind in ("decision", "settle"):
            self.assertIsNone(self.submit(kind).held_until)

    def test_the_clock_is_set_back(self) -> None:
        """Nothing waits for a time that is far away."""
        self.submit(subject="One")
        self.gateway.later(days=-30)
        self.assertEqual(len(self.look()), 1)


class ManySessionsTests(HeldTestCase):
    """The order in a digest."""

    def test_sessions_stay_together(self) -> None:
        """In the order in which they spoke first, each with all its words in their order."""
        names = [SessionId(f"session-{number}") for number in range(3)]
        for number, turn in enumerate((0, 1, 0, 2, 1, 0)):
            self.submit(subject=f"Word {number}.", session=names[turn])
        self.go_to("07:00")
        (together,) = self.look()
        text = self.text(together)
        places = [text.index(f"Word {number}.") for number in (0, 2, 5, 1, 4, 3)]
        self.assertEqual(places, sorted(places))


_HELD = st.builds(
    HeldMail,
    id=st.uuids().map(lambda each: OutboxId(str(each))),
    kind=st.sampled_from([MailKind.NOTIFICATION, MailKind.SETTLE, MailKind.DECISION]),
    session_id=st.sampled_from([S1, S2, SessionId("session-three")]),
    route_id=st.just(RouteId("0000ff")),
    recipient=st.sampled_from(["robin@example.org", "sam@example.org"]),
    hold=st.builds(
        Hold,
        st.sampled_from(HeldFor),
        st.integers(-120, 120).map(lambda minutes: NOON + timedelta(minutes=minutes)),
    ),
    alone=st.booleans(),
    subject=st.just("s"),
    words=st.sampled_from(["", "x" * 10, "x" * (digest.WORDS_IN_ONE // 2), "x" * (digest.WORDS_IN_ONE + 1)]),
    created_at=st.just(NOON),
)


class SortedOutTests(SynchronousTestCase):
    """What is to be done with whatever is held back."""

    @given(
        st.lists(_HELD, max_size=70),
        st.sampled_from([12, 23]),
        st.sampled_from([timedelta(0), timedelta(hours=1)]),
    )
    @settings(max_examples=60)
    def test_each_has_one_fate(self, waiting: list[HeldMail], hour: int, bundle: timedelta) -> None:
        """Held on, alone, or with others; parcels are of one person, in order, and fit into a mail."""
        now = NOON.replace(hour=hour)
        attention = Attention(quiet=NIGHT, bundle=bundle)
        looked = digest.sorted_out(waiting, attention, now)
        leaving = [*looked.alone, *(held for parcel in looked.parcels for held in parcel)]
        staying = [held for held in waiting if attention.still(held.kind, held.hold, now) is not None]
        self.assertEqual(
            sorted(held.id for held in [*leaving, *staying]), sorted(held.id for held in waiting)
        )
        self.assertLessEqual({held.id for held, _ in looked.changed}, {held.id for held in staying})
        place = {held.id: number for number, held in enumerate(waiting)}
        for parcel in looked.parcels:
            self.assertTrue(2 <= len(parcel) <= digest.MOST_IN_ONE)
            self.assertLessEqual(sum(len(held.words) for held in parcel), digest.WORDS_IN_ONE)
            self.assertEqual(len({held.recipient for held in parcel}), 1)
            self.assertFalse(any(held.alone for held in parcel))
            for session in {held.session_id for held in parcel}:
                places = [place[held.id] for held in parcel if held.session_id == session]
                self.assertEqual(places, sorted(places))
            if any(held.hold.why is HeldFor.BUNDLE for held in parcel):
                self.assertEqual(len({held.session_id for held in parcel}), 1)
