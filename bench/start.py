"""From the start of the process to a healthy service, and what it costs while nothing happens.

The plain alternative is a bare ``twistd`` with a Klein service of one route.  Idle is: one account in IDLE,
no session; the figures are of ten seconds.  ``wake-ups`` counts every time any thread of the process went to
sleep again, housekeeping included.
"""

import http.client
import subprocess
import sys
import time
from pathlib import Path

from _replay import ReplayServer
from _world import (
    ROOT,
    TWISTD,
    Service,
    cpu_seconds,
    folder,
    median,
    resident_mb,
    row,
    show_help,
    switches,
)

from mailgateway.demo.service import free_port

STARTS = 5
IDLE_SECONDS = 10.0

PLAIN = """
from klein import Klein
from twisted.application.internet import StreamServerEndpointService
from twisted.application.service import Application
from twisted.internet import endpoints, reactor
from twisted.web.server import Site
app = Klein()

@app.route("/health")
def health(request):
    return b"{}"

application = Application("plain")
endpoint = endpoints.serverFromString(reactor, "tcp:PORT:interface=127.0.0.1")
StreamServerEndpointService(endpoint, Site(app.resource())).setServiceParent(application)
"""


def until_answer(port: int, began: float) -> float:
    """Seconds from ``began`` until GET /health is answered."""
    while time.monotonic() < began + 20:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return time.monotonic() - began
        except OSError:
            time.sleep(0.005)
        finally:
            connection.close()
    raise AssertionError("no answer")


def idle(pid: int) -> tuple[float, float, float]:
    """Resident MB, CPU in percent of a core, and wake-ups per second of a process that rests."""
    time.sleep(3)
    cpu, slept = cpu_seconds(pid), switches(pid)
    time.sleep(IDLE_SECONDS)
    return (
        resident_mb(pid),
        (cpu_seconds(pid) - cpu) / IDLE_SECONDS * 100,
        (switches(pid) - slept) / IDLE_SECONDS,
    )


def start_plain(path: Path) -> tuple["subprocess.Popen[bytes]", float]:
    """Start the bare service; its process, and the seconds until it answered."""
    port = free_port()
    (path / "plain.tac").write_text(PLAIN.replace("PORT", str(port)), encoding="utf-8")
    command = [*TWISTD, "-n", "--pidfile=", "-l", "plain.log", "-y", "plain.tac"]
    began = time.monotonic()
    process = subprocess.Popen(command, cwd=path)
    return process, until_answer(port, began)


def commands(*arguments: str) -> float:
    """Milliseconds that a command takes, the median of seven."""
    taken = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def main() -> None:
    """Measure both in turns."""
    mine, theirs = [], []
    with folder() as path:
        server = ReplayServer([], visible=0).start()
        service = Service(path, server.port)
        try:
            for turn in range(STARTS):
                process, seconds = start_plain(path)
                theirs.append(seconds)
                if turn < STARTS - 1:
                    process.kill()
                    process.wait()
            for turn in range(STARTS):
                began = service.launch()
                mine.append(until_answer(service.port, began))
                if turn < STARTS - 1:
                    server.idle_since(0)
                    service.stop()
            server.idle_since(0)
            rss, cpu, wakes = idle(service.pid)
            plain_rss, plain_cpu, plain_wakes = idle(process.pid)
        finally:
            process.kill()
            process.wait()
            service.stop()
            server.stop()
    # the first start makes the database
    ours, plain = median(mine[1:]), median(theirs[1:])
    row(
        "start to healthy",
        f"{ours:.2f} s",
        plain=f"{plain:.2f} s",
        ratio=ours / plain,
        aims="must 1.5 s, aim 0.8 s",
    )
    row("  the first start", f"{mine[0]:.2f} s", plain=f"{theirs[0]:.2f} s")
    row(
        "resident when idle",
        f"{rss:.1f} MB",
        plain=f"{plain_rss:.1f} MB",
        ratio=rss / plain_rss,
        aims="must 80 MB, aim 64 MB",
    )
    row("CPU when idle", f"{cpu:.2f} %", plain=f"{plain_cpu:.2f} %", aims="must 0.2 %")
    row("wake-ups when idle", f"{wakes:.1f} /s", plain=f"{plain_wakes:.1f} /s", aims="aim 2 /s")
    run = "from mailgateway.cli.main import main; main()"
    helped, bare = commands("-c", run, "--help"), commands("-c", "import click")
    row(
        "mailgateway --help",
        f"{helped:.0f} ms",
        plain=f"{bare:.0f} ms",
        ratio=helped / bare,
        aims="must 150 ms, aim 100 ms",
    )


if __name__ == "__main__":
    show_help(__doc__)
    main()
