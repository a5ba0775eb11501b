"""What ``status`` advises, state by state."""

from datetime import UTC, datetime
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.report import printable
from mailgateway.cli.status import ADVICE, FATES_SHOWN, fate_lines, status_lines
from mailgateway.client.answers import Fate
from mailgateway.domain.account import AccountState
from tests.client.stand_in import HEALTH

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def status(state: str, again: str | None) -> str:
    """What is said of a service whose one account is in a state."""
    account = {"state": state, "since": "2026-11-30T11:59:00Z", "nextAttemptAt": again}
    health: Any = {**HEALTH, "accounts": [account]}
    return "\n".join(status_lines(health, ["main"], "here", NOON))


class AdviceTests(SynchronousTestCase):
    """What a person should do."""

    def test_after_the_first_refusal(self) -> None:
        """The last try is still to come: it says when, and nothing of having stopped."""
        text = status(AccountState.REFUSED, "2026-11-30T12:09:00Z")
        self.assertIn("tries it once more, in 9 min (2026-11-30 12:09 UTC)", text)
        self.assertIn("`mailgateway reload`", text)
        self.assertNotIn("twice", text)

    def test_after_the_last_refusal(self) -> None:
        """Nothing happens without the operator."""
        text = status(AccountState.REFUSED, None)
        self.assertIn("refused twice. mailgateway has stopped trying", text)
        self.assertIn("`mailgateway reload`", text)

    def test_what_was_learned_of_a_server(self) -> None:
        """It is said of the account that it is about."""
        account = {"state": "watching", "since": None, "nextAttemptAt": None, "remarks": ["it is deaf"]}
        health: Any = {**HEALTH, "accounts": [account]}
        lines = status_lines(health, ["main"], "here", NOON)
        self.assertIn("Account main: it is deaf.", lines)

    def test_where_nothing_more_is_said(self) -> None:
        """A loop of answers, maybe, is one alert."""
        self.assertNotIn("says nothing more", status(AccountState.WATCHING, None))
        health: Any = {**HEALTH, "accounts": [], "muted": 2}
        self.assertIn("says nothing more there for two hours", "\n".join(status_lines(health, [], "x", NOON)))

    def test_what_is_held_back(self) -> None:
        """How many mails, and until when; and summaries that are not mailed at all."""
        self.assertNotIn("Held back", status(AccountState.WATCHING, None))
        held: Any = {**HEALTH, "accounts": [], "held": 3, "heldUntil": "2026-11-30T14:00:00Z", "withheld": 1}
        text = "\n".join(status_lines(held, [], "x", NOON))
        self.assertRegex(
            text, r"Held back +3 mails wait for a better hour, the first leaves in 2 h \(2026-11-30"
        )
        self.assertIn("A session's summary was not mailed", text)

    def test_each_state_with_advice_is_one_of_the_service(self) -> None:
        """The verbs know the service's states by their words alone."""
        self.assertEqual(set(ADVICE), {AccountState.BACKING_OFF, AccountState.REFUSED})


class FateTests(SynchronousTestCase):
    """What became of people's mail."""

    def fate(self, **fields: str) -> Fate:
        """One fate."""
        usual = {"verdict": "delivered", "step": "acked", "reason": "", "subject": "Re: Which?"}
        return {"receivedAt": "2026-11-30T11:59:00Z", "from": "robin@example.org", **usual, **fields}  # type: ignore[typeddict-item]  # put together

    def test_each_says_how_far_it_came(self) -> None:
        """And why no further, and whether its sender was told."""
        text = "\n".join(
            fate_lines(
                [
                    self.fate(),
                    self.fate(verdict="empty", step="routed", reason="no words", replyId="o-1"),
                    self.fate(step="delivered"),
                ],
                NOON,
            )
        )
        self.assertIn("delivered (acked)", text)
        self.assertIn("empty (routed)", text)
        self.assertIn("no words, the sender was told", text)
        self.assertNotIn("delivered (delivered)", text)

    def test_it_is_bounded_and_steers_no_terminal(self) -> None:
        """The newest few; a subject is a stranger's."""
        lines = fate_lines([self.fate(subject="\x1b[2Jx" * 50) for _ in range(FATES_SHOWN + 3)], NOON)
        self.assertNotIn("\x1b", "".join(lines))
        self.assertEqual(lines[-1], "... and 3 more")
        self.assertEqual(fate_lines([], NOON), [])

    def test_marks_that_turn_the_direction_are_shown(self) -> None:
        """So are others that nobody sees; letters of any script, joiners and line ends stay as they are."""
        turned = "\u202ecod\u2066x\u2069\u200b\u061c\ud800"
        [_, _, line] = fate_lines([self.fate(subject=turned)], NOON)
        self.assertIn(r"\u202ecod\u2066x\u2069\u200b\u061c\ud800", line)
        plain = "caf\u00e9\u00a0\u05e9\u05dc\u05d5\u05dd \U0001f469\u200d\U0001f4bb\n\tx"
        self.assertEqual(printable(plain), plain)
        self.assertEqual(printable("a\x1b[2J\x07\x9bb"), "a[2Jb")
