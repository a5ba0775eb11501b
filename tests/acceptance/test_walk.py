"""The walks of ``docs/walk.md``, taken in this process, with every module on the way noted."""

import re
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

from attrs import define
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

import mailgateway
from mailgateway.demo.play import Demo
from mailgateway.demo.service import Service, settings_text
from mailgateway.demo.story import Story
from mailgateway.service import Gateway, Options, make_service

PACKAGE = Path(mailgateway.__file__).parent
WALK = PACKAGE.parent / "docs" / "walk.md"


def walks() -> list[list[str]]:
    """The modules of each walk, in the order of the document."""
    sections = WALK.read_text(encoding="utf-8").split("\n## ")[1:]
    return [re.findall(r"^\| `([a-z_/]+)` \|", section, re.MULTILINE) for section in sections]


@define(eq=False)
class ServiceInside(Service):
    """The demo's service, not as a child but in this process."""

    gateway: Gateway | None = None

    def start(self, settings: Mapping[str, Mapping[str, object]]) -> "Deferred[str]":
        """Make it as twistd does."""
        path = self.folder / "mailgateway.toml"
        path.write_text(settings_text(settings), encoding="utf-8")
        options = Options()
        options.parseOptions(["--config", str(path)])
        made = make_service(options)
        assert isinstance(made, Gateway)
        self.gateway = made
        self.gateway.startService()
        return Deferred()

    async def stop(self) -> None:
        """End it as twistd does."""
        if self.gateway is not None:
            await self.gateway.stopService()


class Footprints:
    """Which modules of the package were passed, on whatever thread."""

    def __init__(self) -> None:
        self.passed: set[str] = set()

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        """Called by the interpreter at every call."""
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            # module bodies run when they are imported; that is not passing them
            if name.startswith("mailgateway.") and frame.f_code.co_name != "<module>":
                self.passed.add(name.removeprefix("mailgateway.").replace(".", "/"))

    def __enter__(self) -> Self:
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


class WalkTests(TestCase):
    """The document tells the truth."""

    timeout = 60

    def setUp(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    def test_no_module_stands_twice_in_a_walk(self) -> None:
        """A walk is a way, and comes by each module once."""
        for walk in walks():
            self.assertEqual(sorted(set(walk)), sorted(walk))
            self.assertGreater(len(walk), 20)

    def test_every_module_on_the_way_is_there(self) -> None:
        """A renamed module is renamed in the document, too."""
        missing = [name for walk in walks() for name in walk if not (PACKAGE / f"{name}.py").exists()]
        self.assertEqual(missing, [])

    async def test_a_question_and_its_reply_pass_every_module_on_the_way(self) -> None:
        """The main job, from the session's request to the flag on the mail."""
        from twisted.internet import reactor  # noqa: PLC0415 (trial has chosen it by now)

        with tempfile.TemporaryDirectory() as folder:
            clock: Any = reactor
            demo = Demo(reactor, Path(folder), Story(lambda _: None, clock.seconds))
            demo.service = ServiceInside(reactor, Path(folder), demo.service.port)
            with Footprints() as footprints:
                try:
                    await demo.run()
                finally:
                    await demo.close()
        not_passed = {name for walk in walks() for name in walk} - footprints.passed
        self.assertEqual(not_passed, set())
