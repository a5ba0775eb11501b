"""The files that go along with a text, and the sentences about those that stay."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from attrs import define, field
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client.enclosing import Enclosed, enclose
from mailgateway.client.failures import ApiRefused
from mailgateway.client.project import Project
from mailgateway.contract import FILES_OF_A_MAIL, MOST_FILES


@define(eq=False)
class Taken:
    """Takes uploads, or refuses them."""

    files: list[tuple[str, int]] = field(factory=list)
    code: str = ""

    def upload(self, filename: str, data: bytes, session: str) -> str:
        """Take one."""
        assert session == "s"
        if self.code:
            raise ApiRefused(self.code, "no", 413, {})
        self.files.append((filename, len(data)))
        return f"a-{len(self.files)}"


class EncloseTests(SynchronousTestCase):
    """One project, and what of it goes along."""

    def setUp(self) -> None:
        self.root = Path(os.path.realpath(mkdtemp()))
        self.addCleanup(rmtree, self.root)
        for name in ("plot.png", "draw.svg", "report.pdf", "other.txt"):
            (self.root / name).write_bytes(name.encode())
        (self.root / ".env").write_text("KEY=1")
        self.taken = Taken()

    def enclose(self, text: str, *named: str) -> Enclosed:
        """Look after the files of a text."""
        return enclose(self.taken, "s", text, Project.around(self.root), named)

    def test_images_are_shown_and_files_attached(self) -> None:
        """Each file once; links keep their words; other images than mail shows are attached."""
        enclosed = self.enclose(
            "![p](plot.png) [again](./plot.png) ![p][x] [r](report.pdf) ![d](draw.svg)\n\n[x]: <plot.png>\n",
            "other.txt",
            "report.pdf",
        )
        self.assertEqual(
            enclosed.text,
            "![p](attachment:a-1) [again](./plot.png) ![p][x] [r](report.pdf) ![d](draw.svg)\n\n"
            "[x]: attachment:a-1\n",
        )
        self.assertEqual(
            [name for name, _ in self.taken.files], ["plot.png", "report.pdf", "draw.svg", "other.txt"]
        )
        self.assertEqual(enclosed.ids, ("a-1", "a-2", "a-3", "a-4"))
        self.assertEqual(enclosed.left_out, ())

    def test_without_files_nothing_happens(self) -> None:
        """Not even a line end is another one."""
        text = (
            "# Done\r\n\r\nSee [docs](https://example.org) and `![p](plot.png)`, [later](CHANGES.md).\n\n\n"
        )
        self.assertEqual(self.enclose(text), Enclosed(text, (), ()))

    def test_what_stays_is_said(self) -> None:
        """The reason in a sentence, once for each; a link to nothing is no file."""
        enclosed = self.enclose(
            "![e](.env) [e](.env) ![gone](no.png) [gone](no.md)", "../no/such", "/etc/passwd", "a`b"
        )
        self.assertEqual(
            enclosed.text.partition("\n")[2],
            "\nNot attached:\n\n"
            "- `.env`: hidden files do not leave.\n"
            "- `no.png`: there is no such file.\n"
            "- `../no/such`: there is no such file.\n"
            "- `/etc/passwd`: it lies outside of the project.\n"
            "- `a'b`: there is no such file.\n",
        )
        self.assertEqual(self.taken.files, [])

    def test_caps(self) -> None:
        """Of one file, of all together, and of their number; the mail leaves all the same."""
        for name, size in (
            ("a.bin", 10_000_000),
            ("b.bin", 9_000_000),
            ("c.bin", FILES_OF_A_MAIL + 1),
            ("d.bin", 1),
        ):
            with (self.root / name).open("wb") as file:
                file.truncate(size)
        enclosed = self.enclose("[a](a.bin) [b](b.bin) [c](c.bin) [d](d.bin)")
        self.assertEqual([each.path for each in enclosed.attached], ["a.bin", "d.bin"])
        self.assertEqual([each.path for each in enclosed.left_out], ["b.bin", "c.bin"])
        self.taken = Taken()
        names = [f"{number}.txt" for number in range(MOST_FILES + 2)]
        for name in names:
            (self.root / name).write_text("x")
        enclosed = self.enclose("", *names)
        self.assertEqual((len(enclosed.attached), len(enclosed.left_out)), (MOST_FILES, 2))

    def test_refused_uploads(self) -> None:
        """What is about the file is said in the mail; what is about the session ends it."""
        self.taken.code = "upload_quota"
        self.assertIn("it cannot be uploaded now (upload_quota).", self.enclose("![p](plot.png)").text)
        self.taken.code = "not_yours"
        self.assertRaises(ApiRefused, self.enclose, "![p](plot.png)")
