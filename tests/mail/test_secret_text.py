"""Secrets in texts: found as people paste them, not found where nobody told one, and never shown."""

import base64

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.secret_text import PRIVATE_KEY, TEXT_BOUND, UNMISTAKABLE, Guard, Known

KEY = "5f0c" * 16
LONG = "correct horse battery"
GUARD = Guard((Known("the session key", KEY), Known("a password", LONG), Known("another", "hunter2hunter")))
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"


def guard(*texts: str) -> Guard:
    """A guard of some secrets."""
    return Guard(tuple(Known("it", text) for text in texts))


class KnownTests(SynchronousTestCase):
    """Secrets that somebody knows."""

    def test_as_they_are_pasted(self) -> None:
        """In a line, in a URL, folded, with and without blanks, in Base64."""
        for text, kind in (
            (f"Authorization: Bearer {KEY}", "the session key"),
            (f"x{KEY}y", "the session key"),
            (f"{KEY[:30]}\n    {KEY[30:]}", "the session key"),
            (f"pass: {LONG}!", "a password"),
            ("imaps://me:correct%20horse%20battery@host/", "a password"),
            ("correcthorsebattery", "a password"),
            (base64.b64encode(LONG.encode()).decode(), "a password"),
            ("hunter2hunter2", "another"),
            (KEY[:-1], ""),
            (LONG.upper(), ""),
            ("", ""),
        ):
            self.assertEqual(GUARD.secret_in(text), kind, text)

    def test_short_ones(self) -> None:
        """Below eight characters nothing is looked for, below twelve whole words only."""
        self.assertEqual(guard("secret", "", "x").secret_in("the secret is x"), "")
        short = guard("computer")
        for text, found in (
            ("my password is computer.", True),
            ("computer", True),
            ("two computers", False),
            ("microcomputer", False),
            ("com puter", False),
        ):
            self.assertEqual(bool(short.secret_in(text)), found, text)
        self.assertTrue(guard("a+b(c)[d").secret_in("is a+b(c)[d ok"))

    def test_what_was_told_is_not_told_again(self) -> None:
        """No repr has a secret."""
        self.assertNotIn(KEY, repr(GUARD) + repr(Known("the session key", KEY)))

    def test_a_long_text(self) -> None:
        """Only so much of it is looked at, and that in a moment."""
        self.assertEqual(GUARD.secret_in("x" * TEXT_BOUND + KEY), "")
        self.assertEqual(GUARD.secret_in(("-----BEGIN " * 90_000) + KEY), "the session key")

    @settings(max_examples=100)
    @given(st.text(min_size=UNMISTAKABLE, max_size=40), st.text(max_size=40), st.text(max_size=40))
    def test_any_secret_is_found(self, secret: str, before: str, after: str) -> None:
        """Wherever it stands, whatever its letters."""
        self.assertEqual(guard(secret).secret_in(before + secret + after), "it")


class PrivateKeyTests(SynchronousTestCase):
    """Keys that nobody has to know."""

    def test_blocks(self) -> None:
        """PEM, OpenSSH, OpenPGP, PuTTY and age; quoted, indented, as a string of JSON."""
        for text in (
            f"-----BEGIN PRIVATE KEY-----\n{BODY}\n",
            f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,ABCD\n\n{BODY}",
            f"-----BEGIN EC PRIVATE KEY-----\r\n{BODY}",
            f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{BODY}",
            f"> -----BEGIN OPENSSH PRIVATE KEY-----\n> {BODY}",
            f'{{"private_key": "-----BEGIN PRIVATE KEY-----\\n{BODY}\\n"}}',
            f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\nComment: x\n\n{BODY}",
            "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none",
            "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        ):
            self.assertEqual(Guard().secret_in(text), PRIVATE_KEY, text)
            self.assertEqual(Guard().secret_in_file(text.encode()), PRIVATE_KEY, text)

    def test_what_is_none(self) -> None:
        """Public keys, certificates, and talk about keys."""
        for text in (
            f"-----BEGIN PUBLIC KEY-----\n{BODY}",
            f"-----BEGIN CERTIFICATE-----\n{BODY}",
            f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{BODY}",
            "The file has to begin with `-----BEGIN PRIVATE KEY-----`; yours does not.",
            "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        ):
            self.assertEqual(Guard().secret_in(text), "", text)

    def test_files(self) -> None:
        """Text is read, whatever its encoding; pictures are looked through for private keys alone."""
        self.assertEqual(GUARD.secret_in_file(f"\xff {KEY}".encode("latin-1")), "the session key")
        self.assertEqual(GUARD.secret_in_file(b"\x89PNG\0" + KEY.encode()), "")
        block = f"-----BEGIN PRIVATE KEY-----\n{BODY}".encode()
        self.assertEqual(GUARD.secret_in_file(b"\x7fELF\0" + block), PRIVATE_KEY)
