"""Tags, plus-addresses, Message-IDs."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.ids import RouteId
from mailgateway.mail.tag import (
    OwnId,
    ShortTag,
    SignedTag,
    find_tag,
    format_tag,
    own_message_id,
    parse_own_message_id,
    plus_route,
    strip_tags,
)

TAGS = frozenset({"mg", "pi"})
TOKEN = "A" * 22 + "." + "b" * 16


class TagTests(SynchronousTestCase):
    """The mark in a subject."""

    def test_found_anywhere_in_any_case_leftmost_first(self) -> None:
        """Six or eight digits, or a signed token whose case matters."""
        for subject, wanted in {
            "[mg:f913c9] hello": ShortTag("mg", RouteId("f913c9")),
            "RE: RE[2]: [MG:F913C9] HELLO": ShortTag("mg", RouteId("f913c9")),
            "x [pi:f913c9aa] [mg:000000]": ShortTag("pi", RouteId("f913c9aa")),
            f"Re: [mg:{TOKEN}] x": SignedTag("mg", TOKEN),
            f"[mg:zzzzzz] [mg:{TOKEN}]": SignedTag("mg", TOKEN),
        }.items():
            self.assertEqual(find_tag(subject, TAGS), wanted)

    def test_what_only_resembles_a_tag_is_none(self) -> None:
        """Other names, other lengths, other letters."""
        for subject in (
            "",
            "[mg:]",
            "[mg:abc]",
            "[mg:zzzzzz]",
            "[mg:1234567]",
            "[zz:f913c9]",
            "mg:f913c9",
            "[mg: f913c9]",
            f"[mg:{TOKEN[:-1]}]",
            "[\u212ag:f913c9]",
        ):
            self.assertIsNone(find_tag(subject, TAGS), subject)

    def test_a_human_subject_has_no_tag(self) -> None:
        """All of them go, blanks collapse."""
        self.assertEqual(strip_tags("[mg:f913c9]  Re: [PI:000000] x", TAGS), "Re: x")

    def test_a_name_is_not_a_pattern(self) -> None:
        """A tag with special characters matches itself only."""
        self.assertIsNone(find_tag("[mxg:f913c9]", frozenset({"m.g"})))
        self.assertIsNone(find_tag("[mg:f913c9]", frozenset()))

    @given(st.text(max_size=80))
    def test_no_subject_raises(self, subject: str) -> None:
        """And what was stripped has no tag left."""
        find_tag(subject, TAGS)
        strip_tags(subject, TAGS)

    @given(st.sampled_from(["000000", "f913c9", "deadbeef"]), st.text(max_size=20))
    def test_what_is_written_is_found(self, route: str, human: str) -> None:
        """As the first thing, whatever follows."""
        self.assertEqual(
            find_tag(f"{format_tag('mg', RouteId(route))} {human}", TAGS), ShortTag("mg", RouteId(route))
        )


class PlusTests(SynchronousTestCase):
    """``local+route@domain``."""

    def test_only_our_address_with_a_route(self) -> None:
        """The rest must be the account's address; other suffixes are none."""
        self.assertEqual(plus_route("Agent+F913C9@Example.org", "agent@example.org"), "f913c9")
        self.assertEqual(plus_route("agent+x+f913c9@example.org", "agent+x@example.org"), "f913c9")
        for address in (
            "agent@example.org",
            "agent+news@example.org",
            "other+f913c9@example.org",
            "agent+f913c9@evil.example",
            "agent+f913c9@example.org.evil.example",
            "",
        ):
            self.assertIsNone(plus_route(address, "agent@example.org"), address)


class MessageIdTests(SynchronousTestCase):
    """Our own Message-IDs."""

    @given(st.binary(min_size=8, max_size=16), st.sampled_from(["f913c9", "deadbeef"]))
    def test_what_is_written_is_read(self, random: bytes, route: str) -> None:
        """Route and machine come back."""
        text = own_message_id(RouteId(route), random, "0a1b2c3d", "example.org")
        self.assertEqual(parse_own_message_id(text), OwnId(RouteId(route), "0a1b2c3d"))

    def test_others_are_none(self) -> None:
        """Other prefixes, missing pieces, no brackets."""
        for text in (
            "",
            "<a@b>",
            "<mg.f913c9.00112233.0a1b2c3d@>",
            "mg.f913c9.00112233.0a1b2c3d@example.org",
            "<mg.f913c9.0a1b2c3d@example.org>",
            "<mg.f913c9.00112233.0a1b2c3d@example.org> x",
            "<xmg.f913c9.00112233.0a1b2c3d@example.org>",
        ):
            self.assertIsNone(parse_own_message_id(text), text)
