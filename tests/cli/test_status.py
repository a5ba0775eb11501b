"""What ``status`` advises, state by state."""

from datetime import UTC, datetime
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.status import ADVICE, status_lines
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

    def test_each_state_with_advice_is_one_of_the_service(self) -> None:
        """The verbs know the service's states by their words alone."""
        self.assertEqual(set(ADVICE), {AccountState.BACKING_OFF, AccountState.REFUSED})
