"""How a mail would be treated, as the command tells it."""

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.explain import Context, Explanation, Kind, Vouched, explain
from mailgateway.mail.own import Own
from tests.mail.mails import AGENT, OWN, PERSON, SENT_TEXT, lay, reply

CONTEXT = Context.from_json(
    {
        "own_addresses": [AGENT],
        "own_names": ["Coding agents"],
        "own_message_ids": ["<own-1@example.org>"],
        "own_header": "X-Session-Gateway",
        "original_text": SENT_TEXT,
        "inline_originals": ["1. And this?"],
        "person": PERSON,
        "surplus": 1,
    }
)


def told(raw: bytes, own: Own = OWN) -> Explanation:
    """The explanation in the context of our question."""
    return explain(raw, own, CONTEXT)


class ExplainTests(SynchronousTestCase):
    """One answer for every file."""

    def test_a_reply(self) -> None:
        """Words, quotation, sender and route."""
        line = told(
            reply("Yes.\n\nOn Monday 9:41, Coding agents wrote:\n> " + SENT_TEXT.replace("\n", "\n> "))
        )
        self.assertEqual((line.kind, line.text), (Kind.REPLY, "Yes."))
        self.assertIn("Shall I use", line.quoted)
        fields = json.loads(json.dumps(line.as_dict()))
        self.assertEqual(fields["from"], PERSON)
        self.assertEqual(fields["sender"], {"verdict": "accept", "reason": "", "message": ""})
        self.assertEqual(fields["route"]["shortId"], "f913c9")
        self.assertEqual(
            set(fields),
            {
                *("kind", "text", "quoted", "read", "from", "subject", "sender"),
                *("authentication", "route", "attachments"),
            },
        )
        self.assertEqual(
            fields["authentication"], {"verdict": "authentic", "method": "authentication-results"}
        )

    def test_which_text_was_read(self) -> None:
        """Where a mail has two, and where it has none."""
        two = "--b\nContent-Type: text/plain\n\n{}\n--b\nContent-Type: text/html\n\n<p>others</p>\n--b--\n"
        for plain, text, read in (("words", "words", "text/plain"), ("", "others", "text/html")):
            line = told(reply(two.format(plain), content_type="multipart/alternative; boundary=b")).as_dict()
            self.assertEqual((line["text"], line["read"]), (text, read))
        self.assertEqual(told(reply("")).as_dict()["read"], "")

    def test_what_vouches_for_the_sender(self) -> None:
        """Evidence is looked at only for an allowed address, and not for what a machine wrote."""
        for vouched, raw in (
            (Vouched.UNAUTHENTICATED, reply(top=[])),
            (Vouched.NOT_ASKED, reply(frm="eve@evil.example")),
            (Vouched.NOT_ASKED, reply(more=[("Auto-Submitted", "auto-replied")])),
        ):
            self.assertEqual(told(raw).vouched, vouched)

    def test_what_is_attached(self) -> None:
        """With name, type and size; a mail with nothing else is not empty."""
        body = (
            "--b\nContent-Type: text/plain\n\n\n--b\nContent-Type: application/pdf; name=a.pdf\n"
            "Content-Disposition: attachment\n\n%PDF\n--b--\n"
        )
        line = told(reply(body, content_type="multipart/mixed; boundary=b"))
        self.assertEqual((line.kind, line.reason), (Kind.EMPTY, ""))
        self.assertEqual(
            line.as_dict()["attachments"],
            [{"filename": "a.pdf", "contentType": "application/pdf", "size": 4, "leftOut": ""}],
        )

    def test_what_a_bounce_says(self) -> None:
        """Recipient by recipient."""
        line = told(reply(f"<{PERSON}>:\n550 5.1.1 unknown\n", more=[("X-Failed-Recipients", PERSON)]))
        (recipient,) = line.as_dict()["recipients"]
        self.assertEqual(
            (recipient["address"], recipient["outcome"], recipient["status"], recipient["permanent"]),
            (PERSON, "failed", "5.1.1", True),
        )

    def test_kinds(self) -> None:
        """What a mail is does not depend on whether its sender is believed."""
        for kind, raw in (
            (Kind.REPLY, reply(frm="eve@evil.example", top=[])),
            (Kind.EMPTY, reply("\n")),
            (Kind.EMPTY, reply(SENT_TEXT)),
            (Kind.COMMAND, reply("/status\n")),
            (Kind.COMMAND, reply("/OFF\n")),
            (Kind.REPLY, reply("/stop\n")),
            (Kind.REPLY, reply("/mode off\n")),
            (Kind.REPLY, reply("/etc/hosts needs a line\n")),
            (Kind.REPLY, reply("/status\nand more\n")),
            (Kind.AUTO_REPLY, reply(more=[("Auto-Submitted", "auto-replied")])),
            (Kind.BOUNCE, reply(more=[("X-Failed-Recipients", PERSON)])),
            (Kind.LOOP, reply(more=[("X-Session-Gateway", "i")])),
            (Kind.LOOP, lay([("From", PERSON), ("Message-ID", "<own-1@example.org>")])),
            (Kind.MALFORMED, b""),
            (Kind.MALFORMED, bytes(range(256)) * 40),
            (Kind.MALFORMED, reply("x", content_type="application/pkcs7-mime")),
        ):
            self.assertEqual(told(raw).kind, kind, raw[-80:])

    def test_refusals_give_their_verdict(self) -> None:
        """As the service would count them."""
        for reason, raw in (
            ("not-allowed", reply(frm="eve@evil.example")),
            ("unauthenticated", reply(top=[])),
            ("automatic", reply(more=[("Auto-Submitted", "auto-replied")])),
            ("own-mail", reply(more=[("X-Session-Gateway", "i")])),
            ("malformed", b""),
        ):
            fields = told(raw).as_dict()
            sender = fields["sender"]
            self.assertEqual((sender["verdict"], sender["reason"]), ("refuse", reason))
            self.assertTrue(sender["message"], reason)
        self.assertEqual(told(reply("\n")).reason, "empty")

    def test_without_settings_and_context(self) -> None:
        """It answers all the same, and accepts nobody."""
        line = explain(reply(), Own())
        self.assertEqual((line.kind, line.accepted, line.reason), (Kind.REPLY, False, "not-allowed"))

    @given(
        st.recursive(
            st.none() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["own_addresses", "original_text", "person", "inline_originals"]),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        )
    )
    def test_no_context_raises(self, value: object) -> None:
        """Whatever JSON the file holds."""
        explain(reply(), Own(), Context.from_json(value))

    @given(st.binary(max_size=300))
    def test_no_bytes_raise(self, raw: bytes) -> None:
        """A line for every file."""
        json.dumps(told(raw).as_dict())
