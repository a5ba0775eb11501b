"""PACC documents and the digest that vouches for them."""

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ProtocolViolation
from mailgateway.providers import SecretKind
from mailgateway.wire.host_name import host_name
from mailgateway.wire.pacc import LARGEST, read, vouched_for

WHOLE: dict[str, Any] = {
    "protocols": {"imap": {"host": "imap.example.org"}, "submit": {"host": "smtp.example.org"}},
    "authentication": {"password": True, "oauth-public": {"issuer": "https://example.org"}},
    "info": {"provider": {"name": "Example"}},
}


class PaccTests(SynchronousTestCase):
    """Reading and vouching."""

    def test_a_document(self) -> None:
        """Implicit TLS on the usual ports; the older name of submission is read as well."""
        for key in ("submit", "smtp"):
            told = {
                **WHOLE,
                "protocols": {"imap": WHOLE["protocols"]["imap"], key: {"host": "smtp.example.org"}},
            }
            offer = read(json.dumps(told).encode(), "x")
            self.assertEqual(
                [str(each) for each in (offer.imap, offer.smtp)],
                ["imap.example.org:993", "smtp.example.org:465"],
            )
            self.assertEqual(offer.secrets, (SecretKind.PASSWORD, SecretKind.OAUTH))
            self.assertEqual(offer.name, "Example")

    def test_only_the_very_document_is_vouched_for(self) -> None:
        """By one of several records; a byte more, another algorithm, or nonsense does not count."""
        data = json.dumps(WHOLE).encode()
        digest = b64encode(sha256(data).digest())
        good = b"v=UAAC1; a=sha256; d=" + digest
        self.assertTrue(vouched_for(data, [b"v=spf1 -all", good]))
        self.assertFalse(vouched_for(data + b" ", [good]))
        for record in (
            b"v=UAAC2; a=sha256; d=" + digest,
            b"v=UAAC1; a=md5; d=" + digest,
            b"v=UAAC1;a=sha256;d=*",
            b"\xff",
        ):
            self.assertFalse(vouched_for(data, [record]))
        self.assertFalse(vouched_for(data, []))

    def test_hostile(self) -> None:
        """Too long, no JSON, other shapes, hosts that are none."""
        loopback = {"protocols": {"imap": {"host": "127.0.0.1"}}}
        wrong = {"protocols": {"imap": {"host": ["imap.example.org"]}}}
        for data in (
            b"",
            b"[]",
            b"{}",
            b"[" * 5000,
            b" " * (LARGEST + 1),
            *(json.dumps(each).encode() for each in (loopback, wrong)),
        ):
            self.assertRaises(ProtocolViolation, read, data, "x")

    @given(
        st.recursive(
            st.none() | st.text(max_size=5),
            lambda inner: st.dictionaries(
                st.sampled_from(["protocols", "imap", "host", "info", "authentication"]), inner, max_size=4
            ),
            max_leaves=12,
        )
    )
    def test_any_shape(self, value: object) -> None:
        """It is an offer, or no such document."""
        try:
            read(json.dumps(value).encode(), "x")
        except ProtocolViolation:
            return

    @given(st.text(max_size=30))
    def test_host_names(self, text: str) -> None:
        """Whatever passes is in lower case, has a dot, and is its own reading."""
        name = host_name(text)
        if name is not None:
            self.assertEqual(name, host_name(name))
            self.assertIn(".", name)
            self.assertTrue(name.isascii())
