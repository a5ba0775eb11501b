"""Signed tokens: their exact form, and what verifies."""

import base64
import hashlib
import hmac
import struct
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.token import Checked, Expired, Invalid, OtherDevice, Valid, mint, verify
from mailgateway.ids import SessionId, device_digest, session_digest

KEY = "ab" * 32
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SESSION = SessionId("s-1")
DEVICES = (device_digest("laptop"), device_digest("old name"))


def checked(token: str, now: datetime = NOW, key: str = KEY) -> Checked:
    """Verify with the usual key and devices."""
    return verify(token, key, now, DEVICES)


class TokenTests(SynchronousTestCase):
    """A token is what the contract says, to the byte."""

    def test_the_form(self) -> None:
        """Made again from the contract's words with nothing of ours."""

        def text(raw: bytes) -> str:
            return base64.urlsafe_b64encode(raw).decode().rstrip("=")

        expiry = NOW + HOUR
        payload = text(
            struct.pack(">I", int(expiry.timestamp()))
            + hashlib.sha256(b"s-1").digest()[:8]
            + hashlib.sha256(b"laptop").digest()[:4]
        )
        mac = hmac.new(KEY.encode(), b"mailgateway-route-1\x00" + payload.encode(), hashlib.sha256).digest()[
            :12
        ]
        self.assertEqual(mint(SESSION, "laptop", expiry, KEY), f"{payload}.{text(mac)}")
        self.assertEqual(len(mint(SESSION, "laptop", expiry, KEY)), 39)

    def test_a_valid_token_names_its_session(self) -> None:
        """Also when it was minted under a former name of the device."""
        for device in ("laptop", "old name"):
            token = mint(SESSION, device, NOW + HOUR, KEY)
            self.assertEqual(checked(token), Valid(session_digest(SESSION), int((NOW + HOUR).timestamp())))

    def test_time_and_device(self) -> None:
        """It ends at its second; another device's is not ours, whatever the time."""
        token = mint(SESSION, "laptop", NOW, KEY)
        self.assertEqual(checked(token), Expired())
        self.assertIsInstance(checked(token, NOW - timedelta(seconds=1)), Valid)
        self.assertEqual(checked(mint(SESSION, "desktop", NOW + HOUR, KEY)), OtherDevice())
        self.assertEqual(checked(mint(SESSION, "desktop", NOW - HOUR, KEY)), OtherDevice())
        self.assertEqual(checked(mint(SESSION, "laptop", datetime.fromtimestamp(0, UTC), KEY)), Expired())

    def test_any_change_is_invalid(self) -> None:
        """Each character, another key, parts of two tokens, cut and prolonged ones."""
        token = mint(SESSION, "laptop", NOW + HOUR, KEY)
        other = mint(SessionId("s-2"), "laptop", NOW + HOUR, KEY)
        bad = [token[:at] + ("A" if char != "A" else "B") + token[at + 1 :] for at, char in enumerate(token)]
        bad += [
            f"{other.split('.')[0]}.{token.split('.')[1]}",
            token[:-1],
            token + "A",
            "",
            ".",
            "ü" * 22 + "." + "ü",
        ]
        for each in bad:
            self.assertEqual(checked(each), Invalid(), each)
        self.assertEqual(checked(token, key="another"), Invalid())

    @given(st.text(max_size=60))
    def test_no_text_raises(self, text: str) -> None:
        """And none is valid by chance."""
        self.assertEqual(checked(text), Invalid())
