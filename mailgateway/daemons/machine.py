"""The machine of one watched folder: what each event makes of each state.

Policy.  One attempt at a time.  A connection is given up at the first failure and a new one made after a
delay that depends on the class of the failure (``domain.reconnect``).  A refused credential is not tried
again before its time, or before the operator acts.  A server that asks for patience in the middle of its
work gets it, on the connection that there is.  After the machine's sleep no connection is believed in, and
nobody waits for a network that may be another one by now.  One scan at a time: news that come during a scan
lead to a follow-up that the scan itself makes (``Line.catch_up``).  ``docs/watcher.dot`` is drawn from here.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache

from automat import TypeMachineBuilder

from mailgateway.daemons.watching import (
    IMPATIENT,
    Attempt,
    Busy,
    Core,
    Line,
    Resting,
    Waiting,
    Watching,
    attempt,
    back_off,
    catch_up,
    hold,
    idle,
    pause,
    poll,
    prepare,
)
from mailgateway.errors import MailgatewayError


def watching_machine() -> TypeMachineBuilder[Watching, Core]:
    """All states and transitions; ``build()`` makes the machine."""
    builder = TypeMachineBuilder(Watching, Core)

    stopped = builder.state("stopped")
    connecting = builder.state("connecting", attempt)
    preparing = builder.state("preparing", prepare)
    catching_up = builder.state("catching up", catch_up)
    idling = builder.state("idling", idle)
    polling = builder.state("polling", poll)
    pausing = builder.state("pausing", pause)
    backing_off = builder.state("backing off", back_off)
    refused = builder.state("refused", hold)

    stopped.upon(Watching.start).to(connecting).returns(None)
    stopped.upon(Watching.stop).loop().returns(None)
    connecting.upon(Watching.connected).to(preparing).returns(None)
    connecting.upon(Watching.lost).to(backing_off).returns(None)
    connecting.upon(Watching.refused).to(refused).returns(None)
    connecting.upon(Watching.stop).to(stopped)(_abandon)
    preparing.upon(Watching.prepared).to(catching_up).returns(None)
    catching_up.upon(Watching.caught_up).to(idling).returns(None)
    catching_up.upon(Watching.caught_up_unannounced).to(polling).returns(None)

    catching_up.upon(Watching.paused).to(pausing).returns(None)

    for resting in (idling, polling):
        resting.upon(Watching.news).to(catching_up)(_rise)
        resting.upon(Watching.nudge).loop()(_pass_on)
    for event in (Watching.news, Watching.nudge):  # there is more to do already, when the time has come
        pausing.upon(event).loop().returns(None)
    for still in (idling, polling, pausing):
        still.upon(Watching.renew).to(catching_up)(_rise)
        still.upon(Watching.woke).to(connecting)(_rise_and_cut)
        still.upon(Watching.lost).to(backing_off)(_rise_and_drop)
        still.upon(Watching.refused).to(refused)(_rise_and_give_up)
        still.upon(Watching.stop).to(stopped)(_rise_and_part)

    for busy in (preparing, catching_up):
        busy.upon(Watching.lost).to(backing_off)(_drop)
        busy.upon(Watching.refused).to(refused)(_give_up)
        busy.upon(Watching.stop).to(stopped)(_part)
        busy.upon(Watching.woke).to(connecting)(_cut)
        busy.upon(Watching.news).loop().returns(None)  # the scan that is to come, or goes on, sees it

    connecting.upon(Watching.woke).loop().returns(None)  # its deadline has passed, too
    backing_off.upon(Watching.woke).loop()(_hurry)
    for settled in (stopped, refused):  # nobody is to hurry a password
        settled.upon(Watching.woke).loop().returns(None)

    waiting = (backing_off, refused)
    backing_off.upon(Watching.retry).to(connecting).returns(None)
    refused.upon(Watching.retry).to(connecting).returns(None)
    backing_off.upon(Watching.start).to(connecting)(_forget)
    refused.upon(Watching.start).to(connecting)(_forget)
    backing_off.upon(Watching.stop).to(stopped)(_forget)
    refused.upon(Watching.stop).to(stopped)(_forget)

    catching_up.upon(Watching.nudge).loop()(_remind)
    for state in (stopped, connecting, preparing, *waiting):  # the catching up that is to come sees it
        state.upon(Watching.nudge).loop().returns(None)
    for trying in (connecting, preparing, catching_up, idling, polling, pausing):
        trying.upon(Watching.start).loop().returns(None)
    return builder


def start_machine(core: Core) -> Watching:
    """A machine in its first state, *stopped*."""
    return _built()(core)


@cache
def _built() -> Callable[[Core], Watching]:
    """What makes machines: built once, since each build makes classes of its own, 50 kB of them."""
    build: Callable[[Core], Watching] = watching_machine().build()
    return build


def _abandon(_watching: Watching, _core: Core, data: Attempt) -> None:
    data.task.cancel()


def _rise(_watching: Watching, _core: Core, data: Resting, line: Line) -> None:  # noqa: ARG001 (the event's own arguments)
    data.end()


def _pass_on(watching: Watching, _core: Core, data: Resting) -> None:
    watching.news(data.line)


def _remind(_watching: Watching, core: Core, _data: Busy) -> None:
    if core.line is not None:
        core.line.remind()


def _rise_and_drop(
    _watching: Watching,
    core: Core,
    data: Resting,
    line: Line | None,  # noqa: ARG001 (the event's own arguments)
    error: MailgatewayError,  # noqa: ARG001 (the event's own arguments)
) -> None:
    data.end()
    core.hang_up()


def _rise_and_give_up(
    _watching: Watching,
    core: Core,
    data: Resting,
    line: Line | None,  # noqa: ARG001 (the event's own arguments)
    until: datetime | None,  # noqa: ARG001 (the event's own arguments)
) -> None:
    data.end()
    core.hang_up()


def _rise_and_cut(_watching: Watching, core: Core, data: Resting) -> None:
    data.end()
    core.up_since = None
    core.hang_up()


def _cut(_watching: Watching, core: Core, data: Busy) -> None:
    core.up_since = None
    core.hang_up()
    data.task.cancel()


def _hurry(_watching: Watching, core: Core, data: Waiting) -> None:
    if core.failure in IMPATIENT and data.timer is not None and data.timer.active():
        data.timer.reset(0)


def _rise_and_part(_watching: Watching, core: Core, data: Resting) -> None:
    data.end()
    core.part()


def _drop(_watching: Watching, core: Core, _data: Busy, line: Line | None, error: MailgatewayError) -> None:  # noqa: ARG001 (the event's own arguments)
    core.hang_up()


def _give_up(_watching: Watching, core: Core, _data: Busy, line: Line | None, until: datetime | None) -> None:  # noqa: ARG001 (the event's own arguments)
    core.hang_up()


def _part(_watching: Watching, core: Core, data: Busy) -> None:
    data.task.cancel()
    core.part()


def _forget(_watching: Watching, _core: Core, data: Waiting) -> None:
    data.end()
