"""Runs the demo in a folder of its own, and leaves nothing behind.

Whatever happens, also on Ctrl-C, the service is stopped by its process and the folder removed.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from mailgateway.demo.play import IDLE_EXIT_SECONDS, Demo, StepFailed
from mailgateway.demo.story import Story


async def _play(reactor: Any, story: Story, *, keep: bool) -> int:
    """Play the demo in a folder of its own; the exit code."""
    with tempfile.TemporaryDirectory(prefix="mailgateway-demo-", ignore_cleanup_errors=True) as folder:
        demo = Demo(reactor, Path(folder), story, 0 if keep else IDLE_EXIT_SECONDS)
        story.heading(
            "mailgateway demo: a session asks, a person replies by mail, the session gets the words."
        )
        try:
            await demo.run()
            if keep:
                story.end(done=True, text="It keeps running until Ctrl-C.", details=demo.where_to_look())
                await demo.keep()
            story.end(done=True, text="Done: asked, answered by mail, claimed, acked, \\Seen.")
            return 0
        except StepFailed as failed:
            tail = demo.service.log_tail()
            story.end(done=False, text=f"Failed: {failed}.", details=f"The end of the service's log:\n{tail}")
            return 1
        finally:
            await demo.close()


def main(*, keep: bool = False, json: bool = False) -> int:
    """Run the demo to its end and return its exit code: 0 when the story was told to its end.

    ``keep`` leaves everything running until Ctrl-C and says where to look; ``json`` tells each step as one
    JSON object a line.  It runs the global reactor, so it works once in a process.
    """
    from twisted.internet import reactor as global_reactor  # noqa: PLC0415 - nobody else may choose it for us

    reactor: Any = global_reactor

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    codes: list[int] = []
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    story = Story(say, reactor.seconds, json, width)
    playing: list[Deferred[Any]] = []

    def broken(failure: Failure) -> None:
        story.end(done=False, text=f"Failed: {failure.getErrorMessage()}.")
        codes.append(1)

    def begin() -> None:
        run = Deferred.fromCoroutine(_play(reactor, story, keep=keep))
        run.addCallback(codes.append)
        run.addErrback(lambda failure: failure.trap(CancelledError))
        run.addErrback(broken)
        playing.append(run)
        run.addBoth(lambda _: reactor.callLater(0, _stop, reactor))

    def cancel() -> Deferred[Any] | None:
        """Let a running demo clean up before the reactor stops."""
        if not playing or playing[0].called:
            return None
        over: Deferred[None] = Deferred()
        playing[0].addBoth(lambda _: over.callback(None))
        playing[0].cancel()
        return over

    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", cancel)
    reactor.run()
    if codes:
        return codes[0]
    return 0 if keep else 1


def _stop(reactor: Any) -> None:
    """Stop the reactor unless it is stopping already."""
    if reactor.running:
        reactor.stop()
