"""The submission client up to the first mail: greeting, TLS and the one login."""

from base64 import b64encode

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    ProtocolViolation,
    Throttled,
    TlsRefused,
    Unreachable,
)
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.smtp import SmtpConnection
from mailgateway.settings import Tls
from mailgateway.wire.sasl import Password
from tests.fakes.smtp_script import Action, Script
from tests.protocols.smtp_talk import (
    AGENT,
    LOCAL,
    REMOTE,
    TOKEN,
    Talk,
    TalkTestCase,
)


class LoginTests(TalkTestCase):
    """One attempt, by the right mechanism, and never in clear over a network."""

    def test_refusals_before_the_first_mail(self) -> None:
        """Each step on the way, with the error that says who must act."""
        table: list[tuple[str, Action, type[PeerError]]] = [
            ("GREETING", "421 4.3.2 too busy", Throttled),
            ("GREETING", "554 5.7.1 blocked", CommandRefused),
            ("GREETING", b"* OK IMAP4rev1\r\n", ProtocolViolation),
            ("GREETING", b"220-" + b"x" * 20_000 + b"\r\n", ProtocolViolation),
            ("GREETING", b"220-x\r\n" * 300, ProtocolViolation),
            ("EHLO", "502 5.5.1 no", CommandRefused),
            ("EHLO", "421 closing", Throttled),
            ("LOGIN", "454 4.7.0 temporary", LoginUnavailable),
            ("LOGIN", "454 4.7.0 Too many login attempts", Throttled),
            ("LOGIN", "535 5.7.8 bad", LoginRefused),
            ("LOGIN", "534 5.7.9 application password needed", LoginRefused),
            ("LOGIN", "535 5.7.139 SmtpClientAuthentication is disabled", LoginRefused),
            ("LOGIN", "421 bye", Throttled),
            ("LOGIN", "500 what?", CommandRefused),
            ("LOGIN", "334 and now?", CommandRefused),  # to our ``*``, which it does not know
        ]
        for point, action, kind in table:
            script = Script()
            script.answer(point, action)
            talk = Talk(script)
            self.assertIs(type(self.unopened(talk)), kind, (point, action))
            self.assertLessEqual(script.logins, 1)
            self.assertNotIn("MAIL", script.verbs())

    def test_closing_after_the_login(self) -> None:
        """The server lets us in and closes at once."""
        script = Script()
        script.answer("EHLO", "250-a\r\n250 AUTH PLAIN", "421 4.3.2 closing")
        self.assertIsInstance(self.unopened(Talk(script)), Throttled)

    def test_what_came_before_anybody_waited(self) -> None:
        """The failure is kept for the owner, who may ask late and more than once; success needs no wait."""
        script = Script()
        script.answer("GREETING", "554 5.7.1 blocked")
        talk = Talk(script)
        talk.pump.flush()
        for _ in range(2):
            self.assertIsInstance(self.unopened(talk), CommandRefused)
        talk = Talk()
        talk.pump.flush()
        self.successResultOf(talk.start(talk.client.opened()))

    def test_a_wrong_password_is_tried_once(self) -> None:
        """Providers count attempts, so there is no second form of the same credential."""
        talk = Talk(credential=Password("agent", "wrong"))
        self.assertIsInstance(self.unopened(talk), LoginRefused)
        self.assertEqual(talk.script.logins, 1)

    def test_login_mechanism(self) -> None:
        """Two questions for a server that knows no better."""
        self.open(Script(extensions=["AUTH LOGIN"]))

    def test_old_spelling(self) -> None:
        """``AUTH=PLAIN`` in lower case, and an empty line, are understood."""
        talk = self.open(Script(extensions=["", "auth=plain"]))
        self.assertEqual(talk.script.logins, 1)

    def test_a_long_password_waits_for_the_invitation(self) -> None:
        """The AUTH line stays below 512 octets."""
        long = "p" * 500
        talk = self.open(Script(users={"agent": long}), Password("agent", long))
        self.assertIn(b"AUTH PLAIN", talk.script.commands)

    def test_an_invitation_in_plain_words(self) -> None:
        """Some servers do not encode it."""
        long = "p" * 500
        script = Script(users={"agent": long})
        script.answer("AUTH", b"334 go on, please!\r\n")
        script.answer("UNKNOWN", "235 2.7.0 welcome")
        talk = Talk(script, Password("agent", long))
        self.successResultOf(talk.start(talk.client.opened()))
        self.assertIn(b64encode(b"\0agent\0" + long.encode()), talk.script.commands)

    def test_token(self) -> None:
        """A token goes after the invitation, by the better mechanism."""
        for names, mechanism in (("XOAUTH2 OAUTHBEARER PLAIN", b"OAUTHBEARER"), ("XOAUTH2", b"XOAUTH2")):
            talk = self.open(Script(tokens={"agent": "good-token"}, extensions=["AUTH " + names]), TOKEN)
            self.assertEqual(talk.script.commands[1], b"AUTH " + mechanism)

    def test_refused_token(self) -> None:
        """The error document is answered, its status is told, and the token is said once."""
        for mechanism, dummy in (("XOAUTH2", b""), ("OAUTHBEARER", b"AQ==")):
            script = Script(tokens={"agent": "another"}, extensions=["AUTH " + mechanism])
            talk = Talk(script, TOKEN)
            error = self.unopened(talk)
            self.assertIsInstance(error, LoginRefused)
            self.assertEqual(error.code, "535 401")
            self.assertEqual(script.commands[-1], dummy)
            self.assertEqual(len(script.commands), 4)

    def test_a_second_challenge_is_cancelled(self) -> None:
        """A server that goes on asking gets no second token."""
        script = Script(tokens={"agent": "another"}, extensions=["AUTH XOAUTH2"])
        script.answer("LOGIN", "334 eyJ9", "501 5.7.0 cancelled")
        talk = Talk(script, TOKEN)
        opened = talk.start(talk.client.opened())
        talk.server.lineReceived(b"AUTH X")
        self.assertEqual(script.commands[4], b"*")
        talk.server.sendLine(b"501 5.7.0 cancelled")
        talk.pump.flush()
        self.assertIsInstance(self.error_of(opened), LoginRefused)

    def test_no_mechanism(self) -> None:
        """The error names what is offered; nothing is tried."""
        for extensions, offered in ((["AUTH GSSAPI NTLM"], "GSSAPI, NTLM"), (["HELP"], "none")):
            error = self.unopened(Talk(Script(extensions=extensions)))
            self.assertIsInstance(error, LoginUnavailable)
            self.assertIn(offered, error.text)

    def test_secrets_stay_inside(self) -> None:
        """A server that echoes the command does not get the password into our error, nor does its repr."""
        script = Script(extensions=["AUTH PLAIN"])
        script.answer("LOGIN", "500 unknown command: AUTH PLAIN AGFnZW50AHNlY3JldA== secret")
        talk = Talk(script)
        error = self.unopened(talk)
        shown = f"{error} {error!r} {error.__dict__} {talk.client!r} {Failure(error).getTraceback()}"
        self.assertIn("***", shown)
        for secret in ("AGFnZW50AHNlY3JldA==", "secret"):
            self.assertNotIn(secret, shown)


class TlsTests(TalkTestCase):
    """TLS is what the settings say, and nothing slips in before it."""

    def test_starttls_not_offered(self) -> None:
        """Then there is no login, however much it is offered."""
        talk = Talk(peer=REMOTE)
        refused = self.unopened(talk)
        self.assertIsInstance(refused, TlsRefused)
        self.assertIn("port 465", str(refused))
        self.assertEqual(talk.script.logins, 0)

    def test_starttls_refused(self) -> None:
        """Offered, and then not."""
        for reply, kind in (("502 no", TlsRefused), ("454 4.7.0 not now", Unreachable)):
            script = Script(extensions=["STARTTLS", "AUTH PLAIN"])
            script.answer("STARTTLS", reply)
            talk = Talk(script, peer=REMOTE)
            self.assertIsInstance(self.unopened(talk), kind)
            self.assertEqual(script.logins, 0)

    def test_injected_bytes(self) -> None:
        """Anything behind the answer to STARTTLS, even half a line, ends the connection."""
        for injected in (b"250 AUTH PLAIN\r\n", b"2"):
            script = Script(extensions=["STARTTLS"])
            script.answer("STARTTLS", b"220 go ahead\r\n" + injected)
            talk = Talk(script, peer=REMOTE)
            error = self.unopened(talk)
            self.assertIsInstance(error, TlsRefused)
            self.assertEqual(script.verbs(), ["EHLO", "STARTTLS"])

    def test_implicit_tls_is_not_taken_for_granted(self) -> None:
        """A transport without TLS is found out before the login."""
        talk = Talk(peer=Peer("127.0.0.1", 465, Tls.IMPLICIT))
        self.assertIsInstance(self.unopened(talk), TlsRefused)
        self.assertEqual(talk.script.logins, 0)

    def test_no_password_in_clear_over_a_network(self) -> None:
        """Without TLS both the name and the address must be this machine's."""
        talk = Talk(peer=Peer("smtp.example", 25, Tls.NONE))
        self.assertIsInstance(self.unopened(talk), TlsRefused)
        self.assertEqual(talk.script.logins, 0)
        client = SmtpConnection(Clock(), LOCAL, AGENT, "box")
        transport = StringTransport(peerAddress=IPv4Address("TCP", "192.0.2.1", 587))
        client.makeConnection(transport)
        opened = Deferred.fromCoroutine(client.opened())
        client.dataReceived(b"220 hi\r\n250 AUTH PLAIN\r\n")
        self.failureResultOf(opened, TlsRefused)
        self.assertNotIn(b"AUTH", transport.value())
