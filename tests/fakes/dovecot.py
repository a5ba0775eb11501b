"""A private Dovecot 2.3 for tests: IMAP with and without TLS, delivery by LMTP, logins by password or token.

Everything lives in one folder; nothing of the machine's own Dovecot is touched.  The server is started in
the foreground and stopped by its process id.  As root, mail is kept by an unprivileged user, as Dovecot
wants it; otherwise everything runs as the caller.
"""

import base64
import contextlib
import grp
import hashlib
import hmac
import imaplib
import json
import os
import pwd
import re
import shutil
import smtplib
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from attrs import define, field
from twisted.trial.unittest import SkipTest

from tests.fakes.authority import Authority
from tests.fakes.smtp_sink import free_port

T = TypeVar("T")
START_SECONDS = 15
TOKEN_SECRET = b"only for tests: signs tokens that nobody else accepts"
SYSTEM_PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"


def require(program: str, packages: str) -> str:
    """Find a program of the system; a test is skipped without it, and fails where CI must have it."""
    found = shutil.which(program) or shutil.which(program, path=SYSTEM_PATHS)
    if found is not None:
        return found
    reason = f"{program} is missing: apt-get install {packages}"
    if os.environ.get("CI"):
        raise AssertionError(reason)
    raise SkipTest(reason)


def require_dovecot() -> str:
    """Find Dovecot with IMAP and LMTP."""
    found = require("dovecot", "dovecot-imapd dovecot-lmtpd")
    for part in ("imap", "lmtp"):
        if not (Path("/usr/lib/dovecot") / part).exists():
            require(f"dovecot/{part}", f"dovecot-{part}d")
    return found


def eventually(what: str, check: Callable[[], T | None], seconds: float = 20) -> T:
    """Ask until ``check`` gives something true; the ``AssertionError`` else names what did not happen."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)


def token_for(user: str, *, lifetime: float = 3600) -> str:
    """Make an access token that the server checks by itself: a JSON web token (RFC 7519) with HS256."""

    def encoded(part: bytes) -> bytes:
        return base64.urlsafe_b64encode(part).rstrip(b"=")

    now = int(time.time())
    claims = {"sub": user, "email": user, "iat": now - 60, "nbf": now - 60, "exp": now + int(lifetime)}
    signed = b".".join(
        encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims)
    )
    return (signed + b"." + encoded(hmac.digest(TOKEN_SECRET, signed, hashlib.sha256))).decode()


@define(eq=False)
class Dovecot:
    """The server, in ``folder``, whose parents others must be able to enter; ``users`` have passwords."""

    folder: Path
    users: Mapping[str, str] = field(repr=False)
    authority: Authority
    imap_port: int = field(factory=free_port)
    imaps_port: int = field(factory=free_port)
    own_port: int = field(factory=free_port)
    """For the tests' own connections, so that the log tells them from the others."""
    introspection: str = ""
    """Where tokens are asked about (RFC 7662); without it the server checks them by itself."""
    token_mechanisms: str = "xoauth2 oauthbearer"
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> "Dovecot":
        """Start, and wait until it answers."""
        binary = require_dovecot()
        self._write()
        with (self.folder / "out.log").open("ab") as out:
            self._process = subprocess.Popen(
                [binary, "-F", "-c", str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        process = self._process

        def answers() -> bool:
            assert process.poll() is None, f"dovecot ended at once: {self.log()[-800:]}"
            try:
                imaplib.IMAP4("127.0.0.1", self.own_port, timeout=5).shutdown()
            except (OSError, imaplib.IMAP4.error):
                return False
            return True

        eventually("dovecot answers", answers, START_SECONDS)
        return self

    def stop(self, *, hard: bool = False) -> None:
        """Stop; every connection is cut.  A hard stop takes no time, and may leave indexes to be repaired."""
        process, self._process = self._process, None
        if process is None:
            return
        children = [pid for pid, _ in self._children(process.pid)]
        if hard:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)

    def restart(self) -> None:
        """Stop and start again, on the same ports."""
        self.stop()
        self.start()

    @property
    def _settings(self) -> Path:
        return self.folder / "dovecot.conf"

    def home(self, user: str) -> Path:
        """Where a user's mail lies."""
        return self.folder / "mail" / user

    def _write(self) -> None:
        root = os.getuid() == 0
        owner = pwd.getpwnam("nobody") if root else pwd.getpwuid(os.getuid())
        for name in ("run", "mail"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # the unprivileged user must get in
        places = [self.folder / "mail"]
        places += [self.home(user) for user in self.users] + [
            self.home(user) / "rawlog" for user in self.users
        ]
        for place in places:
            place.mkdir(exist_ok=True)
            if root:
                os.chown(place, owner.pw_uid, owner.pw_gid)
        accounts = self.folder / "users"
        accounts.write_text("".join(f"{user}:{{PLAIN}}{word}::::::\n" for user, word in self.users.items()))
        accounts.chmod(0o644)
        key = self.folder / "keys/default/HS256/default"
        key.parent.mkdir(parents=True, exist_ok=True)
        key.write_bytes(base64.b64encode(TOKEN_SECRET))
        checks = (
            f"introspection_mode = post\nintrospection_url = {self.introspection}\n"
            "active_attribute = active\nactive_value = true\n"
            if self.introspection
            else "introspection_mode = local\n"
            f"local_validation_key_dict = fs:posix:prefix={self.folder}/keys/\n"
        )
        (self.folder / "oauth2.conf").write_text(f"{checks}username_attribute = sub\n")
        users = (
            "default_internal_user = dovecot\ndefault_login_user = dovenull\n"
            if root
            else f"default_internal_user = {owner.pw_name}\ndefault_login_user = {owner.pw_name}\n"
            f"default_internal_group = {grp.getgrgid(owner.pw_gid).gr_name}\n"
        )
        self._settings.write_text(
            _SETTINGS.format(
                folder=self.folder,
                certificate=self.authority.certificate,
                key=self.authority.key,
                uid=owner.pw_uid,
                gid=owner.pw_gid,
                users=users,
                imap=self.imap_port,
                imaps=self.imaps_port,
                own=self.own_port,
                token_mechanisms=self.token_mechanisms,
            )
        )

    # Mail

    @property
    def lmtp_socket(self) -> Path:
        """Where mail is delivered by LMTP (RFC 2033)."""
        return self.folder / "run/lmtp-for-tests"

    @property
    def auth_socket(self) -> Path:
        """Where another server has logins checked."""
        return self.folder / "run/auth-for-tests"

    def deliver(self, user: str, raw: bytes, sender: str = "sender@example.org") -> None:
        """Deliver one mail; the server puts Return-Path and Delivered-To on top, and no Received."""
        with smtplib.LMTP(str(self.lmtp_socket)) as lmtp:
            lmtp.sendmail(sender, [user], raw)

    @contextlib.contextmanager
    def client(self, user: str, folder: str = "INBOX") -> "Iterator[imaplib.IMAP4]":
        """Connect a second mail program, logged in, the folder selected."""
        connection = imaplib.IMAP4("127.0.0.1", self.own_port, timeout=20)
        try:
            connection.login(user, self.users[user])
            connection.select(folder)
            yield connection
        finally:
            with contextlib.suppress(imaplib.IMAP4.error, OSError):
                connection.logout()

    def flags(self, user: str) -> dict[str, set[str]]:
        """Read the flags of every mail, by its Message-ID."""
        found: dict[str, set[str]] = {}
        with self.client(user) as client:
            _, data = client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])")
            for item in data or []:
                if isinstance(item, tuple):
                    flags = re.search(rb"FLAGS \(([^)]*)\)", item[0])
                    name = item[1].decode("ascii", "replace").partition(":")[2].strip()
                    found[name] = set((flags[1].decode() if flags else "").split()) - {"\\Recent"}
        return found

    def uid_of(self, client: imaplib.IMAP4, message_id: str) -> str:
        """Find the UID of a mail on a second mail program's connection."""

        def found() -> str:
            client.noop()
            _, data = client.uid("SEARCH", f'HEADER Message-ID "{message_id}"')
            return str(data[0].decode()) if data and data[0] else ""

        return eventually(f"{message_id} is in the mailbox", found)

    def uid_validity(self, user: str) -> int:
        """Read the folder's UIDVALIDITY."""
        with self.client(user) as client:
            return int(client.response("UIDVALIDITY")[1][0] or 0)

    def recreate(self, user: str) -> None:
        """Let the INBOX have new numbers, as after a restore: new UIDVALIDITY, new UIDs, the same mails."""
        before = self.uid_validity(user)

        def renumbered() -> bool:
            self.stop()
            for path in (self.home(user) / "Maildir").glob("dovecot*"):
                path.unlink()
            self.start()
            return self.uid_validity(user) != before

        eventually("another UIDVALIDITY (it is made of the clock's seconds)", renumbered)

    # What the others did

    def log(self) -> str:
        """Read what the server wrote."""
        paths = (self.folder / "dovecot.log", self.folder / "out.log")
        return "".join(path.read_text("utf-8", "replace") for path in paths if path.exists())

    def logins(self) -> int:
        """Count good logins, those of the tests not counted."""
        found = re.findall(r"imap-login: (?:Info: )?Login: .*lport=(\d+)", self.log())
        return sum(int(port) != self.own_port for port in found)

    def refusals(self) -> int:
        """Count refused logins."""
        return len(re.findall(r"imap-login: .*auth failed, (\d+) attempts", self.log()))

    def commands(self, user: str) -> list[str]:
        """Read the commands that were sent after login on all connections of ``user``, without their tags."""
        lines = []
        for path in sorted((self.home(user) / "rawlog").glob("*.in")):
            for line in path.read_bytes().decode("utf-8", "replace").splitlines():
                words = re.sub(r"^\d+\.\d+ ", "", line).split(" ", 1)
                lines.append(words[-1].strip())
        return lines

    def idling(self, user: str) -> bool:
        """Say whether a connection of ``user`` is in IDLE now; the titles of the processes tell it."""
        if self._process is None:
            return False
        return any(user in title and "IDLE" in title for _, title in self._children(self._process.pid))

    def serving(self, user: str) -> list[int]:
        """The processes that serve ``user`` now, one for each connection after login."""
        if self._process is None:
            return []
        return [pid for pid, title in self._children(self._process.pid) if user in title]

    def wait_idle(self, user: str, seconds: float = 30) -> None:
        """Wait until a connection of ``user`` is in IDLE."""
        eventually(f"{user} is in IDLE", lambda: self.idling(user), seconds)

    @staticmethod
    def _children(master: int) -> list[tuple[int, str]]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == master:
                    title = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    found.append((int(entry.name), title))
        return found


_SETTINGS = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{key}
disable_plaintext_auth = no
auth_mechanisms = plain login {token_mechanisms}
auth_username_format = %Lu
auth_verbose = yes
auth_failure_delay = 0
auth_cache_size = 0
mail_location = maildir:~/Maildir
first_valid_uid = 1
mail_uid = {uid}
mail_gid = {gid}
{users}
verbose_proctitle = yes
login_log_format_elements = user=<%u> method=%m lport=%a %c
imap_idle_notify_interval = 2 mins
mailbox_idle_check_interval = 1 s
rawlog_dir = %h/rawlog
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
  inet_listener for-tests {{
    port = {own}
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
service auth {{
  unix_listener auth-for-tests {{
    mode = 0666
  }}
}}
service lmtp {{
  unix_listener lmtp-for-tests {{
    mode = 0666
  }}
}}
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {folder}/oauth2.conf
}}
passdb {{
  driver = passwd-file
  mechanisms = plain login
  args = scheme=PLAIN {folder}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/mail/%u allow_all_users=yes
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
}}
protocol lmtp {{
  lmtp_add_received_header = no
  postmaster_address = postmaster@example.org
}}
"""
