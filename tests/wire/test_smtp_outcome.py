"""What replies mean: for the mail of one recipient, for the connection, and for the password."""

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
from mailgateway.wire.esmtp import Reply
from mailgateway.wire.smtp_outcome import (
    Accepted,
    Outcome,
    Phase,
    Rejected,
    TryLater,
    Unclear,
    advice_on,
    given_id,
    outcome,
    refusal,
)


class OutcomeTests(SynchronousTestCase):
    """One recipient's mail."""

    def test_table(self) -> None:
        """Each kind of reply in each phase."""
        table: list[tuple[Phase, int, str, type[Outcome]]] = [
            (Phase.END, 250, "2.0.0 queued as 4F1", Accepted),
            (Phase.RCPT, 251, "will forward", Accepted),
            (Phase.RCPT, 252, "cannot verify", Accepted),
            (Phase.MAIL, 451, "4.3.0 later", TryLater),
            (Phase.RCPT, 450, "4.2.0 greylisted", TryLater),
            (Phase.DATA, 421, "too many messages", TryLater),
            (Phase.END, 452, "4.2.2 full", TryLater),
            (Phase.RCPT, 550, "5.1.1 unknown", Rejected),
            (Phase.MAIL, 501, "mail from address must be same as authorization user", Rejected),
            (Phase.MAIL, 553, "5.7.1 not yours", Rejected),
            (Phase.END, 554, "5.2.0 SendAsDenied", Rejected),
            (Phase.MAIL, 552, "5.3.4 too big", Rejected),
            (Phase.RCPT, 552, "too many recipients", TryLater),
            (Phase.RCPT, 552, "5.5.3 too many recipients", TryLater),
            (Phase.RCPT, 552, "5.2.2 mailbox full", Rejected),
            (Phase.DATA, 503, "5.5.1 bad sequence", TryLater),
            (Phase.END, 354, "go on", Unclear),
            (Phase.RCPT, 354, "go on", TryLater),
        ]
        for phase, code, text, kind in table:
            self.assertIsInstance(outcome(phase, Reply(code, text)), kind, (phase, code, text))

    def test_the_reply_is_kept(self) -> None:
        """Code and text are what the operator reads."""
        self.assertEqual(outcome(Phase.END, Reply(250, "2.0.0 Q1")), Accepted(250, "2.0.0 Q1"))

    def test_the_id_that_the_server_gave(self) -> None:
        """In brackets, or at Amazon SES by its region; a queue id is none."""
        ses = "email-smtp.eu-west-1.amazonaws.com"
        queued = "0102018f2f6c1234-5b1c2f3a-1111-2222-3333-444455556666-000000"
        for text, host, given in (
            ("2.0.0 OK <AM0PR01@AM0PR01MB.eurprd01.prod.outlook.com> [Hostname=AM0]", "smtp.office365.com",
             "<AM0PR01@AM0PR01MB.eurprd01.prod.outlook.com>"),
            (f"Ok {queued}", ses, f"<{queued}@eu-west-1.amazonses.com>"),
            (f"Ok {queued}", "email-smtp.us-east-1.amazonaws.com", f"<{queued}@email.amazonses.com>"),
            (f"Ok {queued}", "smtp.example.org", ""),
            ("2.0.0 Ok: queued as 4F1A2B", ses, ""),
            ("2.0.0 Ok: queued as 4F1A2B", "smtp.example.org", ""),
            ("ok <not an id> <@> <a@> <>", "smtp.example.org", ""),
            ("ok <" + "a" * 300 + "@b>", "smtp.example.org", ""),
        ):  # fmt: skip
            self.assertEqual(given_id(text, host), given, text)


class RefusalTests(SynchronousTestCase):
    """The connection and the login."""

    def test_table(self) -> None:
        """Who has to act, and by which code."""
        table: list[tuple[Phase, int, str, type[PeerError], str]] = [
            (Phase.GREETING, 421, "4.3.2 too busy", Throttled, "421 4.3.2"),
            (Phase.GREETING, 450, "slow down", Throttled, "450"),
            (Phase.GREETING, 554, "5.7.1 you are listed", CommandRefused, "554 5.7.1"),
            (Phase.EHLO, 421, "", Throttled, "421"),
            (Phase.EHLO, 502, "no", CommandRefused, "502"),
            (Phase.STARTTLS, 454, "4.7.0 not now", Unreachable, "454 4.7.0"),
            (Phase.STARTTLS, 502, "never", TlsRefused, "502"),
            (Phase.AUTH, 535, "5.7.8 bad credentials", LoginRefused, "535 5.7.8"),
            (Phase.AUTH, 535, "Login Fail. Please enter your authorization code", LoginRefused, "535"),
            (Phase.AUTH, 534, "5.7.9 application password needed", LoginRefused, "534 5.7.9"),
            (Phase.AUTH, 550, "5.7.30 Basic authentication is not supported", LoginRefused, "550 5.7.30"),
            (Phase.AUTH, 501, "5.7.0 authentication failed", LoginRefused, "501 5.7.0"),
            (Phase.AUTH, 501, "5.5.2 cannot decode", CommandRefused, "501 5.5.2"),
            (Phase.AUTH, 504, "unrecognized mechanism", CommandRefused, "504"),
            (Phase.AUTH, 454, "4.7.0 temporary failure", LoginUnavailable, "454 4.7.0"),
            (Phase.AUTH, 451, "internal error", LoginUnavailable, "451"),
            (Phase.AUTH, 535, "4.7.0 temporary failure", LoginUnavailable, "535 4.7.0"),
            (Phase.AUTH, 454, "4.7.0 Too many login attempts", Throttled, "454 4.7.0"),
            (Phase.AUTH, 421, "bye", Throttled, "421"),
            (Phase.AUTH, 250, "what?", ProtocolViolation, "250"),
            (Phase.MAIL, 530, "5.7.0 authentication required", LoginRefused, "530 5.7.0"),
            (Phase.IDLE, 421, "4.4.2 idle for too long", Unreachable, "421 4.4.2"),
            (Phase.RSET, 500, "no", CommandRefused, "500"),
            (Phase.RSET, 354, "no", ProtocolViolation, "354"),
        ]
        for phase, code, text, kind, name in table:
            error = refusal(phase, Reply(code, text))
            self.assertIs(type(error), kind, (phase, code, text))
            self.assertEqual(error.code, name, (phase, code, text))
            self.assertIn(str(code), error.text)

    def test_status_of_a_token(self) -> None:
        """The error document tells more than the number, and a caller can match on it."""
        error = refusal(Phase.AUTH, Reply(535, "5.7.3 no"), "invalid_token")
        self.assertIsInstance(error, LoginRefused)
        self.assertEqual(error.code, "535 invalid_token")

    def test_switched_off_by_an_administrator(self) -> None:
        """No password helps there, so the text says what does."""
        disabled = Reply(535, "5.7.139 SmtpClientAuthentication is disabled for the Tenant")
        self.assertIn("administrator", refusal(Phase.AUTH, disabled).text)


class AdviceTests(SynchronousTestCase):
    """What a person may do about a refusal."""

    def test_another_sender(self) -> None:
        """As QQ, 163, Exchange and Postfix say it."""
        for code, text in (
            (501, "mail from address must be same as authorization user"),
            (553, "Mail from must equal authorized user"),
            (550, "5.7.60 SMTP; Client does not have permissions to send as this sender"),
            (554, "5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException"),
            (553, "5.7.1 <a@b>: Sender address rejected: not owned by user c@b"),
        ):
            self.assertIn("the address that logs in", advice_on([Rejected(code, text)]), text)

    def test_too_large(self) -> None:
        """By the enhanced code: a full mailbox has the same reply code."""
        for text, found in (("5.3.4 too big", True), ("5.2.3 too big", True), ("5.2.2 mailbox full", False)):
            self.assertEqual(bool(advice_on([Rejected(552, text)])), found, text)

    def test_nothing_to_say(self) -> None:
        """Where the server has taken the mail, or may take it later, or says it all itself."""
        outcomes: list[Outcome] = [
            Accepted(250, "5.7.60"),
            TryLater(451, "5.3.4"),
            Unclear("x"),
            Rejected(550, "5.1.1 no"),
        ]
        self.assertEqual(advice_on(outcomes), "")
