"""Waiting for a delivery: deadlines, restarts of the service, and what belongs to others."""

from collections.abc import Callable
from typing import Any, cast

from attrs import Factory, define
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.waiting import PATIENCE_SECONDS, next_delivery
from mailgateway.client import ApiRefused, Client, ServiceUnreachable, WrongService
from mailgateway.client.answers import Delivery

Step = list[str] | Exception


@define(eq=False)
class Script:
    """A client whose polls follow a script; the last step repeats.  Its clock goes on by polls and pauses."""

    steps: list[Step]
    taken: dict[str, str] = Factory(dict)
    now: float = 0.0
    pings: int = 0
    pauses: list[float] = Factory(list)

    def ping(self, *_: str) -> None:
        """Count the signs of life."""
        self.pings += 1

    def pending(self, session: str, *, wait: float) -> list[dict[str, str]]:
        """Follow the script; an empty poll takes its whole time."""
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        if not step:
            self.now += wait
        return [{"id": name, "sessionId": session} for name in step]

    def claim(self, delivery: str, instance: str) -> dict[str, str]:
        """Claim what nobody has."""
        if delivery in self.taken:
            raise ApiRefused(self.taken[delivery], "No.", 409, {})
        return {"id": delivery, "by": instance}

    def sleep(self, seconds: float) -> None:
        """Let the time go on."""
        self.pauses.append(seconds)
        self.now += seconds

    def wait(self, seconds: float, wanted: Callable[[Delivery], bool] = lambda _: True) -> Delivery | None:
        """Wait as a verb does."""
        return next_delivery(
            cast("Client", self),
            "s",
            "i",
            wanted=wanted,
            seconds=seconds,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def identifier(delivery: Any) -> Any:
    """Return the id of what was claimed, or ``None``."""
    return delivery and delivery["id"]


class WaitingTests(SynchronousTestCase):
    """``next_delivery``."""

    def test_the_first_that_is_wanted(self) -> None:
        """Others are left alone, and the poll is repeated with a pause, not in a spin."""
        script = Script([["a"], ["a", "b"]])
        self.assertEqual(identifier(script.wait(60, lambda delivery: delivery["id"] == "b")), "b")
        self.assertEqual(script.pauses, [1.0])

    def test_the_deadline(self) -> None:
        """Nothing within the time is ``None``, whether polls wait or come back at once; zero looks once."""
        nothing: list[Step] = [[]]
        of_others: list[Step] = [["theirs"]]
        for steps in (nothing, of_others):
            script = Script(steps, taken={"theirs": "already_claimed"})
            self.assertIsNone(script.wait(30))
            self.assertEqual(script.now, 30)
        script = Script([["a"]])
        self.assertEqual(identifier(script.wait(0)), "a")

    def test_a_restart_of_the_service(self) -> None:
        """While the service is away for a moment, waiting goes on; after a minute it is given up."""
        gone = ServiceUnreachable("gone")
        self.assertEqual(identifier(Script([gone, gone, ["a"]]).wait(60)), "a")
        script = Script([[], gone])
        self.assertRaises(ServiceUnreachable, script.wait, 3600)
        self.assertLess(script.now, PATIENCE_SECONDS + 15)

    def test_what_is_not_a_matter_of_waiting(self) -> None:
        """Another service, or a refusal that will not change, ends it at once."""
        self.assertRaises(WrongService, Script([WrongService("other")]).wait, 60)
        script = Script([["a"]], taken={"a": "not_yours"})
        self.assertEqual(self.assertRaises(ApiRefused, script.wait, 60).code, "not_yours")

    def test_the_session_counts_as_live(self) -> None:
        """A ping before every poll, at least every ten seconds."""
        script = Script([[]])
        script.wait(60)
        self.assertGreaterEqual(script.pings, 5)
