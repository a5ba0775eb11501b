"""What went wrong with a server, in words: each class has its own sentence, by code and not by text."""

import itertools

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    ProtocolViolation,
    Throttled,
    TlsRefused,
    TokenUnavailable,
    Unreachable,
)
from mailgateway.ids import AccountName
from mailgateway.operator.troubles import Door, advice_on_source
from mailgateway.protocols.dial import REFUSED, TOO_LATE, TlsTrouble
from mailgateway.secrets import (
    Credential,
    OAuthGrant,
    PasswordCommand,
    PasswordEnv,
    SecretSource,
    TokenCommand,
)
from mailgateway.settings import Account, ServerSettings, Tls


def door(name: str = "imap", host: str = "mail.example.org", secret: SecretSource | None = None) -> Door:
    """A server of an account."""
    server = ServerSettings(
        host=host,
        port=993,
        tls=Tls.IMPLICIT,
        ca_file=None,
        username="agent",
        secret=secret or PasswordEnv("SECRET"),
    )
    account = Account(
        tag=AccountName("main"),
        address="agent@example.org",
        from_name="",
        watch=("INBOX",),
        sent_folder="",
        plus_address=False,
        imap=server,
        smtp=server,
    )
    return Door(account, name)


EACH: dict[str, PeerError] = {
    "refused port": Unreachable("x", code=REFUSED),
    "silence": Unreachable("x", code=TOO_LATE),
    "loss": Unreachable("x"),
    "violation": ProtocolViolation("x"),
    "throttled": Throttled("x"),
    "wrong password": LoginRefused("x", code="AUTHENTICATIONFAILED"),
    "switched off": LoginRefused("x", code="535 5.7.139"),
    "unavailable": LoginUnavailable("x", code="UNAVAILABLE"),
    "no mechanism": LoginUnavailable("x", code="no-mechanism"),
    "no token": TokenUnavailable("x"),
    **{each.value: TlsRefused("x", code=each) for each in TlsTrouble},
    "other TLS": TlsRefused("x"),
}


class TroubleTests(SynchronousTestCase):
    """The words."""

    def test_what_to_do_differs_where_it_is_different(self) -> None:
        """Of any two classes the advice, or the place, is another one; but where the same has to be done."""
        same = {
            frozenset(("EXPIRED", "REVOKED")),
            frozenset(("SELF-SIGNED", "UNKNOWN-AUTHORITY")),
            frozenset(("loss", "violation")),
        }
        told = {name: door().trouble(error) for name, error in EACH.items()}
        for one, two in itertools.combinations(told, 2):
            alike = (told[one].step, told[one].advice) == (told[two].step, told[two].advice)
            self.assertEqual(alike, frozenset((one, two)) in same, f"{one}, {two}")
        for name, trouble in told.items():
            self.assertIn("x", trouble.what, name)
            self.assertTrue(trouble.advice, name)

    def test_only_a_wrong_credential_is_a_login(self) -> None:
        """Setup asks for the password again at that step, and at no other."""
        steps = {name for name, error in EACH.items() if door().trouble(error).step == "login"}
        self.assertEqual(steps, {"wrong password"})

    def test_imap_and_smtp_say_no_mechanism_alike(self) -> None:
        """Each protocol has its own code for it."""
        told = [
            door().trouble(error)
            for error in (LoginUnavailable("x", code="no-mechanism"), CommandRefused("x", code="NOMECHANISM"))
        ]
        self.assertEqual(told[0], told[1])
        token = door(secret=TokenCommand("t")).trouble(CommandRefused("x", code="NOMECHANISM"))
        self.assertIn("takes no tokens", token.advice)

    def test_what_is_known_of_a_provider(self) -> None:
        """The hint of its row stands beside the usual advice, at both doors."""
        refused = LoginRefused("x", code="535 5.7.8")
        self.assertIn("app password", door(host="imap.gmail.com").trouble(refused).advice)
        self.assertIn("app password", door("smtp", "smtp.gmail.com").trouble(refused).advice)
        self.assertNotIn("it may also mean", door().trouble(refused).advice)

    def test_tokens(self) -> None:
        """A refused one, or none, is a matter of signing in, and never of a password."""
        for error in (LoginRefused("x", code="invalid_token"), TokenUnavailable("x")):
            told = door(secret=OAuthGrant("work")).trouble(error)
            self.assertIn("mailgateway auth work", told.advice)
            self.assertNotIn("password", told.what + told.advice)
        self.assertIn("`token_command`", door(secret=TokenCommand("t")).trouble(LoginRefused("x")).advice)

    def test_sources(self) -> None:
        """Each kind of source is mended in its own way."""
        told = [
            advice_on_source(each)
            for each in (OAuthGrant("a"), PasswordCommand("c"), Credential("c"), PasswordEnv("E"))
        ]
        self.assertEqual(len(set(told)), 4)

    def test_tables_are_named_as_they_are_written(self) -> None:
        """Who reads it finds the place in the file."""
        told = door("smtp").trouble(TlsRefused("x", code=TlsTrouble.SELF_SIGNED))
        self.assertIn("`ca_file` in [accounts.main.smtp]", told.advice)
        self.assertIn("port 465", door("smtp").trouble(Unreachable("x")).advice)
