"""What the service knows of secrets: keys, passwords as they are now, what a command printed."""

from pathlib import Path

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.known_secrets import NOTED, READ_SECONDS, KnownSecrets
from mailgateway.settings import parse
from mailgateway.wire.sasl import BearerToken, Password
from tests.http.rig import BASE

KEY = "0123456789abcdef" * 4


class KnownSecretsTests(SynchronousTestCase):
    """One account with a password in a file."""

    def setUp(self) -> None:
        self.file = Path(self.mktemp())
        self.write("first password")
        imap = {"host": "imap.example.org", "password_file": str(self.file.absolute())}
        account = {**BASE["accounts"]["main"], "imap": imap}
        settings = parse({**BASE, "accounts": {"main": account}}, {"HOME": "/nonexistent"}, host_name="bench")
        self.clock = Clock()
        self.known = KnownSecrets(self.clock, lambda: settings, lambda: {"the session key": KEY}, {})

    def write(self, password: str) -> None:
        """Change the password."""
        self.file.write_text(f"{password}\n")
        self.file.chmod(0o600)

    def kind(self, text: str) -> str:
        """What is found in a text now."""
        return self.known.guard().secret_in(text)

    def test_keys_and_passwords(self) -> None:
        """Each by its kind; a log of a login, too."""
        self.assertEqual(self.kind(KEY), "the session key")
        self.assertEqual(self.kind("it is first password"), "a password of the account main")
        login = "AGFnZW50QGV4YW1wbGUub3JnAGZpcnN0IHBhc3N3b3Jk"
        self.assertEqual(self.kind(f"C: AUTH PLAIN {login}"), "a password of the account main")
        self.assertEqual(self.kind("the second password"), "")

    def test_a_changed_file(self) -> None:
        """It is read again after a minute, or at once when the settings were; a missing one is no trouble."""
        self.kind("x")
        self.write("second password")
        self.assertEqual(self.kind("second password"), "")
        self.clock.advance(READ_SECONDS)
        self.assertTrue(self.kind("second password"))
        self.file.unlink()
        self.known.forget()
        self.assertEqual(self.kind("second password"), "")

    def test_what_is_noted(self) -> None:
        """What commands printed, the last ones of each account."""
        self.known.note("main", BearerToken("me", "host", 993, "ya29.a-long-token"))
        self.assertEqual(self.kind("ya29.a-long-token"), "an access token of the account main")
        self.known.note("main", Password("me", "printed password"))
        self.assertTrue(self.kind("printed password"))
        for number in range(NOTED):
            self.known.note("main", BearerToken("me", "host", 993, f"token-number-{number:06}"))
        self.assertEqual(self.kind("ya29.a-long-token"), "")
        self.assertNotIn("token-number", repr(self.known))
