"""The submission client against a scripted server in memory, with a clock that tests move."""

from base64 import b64encode
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.protocols.basic import FileSender
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

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
from mailgateway.protocols.dial import Peer, Tls
from mailgateway.protocols.smtp import MAX_MAILS, SmtpConnection, Submission
from mailgateway.protocols.smtp_session import DEADLINES
from mailgateway.wire.sasl import BearerToken, Credential, Password
from mailgateway.wire.smtp_outcome import (
    Accepted,
    Outcome,
    Phase,
    Rejected,
    SubmissionResult,
    TryLater,
    Unclear,
)
from tests.fakes.smtp_script import DROP, HANG, Action, Script, SmtpServer, in_memory

T = TypeVar("T")

AGENT = Password("agent", "secret")
TOKEN = BearerToken("agent", "smtp.example", 465, "good-token")
LOCAL = Peer("127.0.0.1", 587, Tls.NONE)
MESSAGE = b"Subject: hi\r\n\r\n.hello\r\n..\r\nbye\r\n"


def mail(*recipients: str, message: bytes = MESSAGE, sender: str = "agent@example.org") -> Submission:
    """One mail, to bob unless told otherwise."""
    return Submission(sender, recipients or ("bob@example.org",), message)


class Talk:
    """A client and a scripted server, joined in memory."""

    def __init__(
        self, script: Script | None = None, credential: Credential | None = AGENT, peer: Peer = LOCAL
    ) -> None:
        self.script = script or Script()
        self.clock = Clock()
        self.client = SmtpConnection(self.clock, peer, credential, "box.example")
        self.server = SmtpServer(self.script)
        self.pump = in_memory(self.client, self.server, self.clock)

    def start(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Begin something and let all bytes flow."""
        running = Deferred.fromCoroutine(work)
        self.pump.flush()
        return running

    def gone(self) -> bool:
        """Whether the client has let go of the connection, and of its timer."""
        return bool(self.pump.clientIO.disconnecting) and not self.clock.getDelayedCalls()


def bare_client() -> tuple[SmtpConnection, StringTransport, Clock]:
    """A client that waits for its first mail, and whose server is the test itself."""
    client = SmtpConnection(clock := Clock(), LOCAL, None, "box")
    transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 587))
    client.makeConnection(transport)
    client.dataReceived(b"220 hi\r\n250 hi\r\n")
    return client, transport, clock


class TalkTestCase(SynchronousTestCase):
    """What the tests below share."""

    def open(self, script: Script | None = None, credential: Credential | None = AGENT) -> Talk:
        """A talk that has come to the first mail."""
        talk = Talk(script, credential)
        self.successResultOf(talk.start(talk.client.opened()))
        return talk

    def sent(self, talk: Talk, submission: Submission | None = None) -> SubmissionResult:
        """How a mail fared."""
        return self.successResultOf(talk.start(talk.client.send(submission or mail())))

    def unsent(self, talk: Talk, submission: Submission | None = None) -> PeerError:
        """Why a mail could not be sent."""
        return self.error_of(talk.start(talk.client.send(submission or mail())))

    def unopened(self, talk: Talk) -> PeerError:
        """Why the connection did not come to its first mail."""
        error = self.error_of(talk.start(talk.client.opened()))
        self.assertTrue(talk.gone())
        return error

    def error_of(self, running: Deferred[Any]) -> PeerError:
        """The error that ended it."""
        error = self.failureResultOf(running).value
        assert isinstance(error, PeerError), error
        return error


class SendTests(TalkTestCase):
    """Mails that go out."""

    def test_one_mail(self) -> None:
        """The server gets sender, recipients and bytes as they were given, and we get its last word."""
        talk = self.open()
        result = self.sent(talk, mail("bob@example.org", "Eve+x@example.org"))
        accepted = Accepted(250, "2.0.0 queued as Q1")
        self.assertEqual(result, SubmissionResult((accepted, accepted), "2.0.0 queued as Q1", True))
        taken = talk.script.taken[0]
        self.assertEqual(taken.message, MESSAGE)
        self.assertEqual(taken.recipients, ["bob@example.org", "Eve+x@example.org"])
        self.assertEqual(taken.mail_line, b"MAIL FROM:<agent@example.org> SIZE=%d" % len(MESSAGE))

    def test_dialogue(self) -> None:
        """The commands of a burst: one login, EHLO again after it, RSET between mails, QUIT at the end."""
        talk = self.open()
        for _ in range(3):
            self.sent(talk)
        leaving = talk.start(talk.client.quit())
        self.successResultOf(leaving)
        transaction = ["MAIL", "RCPT", "DATA"]
        self.assertEqual(
            talk.script.verbs(),
            ["EHLO", "AUTH", "EHLO", *transaction, "RSET", *transaction, "RSET", *transaction, "QUIT"],
        )
        self.assertEqual(talk.script.commands[0], b"EHLO box.example")
        self.assertEqual(len(talk.script.taken), 3)
        self.assertTrue(talk.gone())

    def test_a_connection_has_its_share(self) -> None:
        """After that many mails it is no longer usable, and says so loudly if asked all the same."""
        talk = self.open()
        for _ in range(MAX_MAILS):
            self.assertTrue(talk.client.usable)
            self.sent(talk)
        self.assertFalse(talk.client.usable)
        self.failureResultOf(talk.start(talk.client.send(mail())), RuntimeError)

    def test_one_mail_at_a_time(self) -> None:
        """A second one beside the first is a mistake of the caller."""
        script = Script()
        script.answer("RCPT", HANG)
        talk = self.open(script)
        first = talk.start(talk.client.send(mail()))
        self.failureResultOf(talk.start(talk.client.send(mail())), RuntimeError)
        self.assertNoResult(first)

    def test_eight_bit(self) -> None:
        """BODY=8BITMIME goes with 8-bit bytes only."""
        talk = self.open()
        self.sent(talk, mail(message=b"\r\n\xe4\r\n"))
        self.assertEqual(talk.script.taken[0].mail_line.split()[-1], b"BODY=8BITMIME")

    def test_without_extensions(self) -> None:
        """A bare server gets bare commands."""
        talk = self.open(Script(extensions=["HELP"]), None)
        self.sent(talk, mail(message=b"\r\n\xe4\r\n"))
        self.assertEqual(talk.script.taken[0].mail_line, b"MAIL FROM:<agent@example.org>")

    def test_size_after_login_counts(self) -> None:
        """A server may offer more, or less, once it knows who asks."""
        script = Script()
        script.answer("EHLO", "250-a\r\n250-SIZE 10\r\n250 AUTH PLAIN", "250-a\r\n250 SIZE 10000")
        talk = self.open(script)
        self.assertIsInstance(self.sent(talk).outcomes[0], Accepted)

    def test_no_second_greeting_wanted(self) -> None:
        """A server that refuses EHLO after the login has said before what it offers."""
        script = Script()
        script.answer("EHLO", "250-a\r\n250-SIZE 10\r\n250 AUTH PLAIN", "503 5.5.1 duplicate EHLO")
        talk = self.open(script)
        self.assertEqual(talk.client.offered.size, 10)


class ChunkTests(TalkTestCase):
    """What a message holds never becomes a command, wherever the blocks of the transfer end."""

    EVIL = b"\r\n.\r\nMAIL FROM:<evil@evil.example>\r\n..\r\n.x\r\n"

    def test_every_border_of_the_real_block_size(self) -> None:
        """The text that would end the mail, shifted across the end of the first block."""
        talk = self.open()
        for shift in range(8):
            before = b"x" * (FileSender.CHUNK_SIZE - len(b"A: b\r\n\r\n") - shift)
            message = b"A: b\r\n\r\n" + before + self.EVIL
            self.assertIsInstance(self.sent(talk, mail(message=message)).outcomes[0], Accepted)
            self.assertEqual(talk.script.taken[-1].message, message)
        self.assertNotIn(b"evil", b"".join(talk.script.commands))

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from([b".", b"\r\n", b"x", EVIL]), max_size=12), st.integers(1, 7))
    def test_any_message_in_any_blocks(self, pieces: list[bytes], size: int) -> None:
        """The same for any arrangement, and blocks of a few bytes."""
        self.patch(FileSender, "CHUNK_SIZE", size)
        message = b"".join(pieces) + b"\r\n"
        talk = self.open()
        self.sent(talk, mail(message=message))
        self.sent(talk, mail(message=message))
        self.assertEqual([taken.message for taken in talk.script.taken], [message, message])
        self.assertNotIn(b"evil", b"".join(talk.script.commands))

    def test_replies_byte_by_byte(self) -> None:
        """It does not matter how the server's bytes are cut."""
        client = SmtpConnection(Clock(), LOCAL, AGENT, "box")
        transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 587))
        client.makeConnection(transport)
        opened = Deferred.fromCoroutine(client.opened())
        replies = b"220-hi\r\n220 ho\r\n", b"250-a\r\n250 AUTH PLAIN\r\n", b"235 ok\r\n", b"250 a\r\n"
        for reply in replies:
            for at in range(len(reply)):
                client.dataReceived(reply[at : at + 1])
        self.successResultOf(opened)
        self.assertEqual(len(transport.value().splitlines()), 3)


class RefusalTests(TalkTestCase):
    """A server that says no, to a mail or to one of its recipients."""

    def test_each_point(self) -> None:
        """Every place where a mail can be refused, for now and for good; the connection stays usable."""
        later, never = "451 4.3.0 later", "550 5.7.1 never"
        for point in ("MAIL", "RCPT", "DATA", "END"):
            for reply, outcome in (
                (later, TryLater(451, "4.3.0 later")),
                (never, Rejected(550, "5.7.1 never")),
            ):
                script = Script()
                script.answer(point, reply)
                talk = self.open(script)
                result = self.sent(talk)
                self.assertEqual(result.outcomes, (outcome,), (point, reply))
                self.assertEqual(result.dot_written, point == "END")
                self.assertIn(reply[4:], result.text)
                self.assertTrue(talk.client.usable)
                self.assertIsInstance(self.sent(talk).outcomes[0], Accepted)

    def test_some_recipients(self) -> None:
        """Those who were accepted get the mail, the others keep their own answers."""
        script = Script()
        script.answer("RCPT", "250 ok", "450 4.2.0 greylisted", "550 5.1.1 unknown", "251 forwarded")
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org", "c@x.org", "d@x.org"))
        accepted = Accepted(250, "2.0.0 queued as Q1")
        self.assertEqual(
            result.outcomes,
            (accepted, TryLater(450, "4.2.0 greylisted"), Rejected(550, "5.1.1 unknown"), accepted),
        )

    def test_the_dot_refused_for_some(self) -> None:
        """What the final dot decides holds for the accepted ones only."""
        script = Script()
        script.answer("RCPT", "550 5.1.1 unknown", "250 ok")
        script.answer("END", "452 4.2.2 full")
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org"))
        self.assertEqual(result.outcomes, (Rejected(550, "5.1.1 unknown"), TryLater(452, "4.2.2 full")))

    def test_421_at_each_point(self) -> None:
        """The server closes: nobody got the mail, it may go later, and the connection is over."""
        for point in ("MAIL", "RCPT", "DATA", "END"):
            script = Script()
            script.answer(point, "421 4.7.0 too many messages")
            talk = self.open(script)
            result = self.sent(talk, mail("a@x.org", "b@x.org"))
            later = TryLater(421, "4.7.0 too many messages")
            self.assertEqual(result.outcomes, (later, later), point)
            self.assertFalse(talk.client.usable)
            self.assertTrue(talk.gone())
            self.assertIsInstance(self.unsent(talk), Throttled)

    def test_421_keeps_what_was_refused_for_good(self) -> None:
        """One recipient was unknown before the server closed, and stays so."""
        script = Script()
        script.answer("RCPT", "550 5.1.1 unknown", "421 4.3.2 closing")
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org", "c@x.org"))
        later = TryLater(421, "4.3.2 closing")
        self.assertEqual(result.outcomes, (Rejected(550, "5.1.1 unknown"), later, later))

    def test_421_between_mails(self) -> None:
        """The next mail has not been begun, so it is the connection's failure."""
        script = Script()
        script.answer("RSET", "421 4.7.0 too many messages")
        talk = self.open(script)
        self.sent(talk)
        self.assertIsInstance(self.unsent(talk), Throttled)

    def test_login_called_for(self) -> None:
        """530 is about us and not about the mail."""
        for point in ("MAIL", "RCPT"):
            script = Script()
            script.answer(point, "530 5.7.0 authentication required")
            self.assertIsInstance(self.unsent(self.open(script, None)), LoginRefused)

    def test_refused_in_the_middle(self) -> None:
        """An answer before the final dot ends the connection, since the dialogue is out of step."""
        script = Script()
        script.answer("BODY", "552 5.3.4 too much")
        talk = self.open(script)
        result = self.sent(talk, mail(message=b"x\r\n" * 30_000))
        self.assertEqual(result.outcomes, (Rejected(552, "5.3.4 too much"),))
        self.assertFalse(result.dot_written)
        self.assertTrue(talk.gone())

    def test_a_yes_to_another_question(self) -> None:
        """A server that answers DATA with 250 has lost the thread; it gets no message."""
        script = Script()
        script.answer("DATA", "250 2.0.0 queued")
        talk = self.open(script)
        self.assertIsInstance(self.unsent(talk), ProtocolViolation)
        self.assertTrue(talk.gone())

    def test_accepted_in_the_middle(self) -> None:
        """A yes before the final dot cannot mean this mail."""
        script = Script()
        script.answer("BODY", "250 queued")
        talk = self.open(script)
        self.assertIsInstance(self.unsent(talk, mail(message=b"x\r\n" * 30_000)), ProtocolViolation)


class LocalRefusalTests(TalkTestCase):
    """What cannot be sent as it stands is told without asking the server."""

    def test_whole_mail(self) -> None:
        """Too large, not well-formed, or from an address that cannot be written."""
        talk = self.open(Script(extensions=["SIZE 100", "AUTH PLAIN"]))
        for submission, code in (
            (mail(message=b"x" * 99 + b"\r\n"), 552),
            (mail(message=b"a\nb\r\n"), 554),
            (mail(message=b"a\rb\r\n"), 554),
            (mail(sender="me@x> SIZE=1"), 553),
            (mail(sender=""), 553),
            (mail(sender="jörg@example.org"), 553),
        ):
            before = len(talk.script.commands)
            result = self.sent(talk, submission)
            assert isinstance(result.outcomes[0], Rejected)
            self.assertEqual(result.outcomes[0].code, code)
            self.assertFalse(result.dot_written)
            self.assertEqual(len(talk.script.commands), before)
        self.assertTrue(talk.client.usable)

    def test_one_recipient(self) -> None:
        """The others still get the mail, and each keeps its place."""
        talk = self.open()
        result = self.sent(talk, mail("a@x\r\nDATA", "b@x.org", "jörg@x.org"))
        self.assertEqual([type(each) for each in result.outcomes], [Rejected, Accepted, Rejected])
        self.assertEqual(talk.script.taken[0].recipients, ["b@x.org"])

    def test_international(self) -> None:
        """A server with SMTPUTF8 takes the address, and is told so."""
        talk = self.open(Script(extensions=["SMTPUTF8", "AUTH PLAIN"]))
        self.assertIsInstance(self.sent(talk, mail("jörg@bücher.example")).outcomes[0], Accepted)
        self.assertEqual(talk.script.taken[0].recipients, ["jörg@xn--bcher-kva.example"])
        self.assertEqual(talk.script.taken[0].mail_line.split()[-1], b"SMTPUTF8")


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
            self.assertEqual(error.code, "401")
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

    REMOTE = Peer("smtp.example", 587, Tls.STARTTLS)

    def test_starttls_not_offered(self) -> None:
        """Then there is no login, however much it is offered."""
        talk = Talk(peer=self.REMOTE)
        self.assertIsInstance(self.unopened(talk), TlsRefused)
        self.assertEqual(talk.script.logins, 0)

    def test_starttls_refused(self) -> None:
        """Offered, and then not."""
        for reply, kind in (("502 no", TlsRefused), ("454 4.7.0 not now", Unreachable)):
            script = Script(extensions=["STARTTLS", "AUTH PLAIN"])
            script.answer("STARTTLS", reply)
            talk = Talk(script, peer=self.REMOTE)
            self.assertIsInstance(self.unopened(talk), kind)
            self.assertEqual(script.logins, 0)

    def test_injected_bytes(self) -> None:
        """Anything behind the answer to STARTTLS, even half a line, ends the connection."""
        for injected in (b"250 AUTH PLAIN\r\n", b"2"):
            script = Script(extensions=["STARTTLS"])
            script.answer("STARTTLS", b"220 go ahead\r\n" + injected)
            talk = Talk(script, peer=self.REMOTE)
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


BEFORE_THE_MAIL = (("GREETING", Phase.GREETING), ("EHLO", Phase.EHLO), ("LOGIN", Phase.AUTH))
IN_THE_MAIL = (
    ("MAIL", Phase.MAIL),
    ("RCPT", Phase.RCPT),
    ("DATA", Phase.DATA),
    ("END", Phase.END),
)


class LossTests(TalkTestCase):
    """The connection is lost, at each point."""

    def test_before_the_first_mail(self) -> None:
        """There is no connection, and nothing of it is left."""
        for point, phase in BEFORE_THE_MAIL:
            script = Script()
            script.answer(point, DROP)
            error = self.unopened(Talk(script))
            self.assertIsInstance(error, Unreachable)
            self.assertIn(phase, error.text)

    def test_in_a_mail(self) -> None:
        """Before the final dot nobody has the mail; after it nobody knows."""
        for point, _ in IN_THE_MAIL:
            script = Script()
            script.answer(point, DROP)
            talk = self.open(script)
            if point == "END":
                result = self.sent(talk, mail("a@x.org", "b@x.org"))
                self.assertEqual([type(each) for each in result.outcomes], [Unclear, Unclear])
                self.assertTrue(result.dot_written)
            else:
                self.assertIsInstance(self.unsent(talk), Unreachable)
                self.assertFalse(talk.client.dot_written)
            self.assertTrue(talk.gone())
            self.assertFalse(talk.client.usable)

    def test_unclear_for_the_accepted_only(self) -> None:
        """Who was refused before, was refused."""
        script = Script()
        script.answer("RCPT", "550 5.1.1 unknown")
        script.answer("END", DROP)
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org"))
        self.assertEqual([type(each) for each in result.outcomes], [Rejected, Unclear])

    def test_in_the_message(self) -> None:
        """Half a message is none."""
        client, transport, _ = bare_client()
        running = Deferred.fromCoroutine(client.send(mail(message=b"x\r\n" * 20_000)))
        for reply in (b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"):
            client.dataReceived(reply)
        producer: Any = transport.producer
        producer.resumeProducing()
        client.connectionLost(Failure(ConnectionLost()))
        producer.stopProducing()  # as a real transport tells it, too
        self.assertIsInstance(self.error_of(running), Unreachable)
        self.assertNotIn(b"\r\n.\r\n", transport.value())

    def test_between_mails(self) -> None:
        """An idle connection that went away is found out at the next mail, which is untouched."""
        talk = self.open()
        self.sent(talk)
        talk.server.sendLine(b"421 4.4.2 idle for too long")
        talk.pump.flush()
        self.assertFalse(talk.client.usable)
        self.assertIsInstance(self.unsent(talk), Unreachable)
        self.assertEqual(len(talk.script.taken), 1)

    def test_chatter_between_mails(self) -> None:
        """A server that answers what was not asked is out of step, and not trusted with a mail."""
        talk = self.open()
        talk.server.sendLine(b"250 queued")
        talk.pump.flush()
        self.assertIsInstance(self.unsent(talk), ProtocolViolation)


class DeadlineTests(TalkTestCase):
    """The server says nothing any more, at each point."""

    def hang(self, talk: Talk, phase: Phase, running: Deferred[Any]) -> None:
        """Nothing happens until the deadline of the phase, and then the connection is aborted."""
        self.assertNoResult(running)
        talk.clock.advance(DEADLINES[phase] - 1)
        talk.pump.flush()
        self.assertNoResult(running)
        self.assertFalse(talk.gone())
        talk.clock.advance(1)
        self.assertTrue(talk.gone())

    def test_before_the_first_mail(self) -> None:
        """Greeting, EHLO, login."""
        for point, phase in BEFORE_THE_MAIL:
            script = Script()
            script.answer(point, HANG)
            talk = Talk(script)
            opened = talk.start(talk.client.opened())
            self.hang(talk, phase, opened)
            self.assertIsInstance(self.error_of(opened), Unreachable)

    def test_starttls(self) -> None:
        """The answer to STARTTLS."""
        script = Script(extensions=["STARTTLS"])
        script.answer("STARTTLS", HANG)
        talk = Talk(script, peer=TlsTests.REMOTE)
        opened = talk.start(talk.client.opened())
        self.hang(talk, Phase.STARTTLS, opened)
        self.failureResultOf(opened, Unreachable)

    def test_in_a_mail(self) -> None:
        """MAIL, RCPT, DATA; and the final dot, which has ten minutes and leaves the mail unclear."""
        for point, phase in IN_THE_MAIL:
            script = Script()
            script.answer(point, HANG)
            talk = self.open(script)
            running = talk.start(talk.client.send(mail()))
            self.hang(talk, phase, running)
            if point == "END":
                result = self.successResultOf(running)
                self.assertIsInstance(result.outcomes[0], Unclear)
                self.assertIn("600 s", result.text)
            else:
                self.assertIsInstance(self.error_of(running), Unreachable)

    def test_between_mails(self) -> None:
        """The answer to RSET."""
        script = Script()
        script.answer("RSET", HANG)
        talk = self.open(script)
        self.sent(talk)
        running = talk.start(talk.client.send(mail()))
        self.hang(talk, Phase.RSET, running)
        self.assertIsInstance(self.error_of(running), Unreachable)

    def test_a_block_that_does_not_go_out(self) -> None:
        """Each block of the message starts the deadline anew; the last one that went out counts."""
        client, transport, clock = bare_client()
        running = Deferred.fromCoroutine(client.send(mail(message=b"x\r\n" * 20_000)))
        for reply in (b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"):
            client.dataReceived(reply)
        producer: Any = transport.producer
        for _ in range(2):
            producer.resumeProducing()
            clock.advance(DEADLINES[Phase.BODY] - 1)
        self.assertNoResult(running)
        clock.advance(1)
        self.failureResultOf(running, Unreachable)
        self.assertTrue(transport.disconnected)
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_half_a_reply_buys_no_time(self) -> None:
        """A server cannot hold us with one line of a reply a minute."""
        script = Script()
        script.answer("MAIL", HANG)
        talk = self.open(script)
        running = talk.start(talk.client.send(mail()))
        for _ in range(4):
            talk.server.sendLine(b"250-wait")
            talk.pump.flush()
            talk.clock.advance(DEADLINES[Phase.MAIL] / 4)
        self.assertIsInstance(self.error_of(running), Unreachable)

    def test_idle_needs_no_timer(self) -> None:
        """Who keeps a connection idle decides how long."""
        talk = self.open()
        self.sent(talk)
        self.assertEqual(talk.clock.getDelayedCalls(), [])


class EndTests(TalkTestCase):
    """Leaving, politely or not."""

    def test_quit_with_a_server_that_hangs(self) -> None:
        """Leaving has a deadline, and never fails."""
        script = Script()
        script.answer("QUIT", HANG)
        talk = self.open(script)
        leaving = talk.start(talk.client.quit())
        self.assertNoResult(leaving)
        talk.clock.advance(DEADLINES[Phase.QUIT])
        self.successResultOf(leaving)
        self.assertTrue(talk.gone())

    def test_quit_with_a_server_that_does_not_close(self) -> None:
        """After its answer to QUIT the connection is gone within the same time again."""
        client, transport, clock = bare_client()
        leaving = Deferred.fromCoroutine(client.quit())
        client.dataReceived(b"221 bye\r\n")
        self.assertTrue(transport.disconnecting)
        self.assertNoResult(leaving)
        clock.advance(DEADLINES[Phase.QUIT])
        self.successResultOf(leaving)
        self.assertTrue(transport.disconnected)

    def test_quit_of_a_dead_connection(self) -> None:
        """There is nothing to do."""
        talk = self.open()
        talk.client.abort()
        self.successResultOf(talk.start(talk.client.quit()))

    def test_quit_in_a_mail(self) -> None:
        """It does not wait for the mail, which ends as if the connection had been lost."""
        script = Script()
        script.answer("DATA", HANG)
        talk = self.open(script)
        running = talk.start(talk.client.send(mail()))
        self.successResultOf(talk.start(talk.client.quit()))
        self.assertIsInstance(self.error_of(running), Unreachable)

    def test_cancelled_mail(self) -> None:
        """The owner lets go; ``dot_written`` says whether that came too late."""
        for point, late in (("RCPT", False), ("END", True)):
            script = Script()
            script.answer(point, HANG)
            talk = self.open(script)
            running = talk.start(talk.client.send(mail()))
            running.cancel()
            self.failureResultOf(running, CancelledError)
            self.assertEqual(talk.client.dot_written, late)
            self.assertTrue(talk.gone())

    def test_cancelled_opening(self) -> None:
        """So it does while it waits for the server."""
        script = Script()
        script.answer("EHLO", HANG)
        talk = Talk(script)
        opened = talk.start(talk.client.opened())
        opened.cancel()
        self.failureResultOf(opened, CancelledError)
        self.assertTrue(talk.gone())

    def test_outcomes_are_values(self) -> None:
        """They compare by what they say."""
        outcomes: list[Outcome] = [Accepted(250, "ok"), TryLater(450, "x"), Rejected(550, "x"), Unclear("x")]
        self.assertEqual(len(set(outcomes)), 4)
