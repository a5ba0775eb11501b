"""The story of the demo: who did what, one line each, with the seconds since it began."""

import json
import textwrap
from collections.abc import Callable

from attrs import define, field


@define(eq=False)
class Story:
    """Tells each step at once; ``say`` takes one line, ``clock`` tells seconds.

    For people, what is longer than ``width`` columns goes on in the next line, below its beginning; 0 leaves
    every step on one line.
    """

    say: Callable[[str], None]
    clock: Callable[[], float]
    as_json: bool = False
    width: int = 0
    _began: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._began = self.clock()

    def heading(self, text: str) -> None:
        """Tell what comes; programs do not need it."""
        if not self.as_json:
            self._say_wrapped(text, indent=0)
            self.say("")

    def tell(self, who: str, what: str) -> None:
        """Tell one step."""
        seconds = self.clock() - self._began
        if self.as_json:
            self.say(json.dumps({"seconds": round(seconds, 3), "who": who, "what": what}))
        else:
            start = f"{seconds:7.2f} s  {who:<12} "
            self._say_wrapped(start + what, indent=len(start))

    def end(self, *, done: bool, text: str, details: str = "") -> None:
        """Tell how it ended; ``details`` is shown indented."""
        if self.as_json:
            self.say(json.dumps({"done": done, "message": text, "details": details}))
            return
        self.say("")
        self.say(text)
        for line in details.splitlines():
            self.say(f"    {line}")

    def _say_wrapped(self, text: str, *, indent: int) -> None:
        if len(text) <= self.width or self.width <= indent + 20:
            self.say(text)
            return
        # Only what follows the start is wrapped: the columns of the start are made of spaces.
        lines = textwrap.wrap(
            text[indent:], self.width - indent, break_long_words=False, break_on_hyphens=False
        )
        for number, line in enumerate(lines):
            self.say((text[:indent] if number == 0 else " " * indent) + line)
