"""The rules of questions as functions: what ends, what is an answer, who stands where, who is there."""

from datetime import UTC, datetime, timedelta

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.choice import Option
from mailgateway.domain.decision_log import Act, Broken, Chain, LogEntry
from mailgateway.domain.presence import Activity, Heard, Presence, Waits, activity, presence
from mailgateway.domain.question import (
    MOVES,
    OTHER,
    AnswerMode,
    Content,
    QuestionEvent,
    QuestionStatus,
    advance,
    misplaced,
    nudge,
    wrong_selection,
)
from mailgateway.errors import Refusal
from mailgateway.flows.question_cursors import LONGEST, cursor_of, position_of
from mailgateway.ids import MachineId, QuestionId, SessionId

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OPTIONS = (Option("a", "A"), Option("b", "B"), Option("c", "C"))
ENDS = (
    QuestionStatus.ANSWERED,
    QuestionStatus.CANCELLED,
    QuestionStatus.EXPIRED,
    QuestionStatus.SUPERSEDED,
)


class MoveTests(SynchronousTestCase):
    """The table of moves."""

    @settings(max_examples=100)
    @given(st.lists(st.sampled_from(QuestionEvent), max_size=8))
    def test_one_end_and_nothing_after_it(self, events: list[QuestionEvent]) -> None:
        """Whatever happens in whatever order: the first end is the last move."""
        status, ended = QuestionStatus.RESERVED, False
        for event in events:
            new = advance(status, event)
            if ended:
                self.assertIsNone(new)
            status = new or status
            ended = status in ENDS
        self.assertEqual({to for (start, _), to in MOVES.items() if start in ENDS}, set())


class SelectionTests(SynchronousTestCase):
    """What is an answer."""

    @settings(max_examples=100)
    @given(
        st.lists(st.sampled_from(["a", "b", "c", OTHER, "d", "A", ""]), max_size=4),
        st.sampled_from(AnswerMode),
    )
    def test_only_offered_values_each_once(self, values: list[str], mode: AnswerMode) -> None:
        """As many as the mode takes."""
        allowed = bool(values) and len(set(values)) == len(values) and set(values) <= {"a", "b", "c", OTHER}
        if mode is AnswerMode.SINGLE:
            allowed = allowed and len(values) == 1
        self.assertEqual(wrong_selection(OPTIONS, mode, values) is None, allowed)

    def test_a_digest_is_of_every_field(self) -> None:
        """Two texts that differ anywhere are told apart."""
        one = Content("p", "a", OPTIONS)
        others = [
            evolve(one, prompt="x"),
            evolve(one, ambiguity="x"),
            evolve(one, options=OPTIONS[:2]),
            evolve(one, options=(evolve(OPTIONS[0], impact="x"), *OPTIONS[1:])),
            evolve(one, mode=AnswerMode.MULTI),
        ]
        self.assertEqual(len({each.digest() for each in [one, *others]}), 6)
        self.assertNotEqual(one.digest(), one.digest("parent"))


class PlaceTests(SynchronousTestCase):
    """Families."""

    def test_bounds(self) -> None:
        """Four levels, five children; a hint one step before."""
        self.assertIsNone(misplaced(3, 1, 4))
        self.assertEqual(misplaced(4, 1, 0), "depth_limit_reached")
        self.assertEqual(misplaced(2, 3, 0), "depth_limit_reached")
        self.assertEqual(misplaced(1, 1, 5), "child_limit_reached")
        self.assertIsNone(nudge(2, 3))
        self.assertIsNotNone(nudge(2, 4))
        self.assertIsNotNone(nudge(4, 1))


def entries(number: int) -> list[LogEntry]:
    """A chain of so many entries."""
    made: list[LogEntry] = []
    for each in range(1, number + 1):
        entry = LogEntry(
            machine_id=MachineId("m"),
            number=each,
            question_id=QuestionId("q"),
            act=Act.REVISED,
            revision=each,
            owner_revision=1,
            by="s",
            door="session",
            at=NOW,
            details={"x": "ü"},
        )
        made.append(entry.chained(made[-1].digest if made else ""))
    return made


class ChainTests(SynchronousTestCase):
    """The chain of digests."""

    @settings(max_examples=60)
    @given(st.integers(1, 8), st.data())
    def test_whatever_is_touched_is_found(self, number: int, data: st.DataObject) -> None:
        """An entry changed, left out, told twice or moved; found where it is, whole or page by page."""
        made = entries(number)
        self.assertEqual(Chain().follow(made), Chain(number, made[-1].digest))
        place = data.draw(st.integers(0, number - 1))
        spoiled = list(made)
        match data.draw(st.sampled_from(["by", "leave out", "twice", "digest"])):
            case "by":
                spoiled[place] = evolve(made[place], by="mallory")
            case "digest":
                spoiled[place] = evolve(made[place], digest="0" * 64)
            case "twice":
                spoiled.insert(place, made[place])
                place += 1
            case _:
                del spoiled[place]
                if place == number - 1:
                    return  # the end was cut off: only who has noted it can tell
        found = Chain().follow(spoiled)
        assert isinstance(found, Broken)
        self.assertEqual(found.number, place + 1)


class CursorTests(SynchronousTestCase):
    """Cursors."""

    @settings(max_examples=60)
    @given(st.integers(0, 2), st.integers(0, 2**60), st.text(max_size=40))
    def test_a_cursor_comes_back(self, urgency: int, at: int, name: str) -> None:
        """Of its own query, short; of another one, never."""
        cursor = cursor_of(("a", 1), (urgency, at, name))
        self.assertLessEqual(len(cursor), LONGEST)
        self.assertEqual(position_of(("a", 1), cursor, int, int, str), (urgency, at, name))
        self.assertRaises(Refusal, position_of, ("a", 2), cursor, int, int, str)
        self.assertRaises(Refusal, position_of, ("a", 1), cursor, int)

    @settings(max_examples=100)
    @given(st.text(max_size=60))
    def test_garbage_is_refused_as_such(self, garbage: str) -> None:
        """In no other way."""
        self.assertRaises(Refusal, position_of, (), garbage, int)


class PresenceTests(SynchronousTestCase):
    """Who is there, and what they do."""

    heard = Heard(pings=True, last_ping_at=NOW, left_at=None, state="working", state_at=NOW)

    def test_silence_is_counted_from_the_last_ping(self) -> None:
        """Live, stale at 30 s, offline at 120 s, and at once with a bye; unknown where nobody pings."""
        for seconds, expected in (
            (0, Presence.LIVE),
            (29.9, Presence.LIVE),
            (30, Presence.STALE),
            (119.9, Presence.STALE),
            (120, Presence.OFFLINE),
        ):
            self.assertEqual(presence(self.heard, NOW + timedelta(seconds=seconds)), expected)
        self.assertEqual(presence(evolve(self.heard, left_at=NOW), NOW), Presence.OFFLINE)
        hooked = evolve(self.heard, pings=False)
        self.assertEqual(presence(hooked, NOW + timedelta(days=1)), Presence.UNKNOWN)
        self.assertEqual(presence(None, NOW), Presence.OFFLINE)

    def test_idle_has_to_last(self) -> None:
        """Between two turns a session is idle for a moment; who waits is blocked, whatever it told."""
        idle = evolve(self.heard, state="idle")
        self.assertEqual(activity(idle, NOW + timedelta(milliseconds=749), waits=False), Activity.WORKING)
        self.assertEqual(activity(idle, NOW + timedelta(milliseconds=750), waits=False), Activity.IDLE)
        self.assertEqual(activity(idle, NOW + timedelta(hours=1), waits=True), Activity.BLOCKED)
        self.assertEqual(activity(evolve(idle, state=""), NOW, waits=False), Activity.UNKNOWN)
        self.assertEqual(activity(evolve(idle, state="blocked"), NOW, waits=False), Activity.BLOCKED)

    @settings(max_examples=60)
    @given(st.lists(st.booleans(), max_size=12))
    def test_overlapping_waits_are_counted(self, steps: list[bool]) -> None:
        """The first begins it, the last ends it, and one end too many changes nothing."""
        waits, session, number = Waits(), SessionId("s"), 0
        for begins in steps:
            if begins:
                number += 1
                self.assertEqual(waits.begin(session), number == 1)
            else:
                self.assertEqual(waits.end(session), number == 1)
                number = max(0, number - 1)
            self.assertEqual(session in waits, number > 0)
