"""A private Postfix for tests: submission with logins and TLS, one port for each habit of servers.

Everything lives in one folder; the machine's own Postfix and its queue are not touched.  Logins are checked
by the tests' Dovecot, which gets all mail as well, by LMTP: nothing is sent anywhere else, and nobody listens
beyond the loopback interface.  It is started in the foreground and stopped by its process id.
"""

import contextlib
import os
import pwd
import re
import signal
import smtplib
import subprocess
from pathlib import Path

from attrs import define, field
from twisted.trial.unittest import SkipTest

from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, eventually, require
from tests.fakes.smtp_sink import free_port

START_SECONDS = 20
SMALL = 3000
"""Octets of the largest mail at the ports that take small ones only."""

HABITS = {
    "submission": "-o smtpd_tls_security_level=encrypt",
    "smtps": "-o smtpd_tls_wrappermode=yes",
    "rewriting": "-o smtpd_tls_security_level=encrypt -o cleanup_service_name=rewriting-cleanup",
    "small": f"-o message_size_limit={SMALL}",
    "small_unsaid": f"-o message_size_limit={SMALL} -o smtpd_discard_ehlo_keywords=size",
    "old": "-o smtpd_discard_ehlo_keywords=8bitmime,smtputf8,pipelining,chunking",
    "without_tls": "-o smtpd_tls_security_level=none",
    "without_auth": "-o smtpd_sasl_auth_enable=no",
}
"""What each port does differently; all but ``smtps`` begin without TLS."""


def require_postfix() -> str:
    """Find Postfix, which needs root to be run."""
    found = require("postfix", "postfix")
    if os.getuid() != 0:
        raise SkipTest("Postfix is run by root only")
    return found


def _running() -> list[tuple[int, int]]:
    """The parent and the process group of every process that has not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                state, parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                if state not in "ZX":
                    found.append((int(parent), int(group)))
    return found


@define(eq=False)
class Postfix:
    """The server, in ``folder``, whose parents others must be able to enter.

    ``results`` is put as ``Authentication-Results`` on mail from ``vouched``, above the server's own
    ``Received``, as a receiving server does.  ``ports`` are those of ``HABITS``.
    """

    folder: Path
    dovecot: Dovecot
    authority: Authority
    domains: tuple[str, ...]
    vouched: str = ""
    results: str = ""
    ports: dict[str, int] = field(factory=lambda: {name: free_port() for name in HABITS})
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> "Postfix":
        """Start, and wait until it answers at every port."""
        binary = require_postfix()
        self._write()
        with (self.folder / "out.log").open("ab") as out:
            self._process = subprocess.Popen(
                [binary, "-c", str(self.folder / "etc"), "start-fg"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        process = self._process

        def answers() -> bool:
            assert process.poll() is None, f"postfix ended at once: {self.log()[-1500:]}"
            try:
                with smtplib.SMTP("127.0.0.1", self.ports["without_auth"], timeout=5) as client:
                    return client.noop()[0] == 250
            except (OSError, smtplib.SMTPException):
                return False

        eventually("postfix answers", answers, START_SECONDS)
        return self

    def stop(self) -> None:
        """Stop it and all that it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        groups = {process.pid} | {group for parent, group in _running() if parent == process.pid}
        for number in (signal.SIGTERM, signal.SIGKILL):
            for group in groups:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, number)
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                process.wait(5)
                eventually("postfix is gone", lambda: groups.isdisjoint(each for _, each in _running()), 5)
                return
        raise AssertionError(f"postfix cannot be ended: {self.log()[-1500:]}")

    def log(self) -> str:
        """Read what it wrote."""
        paths = (self.folder / "mail.log", self.folder / "out.log")
        return "".join(path.read_text("utf-8", "replace") for path in paths if path.exists())

    def refusals(self) -> int:
        """Count refused logins."""
        return len(re.findall(r"SASL \S+ authentication failed", self.log()))

    def logins(self, user: str) -> int:
        """Count mails that ``user`` handed over after a login."""
        return len(re.findall(rf"sasl_username={re.escape(user)}\b", self.log()))

    def _write(self) -> None:
        etc, queue, data = (self.folder / name for name in ("etc", "queue", "data"))
        for place in (etc, queue, data):
            place.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        owner = pwd.getpwnam("postfix")
        os.chown(data, owner.pw_uid, owner.pw_gid)
        vouched = f"{self.vouched} PREPEND Authentication-Results: {self.results}\n" if self.vouched else ""
        (etc / "vouched").write_text(vouched)
        (etc / "rewritten").write_text(_REWRITTEN)
        (etc / "main.cf").write_text(
            _MAIN.format(
                folder=self.folder,
                domains=" ".join(self.domains),
                certificate=self.authority.certificate,
                key=self.authority.key,
                lmtp=self.dovecot.lmtp_socket,
                auth=self.dovecot.auth_socket,
            )
        )
        ports = (
            f"127.0.0.1:{self.ports[name]} inet n - n - - smtpd {more}\n" for name, more in HABITS.items()
        )
        (etc / "master.cf").write_text("".join(ports) + _MASTER)


REWRITTEN = "hop.example.com"
"""The domain of the Message-IDs that the rewriting port makes of ours."""

_REWRITTEN = (
    rf"/^Message-ID:[[:space:]]*<(mg|smoke)\.([^.@]*\.)?([0-9a-f]*)/ REPLACE Message-ID: <$3@{REWRITTEN}>"
    "\n"
)

_MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
maillog_file_prefixes = {folder}
maillog_file = {folder}/mail.log
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.example.org
mydestination =
mynetworks =
alias_maps =
alias_database =
default_transport = error:nothing leaves this machine
relay_transport = error:nothing leaves this machine
disable_dns_lookups = yes
smtpd_peername_lookup = no
virtual_mailbox_domains = {domains}
virtual_mailbox_maps = static:all
virtual_transport = lmtp:unix:{lmtp}
recipient_delimiter = +
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_sender_restrictions = check_sender_access texthash:{folder}/etc/vouched
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = {auth}
smtpd_sasl_security_options = noanonymous
smtpd_tls_security_level = may
smtpd_tls_auth_only = no
smtpd_tls_chain_files = {key}, {certificate}
smtpd_tls_session_cache_database =
smtp_tls_security_level = none
"""

_MASTER = """
pickup    unix  n - n 60 1 pickup
cleanup   unix  n - n - 0 cleanup
rewriting-cleanup unix n - n - 0 cleanup -o header_checks=regexp:$config_directory/rewritten
qmgr      unix  n - n 300 1 qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n - - trivial-rewrite
bounce    unix  - - n - 0 bounce
defer     unix  - - n - 0 bounce
trace     unix  - - n - 0 bounce
verify    unix  - - n - 1 verify
proxymap  unix  - - n - - proxymap
error     unix  - - n - - error
retry     unix  - - n - - error
lmtp      unix  - - n - - lmtp
anvil     unix  - - n - 1 anvil
scache    unix  - - n - 1 scache
postlog   unix-dgram n - n - 1 postlogd
"""
