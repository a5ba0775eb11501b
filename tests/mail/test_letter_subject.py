"""Subjects: short, with the tag first, and the same after many replies."""

import email
import email.policy
from collections.abc import Callable
from email.header import Header
from email.message import EmailMessage

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.ids import MessageId
from mailgateway.mail.compose import compose
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.subject import SUBJECT_LIMIT, cut, human_subject, settle_subject
from mailgateway.mail.tag import ShortTag, find_tag
from tests.mail.letters import ANSWER, DECISION, NOTIFICATION
from tests.mail.mails import OWN

TAGS = frozenset({"mg", "pi"})

DIALECTS: dict[str, Callable[[str], str]] = {
    "usual": lambda subject: subject if subject.lower().startswith("re:") else f"Re: {subject}",
    "always": lambda subject: f"RE: {subject}",
    "german": lambda subject: f"AW: {subject}",
    "counting": lambda subject: f"Re[2]: {subject}",
    "chinese": lambda subject: f"回复\uff1a{subject}",
    "swedish": lambda subject: f"SV: {subject}",
    "forward": lambda subject: f"WG: {subject}",
    "warning": lambda subject: f"RE: [EXTERNAL] {subject}",
    "spam": lambda subject: f"***SPAM*** Re: {subject}",
    "tag moved": lambda subject: (
        f"Re: {subject[12:]} {subject[:11]}" if subject[:1] == "[" else f"Re: {subject}"
    ),
    "blanks": lambda subject: f"Re:  {subject.replace(' ', '  ')} ",
}


def sent_back(subject: str, dialect: str) -> str:
    """The subject of a person's reply, as we read it: encoded and folded by the program, then decoded."""
    raw = f"From: robin@example.net\nSubject: {Header(DIALECTS[dialect](subject), 'utf-8').encode()}\n\nx\n"
    inbound = read(raw.encode())
    assert isinstance(inbound, Inbound)
    return inbound.subject


class SubjectTests(SynchronousTestCase):
    """What a list of mails shows."""

    @settings(max_examples=60)
    @given(
        st.one_of(
            st.text(st.characters(exclude_categories=["C"]), max_size=90),
            st.sampled_from(["Keep the old API?", "Größe: 3 → 4?", "Re: x", "R: a", "word " * 30]),
        ),
        st.lists(st.sampled_from(sorted(DIALECTS)), min_size=1, max_size=4),
    )
    def test_fifty_round_trips_change_nothing(self, subject: str, dialects: list[str]) -> None:
        """The person's program adds its own each time; ours is the same from the second mail on."""
        first = compose(evolve(DECISION, subject=subject)).subject
        ours = first
        seen = []
        for turn in range(50):
            theirs = sent_back(ours, dialects[turn % len(dialects)])
            self.assertEqual(find_tag(theirs, TAGS), ShortTag("mg", DECISION.route))
            ours = compose(evolve(ANSWER, subject=theirs)).subject
            seen.append(ours)
        self.assertEqual(len(set(seen)), 1)
        self.assertLessEqual(len(ours), len("[mg:f913c9] Re: ") + SUBJECT_LIMIT)
        human, before = human_subject(ours, TAGS), human_subject(first, TAGS)
        self.assertEqual(human.removeprefix("Re:").strip(), before.removeprefix("Re:").strip())

    def test_a_long_question_is_cut_at_a_word(self) -> None:
        """Within 60 characters; one that fits is whole."""
        self.assertEqual(cut("Keep it?", 60), "Keep it?")
        long = "Shall I keep the old interface of the users service during the whole migration, or not?"
        self.assertEqual(cut(long, 60), "Shall I keep the old interface of the users service during…")
        self.assertEqual(len(cut("x" * 100, 60)), 60)
        self.assertIn(f"\n{long[:40]}", compose(evolve(NOTIFICATION, subject=long)).text)

    def test_a_settled_turn_says_where(self) -> None:
        """However much there is to say."""
        self.assertEqual(
            settle_subject("14 tests fixed", "api", "laptop"), "Done: 14 tests fixed · api · laptop"
        )
        long = settle_subject("word " * 40, "a-very-long-project-name", "workstation-7", aborted=True)
        self.assertLessEqual(len(long), SUBJECT_LIMIT)
        self.assertRegex(long, r"\AStopped: word .*… · a-very-long-p… · workstation-7\Z")
        self.assertEqual(settle_subject("", "", ""), "Done: the turn is over")

    def test_what_looks_like_a_prefix_stays(self) -> None:
        """Words with a colon are the question's."""
        for subject in (
            "Done: all",
            "Option A: keep",
            "http: or https:?",
            "Question: why?",
            "Fix: the build",
        ):
            self.assertEqual(human_subject(subject, TAGS), subject)


class HeaderTests(SynchronousTestCase):
    """Header fields, read by others."""

    def test_every_field_comes_back_in_both_policies(self) -> None:
        """Also with a peer's id of 130 characters amid many, which stays one plain word."""
        peer = MessageId(f"<{'p' * 130}@{'q' * 40}.example>")
        references = (*(MessageId(f"<{number}@example.org>") for number in range(12)), peer)
        letter = evolve(
            NOTIFICATION,
            subject="Größe → 4?",
            sender_name="Ägenten, Inc.",
            in_reply_to=peer,
            references=references,
        )
        raw = compose(letter).raw
        for line in raw.split(b"\r\n\r\n")[0].split(b"\r\n"):
            self.assertTrue(len(line) <= 76 or peer.encode() in line, line)
        new = email.message_from_bytes(raw, policy=email.policy.default)
        old = email.message_from_bytes(raw, policy=email.policy.compat32)
        assert isinstance(new, EmailMessage)
        self.assertEqual([str(defect) for part in new.walk() for defect in part.defects], [])
        for message in (new, old):
            self.assertEqual(str(message["References"]).split(), list(references))
            self.assertEqual(str(message["In-Reply-To"]).strip(), peer)
            self.assertEqual(str(message["Auto-Submitted"]), "auto-generated")
            self.assertEqual(str(message["X-Auto-Response-Suppress"]), "All")
            self.assertIsNone(message["Precedence"])
        self.assertNotIn(b"=?", raw[raw.index(b"References:") : raw.index(b"Auto-Submitted:")])
        self.assertEqual(str(new["Subject"]), "[mg:0b7e42] Größe → 4?")
        self.assertEqual(new["From"].addresses[0].display_name, "Ägenten, Inc.")
        self.assertEqual(new["Date"].datetime, letter.date)
        self.assertIn(OWN.accepted_tags, [TAGS])
