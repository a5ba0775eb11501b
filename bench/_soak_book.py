"""What a soak knows: every letter that is owed to a session, and what came of it.  The oracle asks here.

Safe for many threads; it forgets what is settled, so it does not grow with the days.
"""

import re
import threading
from collections import Counter
from collections.abc import Mapping

from _soak_mail import Asked, Letter
from attrs import define, field

_ANSWER = re.compile(r"\banswer (\d+)\b")
_OWED = frozenset({"reply", "big", "bounce"})
_MAYBE = frozenset({"broken"})
MOST_VIOLATIONS = 50


@define
class _Owed:
    """One letter on its way."""

    letter: Letter
    envelope: str = ""
    acking: bool = False
    acked: bool = False


@define(eq=False)
class Book:
    """The letters, the mails that sessions sent, the copies that their recipients got."""

    figures: Counter[str] = field(factory=Counter)
    violations: list[str] = field(factory=list)
    lock: threading.Lock = field(factory=threading.Lock)
    clearing: threading.Lock = field(factory=threading.Lock)
    """Held by whoever deletes from the mailbox, or gives it other numbers."""
    _open: dict[int, _Owed] = field(factory=dict)
    _answerable: dict[str, tuple[Asked, int]] = field(factory=dict)
    _copies: Counter[str] = field(factory=Counter)
    _bounced: dict[str, None] = field(factory=dict)

    def violate(self, what: str) -> None:
        """Note that something happened that never may."""
        self.figures["violations"] += 1
        if len(self.violations) < MOST_VIOLATIONS:
            self.violations.append(what)

    # --- mails of the sessions

    def can_be_answered(self, asked: Asked, times: int) -> None:
        """A session sent a mail that is to be answered so many times."""
        with self.lock:
            self._answerable[asked.message_id] = (asked, times)

    def has_left(self, asked: Asked) -> bool:
        """Whether the recipient's server has accepted this mail."""
        with self.lock:
            return asked.message_id in self._copies

    def first_bounce(self, asked: Asked) -> bool:
        """Whether nobody has reported yet that this mail came back: only the first report is told."""
        with self.lock:
            known = asked.message_id in self._bounced
            self._bounced[asked.message_id] = None
            if len(self._bounced) > 20_000:
                self._bounced = dict.fromkeys(list(self._bounced)[10_000:])
            return not known

    def answerable(self) -> list[Asked]:
        """The mails that want an answer yet."""
        with self.lock:
            return [asked for asked, _ in self._answerable.values()]

    def forget_session(self, session: str) -> None:
        """Nobody answers the session's mails any more."""
        with self.lock:
            for asked, _ in tuple(self._answerable.values()):
                if asked.session == session:
                    del self._answerable[asked.message_id]

    def copy_came(self, message_id: str) -> None:
        """The recipient's server accepted a copy of a mail."""
        with self.lock:
            self._copies[message_id] += 1
            self.figures["mails that left"] += 1
            if self._copies[message_id] > 1:
                self.figures["second copies"] += 1
            if len(self._copies) > 20_000:  # copies come within minutes of each other
                self._copies = Counter(dict(list(self._copies.items())[10_000:]))

    # --- letters to the sessions

    def posted(self, letter: Letter) -> None:
        """A letter is about to be delivered to the mailbox."""
        with self.lock:
            self.figures[f"posted {letter.kind}"] += 1
            self._open[letter.number] = _Owed(letter)
            if letter.asked is None:
                return
            entry = self._answerable.get(letter.asked.message_id)
            if entry is not None and letter.kind in {"reply", "big", "broken"}:
                asked, left = entry
                if left <= 1:
                    del self._answerable[asked.message_id]
                else:
                    self._answerable[asked.message_id] = (asked, left - 1)

    def posted_mails(self) -> int:
        """How many mails were delivered to the mailbox, copies counted."""
        return sum(count for name, count in self.figures.items() if name.startswith("posted"))

    def owed(self, session: str | None = None) -> int:
        """How many letters must still reach a session."""
        with self.lock:
            return sum(
                not owed.acked
                for owed in self._open.values()
                if owed.letter.kind in _OWED
                and (
                    session is None
                    or (owed.letter.asked is not None and owed.letter.asked.session == session)
                )
            )

    def still_owed(self) -> list[str]:
        """Letters that have not arrived, in words."""
        with self.lock:
            return [
                f"{owed.letter.kind} {number} for {owed.letter.asked and owed.letter.asked.session}"
                for number, owed in self._open.items()
                if owed.letter.kind in _OWED and not owed.acked
            ]

    def offered(self, session: str, delivery: Mapping[str, object]) -> int | None:
        """A delivery is offered to a session; the number of the letter that it is, ``None``: a notice."""
        with self.lock:
            number = self._number(session, delivery)
            if number is None:
                return None
            owed = self._open.get(number)
            if owed is None:
                self.violate(f"letter {number} came again after it was settled")
                return number
            if owed.letter.asked is None or owed.letter.kind not in _OWED | _MAYBE:
                self.violate(f"a letter of kind {owed.letter.kind} was delivered")
                return number
            if owed.letter.asked.session != session:
                self.violate(f"letter {number} came to another session")
            if owed.envelope not in {"", delivery["id"]}:
                self.violate(f"letter {number} came as two envelopes")
            if owed.acked:
                self.violate(f"letter {number} was offered after its ack")
            owed.envelope = str(delivery["id"])
            return number

    def _number(self, session: str, delivery: Mapping[str, object]) -> int | None:
        if delivery["kind"] == "notice":
            for number, owed in self._open.items():
                if owed.envelope == delivery["id"]:
                    return number
            for number, owed in self._open.items():
                letter = owed.letter
                if (
                    letter.kind == "bounce"
                    and not owed.envelope
                    and letter.asked is not None
                    and letter.asked.message_id == delivery.get("inReplyTo")
                    and letter.asked.session == session
                ):
                    return number
            self.violate(f"a notice came that nobody caused: {delivery['id']}")
            return None
        found = _ANSWER.search(str(delivery["body"])) or _ANSWER.search(str(delivery.get("quoted", "")))
        if found is None:
            self.figures["unreadable words"] += 1
            return None
        return int(found[1])

    def acking(self, number: int | None) -> None:
        """The ack of a letter is about to be sent."""
        with self.lock:
            if number in self._open:
                self._open[number].acking = True

    def acked(self, number: int | None) -> None:
        """The ack of a letter was answered."""
        with self.lock:
            self.figures["acked"] += 1
            if number in self._open:
                self._open[number].acked = True

    # --- the mailbox

    def may_go(self, number: int, *, seen: bool) -> bool:
        r"""Whether a mail in the mailbox is settled, so that a person may delete it.

        A mail that is ``\Seen`` and was never acked is a violation.
        """
        with self.lock:
            owed = self._open.get(number)
            if owed is None:
                return True
            if seen and owed.letter.kind in _OWED and not owed.acking:
                self.violate(f"letter {number} was \\Seen before its ack")
            if owed.letter.kind in _OWED or (owed.letter.kind in _MAYBE and owed.envelope):
                return owed.acked and seen
            return True

    def gone(self, numbers: set[int]) -> None:
        """Mails were deleted from the mailbox for good; those that are settled are forgotten."""
        with self.lock:
            for number in numbers:
                owed = self._open.get(number)
                if owed is not None and (owed.acked or owed.letter.kind not in _OWED | _MAYBE):
                    del self._open[number]
            newest = max(self._open, default=0)
            for number in [each for each in self._open if each < newest - 5_000]:
                if self._open[number].letter.kind in _MAYBE:
                    del self._open[number]
