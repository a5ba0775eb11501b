"""A private PostgreSQL for tests: one server for the process, a fresh database for whoever asks.

Started from Debian's binaries in a temporary folder, on a unix socket there and a loopback port, without
durability, and stopped at exit.  PostgreSQL refuses to run as root, so as root it runs as ``postgres``.
"""

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import unittest
from functools import lru_cache
from itertools import count
from pathlib import Path

_numbers = count(1)


class Missing(Exception):
    """PostgreSQL is not installed here."""


def binaries() -> Path:
    """The folder of the newest PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise Missing("PostgreSQL is not installed (Debian: apt install postgresql)")
    return found[-1].parent


@lru_cache(maxsize=1)
def server() -> str:
    """Start the server once; the URL of it without a database name."""
    folder = binaries()
    root = Path(tempfile.mkdtemp(prefix="mailgateway-postgres-"))
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        shutil.chown(root, user)

    def run(*command: str) -> None:
        subprocess.run(
            command,
            check=True,
            cwd=root,
            user=user if os.geteuid() == 0 else None,
            env={"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=60,
        )

    data = str(root / "data")
    run(str(folder / "initdb"), "-D", data, "-U", "gateway", "-A", "trust", "-E", "UTF8", "--no-sync")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = (
        f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={root} "
        "-c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=60"
    )
    control = str(folder / "pg_ctl")
    run(control, "-D", data, "-l", str(root / "log"), "-o", options, "-w", "start")

    def stop() -> None:
        subprocess.run(
            [control, "-D", data, "-m", "immediate", "stop"],
            check=False,
            cwd="/",
            user=user if os.geteuid() == 0 else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        shutil.rmtree(root, ignore_errors=True)

    atexit.register(stop)
    return f"postgresql://gateway@127.0.0.1:{port}"


def fresh_url() -> str:
    """The URL of a new, empty database.  Skips the test where PostgreSQL is missing; fails in CI."""
    try:
        base = server()
    except Missing as missing:
        if os.environ.get("CI"):
            raise
        raise unittest.SkipTest(str(missing)) from None
    import psycopg  # noqa: PLC0415 (an extra: needed here only)

    name = f"test_{next(_numbers)}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{base}/{name}"
