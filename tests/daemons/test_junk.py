"""Mail that the server takes for junk is counted and told, and never touched (row 43)."""

from typing import Any

from mailgateway.daemons.junk import LOOK_SECONDS, JunkCount
from mailgateway.daemons.watcher import Watcher
from mailgateway.protocols import imap
from tests.daemons.small_imap import Habits, SmallImap
from tests.daemons.watching import WatcherTestCase
from tests.daemons.world import IMAP_PORT


class JunkImap(SmallImap):
    """A server with a junk folder."""

    listing = rb'* LIST (\Junk) "/" Spam'
    uid_next = 5
    counts = b"OK"

    def __init__(self, habits: Habits) -> None:
        super().__init__(habits)
        self.lines: list[bytes] = []

    def lineReceived(self, line: bytes) -> None:
        self.lines.append(line)
        tag, _, rest = line.partition(b" ")
        if rest.startswith(b"LIST"):
            self.habits.verbs.append("LIST")
            self.sendLine(self.listing)
            self._end(tag, b"OK")
        elif rest.startswith(b"STATUS Spam"):
            self.habits.verbs.append("STATUS")
            if self.counts == b"OK":
                self.sendLine(b"* STATUS Spam (MESSAGES 9 UIDNEXT %d)" % type(self).uid_next)
            self._end(tag, self.counts)
        else:
            super().lineReceived(line)


class JunkTests(WatcherTestCase):
    """A watcher of the inbox."""

    def watch(self, **server: object) -> Watcher:
        """Watch a server whose junk folder is so."""
        self.kind: Any = type("Junk", (JunkImap,), server)
        self.network.servers[IMAP_PORT] = lambda: self.kind(self.habits)
        return self.begin(junk=JunkCount(self.network.seconds))

    def pass_time(self, seconds: float = LOOK_SECONDS) -> None:
        """Until the next count, and a little more."""
        for _ in range(int(seconds // 60) + 3):
            self.later(67)

    def test_what_came_is_told(self) -> None:
        """What was there before is not, and nothing names a folder or a mail."""
        watcher = self.watch()
        self.pass_time()
        self.assertEqual(watcher.remarks, ())
        self.kind.uid_next = 6
        self.pass_time()
        self.assertEqual(len(watcher.remarks), 1)
        self.assertTrue(watcher.remarks[0].startswith("1 mail came into the junk folder"))
        self.kind.uid_next = 8
        self.pass_time()
        self.assertTrue(watcher.remarks[0].startswith("3 mails"))
        self.assertNotIn("Spam", watcher.remarks[0])

    def test_seldom_and_without_a_touch(self) -> None:
        """One LIST, a STATUS every quarter of an hour, and never another command about it."""
        self.watch()
        self.pass_time(4 * 3_600)
        (server,) = self.network.accepted
        about = [line for line in server.lines if b"Spam" in line]
        self.assertTrue(all(b"STATUS Spam" in line for line in about))
        self.assertTrue(10 <= len(about) <= 20, len(about))
        self.assertEqual(self.habits.verbs.count("LIST"), 1)
        self.assertEqual(self.state, "watching")

    def test_no_such_folder_or_no_count(self) -> None:
        """Nobody is asked again, and watching goes on."""
        for server in (
            {"listing": rb'* LIST () "/" Work'},
            {"counts": b"NO [NOPERM] not yours"},
        ):
            watcher = self.watch(**server)
            self.pass_time(2 * 3_600)
            lines = self.network.accepted[-1].lines
            self.assertLessEqual(len([line for line in lines if b"LIST" in line or b"Spam" in line]), 2)
            self.assertEqual((watcher.remarks, self.state), ((), "watching"))
            self.end(watcher)

    def test_more_folders_than_are_read(self) -> None:
        """It costs the connection once, and not each quarter of an hour."""
        self.patch(imap, "MAX_LISTED", 0)
        self.watch()
        self.pass_time(2 * 3_600)
        self.assertEqual((len(self.network.accepted), self.state), (2, "watching"))
        self.assertEqual(self.habits.verbs.count("LIST"), 1)

    def test_another_numbering(self) -> None:
        """A folder that was made anew is counted anew."""
        watcher = self.watch()
        self.pass_time()
        self.kind.uid_next = 1
        self.pass_time()
        self.assertEqual(watcher.remarks, ())
        self.kind.uid_next = 3
        self.pass_time()
        self.assertTrue(watcher.remarks[0].startswith("2 mails"))
