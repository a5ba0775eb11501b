"""The Sent folder at a real Dovecot: looked into, filled, and left as it was."""

import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import TestCase

from mailgateway.daemons.health import DoorHealth
from mailgateway.daemons.logins import Logins
from mailgateway.daemons.sent import ImapSentFolder
from mailgateway.daemons.tasks import Tasks
from mailgateway.ids import AccountName, MessageId
from tests.daemons.world import ENVIRON, KEY, PASSWORD, account, server
from tests.fakes.authority import Authority
from tests.fakes.database import ImmediateDatabase
from tests.fakes.dovecot import Dovecot, require_dovecot

USER = "agent@example.org"
ID = MessageId("<mg.f913c9.0123456789abcdef.00112233@example.org>")
MAIL = f"Message-ID: {ID}\r\nFrom: {USER}\r\nSubject: h\u00fc\r\n\r\nWords of ours.\r\n".encode()


class SentTests(TestCase):
    """With the real reactor."""

    def setUp(self) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 (sockets need the real one)

        require_dovecot()
        folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        self.dovecot = Dovecot(folder / "dovecot", {USER: PASSWORD}, Authority.make(folder / "ca"))
        self.addCleanup(self.dovecot.stop, hard=True)
        self.dovecot.start()
        database = ImmediateDatabase()
        self.addCleanup(database.close)
        door, other = (DoorHealth(AccountName(name), database, Tasks()) for name in ("main", "main:smtp"))
        imap = server(self.dovecot.imap_port, "IMAP_PASSWORD", username=USER)
        logins = Logins(reactor, account(imap=imap), KEY, door, other, environ=ENVIRON)
        self.sent = ImapSentFolder(reactor, logins, "")
        self.addCleanup(self.sent.close)

    async def test_found_filled_and_left_alone(self) -> None:
        """One login for all of it; the copy is there once, byte by byte, and read."""
        with self.dovecot.client(USER) as client:
            client.create("Gesendet &- mehr")
        self.assertIsNone(await self.sent.find(ID))
        self.assertTrue(await self.sent.keep(MAIL, ID))
        self.assertFalse(await self.sent.keep(MAIL, ID))
        self.assertEqual(await self.sent.find(ID), MAIL)
        large = MAIL.replace(b"f913c9", b"abcdef") + b"line\r\n" * 200_000
        other = MessageId(ID.replace("f913c9", "abcdef"))
        self.assertTrue(await self.sent.keep(large, other))
        self.assertEqual(await self.sent.find(other, limit=2_000_000), large)
        with self.dovecot.client(USER, "Sent") as client:
            _, data = client.uid("FETCH", "1:*", "(FLAGS)")
            self.assertEqual(len(data), 2)
            self.assertTrue(all(b"\\Seen" in line for line in data if isinstance(line, bytes)), data)
        self.assertEqual(self.dovecot.logins(), 1)
