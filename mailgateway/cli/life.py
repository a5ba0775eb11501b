"""``ensure`` and ``restart``: that the service runs, with the settings of now, and one of it.

What is to be done is decided by a function of what was found (``step_of``).  A service that is well is seen
without a lock; whoever has to change something takes turns, and looks again when the turn has come.
Nobody is stopped who has not proved to be ours, and not for settings that could not start again.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, assert_never

import click
from attrs import define, frozen

from mailgateway.cli.report import Exit, fail, printable, say, shared
from mailgateway.cli.service import client_of, settings_of
from mailgateway.cli.starting import Launched, launch
from mailgateway.cli.turns import Turn, turn
from mailgateway.client import Client, ServiceUnreachable
from mailgateway.client.answers import Health
from mailgateway.client.of_settings import base_of_settings
from mailgateway.client.service_lock import holder_of, service_is_gone
from mailgateway.contract import API_VERSION
from mailgateway.errors import ConfigError
from mailgateway.secrets import SESSION_KEY, prepare_state_dir
from mailgateway.settings import Settings, config_path, load

START_SECONDS = 20.0
STOP_SECONDS = 15.0
TURN_SECONDS = 45.0
"""How long to wait for others, of whom each may stop and start the service."""
LOOK_SECONDS = 0.1
PROBE_SECONDS = 5.0


@frozen
class Found:
    """A service of ours: it runs, and has proved it."""

    version: str
    api_version: int
    loaded_at: datetime | None
    """When it read its settings; ``None`` when it tells in a way that we do not know."""


@frozen
class Nothing:
    """All is well."""


@frozen
class Reload:
    """The settings file is newer than what the service knows."""


@frozen
class Replace:
    """The service speaks another version of the API."""

    found: Found


@frozen
class Start:
    """There is none."""


Step = Nothing | Reload | Replace | Start


def step_of(found: Found | None, changed_at: datetime) -> Step:
    """What makes the service run as the settings of now want it; ``changed_at`` is when they were written."""
    if found is None:
        return Start()
    if found.api_version != API_VERSION:
        return Replace(found)
    if found.loaded_at is None or found.loaded_at < changed_at:
        return Reload()
    return Nothing()


def found_of(health: Health) -> Found:
    """Read of an answer, perhaps of another version, what a step is decided by."""
    try:
        loaded_at = datetime.fromisoformat(str(health.get("configLoadedAt"))).astimezone(UTC)
    except ValueError:
        loaded_at = None
    api_version = health.get("apiVersion")
    return Found(
        str(health.get("version", "")), api_version if isinstance(api_version, int) else 0, loaded_at
    )


@click.command("ensure")
@shared
def ensure_command(config: str | None, *, as_json: bool) -> None:
    """Start the service if it does not run.

    It ends by itself when nobody has needed it for two minutes, unless `daemon.idle_exit_seconds` is set.
    One that runs reads its settings again when the file is newer, and one of another version of the API is
    replaced, at most once a minute.
    """
    if os.environ.get("MAILGATEWAY_KEY_FILE"):
        _ensure_of_others(config, as_json=as_json)
        return
    life = Life(config_path(config, os.environ), settings_of(config), as_json=as_json)
    found = life.look()
    if step_of(found, life.changed_at()) == Nothing():
        life.tell_done("nothing", found)
        return
    with life.taking_turn() as held:
        life.ensure(held)


@click.command("restart")
@shared
def restart_command(config: str | None, *, as_json: bool) -> None:
    """Stop the service and start it again.

    Nothing is lost: clients that wait ask again, and mail that comes meanwhile is found afterwards.
    """
    if os.environ.get("MAILGATEWAY_KEY_FILE"):
        message = "Whoever runs the service restarts it: with MAILGATEWAY_KEY_FILE it is not yours."
        fail(Exit.FAILED, "not_yours", message, as_json=as_json)
    life = Life(config_path(config, os.environ), settings_of(config), as_json=as_json)
    with life.taking_turn():
        running = life.look() is not None
        if running:
            life.stop()
        life.start("restarted" if running else "started")


def _ensure_of_others(config: str | None, *, as_json: bool) -> None:
    """Look whether the service of others answers: it is not ours to start or to change."""
    life = Life(config_path(config, os.environ), settings_of(config), as_json=as_json)
    with client_of(life.settings) as client:
        client.prove()
        health = client.health()
    life.tell_done("nothing", found_of(health))


@define(eq=False)
class Life:
    """The service of these settings, from outside."""

    source: Path
    settings: Settings
    as_json: bool

    # Looking

    def client(self) -> Client:
        """Make a client with our own key."""
        base = base_of_settings(self.settings)
        return Client(base, self.settings.daemon.state_dir / SESSION_KEY, timeout=PROBE_SECONDS)

    def look(self) -> Found | None:
        """Find the service; who does not prove to be ours is none, nor is anybody before there is a key."""
        try:
            return found_of(self.client().proved_health())
        except (ServiceUnreachable, ConfigError):
            return None

    def changed_at(self) -> datetime:
        """When the settings file was last written."""
        return datetime.fromtimestamp(self.source.stat().st_mtime, UTC)

    # Changing

    @contextmanager
    def taking_turn(self) -> Iterator[Turn]:
        """Be the only one who changes something."""
        state_dir = self.settings.daemon.state_dir
        prepare_state_dir(state_dir)
        with turn(state_dir, TURN_SECONDS) as held:
            if held is None:
                message = "Another `mailgateway ensure` or `restart` is at work and does not end."
                fail(Exit.FAILED, "busy", message, as_json=self.as_json)
            yield held

    def ensure(self, held: Turn) -> None:
        """Look again, and do what is to be done."""
        found = self.look()
        step = step_of(found, self.changed_at())
        match step:
            case Nothing():
                self.tell_done("nothing", found)
            case Reload():
                self.reload()
            case Replace():
                self.replace(held, step.found)
            case Start():
                self.start("started")
            case _:
                assert_never(step)

    def reload(self) -> None:
        """Let the service read its settings again."""
        self.tell("The settings have changed: the service reads them again ...")
        with self.client() as client:
            warning = client.reload().get("warning")
        if warning:
            fail(Exit.FAILED, "invalid_settings", f"The old settings stay: {warning}", as_json=self.as_json)
        self.tell_done("reloaded", self.look())

    def replace(self, held: Turn, found: Found) -> None:
        """Put our version in the place of another, unless that has just happened."""
        seconds = held.seconds_to_wait(time.time())
        if seconds:
            fail(
                Exit.FAILED,
                "replaced_recently",
                f"A mailgateway {found.version} with version {found.api_version} of the API runs, and this "
                f"one has version {API_VERSION}. They replaced each other less than a minute ago: "
                "use one installation only.",
                as_json=self.as_json,
                more={"retryAfter": round(seconds)},
            )
        self.tell(f"A mailgateway {found.version} of another version of the API is replaced ...")
        held.note_replacement(time.time())
        self.stop()
        self.start("replaced")

    def stop(self) -> None:
        """Stop the service and wait until it is gone; not for settings that it could not start with again."""
        load(self.source, os.environ)
        self.tell("The service is asked to stop ...")
        with self.client() as client, suppress(ServiceUnreachable):  # gone already
            client.shutdown()
        state_dir = self.settings.daemon.state_dir
        if not _within(STOP_SECONDS, lambda: self.look() is None and service_is_gone(state_dir)):
            message = f"The service was asked to stop, and did not within {STOP_SECONDS:g} seconds."
            fail(Exit.FAILED, "still_running", message, as_json=self.as_json)

    def start(self, what: str) -> None:
        """Start the service and wait until it is healthy."""
        self.tell("The service is started ...")
        launched = launch(self.source, self.settings.daemon.state_dir, os.environ)
        # It may end well, when somebody else has started it in another way: then that one is waited for.
        found: Found | None = None

        def settled() -> bool:
            nonlocal found
            status = launched.status  # looked at first: whoever ends has ended before the look
            found = self.look()
            return found is not None or bool(status)

        _within(START_SECONDS, settled)
        if found is None:
            self._tell_failed(launched)
        self.tell_done(what, found)

    def _tell_failed(self, launched: Launched) -> None:
        status = launched.status
        if status is None:
            first = f"The service is not healthy after {START_SECONDS:g} seconds, and was left to go on."
        else:
            first = "The service did not start."
        lines = [first, *(f"  {line}" for line in launched.last_words())]
        holder = holder_of(self.settings.daemon.state_dir)
        if holder not in {0, launched.pid}:
            lines.append(f"Process {holder} has the state directory: it hangs, or has other settings.")
        lines.append(f"Its log is {launched.log}.")
        wrong = status == Exit.USAGE
        fail(
            Exit.USAGE if wrong else Exit.FAILED,
            "invalid_settings" if wrong else "start_failed",
            "\n".join(lines),
            as_json=self.as_json,
            more={"log": str(launched.log)},
        )

    # Telling

    def tell(self, line: str) -> None:
        """Say to people what goes on."""
        if not self.as_json:
            click.echo(printable(line), err=True)

    def tell_done(self, what: str, found: Found | None) -> None:
        """Say what was done, and what runs now."""
        where = str(base_of_settings(self.settings))
        words = {
            "nothing": "runs already",
            "started": "has been started",
            "reloaded": "has read its settings again",
            "replaced": "has been replaced",
            "restarted": "has been started again",
        }
        answer: dict[str, Any] = {"done": what, "service": where}
        if found is not None:
            answer |= {"version": found.version, "apiVersion": found.api_version}
        say(answer, f"mailgateway {words[what]}, at {where}.", as_json=self.as_json)


def _within(seconds: float, done: Callable[[], bool]) -> bool:
    """Look until it is done; whether it was in time."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(LOOK_SECONDS)
    return True
