"""Uploads: a bound for the whole machine, promised before a byte is taken, and nothing left behind."""

from pathlib import Path

from mailgateway.errors import StoreUnavailable
from mailgateway.flows.uploads import UPLOAD_LIMIT
from mailgateway.http.folder import LEAST_FREE, LOOK_SECONDS, Upload
from mailgateway.http.keys import Bearer
from tests.http.case import RouteCase
from tests.http.rig import BOUND, KEY, Client, done, request

FIELDS = {"X-Session-Id": "s", "X-Filename": "a"}


class UploadCase(RouteCase):
    """A folder of 1,000 octets."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.rig.doors.folder
        self.folder.most = 1_000

    def begin(self, announced: int | None, sent: bytes = b"", key: str = KEY) -> Client:
        """Send the header of an upload, and some of its body."""
        client = self.rig.connect()
        length = {"Transfer-Encoding": "chunked"} if announced is None else {"Content-Length": str(announced)}
        head = request("POST", "/attachments", headers=FIELDS | length, key=key)
        client.feed(head.replace(b"Content-Length: 0\r\n", b"") + sent)
        return client

    def upload(self, size: int) -> int:
        """Upload a file; the status."""
        return self.ask("POST", "/attachments", b"x" * size, headers=FIELDS).status

    def over_quota(self, client: Client) -> None:
        """The client was told at once, and its connection closes."""
        answer = client.answer()
        assert answer is not None
        self.refused(answer, 429, "upload_quota")
        self.assertIn("retry-after", answer.headers)
        self.assertTrue(client.closed)

    def files(self) -> list[int]:
        """The sizes of what is there."""
        return sorted(path.stat().st_size for path in self.rig.uploads.iterdir())


class QuotaTests(UploadCase):
    """How much there may be."""

    def test_an_announced_file_counts_before_it_comes(self) -> None:
        """The next one is refused by its header; when the first is given up, there is room again."""
        first = self.begin(600)
        self.over_quota(self.begin(401))
        second = self.begin(400)
        self.over_quota(self.begin(1))
        for client in (first, second):
            client.hang_up()
        self.assertEqual(self.files(), [])
        self.assertEqual(self.upload(1_000), 200)

    def test_a_file_that_is_not_announced_counts_while_it_comes(self) -> None:
        """It is cut off at the bound, and leaves nothing."""
        self.assertEqual(self.upload(500), 200)
        client = self.begin(None, b"1f4\r\n" + b"x" * 500 + b"\r\n")
        self.assertFalse(client.closed)
        self.over_quota(self.begin(1))
        client.feed(b"1\r\nx\r\n")
        self.over_quota(client)
        self.assertEqual(self.files(), [500])
        self.assertEqual(self.upload(500), 200)

    def test_what_waits_counts_until_it_is_gone(self) -> None:
        """The sweeper deletes files without a word: the folder is looked at before anybody is refused."""
        self.assertEqual((self.upload(600), self.upload(400), self.upload(1)), (200, 200, 429))
        for path in self.rig.uploads.iterdir():
            path.unlink()
        self.rig.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.upload(1_000), 200)
        self.rig.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.upload(1), 429)

    def test_what_an_earlier_run_left_counts(self) -> None:
        """A restart is no way around the bound."""
        (self.rig.uploads / "kept").write_bytes(b"x" * 600)
        self.assertEqual((self.upload(401), self.upload(400)), (429, 200))

    def test_a_refused_upload_counts_no_longer(self) -> None:
        """Whatever it was refused for."""
        for _ in range(3):
            self.assertEqual(self.ask("POST", "/attachments", b"x" * 900, headers={}).status, 400)
            self.rig.database.failures.append(StoreUnavailable("gone"))
            self.assertEqual(self.upload(900), 503)
        self.assertEqual((self.files(), self.upload(1_000)), ([], 200))

    def test_the_number_of_files_is_bounded(self) -> None:
        """Empty files cost something, too."""
        self.folder.most_files = 2
        self.assertEqual((self.upload(1), self.upload(1), self.upload(1)), (200, 200, 429))

    def test_a_key_takes_its_share_of_what_may_come(self) -> None:
        """Another machine's key announces much and sends nothing: ours still has room."""
        self.folder.most = 10 * UPLOAD_LIMIT
        clients = [self.begin(UPLOAD_LIMIT, key=BOUND) for _ in range(4)]
        self.over_quota(self.begin(1, key=BOUND))
        self.assertEqual(self.upload(1), 200)
        clients[0].hang_up()
        self.assertFalse(self.begin(1, key=BOUND).closed)

    def test_nobody_announces_more_than_there_is(self) -> None:
        """As the bounds are set: all that may come at a time fits."""
        folder = type(self.rig)().doors.folder
        self.assertLess(folder.coming.most * UPLOAD_LIMIT, folder.most)
        self.assertLess(folder.coming.own, folder.coming.most)


class DiskTests(UploadCase):
    """Whose disk it is."""

    def test_a_disk_that_is_nearly_full_is_left_alone(self) -> None:
        """By the header, and in the middle of a file; nothing is left behind."""
        free = [LEAST_FREE]
        self.folder.free = lambda _: free[0]
        client = self.begin(500, b"x" * 100)
        self.assertFalse(client.closed)
        free[0] -= 1
        refused = self.begin(1)
        client.feed(b"x")
        for each in (refused, client):
            answer = each.answer()
            assert answer is not None
            self.refused(answer, 503, "store_unavailable")
            self.assertTrue(each.closed)
        self.assertEqual(self.files(), [])
        free[0] += 1
        self.assertEqual(self.upload(1_000), 200)

    def test_a_disk_that_fills_at_the_last_byte(self) -> None:
        """What could not be written is not kept, and counts no longer."""
        bearer = Bearer("session", None, own=True)
        for _ in range(self.folder.coming.own + 1):
            started = self.folder.begin(bearer, 1_000)
            started.stream.close()
            stream = Path("/dev/full").open("wb")  # noqa: SIM115 (closed by what is tested)
            full = Upload(started.path, stream, self.folder, bearer)
            full.write(b"x")
            self.assertRaises(OSError, full.keep)
        self.assertEqual(self.files(), [])


class LeftoverTests(UploadCase):
    """After a restart."""

    def test_files_without_a_row_go(self) -> None:
        """Those with one stay, and so does one that comes meanwhile."""
        self.assertEqual(self.upload(3), 200)
        (self.rig.uploads / "half").write_bytes(b"x" * 7)
        self.begin(5, b"xx")
        done(self.rig.doors.remove_leftovers())
        self.assertEqual(self.files(), [0, 3])

    def test_without_a_database_nothing_goes(self) -> None:
        """Nobody can say whose they are: they wait for their age."""
        (self.rig.uploads / "half").write_bytes(b"x")
        self.rig.database.failures.append(StoreUnavailable("gone"))
        done(self.rig.doors.remove_leftovers())
        self.assertEqual(self.files(), [1])

    def test_without_a_folder_nothing_happens(self) -> None:
        """Before the very first upload there is none."""
        self.rig.uploads.rmdir()
        done(self.rig.doors.remove_leftovers())
        self.assertEqual(self.upload(1), 200)
