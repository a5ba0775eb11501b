"""Authentication-Results: the tokenizer and what it refuses."""

import authres
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.decode import Malformed
from mailgateway.mail.results import Results, parse_results


def parsed(text: str) -> Results:
    """The results of a text that must be well formed."""
    results = parse_results(text.encode())
    assert isinstance(results, Results), results
    return results


class ResultsTests(SynchronousTestCase):
    """A clause is what the grammar says, not what the letters look like."""

    def test_clauses_and_their_properties(self) -> None:
        """Methods, results and properties as providers write them."""
        results = parsed(
            "mx.google.com; dkim=pass header.i=@example.org header.s=s1 header.b=AbC/d+e=;"
            " spf=pass (google.com: domain of x) smtp.mailfrom=x@example.org;"
            " dmarc=pass (p=NONE sp=NONE; dis=NONE) header.from=example.org"
        )
        self.assertEqual(results.authserv_id, "mx.google.com")
        self.assertEqual(
            [(each.method, each.result) for each in results.clauses],
            [("dkim", "pass"), ("spf", "pass"), ("dmarc", "pass")],
        )
        self.assertEqual(results.clauses[0].properties["header.b"], ("AbC/d+e=",))
        self.assertEqual(results.clauses[2].properties, {"header.from": ("example.org",)})

    def test_the_id_is_unquoted_and_may_have_a_version(self) -> None:
        """``"mx.example.net"``, ``mx.example.net 1 (checked)``: the same id."""
        for text in (
            '"MX.example.net"; none',
            "mx.example.net 1 (checked); none",
            "(a) mx.example.net (b (c)) ; none",
        ):
            self.assertEqual(parsed(text).authserv_id, "mx.example.net")
            self.assertEqual(parsed(text).clauses, ())

    def test_comments_and_quoted_strings_hold_nothing(self) -> None:
        """Text in brackets or quotes is no clause, in whatever way it tries to end them."""
        for text in (
            "x; dkim=none (dmarc=pass header.from=example.org)",
            "x; dkim=none (a (b) ; dmarc=pass header.from=example.org)",
            'x; dkim=none smtp.mailfrom="a; dmarc=pass header.from=example.org; b"@evil.example',
            'x; dkim=none smtp.mailfrom="a) dmarc=pass (b"@evil.example',
            r'x; dkim=none smtp.mailfrom="a\"; dmarc=pass; b"@evil.example',
            r"x; dkim=none (a \) ; dmarc=pass )",
        ):
            self.assertEqual([each.method for each in parsed(text).clauses], ["dkim"])

    def test_a_doubled_property_is_kept_twice(self) -> None:
        """So that the policy can see the disagreement."""
        clause = parsed("x; dkim=pass header.d=a header.d=b").clauses[0]
        self.assertEqual(clause.properties["header.d"], ("a", "b"))

    def test_what_does_not_fit_is_malformed(self) -> None:
        """No id, open quotes and comments, results without a method, control characters, not ASCII."""
        for raw in (
            b"",
            b";",
            b"spf=pass; dkim=pass",
            b"x y z; none",
            b"x evil; dmarc=pass",
            b"x; dmarc",
            b"x; =pass",
            b"x; dmarc=",
            b"x; dmarc= pass",
            b'x; "dmarc"=pass',
            b'x; dmarc=pass "header.from"=example.org',
            b"x; dmarc=pass stray",
            b"x; dmarc=pass (open",
            b'x; dmarc=pass reason="open',
            b"x; dmarc=pass )",
            b"x; dmarc=pass\x0b",
            "x; dmarc=pass header.from=exämple.org".encode(),
            b"x; " + b"a=b;" * 4000,
        ):
            self.assertIsInstance(parse_results(raw), Malformed, raw[:60])

    @given(st.text(alphabet='ab=;. "()\\@/1', max_size=60))
    def test_it_never_takes_more_than_a_second_reader(self, text: str) -> None:
        """Where authres reads the value too, both see the same methods and results."""
        results = parse_results(f"id; {text}".encode())
        if isinstance(results, Malformed):
            return
        try:
            other = authres.AuthenticationResultsHeader.parse(f"Authentication-Results: id; {text}")
        except Exception:  # noqa: BLE001 - it raises many kinds; then there is nothing to compare
            return
        self.assertEqual(
            [(each.method, each.result) for each in results.clauses],
            [(each.method, each.result) for each in other.results],
        )

    @given(st.binary(max_size=200))
    def test_no_bytes_raise(self, value: bytes) -> None:
        """Garbage is malformed or harmless."""
        self.assertIsInstance(parse_results(value), (Results, Malformed))
