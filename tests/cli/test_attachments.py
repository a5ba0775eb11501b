"""Writing a message's files: a stranger's names, and nothing of anybody's is overwritten."""

from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.attachments import write_new


class WriteTests(SynchronousTestCase):
    """One file at a time, in a folder of the user's."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp())
        self.addCleanup(rmtree, self.folder)

    def test_for_the_user_alone(self) -> None:
        """The folder is made; nobody else may read the file."""
        path = write_new(self.folder / "new" / "deep", "notes.md", b"# notes")
        self.assertEqual((path.name, path.read_bytes()), ("notes.md", b"# notes"))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)

    def test_nothing_is_overwritten(self) -> None:
        """A name that is taken, by a file, a folder or a link that leads nowhere, is numbered."""
        (self.folder / "a.txt").write_bytes(b"mine")
        (self.folder / "a (2).txt").mkdir()
        (self.folder / "a (3).txt").symlink_to(self.folder / "elsewhere")
        self.assertEqual(write_new(self.folder, "a.txt", b"theirs").name, "a (4).txt")
        self.assertEqual((self.folder / "a.txt").read_bytes(), b"mine")
        self.assertFalse((self.folder / "elsewhere").exists())
        names = [write_new(self.folder, "Makefile", b"").name for _ in range(2)]
        self.assertEqual(names, ["Makefile", "Makefile (2)"])

    def test_names_that_lead_away(self) -> None:
        """Only the last part counts, and nothing is hidden."""
        for name in ("../../etc/passwd", "/etc/passwd", "C:\\x\\passwd", ".passwd", "pass\0wd"):
            path = write_new(self.folder, name, b"")
            self.assertEqual(path.parent, self.folder)
            self.assertTrue(path.name.startswith("passwd"), path.name)
        for name in ("", ".", "..", "/", ".."):
            self.assertTrue(write_new(self.folder, name, b"").name.startswith("attachment"))

    def test_names_that_are_too_long(self) -> None:
        """120 characters may be more octets than file systems take; the extension stays."""
        for name in ("\u8cc7" * 116 + ".pdf", "\u8cc7" * 120, "a." + "\u8cc7" * 118):
            for number in (1, 2):
                path = write_new(self.folder, name, b"x")
                self.assertTrue(path.exists())
                self.assertEqual(path.suffix == ".pdf", name.endswith(".pdf"), number)
