"""Logins, TLS and deadlines of the stock IMAP client."""

from base64 import b64decode
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.mail.interfaces import IClientAuthentication
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from tests.twisted_facts.imap import connected

TOKEN = b"x" * 200


@implementer(IClientAuthentication)
class Xoauth2:
    """A mechanism as one would write it for the stock client."""

    def getName(self) -> bytes:
        """Give its name."""
        return b"XOAUTH2"

    def challengeResponse(self, secret: bytes, challenge: bytes) -> bytes:
        """Answer with the token."""
        del challenge
        return b"user=a@b\x01auth=Bearer " + secret + b"\x01\x01"


class LoginTests(SynchronousTestCase):
    """How credentials travel."""

    def test_long_answers_are_wrapped(self) -> None:
        """A token is cut into lines of 76 characters, which no server can put together again."""
        c = connected(b"* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2] ready")
        c.client.registerAuthenticator(Xoauth2())
        c.result(c.client.authenticate(TOKEN))
        c.result(c.client.getCapabilities())
        c.transport.clear()
        c.feed(b"+ ")
        lines = c.sent.rstrip(b"\r\n").split(b"\n")
        self.assertGreater(len(lines), 1)
        self.assertEqual(b64decode(b"".join(lines)), b"user=a@b\x01auth=Bearer " + TOKEN + b"\x01\x01")

    def test_an_error_challenge_gets_the_token_again(self) -> None:
        """A mechanism without memory sends its token a second time in answer to the refusal."""
        c = connected(b"* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2] ready")
        c.client.registerAuthenticator(Xoauth2())
        c.result(c.client.authenticate(b"secret"))
        c.feed(b"+ ")
        c.transport.clear()
        c.feed(b"+ eyJzdGF0dXMiOiI0MDEifQ==")
        self.assertIn(b"secret", b64decode(c.sent.strip()))

    def test_a_mechanism_in_lower_case_is_an_error(self) -> None:
        """What the server calls ``xoauth2`` is accepted, and then not found."""
        c = connected(b"* OK [CAPABILITY IMAP4rev1 AUTH=xoauth2] ready")
        c.client.registerAuthenticator(Xoauth2())
        c.result(c.client.authenticate(TOKEN))
        c.feed(b"+ ")
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.assertTrue(c.transport.disconnecting)

    def test_a_password_can_hold_commands(self) -> None:
        """Line ends in a credential are sent as they are."""
        c = connected()
        c.result(c.client.login(b"user", b"x\r\n0009 DELETE INBOX"))
        self.assertIn(b"\r\n0009 DELETE INBOX", c.sent)

    def test_without_starttls_the_password_goes_in_clear(self) -> None:
        """A man in the middle has only to take the word out of the capabilities."""
        c = connected()
        c.result(c.client.login(b"user", b"secret"))
        self.assertIn(b"secret", c.sent)

    def test_a_greeting_can_hide_starttls(self) -> None:
        """Any bracket in the greeting is taken for the capabilities, so STARTTLS counts as not offered."""
        c = connected(b"* OK mail [192.0.2.1] ready")
        c.result(c.client.login(b"user", b"secret"))
        self.assertIn(b"secret", c.sent)

    def test_bytes_before_the_handshake_count_as_safe(self) -> None:
        """Lines that came in the clear, behind the answer to STARTTLS, are taken for answers over TLS."""
        c = connected(b"* OK [CAPABILITY IMAP4rev1 STARTTLS] ready")
        done = c.result(c.client.login(b"user", b"secret"))
        c.feed(
            b"TAG OK begin TLS now",
            b"* CAPABILITY IMAP4rev1",
            b"0002 OK these are the capabilities",
            b"0003 OK and you are logged in",
        )
        self.assertTrue(c.transport.tls)
        self.assertEqual([type(outcome) for outcome in done], [tuple])


class DeadlineTests(SynchronousTestCase):
    """The built-in timer, which is off by default."""

    def test_it_is_off(self) -> None:
        """A server that falls silent is waited for without end."""
        self.assertEqual(connected().client.timeout, 0)

    def test_with_a_queue_it_breaks(self) -> None:
        """When the running command came from the queue, the timer raises and the connection stays open."""
        clock = Clock()
        c = connected()
        c.client.timeout = 5
        setattr(c.client, "callLater", clock.callLater)  # noqa: B010 - mypy takes it for a method
        c.client.setTimeout(5)
        first, second, third = (c.client.noop() for _ in range(3))
        c.feed(b"TAG OK done")
        self.successResultOf(first)
        waiting: list[Deferred[Any]] = [second, third]
        self.assertRaises(UnboundLocalError, clock.advance, 6)
        self.assertFalse(c.transport.disconnecting)
        for deferred in waiting:
            self.assertNoResult(deferred)
