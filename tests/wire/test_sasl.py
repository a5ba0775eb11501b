"""SASL: which mechanism is taken, what it says, and that it says it once."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire.sasl import BearerToken, Credential, Mechanism, Password, choose

PASSWORD = Password("agent@example.org", "hunter2")
TOKEN = BearerToken("agent,a=b@example.org", "imap.example.org", 993, "ya29.secret")
ALL = ["login", "XOAUTH2", "Plain", "oauthbearer", "CRAM-MD5", "GSSAPI"]


class ChooseTests(SynchronousTestCase):
    """Our order of preference, whatever the server's order and case."""

    def chosen(self, credential: Credential, *offered: str) -> str | None:
        """The name of the chosen mechanism."""
        mechanism = choose(offered, credential)
        return None if mechanism is None else mechanism.name

    def test_preferences(self) -> None:
        """Each kind of credential finds its mechanisms in our order, and nothing weaker."""
        slashed = Password("owner@example.org/shared", "x")
        for credential, offered, name in (
            (PASSWORD, ALL, "PLAIN"),
            (PASSWORD, ["login"], "LOGIN"),
            (PASSWORD, ["XOAUTH2", "GSSAPI", "CRAM-MD5"], None),
            (PASSWORD, [], None),
            (TOKEN, ALL, "OAUTHBEARER"),
            (TOKEN, ["xoauth2"], "XOAUTH2"),
            (TOKEN, ["PLAIN", "LOGIN"], None),
            (slashed, ALL, "LOGIN"),
            (slashed, ["PLAIN"], "PLAIN"),
            (Password("DOMAIN\\me", "x"), ALL, "LOGIN"),
            (Password("me", "a\0b"), ALL, "LOGIN"),
            (Password("me", "a\0b"), ["PLAIN"], None),
        ):
            self.assertEqual(self.chosen(credential, *offered), name, (credential, offered))


class PasswordTests(SynchronousTestCase):
    """PLAIN and LOGIN."""

    def mechanism(self, name: str, credential: Credential = PASSWORD) -> Mechanism:
        """One fresh exchange."""
        mechanism = choose([name], credential)
        assert mechanism is not None
        return mechanism

    def test_plain_has_no_authorization_identity(self) -> None:
        """The server derives it; a second form would count as a second attempt."""
        self.assertEqual(self.mechanism("PLAIN").initial(), b"\0agent@example.org\0hunter2")

    def test_plain_is_utf8(self) -> None:
        """Passwords are text and travel as UTF-8."""
        plain = self.mechanism("PLAIN", Password("jörg", "pässword"))
        self.assertEqual(plain.initial(), "\0jörg\0pässword".encode())

    def test_plain_without_initial_response(self) -> None:
        """The first challenge is the invitation; a second one ends the exchange."""
        plain = self.mechanism("PLAIN")
        self.assertEqual(plain.respond(b""), b"\0agent@example.org\0hunter2")
        self.assertIsNone(plain.respond(b""))

    def test_plain_is_not_said_twice_after_an_initial_response(self) -> None:
        """A challenge after the initial response is not an invitation."""
        plain = self.mechanism("PLAIN")
        plain.initial()
        self.assertIsNone(plain.respond(b"again?"))

    def test_login_answers_by_order(self) -> None:
        """The words of the questions do not matter, and there are two."""
        login = self.mechanism("LOGIN")
        self.assertIsNone(login.initial())
        self.assertEqual(login.respond(b"Benutzername"), b"agent@example.org")
        self.assertEqual(login.respond(b"?"), b"hunter2")
        self.assertIsNone(login.respond(b"Password:"))

    def test_nothing_shows_the_password(self) -> None:
        """Not the credential and not the exchanges."""
        for shown in (PASSWORD, self.mechanism("PLAIN"), self.mechanism("LOGIN")):
            self.assertNotIn("hunter2", repr(shown))


class TokenTests(SynchronousTestCase):
    """XOAUTH2 and OAUTHBEARER."""

    def mechanism(self, name: str) -> Mechanism:
        """One fresh exchange."""
        mechanism = choose([name], TOKEN)
        assert mechanism is not None
        return mechanism

    def test_xoauth2_message(self) -> None:
        """The form that Google describes."""
        self.assertEqual(
            self.mechanism("XOAUTH2").initial(),
            b"user=agent,a=b@example.org\x01auth=Bearer ya29.secret\x01\x01",
        )

    def test_oauthbearer_message(self) -> None:
        """The form of RFC 7628, with the GS2 escapes and the real host and port."""
        self.assertEqual(
            self.mechanism("OAUTHBEARER").initial(),
            b"n,a=agent=2Ca=3Db@example.org,\x01host=imap.example.org\x01port=993"
            b"\x01auth=Bearer ya29.secret\x01\x01",
        )

    def test_error_document_is_answered_once_and_kept(self) -> None:
        """The dummy answer differs by mechanism; a second challenge cancels; the token is not said again."""
        for name, dummy in (("XOAUTH2", b""), ("OAUTHBEARER", b"\x01")):
            mechanism = self.mechanism(name)
            self.assertEqual(mechanism.failure, "")
            mechanism.initial()
            self.assertEqual(mechanism.respond(b'{"status":"401","schemes":"Bearer"}'), dummy)
            self.assertEqual(mechanism.failure, "401")
            self.assertIsNone(mechanism.respond(b'{"status":"400"}'))
            self.assertEqual(mechanism.failure, "401")

    def test_the_invitation_is_not_an_error(self) -> None:
        """Without an initial response the first, empty challenge asks for the token."""
        mechanism = self.mechanism("XOAUTH2")
        self.assertEqual(mechanism.respond(b""), self.mechanism("XOAUTH2").initial())
        self.assertEqual(mechanism.respond(b'{"status": "invalid_token"}'), b"")
        self.assertEqual(mechanism.failure, "invalid_token")

    def test_numbers_are_taken_as_status(self) -> None:
        """Some servers write the status as a number."""
        mechanism = self.mechanism("XOAUTH2")
        mechanism.initial()
        mechanism.respond(b'{"status":400}')
        self.assertEqual(mechanism.failure, "400")

    @given(st.binary(max_size=200) | st.just(b"[" * 4000) | st.just(b'{"status":"' + b"x" * 9000 + b'"}'))
    def test_any_document_is_survived(self, document: bytes) -> None:
        """Rubbish is answered like any error, and nothing unprintable is kept of it."""
        mechanism = self.mechanism("XOAUTH2")
        mechanism.initial()
        self.assertEqual(mechanism.respond(document), b"")
        self.assertRegex(mechanism.failure, r"\A[A-Za-z0-9_.-]{0,40}\Z")

    def test_separators_cannot_be_smuggled(self) -> None:
        """A field with a control character is refused, without showing it."""
        with self.assertRaises(ValueError) as caught:
            BearerToken("me", "host", 1, "to\x01ken")
        self.assertNotIn("ken", str(caught.exception).replace("token", ""))
        with self.assertRaises(ValueError):
            BearerToken("me\x01auth=Bearer x", "host", 1, "token")

    def test_nothing_shows_the_token(self) -> None:
        """Not the credential and not the exchanges."""
        for shown in (TOKEN, self.mechanism("XOAUTH2"), self.mechanism("OAUTHBEARER")):
            self.assertNotIn("ya29", repr(shown))
