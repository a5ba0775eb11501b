"""Secrets: where they are read from, who may read them, and keys that many processes make at once."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ConfigError, Problem
from mailgateway.secrets import (
    Credential,
    PasswordEnv,
    PasswordFile,
    PasswordSource,
    check_private,
    machine_id,
    person_key,
    prepare_state_dir,
    read_key,
    read_password,
    session_key,
)

PATH = "accounts.main.imap"


class SecretCase(SynchronousTestCase):
    """A folder, and the one problem of a call."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(dir="."))

    def write(self, name: str, data: bytes, mode: int = 0o600) -> Path:
        """Write a file with a mode."""
        path = self.folder / name
        path.write_bytes(data)
        path.chmod(mode)
        return path

    def problem(self, error: ConfigError) -> Problem:
        """Take the one problem of an error."""
        (problem,) = error.problems
        return problem


class PasswordTests(SecretCase):
    """Reading a password from its source."""

    def refused(self, source: PasswordSource, environ: dict[str, str] | None = None) -> Problem:
        """Read what cannot be read."""
        return self.problem(self.assertRaises(ConfigError, read_password, source, environ or {}, PATH))

    def test_the_newline_at_the_end_does_not_count(self) -> None:
        """One newline is the editor's; spaces and further newlines may be the password's."""
        for data, expected in (
            (b"secret", "secret"),
            (b"secret\n", "secret"),
            (b"secret\r\n", "secret"),
            (b" secret \n\n", " secret \n"),
            ("pässword\n".encode(), "pässword"),
        ):
            path = self.write("password", data)
            self.assertEqual(read_password(PasswordFile(path), {}, PATH), expected)

    def test_files_that_will_not_do(self) -> None:
        """Missing, a folder, empty, open to everybody, not text, too large: the path, and what to do."""
        for source, words in (
            (self.folder / "nowhere", "No such file"),
            (self.folder, "directory"),
            (self.write("empty", b"\n"), "empty"),
            (self.write("open", b"hunter2\n", 0o644), "chmod 600"),
            (self.write("noise", b"\xff\xfe"), "UTF-8"),
            (self.write("large", b"x" * 70_000), "too large"),
        ):
            problem = self.refused(PasswordFile(source))
            self.assertTrue(problem.path.startswith(PATH), problem)
            self.assertIn(words, problem.message)
            self.assertNotIn("hunter2", problem.message)

    def test_a_group_may_read_a_password(self) -> None:
        """A file of root that the service's group reads is a usual set-up."""
        self.assertEqual(read_password(PasswordFile(self.write("p", b"secret", 0o640)), {}, PATH), "secret")

    def test_a_variable(self) -> None:
        """Its value as it is; one that is not set is told."""
        self.assertEqual(read_password(PasswordEnv("X"), {"X": "secret"}, PATH), "secret")
        self.assertEqual(self.refused(PasswordEnv("X")).path, f"{PATH}.password_env")

    def test_a_credential(self) -> None:
        """Read from the service manager's directory, whatever its mode; without one the unit is named."""
        self.write("mail", b"secret\n", 0o444)
        environ = {"CREDENTIALS_DIRECTORY": str(self.folder)}
        self.assertEqual(read_password(Credential("mail"), environ, PATH), "secret")
        self.assertIn("LoadCredential", self.refused(Credential("mail")).message)
        self.assertIn("No such file", self.refused(Credential("other"), environ).message)

    def test_check_private(self) -> None:
        """The same rules without reading the secret out."""
        self.assertEqual(check_private(self.write("p", b"secret"), PATH), [])
        (problem,) = check_private(self.write("q", b"secret", 0o604), PATH)
        self.assertEqual(problem.path, PATH)


class StateTests(SecretCase):
    """The state directory and the files in it."""

    def test_the_directory_is_ours_alone(self) -> None:
        """Made with 0700, parents too; others may do nothing in it, a group may not write; a file is told."""
        made = self.folder / "a" / "state"
        prepare_state_dir(made)
        self.assertEqual(stat.S_IMODE(made.stat().st_mode), 0o700)
        for found, left in ((0o755, 0o750), (0o770, 0o750), (0o722, 0o700), (0o750, 0o750), (0o700, 0o700)):
            made.chmod(found)
            prepare_state_dir(made)
            self.assertEqual(stat.S_IMODE(made.stat().st_mode), left, oct(found))
        error = self.assertRaises(ConfigError, prepare_state_dir, self.write("file", b""))
        self.assertEqual(self.problem(error).path, "daemon.state_dir")

    def test_a_key_is_made_once(self) -> None:
        """64 hex digits and a newline, 0600; the same ever after; session and person have their own."""
        key = session_key(self.folder)
        path = self.folder / "secret.key"
        self.assertRegex(path.read_text(), r"\A[0-9a-f]{64}\n\Z")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(session_key(self.folder), key)
        self.assertNotEqual(person_key(self.folder), key)
        self.assertEqual({item.name for item in self.folder.iterdir()}, {"secret.key", "person.key"})

    def test_a_key_that_is_there_is_used(self) -> None:
        """Any text of 32 characters and more, stripped."""
        self.write("secret.key", b"  0123456789abcdef0123456789abcdef-given \n")
        self.assertEqual(session_key(self.folder), "0123456789abcdef0123456789abcdef-given")

    def test_keys_that_will_not_do(self) -> None:
        """Too short, open to the group, with a space in it: nothing is overwritten, the text is not shown."""
        for data, mode in (
            (b"hunter2\n", 0o600),
            (b"hunter2 " * 10, 0o600),
            (b"hunter2" * 10, 0o640),
            (b"hunter2" * 10, 0o604),
            (b"\n", 0o600),
        ):
            path = self.write("secret.key", data, mode)
            error = self.assertRaises(ConfigError, session_key, self.folder)
            self.assertNotIn("hunter2", str(error))
            self.assertIn("secret.key", str(error))
            self.assertEqual(path.read_bytes(), data)

    def test_a_shared_key_may_be_open_to_its_group(self) -> None:
        """Keys of ``[keys]`` are read by their users; never by everybody."""
        path = self.write("agents.key", b"a" * 32, 0o640)
        self.assertEqual(read_key(path), "a" * 32)
        path.chmod(0o644)
        self.assertRaises(ConfigError, read_key, path)

    def test_the_machine_keeps_its_id(self) -> None:
        """32 hex digits, the same over restarts."""
        identifier = machine_id(self.folder)
        self.assertRegex(identifier, r"\A[0-9a-f]{32}\Z")
        self.assertEqual(machine_id(self.folder), identifier)

    def test_many_at_once_agree(self) -> None:
        """Processes that start together end up with one key, and leave no drafts."""
        program = (
            "import sys; from pathlib import Path; from mailgateway.secrets import session_key\n"
            "sys.stdin.readline(); print(session_key(Path(sys.argv[1])))"
        )
        crowd = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            )
            for _ in range(5)
        ]
        for child in crowd:
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.stdin.flush()
        keys = {child.communicate(timeout=60)[0] for child in crowd}
        self.assertEqual(len(keys), 1)
        self.assertEqual(keys, {(self.folder / "secret.key").read_bytes()})
        self.assertEqual([item.name for item in self.folder.iterdir()], ["secret.key"])
