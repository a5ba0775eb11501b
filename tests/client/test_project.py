"""Which files of a project may leave: those that lie in it, are no secret, and are what was checked."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client.project import LeftOut, Project, ProjectFile, bytes_of

LIMIT = 1_000
KEY = (
    b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
    b"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
)


class ProjectCase(SynchronousTestCase):
    """A project beside things that must not leave."""

    def setUp(self) -> None:
        self.folder = Path(os.path.realpath(mkdtemp()))
        self.addCleanup(rmtree, self.folder)
        self.root = self.folder / "app"
        for name in ("app/docs", "app/.git", "app-old", "other"):
            (self.folder / name).mkdir(parents=True)
        for name in ("app/docs/plot.png", "app/top.txt", "app-old/x.txt", "other/x.txt", "x.txt"):
            (self.folder / name).write_bytes(name.encode())
        self.project = Project.around(self.root / "docs")

    def data(self, path: str) -> bytes:
        """What a file holds that may leave."""
        read = self.project.read(path, LIMIT)
        assert isinstance(read, ProjectFile), (path, read)
        return read.data

    def why(self, path: str) -> str:
        """Why a file stays."""
        read = self.project.read(path, LIMIT)
        assert isinstance(read, LeftOut), (path, read)
        return read.reason


class InsideTests(ProjectCase):
    """What may leave."""

    def test_the_project_is_found(self) -> None:
        """The work tree, also a linked one; what is named; else where we are."""
        self.assertEqual(self.project.root, self.root)
        (self.folder / "other" / ".git").write_text("gitdir: elsewhere")
        self.assertEqual(Project.around(self.folder / "other").root, self.folder / "other")
        self.assertEqual(Project.around(self.folder / "app-old").root, self.folder / "app-old")
        self.assertEqual(Project.around(self.root, self.folder).root, self.folder)

    def test_files_are_read(self) -> None:
        """From where the session is, from the project's directory, by absolute paths, and through links."""
        (self.root / "near.png").symlink_to("docs/plot.png")
        (self.root / "papers").symlink_to("docs")
        for path in (
            "plot.png",
            "docs/plot.png",
            str(self.root / "docs/plot.png"),
            "near.png",
            "papers/plot.png",
        ):
            self.assertEqual(self.data(path), b"app/docs/plot.png", path)
        self.assertEqual(self.data("../top.txt"), b"app/top.txt")
        self.assertEqual(self.data("docs/../docs/./plot.png"), b"app/docs/plot.png")

    def test_not_there(self) -> None:
        """No file is no trouble: the text may mean something else."""
        for path in ("nothing.png", "docs/nothing/else", "a\0b", "x" * 5_000, "plot.png/below"):
            self.assertIsNone(self.project.read(path, LIMIT), path)


class AttackTests(ProjectCase):
    """What must not leave."""

    def test_outside(self) -> None:
        """Whatever the way: up, absolute, a sibling with the same beginning, links of all kinds."""
        (self.root / "link.txt").symlink_to(self.folder / "x.txt")
        (self.root / "away").symlink_to(self.folder / "other")
        (self.root / "chain").symlink_to("away")
        (self.root / "up").symlink_to("../app-old")
        for path in (
            "../../x.txt",
            "../../app-old/x.txt",
            str(self.folder / "x.txt"),
            f"{self.root}-old/x.txt",
            "/etc/passwd",
            "link.txt",
            "away/x.txt",
            "chain/x.txt",
            "up/x.txt",
            "away/../x.txt",
            "/proc/self/environ",
            "/dev/null",
        ):
            self.assertEqual(self.why(path), "it lies outside of the project", path)

    def test_hidden(self) -> None:
        """By the name that the file has in the end, in whatever directory."""
        for name in (".env", ".git/config", "docs/.env.local", ".ssh/id_ed25519", ".npmrc"):
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
            self.assertEqual(self.why(str(path)), "hidden files do not leave", name)
        (self.root / "innocent.png").symlink_to(".env")
        self.assertEqual(self.why("innocent.png"), "hidden files do not leave")

    def test_names_of_secrets(self) -> None:
        """Keys and stores of passwords, in any case; what is public or only sounds alike may leave."""
        for name in (
            "id_rsa",
            "id_ed25519",
            "id_ecdsa_sk",
            "id_rsa.bak",
            "server.KEY",
            "tls.pem",
            "a.p12",
            "Vault.kdbx",
            "prod.env",
            "credentials.json",
            "secret.key",
            "person.key",
            "secrets.toml",
            "service-account.json",
            "passwd",
            "terraform.tfstate",
        ):
            (self.root / name).write_text("x")
            self.assertEqual(self.why(name), "files of this name hold secrets", name)
        for name in (
            "id_rsa.pub",
            "id_rsa_howto.pub",
            "keys.md",
            "secretary.png",
            "monkey.txt",
            "environment.yml",
        ):
            (self.root / name).write_text("x")
            self.assertEqual(self.data(name), b"x", name)

    def test_private_keys(self) -> None:
        """By what they hold, whatever their name; a text about keys is none."""
        (self.root / "notes.txt").write_bytes(b"my key:\n" + KEY)
        self.assertEqual(self.why("notes.txt"), "it holds a private key")
        (self.root / "howto.txt").write_bytes(b"It begins with `-----BEGIN OPENSSH PRIVATE KEY-----` always.")
        self.assertTrue(self.data("howto.txt"))

    def test_no_regular_files(self) -> None:
        """A pipe would be waited for, a directory or a device is no file."""
        os.mkfifo(self.root / "pipe")
        for path in ("pipe", "docs"):
            self.assertEqual(self.why(str(self.root / path)), "it is no regular file", path)
        self.assertIsNone(self.project.read(str(self.root), LIMIT))

    def test_sizes(self) -> None:
        """Exactly the limit may leave, one octet more may not, and nothing more is read of it."""
        (self.root / "a").write_bytes(b"x" * LIMIT)
        (self.root / "b").write_bytes(b"x" * (LIMIT + 1))
        (self.root / "c").write_bytes(b"")
        with (self.root / "d").open("wb") as sparse:
            sparse.truncate(10**12)
        self.assertEqual(len(self.data("../a")), LIMIT)
        self.assertIn("it has more than", self.why("../b"))
        self.assertEqual(self.why("../c"), "it is empty")
        self.assertIn("it has more than", self.why("../d"))

    def test_unreadable(self) -> None:
        """Rings of links, and what goes away or becomes a link between looking and opening."""
        (self.root / "ring").symlink_to("ring")
        self.assertIsNone(self.project.read("../ring", LIMIT))
        (self.root / "swapped").symlink_to(self.folder / "x.txt")
        (self.root / "turned").symlink_to(self.folder / "other")
        for parts in (("turned", "x.txt"), ("gone",)):
            self.assertRaises(OSError, bytes_of, self.root, parts, LIMIT)
        self.assertIsNone(bytes_of(self.root, ("swapped",), LIMIT))

    def test_no_project(self) -> None:
        """The whole machine is none, even if somebody says so."""
        self.project = Project.around(Path("/"), Path("/"))
        self.assertEqual(self.why("etc/passwd"), "no project is known here")

    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(
            st.sampled_from(
                [
                    "..",
                    ".",
                    "",
                    "docs",
                    "away",
                    "link.txt",
                    "x.txt",
                    "app",
                    "app-old",
                    "other",
                    "plot.png",
                    "/",
                    "~",
                ]
            ),
            max_size=7,
        )
    )
    def test_any_way(self, parts: list[str]) -> None:
        """However a path is put together, nothing is read that does not lie in the project."""
        for name, target in (("link.txt", "../x.txt"), ("away", "../other")):
            if not os.path.lexists(self.root / name):
                (self.root / name).symlink_to(target)
        read = self.project.read("/".join(parts), LIMIT)
        if isinstance(read, ProjectFile):
            self.assertTrue(read.data.startswith(b"app/"), (parts, read))
