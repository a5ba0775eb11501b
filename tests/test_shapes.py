"""The JSON of the API: what is read, what is refused and how, and that both directions agree."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway import shapes
from mailgateway.errors import Refusal
from mailgateway.ids import InstanceId, SessionId

WHO = {"sessionId": "s", "instanceId": "i"}

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


class ParseTests(SynchronousTestCase):
    """Bytes to one object, or one refusal."""

    def refused(self, body: bytes) -> Refusal:
        """The refusal of a body."""
        error: Refusal = self.assertRaises(Refusal, shapes.parse, body)
        return error

    def test_what_is_not_one_object_is_refused(self) -> None:
        """Broken text, other values, deep nesting and endless numbers are one kind of mistake."""
        bodies = [
            b"",
            b"{",
            b"[]",
            b"null",
            b'"x"',
            b"\xff\xfe",
            b"\xef\xbb\xbf{}",
            b"[" * 100_000,
            b'{"a":' * 50_000,
            b'{"a": NaN}',
            b'{"a": -Infinity}',
            b'{"a": 1e999}',
            b'{"a": ' + b"1" * 5_000 + b"}",
            b'{"a": 1} {}',
        ]
        for body in bodies:
            self.assertEqual(self.refused(body).code, "invalid", body[:30])

    def test_a_repeated_name_is_refused(self) -> None:
        """Two readers of one text must not believe two things."""
        error = self.refused(b'{"sessionId": "a", "sessionId": "b"}')
        self.assertEqual(error.details, {"field": "sessionId"})
        self.refused(b'{"a": {"b": 1, "b": 2}}')

    @settings(max_examples=60)
    @given(st.dictionaries(st.text(max_size=12), anything, max_size=5))
    def test_every_object_is_read_as_it_is(self, value: dict[str, Any]) -> None:
        """Strictness does not change what it lets through."""
        self.assertEqual(shapes.parse(json.dumps(value).encode()), value)

    @settings(max_examples=100)
    @given(st.binary(max_size=200))
    def test_bytes_never_end_in_another_exception(self, body: bytes) -> None:
        """Whatever comes is an object or a refusal."""
        try:
            shapes.parse(body)
        except Refusal as error:
            self.assertEqual(error.code, "invalid")


class ReadTests(SynchronousTestCase):
    """Objects to values."""

    def refused(self, made: Any, values: dict[str, Any]) -> str:
        """The name of the field that was refused."""
        error = self.assertRaises(Refusal, shapes.read, made, values)
        self.assertEqual(error.code, "invalid")
        self.assertIn(f"`{error.details['field']}`", error.message)
        return str(error.details["field"])

    def test_a_request_is_read(self) -> None:
        """Names in camelCase become attributes; what is absent has its default."""
        read = shapes.read(shapes.PingRequest, {**WHO, "dirty": True, "state": "idle"})
        self.assertEqual((read.session_id, read.instance_id), (SessionId("s"), InstanceId("i")))
        self.assertEqual((read.dirty, read.state, read.title), (True, "idle", ""))

    def test_null_is_absent_where_a_field_is_optional(self) -> None:
        """Many clients write null for what they do not know."""
        self.assertEqual(shapes.read(shapes.PingRequest, {**WHO, "title": None}).title, "")
        self.assertEqual(
            self.refused(shapes.PingRequest, {"sessionId": None, "instanceId": "i"}), "sessionId"
        )

    def test_an_unknown_field_is_named(self) -> None:
        """A misspelt field must not be lost silently."""
        self.assertEqual(self.refused(shapes.PingRequest, {**WHO, "shoeSize": 43}), "shoeSize")
        self.assertEqual(self.refused(shapes.Nothing, {"x": 1}), "x")

    def test_wrong_values_name_their_field(self) -> None:
        """Types, bounds, and text that no table can hold."""
        wrong: list[tuple[Any, dict[str, Any], str]] = [
            (shapes.PingRequest, {"instanceId": "i"}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": 3}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": ""}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": "  "}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": "x" * 256}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": "\ud800"}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": "a\0b"}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": "a\r\nb"}, "sessionId"),
            (shapes.PingRequest, {**WHO, "sessionId": "a\u2028b"}, "sessionId"),
            (shapes.PingRequest, {**WHO, "dirty": "yes"}, "dirty"),
            (shapes.PingRequest, {**WHO, "state": "asleep"}, "state"),
            (shapes.PingRequest, {**WHO, "state": ["idle"]}, "state"),
            (shapes.TargetRequest, {"instanceId": "i", "uid": True}, "uid"),
            (shapes.TargetRequest, {"instanceId": "i", "uid": 0}, "uid"),
            (shapes.TargetRequest, {"instanceId": "i", "uid": 2**32}, "uid"),
            (shapes.TargetRequest, {"instanceId": "i", "uid": 1.0}, "uid"),
            (shapes.TargetRequest, {"instanceId": "i"}, "id"),
            (shapes.TargetRequest, {"instanceId": "i", "id": "m-0000", "uid": 1}, "id"),
            (shapes.ModeRequest, {"mode": "ON"}, "mode"),
            (shapes.SendBody, {"kind": "postcard", "sessionId": "s", "subject": "", "text": ""}, "kind"),
        ]
        for made, values, field in wrong:
            self.assertEqual(self.refused(made, values), field, values)

    def test_a_subject_is_one_line(self) -> None:
        """Nobody writes header fields through a subject."""
        for subject in ("x\r\nBcc: evil@example.net", "x\nFrom: y", "x\0y", "y" * 5_000):
            values = {"kind": "settle", "sessionId": "s", "subject": subject, "text": "t"}
            self.assertEqual(self.refused(shapes.SendBody, values), "subject")

    def test_lists_are_bounded_and_typed(self) -> None:
        """Options and attachments."""
        values: dict[str, Any] = {"kind": "decision", "sessionId": "s", "subject": "x", "text": "t"}
        self.assertEqual(shapes.read(shapes.SendBody, {**values, "options": ["a", "b"]}).options, ("a", "b"))
        for options in ("ab", ["a"] * 51, [1], [None], [""]):
            self.assertEqual(self.refused(shapes.SendBody, {**values, "options": options}), "options")

    @settings(max_examples=100)
    @given(st.dictionaries(st.sampled_from(["sessionId", "instanceId", "title", "dirty", "x"]), anything))
    def test_any_object_is_a_value_or_a_refusal(self, values: dict[str, Any]) -> None:
        """Nothing else can happen."""
        try:
            shapes.read(shapes.PingRequest, values)
        except Refusal as error:
            self.assertEqual(error.code, "invalid")

    def test_words_of_people_are_not_in_a_repr(self) -> None:
        """A value may be logged; what it says may not."""
        values = {"kind": "settle", "sessionId": "s", "subject": "secret-1", "text": "secret-2"}
        self.assertNotIn("secret", repr(shapes.read(shapes.SendBody, values)))


class QueryTests(SynchronousTestCase):
    """Query strings."""

    def test_parameters_are_read(self) -> None:
        """Text becomes what the parameter is."""
        query = shapes.read_query(shapes.PendingQuery, {b"session": [b"s"], b"wait": [b"2.5"]})
        self.assertEqual((query.session, query.kind, query.wait), ("s", None, 2.5))

    def test_wrong_parameters_are_named(self) -> None:
        """Unknown, repeated, not a number, too long, not UTF-8."""
        wrong: list[dict[bytes, list[bytes]]] = [
            {b"nonsense": [b"1"]},
            {b"wait": [b"1", b"2"]},
            *({b"wait": [value]} for value in (b"-1", b"soon", b"nan", b"inf", b"61", b"1e1", b"", b" 1")),
            {b"session": [b"x" * 300]},
            {b"session": [b"\xff"]},
            {b"kind": [b"letter"]},
        ]
        for arguments in wrong:
            error = self.assertRaises(Refusal, shapes.read_query, shapes.PendingQuery, arguments)
            self.assertEqual(
                (error.code, error.details["field"]), ("invalid", next(iter(arguments)).decode())
            )

    def test_times_are_rfc_3339(self) -> None:
        """With an offset, and turned to UTC."""
        read = shapes.read_query(shapes.InboundQuery, {b"since": [b"2026-01-31T12:00:00+02:00"]})
        self.assertEqual(read.since, datetime(2026, 1, 31, 10, tzinfo=UTC))
        for text in (b"2026-01-31", b"2026-01-31T12:00:00", b"2026-13-01T00:00:00Z", b"now"):
            self.assertRaises(Refusal, shapes.read_query, shapes.InboundQuery, {b"since": [text]})


class WriteTests(SynchronousTestCase):
    """Values to JSON."""

    def test_times_sort_as_texts(self) -> None:
        """Always UTC, always with microseconds."""
        noon = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
        self.assertEqual(shapes.rfc3339(noon), "2026-01-31T10:00:00.000000Z")
        later = noon + timedelta(microseconds=1)
        self.assertLess(shapes.rfc3339(noon), shapes.rfc3339(later))

    def test_optional_members_are_left_out_and_others_are_null(self) -> None:
        """A question mark in the contract means that the member may be missing, and only that."""
        sent = shapes.write(shapes.Sent("<m>", "abc123", "x", "o-1", "queued"))
        self.assertNotIn("questionId", sent)
        account = shapes.write(shapes.AccountState("watching", None, None))
        self.assertEqual(account, {"state": "watching", "since": None, "nextAttemptAt": None})

    def test_half_surrogates_are_written_as_a_question_mark(self) -> None:
        """What a mail smuggled in must not break an answer."""
        self.assertEqual(shapes.printed({"subject": "a\ud800b"}), b'{"subject":"a?b"}')

    @settings(max_examples=60)
    @given(st.text(min_size=1, max_size=30), st.text(max_size=30), st.booleans())
    def test_what_is_written_is_read_again(self, session: str, title: str, dirty: bool) -> None:
        """Both directions agree."""
        try:
            value = shapes.read(
                shapes.PingRequest, {"sessionId": session, "instanceId": "i", "title": title, "dirty": dirty}
            )
        except Refusal:
            return
        self.assertEqual(shapes.read(shapes.PingRequest, shapes.parse(shapes.printed(value))), value)

    def test_a_schema_tells_names_bounds_and_what_is_required(self) -> None:
        """The description comes from the same declaration."""
        described = shapes.schema(shapes.SendBody)
        self.assertEqual(described["required"], ["kind", "sessionId", "subject", "text"])
        self.assertEqual(described["properties"]["kind"]["enum"], ["notification", "settle", "decision"])
        self.assertEqual(described["properties"]["options"]["maxItems"], 50)
        self.assertIn("from", shapes.schema(shapes.DeliveryShape)["properties"])
