"""The story's two forms, and what a failing step says."""

import json
import tomllib
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import ApiRefused
from mailgateway.demo.play import STEP_SECONDS, Demo, StepFailed
from mailgateway.demo.service import CLEANLY, settings_text
from mailgateway.demo.story import Story


class StoryTests(SynchronousTestCase):
    """What is printed."""

    def told(self, *, as_json: bool) -> list[str]:
        """Tell a short story."""
        lines: list[str] = []
        clock = Clock()
        story = Story(lines.append, clock.seconds, as_json)
        clock.advance(1.5)
        story.heading("once")
        story.tell("session", "asks")
        story.end(done=False, text="Failed.", details="one\ntwo")
        return lines

    def test_for_people(self) -> None:
        """One line a step with the time; details are indented."""
        lines = self.told(as_json=False)
        self.assertEqual(
            lines, ["once", "", "   1.50 s  session      asks", "", "Failed.", "    one", "    two"]
        )

    def test_on_a_terminal(self) -> None:
        """What is too wide goes on below its beginning; a narrow terminal wraps by itself."""
        what = "sends a reply, 2,164 bytes with the quoted original, and [mg:f913c9] stays whole"
        for width, rows in ((80, 2), (200, 1), (0, 1), (30, 1)):
            lines: list[str] = []
            Story(lines.append, Clock().seconds, width=width).tell("Robin", what)
            self.assertEqual(len(lines), rows, width)
            self.assertEqual(" ".join(" ".join(lines).split()), f"0.00 s Robin {what}")
            if rows > 1:
                self.assertLessEqual(max(map(len, lines)), width)
                self.assertEqual([line[:24] for line in lines[1:]], [" " * 24])

    def test_for_programs(self) -> None:
        """One JSON object a line, and nothing else."""
        lines = [json.loads(line) for line in self.told(as_json=True)]
        self.assertEqual(
            lines,
            [
                {"seconds": 1.5, "who": "session", "what": "asks"},
                {"done": False, "message": "Failed.", "details": "one\ntwo"},
            ],
        )


class StepTests(SynchronousTestCase):
    """Whatever goes wrong in a step becomes one sentence."""

    def setUp(self) -> None:
        self.clock = Clock()
        lines: list[str] = []
        self.demo = Demo(self.clock, Path(self.mktemp()), Story(lines.append, self.clock.seconds))

    def failing(self, work: Any) -> str:
        """Start a step; the sentence once it has failed."""
        step = Deferred.fromCoroutine(self.demo.step("it did not happen", work))
        self.clock.advance(STEP_SECONDS)
        return str(self.failureResultOf(step, StepFailed).value)

    def test_deadline(self) -> None:
        """What never ends is given up."""

        async def never() -> None:
            await Deferred()

        self.assertEqual(self.failing(never()), f"it did not happen within {STEP_SECONDS} seconds")

    def test_refusal_and_error(self) -> None:
        """A refusal is told with its code, anything else with its name."""

        async def refused() -> None:
            raise ApiRefused("mode_off", "switch it on", 409, {})

        async def broken() -> None:
            raise OSError("no")

        async def wrong() -> None:
            raise StepFailed("other words")

        self.assertEqual(self.failing(refused()), "it did not happen: mode_off: switch it on")
        self.assertEqual(self.failing(broken()), "it did not happen: OSError: no")
        self.assertEqual(self.failing(wrong()), "it did not happen: other words")

    def test_service_ended(self) -> None:
        """When the service has gone, the step ends at once and says so."""

        async def never() -> None:
            await Deferred()

        step = Deferred.fromCoroutine(self.demo.step("it did not happen", never()))
        self.demo.service.how_it_ended = "exit status 1"
        step.cancel()
        self.assertIn("the service ended with exit status 1", str(self.failureResultOf(step).value))

    def test_kept(self) -> None:
        """What is kept running ends on request, and with a sentence when the service has gone."""
        kept = Deferred.fromCoroutine(self.demo.keep())
        self.assertNoResult(kept)
        kept.cancel()
        self.failureResultOf(kept, CancelledError)
        kept = Deferred.fromCoroutine(self.demo.keep())
        self.demo.service.how_it_ended = CLEANLY
        kept.cancel()
        self.assertIsNone(self.successResultOf(kept))
        kept = Deferred.fromCoroutine(self.demo.keep())
        self.demo.service.how_it_ended = "signal 9"
        kept.cancel()
        self.assertEqual(str(self.failureResultOf(kept, StepFailed).value), "the service ended with signal 9")


class SettingsTextTests(SynchronousTestCase):
    """The settings file that the demo writes."""

    def test_it_is_toml(self) -> None:
        """Texts with quotes, numbers, lists and truth values survive."""
        values = {"a": {"text": 'with "quotes"', "number": 1}, "a.b": {"list": ["x"], "flag": True}}
        read = tomllib.loads(settings_text(values))
        self.assertEqual(read, {"a": {**values["a"], "b": values["a.b"]}})
