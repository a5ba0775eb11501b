"""``token mint``: the token that a script puts into a subject."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.token import Expired, Valid, verify
from mailgateway.errors import ConfigError
from mailgateway.ids import SessionId, device_digest, session_digest
from mailgateway.operator.token import mint_for
from mailgateway.secrets import session_key
from mailgateway.settings import Settings, parse
from tests.test_settings import ENVIRON, tables

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class TokenTests(SynchronousTestCase):
    """A token that the gateway of the same settings takes."""

    def settings(self) -> Settings:
        """Return settings with a state directory of their own."""
        daemon = {"state_dir": mkdtemp(dir=".")}
        return parse(tables(daemon=daemon, device={"name": "laptop"}, security={"tag": "ci"}), ENVIRON)

    def test_it_verifies(self) -> None:
        """In brackets with our tag, 39 characters, for this session and device, until the hours are over."""
        found = self.settings()
        key = session_key(Path(found.daemon.state_dir))
        minted = mint_for(found, "s-1", 2, NOW)
        self.assertEqual(minted.expires_at, "2026-11-30T14:00:00Z")
        self.assertTrue(minted.text.startswith("[ci:"))
        token = minted.text[4:-1]
        self.assertEqual(len(token), 39)
        devices = [device_digest("laptop")]
        valid = verify(token, key, NOW, devices)
        assert isinstance(valid, Valid)
        self.assertEqual(valid.session_digest, session_digest(SessionId("s-1")))
        self.assertIsInstance(verify(token, key, NOW.replace(hour=15), devices), Expired)

    def test_no_key_yet(self) -> None:
        """Without the service's key there is nothing to sign with, and none is made here."""
        found = self.settings()
        self.assertRaises(ConfigError, mint_for, found, "s-1", 2, NOW)
        self.assertEqual(list(found.daemon.state_dir.iterdir()), [])
