"""Person, gateway or machine."""

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.automatic import Automatic, OwnMail, Person, classify, from_list
from mailgateway.mail.inbound import Inbound, read
from tests.mail.mails import AGENT, OWN, PERSON, SENT_ID, lay, reply


def inbound_of(raw: bytes) -> Inbound:
    """A mail that must be readable."""
    inbound = read(raw)
    assert isinstance(inbound, Inbound)
    return inbound


def report(kind: str, parts: str, *fields: tuple[str, str]) -> Inbound:
    """A multipart/report of that kind."""
    head = [
        ("From", "Mail Delivery System <MAILER-DAEMON@example.org>"),
        ("Content-Type", f'multipart/report; report-type={kind}; boundary="d"'),
        *fields,
    ]
    return inbound_of(lay(head, parts))


class PersonTests(SynchronousTestCase):
    """What a person's mail may carry and still be a person's."""

    def test_odd_fields_of_people(self) -> None:
        """Lists, suppression, ``no``, receipts asked for, an empty envelope sender, an attached calendar."""
        for name, value in (
            ("Auto-Submitted", "no"),
            ("Auto-Submitted", "No (typed); x=y"),
            ("X-Auto-Response-Suppress", "All"),
            ("List-Id", "<team.example.org>"),
            ("Precedence", "list"),
            ("Feedback-ID", "1:x"),
            ("Disposition-Notification-To", PERSON),
            ("Return-Path", "<>"),
            ("X-MS-Exchange-Inbox-Rules-Processed", "1"),
        ):
            self.assertEqual(classify(inbound_of(reply(more=[(name, value)])), OWN), Person(), name)
        self.assertEqual(
            classify(
                inbound_of(
                    reply("x", content_type="text/calendar", more=[("Content-Disposition", "attachment")])
                ),
                OWN,
            ),
            Person(),
        )

    def test_words_of_absence_inside_a_subject(self) -> None:
        """Only the very start counts, and only as a notice begins."""
        for subject in (
            "Re: [mg:f913c9] Automatic reply: build the page",
            "Re: Out of office label",
            "Out of office label is wrong",
            "Autoreplying is broken",
        ):
            self.assertEqual(classify(inbound_of(reply(subject=subject)), OWN), Person(), subject)


class MachineTests(SynchronousTestCase):
    """What a machine sets."""

    def test_fields_of_machines(self) -> None:
        """Each alone is enough."""
        for name, value in (
            ("Auto-Submitted", "auto-generated"),
            ("Auto-Submitted", "Auto-Replied; owner-email=x"),
            ("Auto-Submitted", "(no) auto-replied"),
            ("Auto-Submitted", ""),
            ("X-Autoreply", "yes"),
            ("X-Autorespond", "x"),
            ("Precedence", "auto_reply"),
            ("Precedence", "Bulk"),
            ("Precedence", "junk"),
            ("X-MS-Exchange-Generated-Message-Source", "Mailbox Rules Agent"),
            ("X-Vacation", "1"),
        ):
            self.assertIsInstance(
                classify(inbound_of(reply(more=[(name, value)])), OWN), Automatic, f"{name}: {value}"
            )

    def test_subjects_of_absence_notices(self) -> None:
        """At the very start, in any language and spelling."""
        for subject in (
            "Automatic reply: [mg:f913c9] x",
            "AUTOMATIC REPLY: x",
            "Abwesenheitsnotiz: Re: x",
            "Réponse automatique : x",
            "自动回复：[mg:f913c9] x",  # noqa: RUF001 - as sent
            "Out of office",
        ):
            self.assertIsInstance(classify(inbound_of(reply(subject=subject)), OWN), Automatic, subject)

    def test_bulk_is_a_machine_s_but_for_answers_that_a_list_distributes(self) -> None:
        """Some lists mark all that they send so; news are no answers to anything."""
        bulk = ("Precedence", "bulk")
        self.assertEqual(classify(inbound_of(reply(more=[bulk, ("List-Id", "<x.example>")])), OWN), Person())
        for fields in (
            [bulk, ("List-Id", "<x.example>")],
            [("List-Unsubscribe", "<https://news.example.net/u>")],
        ):
            news = lay([("From", "News <news@example.net>"), ("Subject", "October"), *fields], "x")
            self.assertIsInstance(classify(inbound_of(news), OWN), Automatic)

    def test_senders_that_are_nobody(self) -> None:
        """Whatever else they say."""
        for local in ("noreply", "No-Reply", "donotreply"):
            self.assertIsInstance(
                classify(inbound_of(reply(frm=f"Shop <{local}@example.net>")), OWN), Automatic
            )

    def test_receipts_by_their_subject(self) -> None:
        """In a thread of ours, since a person's answer begins otherwise; a new mail may begin so."""
        for subject in ("Read: [mg:f913c9] x", "Nicht gelesen: x", "Lu\xa0: x", "已读: x"):
            self.assertIsInstance(classify(inbound_of(reply(subject=subject)), OWN), Automatic, subject)
        for subject in ("Re: Read: x", "Reading: x", "read this: x"):
            self.assertEqual(classify(inbound_of(reply(subject=subject)), OWN), Person(), subject)
        fresh = lay([("From", PERSON), ("Subject", "Read: the log")], "x")
        self.assertEqual(classify(inbound_of(fresh), OWN), Person())

    def test_calendar_answers_and_receipts(self) -> None:
        """By the types of their parts."""
        self.assertIsInstance(
            classify(inbound_of(reply("BEGIN:VCALENDAR", content_type="text/calendar; method=REPLY")), OWN),
            Automatic,
        )
        parts = "--d\n\nread\n--d\nContent-Type: message/disposition-notification\n\nx: y\n--d--\n"
        self.assertIsInstance(classify(report("disposition-notification", parts), OWN), Automatic)

    def test_a_list_says_where_to_post(self) -> None:
        """That is a matter of what is accepted, not of who speaks."""
        self.assertTrue(from_list(inbound_of(reply(more=[("List-Post", "<mailto:dev@example.org>")]))))
        self.assertFalse(from_list(inbound_of(reply(more=[("List-Post", "NO")]))))
        self.assertFalse(from_list(inbound_of(reply(more=[("List-Id", "<x>")]))))


class OwnMailTests(SynchronousTestCase):
    """What a gateway wrote never answers a gateway."""

    def test_marker_and_message_id(self) -> None:
        """Of ours or another's, also when the sender is allowed."""
        own = evolve(OWN, allowed=[PERSON, AGENT])
        for raw in (
            reply(more=[("X-Mailgateway-Instance", "somebody's")]),
            reply().replace(b"<a1@mail.example.org>", SENT_ID.encode()),
            reply(more=[("Received", "x")] * 60),
        ):
            self.assertIsInstance(classify(inbound_of(raw), own), OwnMail)

    def test_from_ourselves(self) -> None:
        """Own mail, unless agent and person share the address."""
        self.assertIsInstance(classify(inbound_of(reply(frm=AGENT.upper())), OWN), OwnMail)
        raw = reply(frm=AGENT)
        self.assertIsInstance(classify(inbound_of(raw), OWN), OwnMail)
        self.assertEqual(classify(inbound_of(raw), evolve(OWN, allowed=[AGENT])), Person())

    def test_the_marker_that_the_settings_name(self) -> None:
        """Beside the usual one."""
        own = evolve(OWN, marker_header="X-Session-Gateway")
        for name in ("X-Session-Gateway", "x-mailgateway-instance"):
            self.assertIsInstance(classify(inbound_of(reply(more=[(name, "i")])), own), OwnMail)
