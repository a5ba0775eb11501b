"""What mail servers report, in their fields and in their prose."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.automatic import classify
from mailgateway.mail.bounce import (
    DIAGNOSTIC_LIMIT,
    REPORTED_LIMIT,
    Bounce,
    Outcome,
    RecipientReport,
)
from mailgateway.mail.inbound import Inbound
from tests.mail.mails import AGENT, OWN, PERSON, SENT_ID, lay, reply
from tests.mail.test_automatic import inbound_of

OTHER = "kim@example.net"


def report(
    status: str, *fields: tuple[str, str], words: str = "Sorry.", message_id: str = SENT_ID
) -> Inbound:
    """A delivery report with these groups of fields, and a copy of a mail with that id."""
    parts = (
        f"--d\nContent-Type: text/plain\n\n{words}\n--d\nContent-Type: message/delivery-status\n\n"
        f"Reporting-MTA: dns; mx\n\n{status}\n--d\nContent-Type: message/rfc822\n\n"
        f"Message-ID: {message_id}\nX-Mailgateway-Instance: i\n\nx\n--d--\n"
    )
    head = [
        ("From", "Mail Delivery System <MAILER-DAEMON@example.org>"),
        ("Content-Type", 'multipart/report; report-type=delivery-status; boundary="d"'),
        *fields,
    ]
    return inbound_of(lay(head, parts))


def prose(text: str, *fields: tuple[str, str]) -> Inbound:
    """A server that says it in words."""
    return inbound_of(
        lay(
            [("Return-Path", "<>"), ("From", "MAILER-DAEMON@mx.example.net"), ("To", AGENT), *fields],
            text,
        )
    )


def bounce_of(inbound: Inbound) -> Bounce:
    """It must be a bounce."""
    bounce = classify(inbound, OWN)
    assert isinstance(bounce, Bounce), bounce
    return bounce


class WhoseTests(SynchronousTestCase):
    """Whether it is about mail of ours."""

    def test_ours_is_found_in_the_returned_copy(self) -> None:
        """Though it threads to us and is marked as automatic; the marker inside does not make it own mail."""
        bounce = report("Action: failed", ("Auto-Submitted", "auto-replied"), ("In-Reply-To", SENT_ID))
        self.assertEqual(bounce_of(bounce).message_ids, (SENT_ID,))
        self.assertTrue(bounce_of(bounce).failed)

    def test_a_report_about_another_s_mail_names_none(self) -> None:
        """A forged one that only threads to us names none either."""
        forged = report(
            "Action: failed", ("In-Reply-To", SENT_ID), ("References", SENT_ID), message_id="<a@b>"
        )
        self.assertEqual(bounce_of(forged).message_ids, ())

    def test_who_reports_without_a_report_part(self) -> None:
        """A mailer daemon, a postmaster without envelope sender, Exim's and Exchange's fields, no address."""
        for inbound in (
            prose(f"failed\n\nMessage-ID: {SENT_ID}\n"),
            inbound_of(lay([("Return-Path", "<>"), ("From", "postmaster@mx.example.net")], "failed")),
            inbound_of(lay([("Return-Path", "<>"), ("From", "bounces@mx.example.net")], "failed")),
            inbound_of(lay([("From", "Mail Delivery Subsystem <MAILER-DAEMON>")], "failed")),
            inbound_of(lay([("From", "Mail Delivery Subsystem <>")], "failed")),
            inbound_of(reply(more=[("X-Failed-Recipients", PERSON)])),
            inbound_of(reply(more=[("X-MS-Exchange-Message-Is-Ndr", "")])),
            inbound_of(reply(subject="Unzustellbar: x", more=[("Return-Path", "<>")])),
            inbound_of(reply(subject="退信: x", more=[("Return-Path", "<>")])),
        ):
            self.assertTrue(bounce_of(inbound).failed)
        self.assertEqual(bounce_of(prose(f"failed\n\nMessage-ID: {SENT_ID}\n")).message_ids, (SENT_ID,))

    def test_a_person_with_such_a_name_is_none(self) -> None:
        """Nor a postmaster with an envelope sender, nor one who writes about the daemon."""
        for frm in ("Postmaster <postmaster@example.org>", "Robin MAILER-DAEMON-Fan <robin@example.org>"):
            self.assertNotIsInstance(classify(inbound_of(reply(frm=frm)), OWN), Bounce)


class FieldsTests(SynchronousTestCase):
    """RFC 3464."""

    def test_each_recipient_with_its_own_fate(self) -> None:
        """Two in one report, one of them only delayed."""
        bounce = bounce_of(
            report(
                f"Final-Recipient: rfc822; {PERSON}\nAction: failed\nStatus: 5.1.1\n"
                "Diagnostic-Code: smtp; 550 5.1.1 User\n  unknown\n\n"
                f"Final-Recipient: rfc822;{OTHER}\nAction: delayed\nStatus: 4.4.1\nDiagnostic-Code: x"
            )
        )
        self.assertEqual(
            bounce,
            Bounce(
                (SENT_ID,),
                True,
                (
                    RecipientReport(
                        recipient=PERSON,
                        outcome=Outcome.FAILED,
                        status="5.1.1",
                        permanent=True,
                        diagnostic="550 5.1.1 User  unknown",
                    ),
                    RecipientReport(
                        recipient=OTHER,
                        outcome=Outcome.DELAYED,
                        status="4.4.1",
                        permanent=False,
                        diagnostic="x",
                    ),
                ),
            ),
        )

    def test_news_of_success_and_delay_is_no_failure(self) -> None:
        """The report says which."""
        for action in ("delivered", "delayed", "relayed", "expanded", "Delivered (to mailbox)"):
            bounce = bounce_of(report(f"Final-Recipient: rfc822; {PERSON}\nAction: {action}"))
            self.assertFalse(bounce.failed, action)

    def test_given_up_after_temporary_errors(self) -> None:
        """Failed, but not for ever."""
        (told,) = bounce_of(
            report(
                f"Final-Recipient: rfc822; {PERSON}\nAction: failed\nStatus: 4.4.7 (delivery time expired)"
            )
        ).recipients
        self.assertEqual((told.outcome, told.status, told.permanent), (Outcome.FAILED, "4.4.7", False))

    def test_a_status_that_says_only_its_class(self) -> None:
        """Then the diagnostic knows more, as long as it does not contradict."""
        for status, diagnostic, expected in (
            ("5.0.0", "smtp; 550-5.1.1 no such user", "5.1.1"),
            ("5.0.0", "smtp; 450 4.2.0 greylisted at 192.0.2.4", "5.0.0"),
            ("", "smtp; smtp; 552 5.2.2 full", "5.2.2"),
            ("", "x-unix; host 5.6.7.8 is away", ""),
            ("5.7.1 (refused)", "", "5.7.1"),
        ):
            (told,) = bounce_of(
                report(
                    f"Final-Recipient: rfc822; {PERSON}\nAction: failed\nStatus: {status}\n"
                    f"Diagnostic-Code: {diagnostic}"
                )
            ).recipients
            self.assertEqual(told.status, expected, diagnostic)
            self.assertFalse(told.diagnostic.startswith("smtp"))

    def test_a_forwarded_recipient_has_both_addresses(self) -> None:
        """We wrote to the one, the other failed."""
        (told,) = bounce_of(
            report(f"Original-Recipient: rfc822;{PERSON}\nFinal-Recipient: rfc822; {OTHER}\nAction: failed")
        ).recipients
        self.assertEqual((told.recipient, told.also), (OTHER, (PERSON,)))

    def test_everything_is_bounded_and_in_one_line(self) -> None:
        """A stranger wrote it."""
        many = "\n\n".join(
            f"Final-Recipient: rfc822; u{n}@example.net\nAction: failed\n"
            f"Diagnostic-Code: smtp; {'x' * 700}\x07\u202e"
            for n in range(3 * REPORTED_LIMIT)
        )
        recipients = bounce_of(report(many)).recipients
        self.assertEqual(len(recipients), REPORTED_LIMIT)
        for each in recipients:
            self.assertLessEqual(len(each.diagnostic), DIAGNOSTIC_LIMIT)
            self.assertTrue(each.diagnostic.isprintable())
            self.assertNotIn("xxx", repr(each))

    def test_the_worst_that_is_said_of_one_recipient_counts(self) -> None:
        """Some servers report a delay and the end in one mail."""
        group = f"Final-Recipient: rfc822; {PERSON}\nAction: "
        for order in (("delayed", "failed"), ("failed", "delayed")):
            (told,) = bounce_of(report("\n\n".join(group + action for action in order))).recipients
            self.assertIs(told.outcome, Outcome.FAILED)

    def test_nothing_readable_is_a_failure_of_nobody(self) -> None:
        """An empty status part, and one that is no text."""
        for status in ("", "\x00\xff" * 30):
            bounce = bounce_of(report(status))
            self.assertEqual((bounce.failed, bounce.recipients), (True, ()))


class ProseTests(SynchronousTestCase):
    """Servers that say it in words."""

    def test_known_forms(self) -> None:
        """qmail, Postfix, Exim, sendmail, and any text that names an address."""
        copy = f"\nReturn-Path: <{AGENT}>\nMessage-ID: {SENT_ID}\nTo: someone-else@example.net\n"
        for text, status, permanent, word in (
            (
                (
                    "Hi. This is the qmail-send program at mx.example.net.\n\n"
                    f"<{PERSON}>:\nSorry, no mailbox here by that name. (#5.1.1)\n\n"
                    f"--- Below this line is a copy of the message.\n{copy}"
                ),
                "5.1.1",
                True,
                "no mailbox here",
            ),
            (
                (
                    f"I'm sorry.\n\n<{PERSON}>: host mx2.example.net[192.0.2.9] said: 452 4.2.2 over\n"
                    f"    quota (in reply to RCPT TO command)\n{copy}"
                ),
                "4.2.2",
                False,
                "over quota",
            ),
            (
                (
                    f"This is a permanent error. The following address(es) failed:\n\n  {PERSON}\n"
                    "    host mx.example.net [192.0.2.1]\n    SMTP error: 550 no such person\n\n"
                    f"------ This is a copy of the message, including all the headers. ------\n{copy}"
                ),
                "",
                True,
                "no such person",
            ),
            (
                (
                    "   ----- The following addresses had permanent fatal errors -----\n"
                    f"<{PERSON}>\n    (reason: 550 5.7.1 refused by policy)\n\n   -- Transcript --\n{copy}"
                ),
                "5.7.1",
                True,
                "refused",
            ),
            (f"Das Postfach {PERSON} ist voll.\n{copy}", "", True, "voll"),
        ):
            bounce = bounce_of(prose(text))
            self.assertEqual([each.recipient for each in bounce.recipients], [PERSON], text)
            (told,) = bounce.recipients
            self.assertEqual((told.status, told.permanent), (status, permanent), text)
            self.assertIn(word, told.diagnostic)
            self.assertEqual(bounce.message_ids, (SENT_ID,))

    def test_a_warning_is_no_failure(self) -> None:
        """Exim's and sendmail's."""
        for subject, text in (
            (
                "Warning: message 1x delayed 24 hours",
                f"No action is required.\n\n  {PERSON}\n    Delay reason: x\n",
            ),
            ("Warning", f"{PERSON} has not yet been delivered; we will keep trying until it is 5 days old\n"),
        ):
            bounce = bounce_of(prose(text, ("Subject", subject)))
            self.assertFalse(bounce.failed)
            self.assertEqual(
                [(each.recipient, each.outcome, each.permanent) for each in bounce.recipients],
                [(PERSON, Outcome.DELAYED, False)],
            )

    def test_the_header_names_and_the_text_explains(self) -> None:
        """X-Failed-Recipients holds addresses only."""
        (told,) = bounce_of(
            prose(f"<{PERSON}>:\n550 5.1.1 unknown\n", ("X-Failed-Recipients", PERSON))
        ).recipients
        self.assertEqual((told.recipient, told.status), (PERSON, "5.1.1"))

    def test_we_are_no_recipient(self) -> None:
        """A text that names us and the server names nobody who failed."""
        self.assertEqual(bounce_of(prose(f"Your mail from {AGENT} came to nothing.\n")).recipients, ())
