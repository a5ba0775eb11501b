"""The story of the demo: who did what, one line each, with the seconds since it began."""

import json
from collections.abc import Callable

from attrs import define, field


@define(eq=False)
class Story:
    """Tells each step at once; ``say`` takes one line, ``clock`` tells seconds."""

    say: Callable[[str], None]
    clock: Callable[[], float]
    as_json: bool = False
    _began: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._began = self.clock()

    def heading(self, text: str) -> None:
        """Tell what comes; programs do not need it."""
        if not self.as_json:
            self.say(text)
            self.say("")

    def tell(self, who: str, what: str) -> None:
        """Tell one step."""
        seconds = self.clock() - self._began
        if self.as_json:
            self.say(json.dumps({"seconds": round(seconds, 3), "who": who, "what": what}))
        else:
            self.say(f"{seconds:7.2f} s  {who:<12} {what}")

    def end(self, *, done: bool, text: str, details: str = "") -> None:
        """Tell how it ended; ``details`` is shown indented."""
        if self.as_json:
            self.say(json.dumps({"done": done, "message": text, "details": details}))
            return
        self.say("")
        self.say(text)
        for line in details.splitlines():
            self.say(f"    {line}")
