"""The servers that the other tests rely on, seen by the standard library's clients."""

import base64
import imaplib
import shutil
import smtplib
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, require_dovecot, token_for
from tests.fakes.smtp_sink import SmtpSink

USER = "agent@example.org"
MAIL = b"Message-ID: <one@example.com>\r\nSubject: x\r\n\r\nhello\r\n"


class ServersTestCase(SynchronousTestCase):
    """A folder with an authority."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.authority = Authority.make(self.folder / "ca")
        self.trust = ssl.create_default_context(cafile=str(self.authority.anchor))


class DovecotTests(ServersTestCase):
    """The private Dovecot."""

    def setUp(self) -> None:
        require_dovecot()
        super().setUp()
        self.dovecot = Dovecot(self.folder / "dovecot", {USER: "s3cret"}, self.authority)
        self.addCleanup(self.dovecot.stop, hard=True)
        self.dovecot.start()

    def test_delivery_flags_and_renumbering(self) -> None:
        """A delivered mail is there for a second client, survives a restart, and can be renumbered."""
        self.dovecot.deliver(USER, MAIL)
        with self.dovecot.client(USER) as client:
            client.uid("STORE", self.dovecot.uid_of(client, "<one@example.com>"), "+FLAGS", "(\\Flagged)")
        self.dovecot.restart()
        self.assertEqual(self.dovecot.flags(USER), {"<one@example.com>": {"\\Flagged"}})
        before = self.dovecot.uid_validity(USER)
        self.dovecot.recreate(USER)
        self.assertNotEqual(self.dovecot.uid_validity(USER), before)
        self.assertEqual(list(self.dovecot.flags(USER)), ["<one@example.com>"])
        self.assertEqual((self.dovecot.logins(), self.dovecot.refusals()), (0, 0))

    def test_tls_and_idle(self) -> None:
        """Both ways to TLS are verified; IDLE and the commands of others can be observed."""
        with imaplib.IMAP4("127.0.0.1", self.dovecot.imap_port, timeout=10) as client:
            client.starttls(self.trust)
            client.login(USER, "s3cret")
        client = imaplib.IMAP4_SSL("127.0.0.1", self.dovecot.imaps_port, ssl_context=self.trust, timeout=10)
        self.addCleanup(client.shutdown)
        client.login(USER, "s3cret")
        client.select()
        self.assertFalse(self.dovecot.idling(USER))
        client.send(b"x IDLE\r\n")
        self.dovecot.wait_idle(USER)
        self.assertIn("SELECT INBOX", self.dovecot.commands(USER))
        self.assertEqual(self.dovecot.logins(), 2)

    def test_tokens(self) -> None:
        """A good token logs in by both mechanisms, an expired one by none."""
        forms = {
            "XOAUTH2": "user={user}\x01auth=Bearer {token}\x01\x01",
            "OAUTHBEARER": "n,a={user},\x01host=x\x01port=1\x01auth=Bearer {token}\x01\x01",
        }

        def answer(form: str, lifetime: float) -> Callable[[bytes], bytes]:
            answers = [form.format(user=USER, token=token_for(USER, lifetime=lifetime)).encode()]
            return lambda _: answers.pop() if answers else b""

        for mechanism, form in forms.items():
            with imaplib.IMAP4("127.0.0.1", self.dovecot.imap_port, timeout=20) as client:
                self.assertEqual(client.authenticate(mechanism, answer(form, 60))[0], "OK")
        expired = imaplib.IMAP4("127.0.0.1", self.dovecot.imap_port, timeout=20)
        self.addCleanup(expired.shutdown)
        self.assertRaises(imaplib.IMAP4.error, expired.authenticate, "XOAUTH2", answer(forms["XOAUTH2"], -60))


class SinkTests(ServersTestCase):
    """The submission server."""

    def start(self, sink: SmtpSink) -> SmtpSink:
        """Start it for this test."""
        self.addCleanup(sink.stop)
        return sink.start()

    def test_password_over_tls(self) -> None:
        """Over STARTTLS and over TLS from the start a login is asked for, and what came is recorded."""
        sink = self.start(SmtpSink({USER: "s3cret"}, tls="starttls", authority=self.authority))
        with smtplib.SMTP("127.0.0.1", sink.port, timeout=10) as client:
            client.starttls(context=self.trust)
            self.assertRaises(smtplib.SMTPAuthenticationError, client.login, USER, "wrong")
            client.login(USER, "s3cret")
            client.sendmail(USER, ["robin@example.net"], MAIL)
        received = sink.wait(seconds=5)
        self.assertEqual((received.login, received.encrypted, received.raw), (USER, True, MAIL))
        self.assertGreaterEqual(sink.logins_refused, 1)
        implicit = self.start(SmtpSink({USER: "s3cret"}, tls="implicit", authority=self.authority))
        with smtplib.SMTP_SSL("127.0.0.1", implicit.port, context=self.trust, timeout=10) as client:
            self.assertRaises(smtplib.SMTPSenderRefused, client.sendmail, USER, ["robin@example.net"], MAIL)

    def test_token(self) -> None:
        """A bearer token is taken in place of a password, and a wrong one is not."""
        sink = self.start(SmtpSink(tokens={USER: "good"}))
        for token, code in (("bad", 535), ("good", 235)):
            with smtplib.SMTP("127.0.0.1", sink.port, timeout=10) as client:
                client.ehlo()
                message = base64.b64encode(f"user={USER}\x01auth=Bearer {token}\x01\x01".encode())
                self.assertEqual(client.docmd("AUTH", f"XOAUTH2 {message.decode()}")[0], code)

    def test_answers_laid_ready(self) -> None:
        """A recipient can be refused, and a DATA can be put off once."""
        sink = self.start(SmtpSink(refused={"no@example.net": "550 5.1.1 nobody"}))
        sink.answers.append("451 4.2.0 later")
        with smtplib.SMTP("127.0.0.1", sink.port, timeout=10) as client:
            self.assertRaises(smtplib.SMTPDataError, client.sendmail, USER, ["yes@example.net"], MAIL)
            refused = client.sendmail(USER, ["yes@example.net", "no@example.net"], MAIL)
        self.assertEqual(list(refused), ["no@example.net"])
        self.assertEqual([mail.recipients for mail in sink.mails], [("yes@example.net",)])
