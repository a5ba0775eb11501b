"""Requests of OAuth as they are written, and what a provider's answers mean."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire.oauth import (
    Registration,
    authorize_url,
    code_request,
    device_request,
    poll_request,
    printable_of,
    refresh_request,
)
from mailgateway.wire.oauth_answer import (
    Answer,
    AuthorizationCode,
    Denied,
    DeviceCode,
    Expired,
    Foreign,
    Granted,
    Lost,
    Misconfigured,
    Pending,
    SlowDown,
    Unavailable,
    device_answer,
    poll_answer,
    redirect_answer,
    token_answer,
)

SECRET = "a-secret-of-the-client"
PLACE = Registration(
    client_id="me & co",
    token_url="https://login.example/token",
    device_url="https://login.example/device",
    authorize_url="https://login.example/authorize",
    scopes=("mail.read", "https://login.example/mail.send"),
    parameters=("access_type=offline", "state=forged", "prompt=consent"),
)
CONFIDENTIAL = Registration("me", "https://login.example/token", client_secret=SECRET)


def form(body: str) -> dict[str, str]:
    """The fields of a form, each of which stands there once."""
    fields = parse_qs(body, strict_parsing=True)
    assert all(len(values) == 1 for values in fields.values()), fields
    return {name: values[0] for name, values in fields.items()}


def answer(status: int = 200, retry_after: str = "", **facts: Any) -> Answer:
    """An answer with an object."""
    return Answer(status, json.dumps(facts), retry_after)


class RequestTests(SynchronousTestCase):
    """What is posted."""

    def test_device_code(self) -> None:
        """The client and the scopes, in the body; no type of grant yet (RFC 8628 section 3.1)."""
        request = device_request(PLACE)
        self.assertEqual(request.url, PLACE.device_url)
        scope = "mail.read https://login.example/mail.send"
        self.assertEqual(form(request.body), {"client_id": "me & co", "scope": scope})

    def test_poll(self) -> None:
        """A public client names itself; oauthlib does that only when it is told to."""
        fields = form(poll_request(PLACE, "device-code").body)
        self.assertEqual(fields["client_id"], "me & co")
        self.assertEqual(fields["device_code"], "device-code")
        self.assertEqual(fields["grant_type"], "urn:ietf:params:oauth:grant-type:device_code")
        self.assertEqual(form(poll_request(CONFIDENTIAL, "x").body)["client_secret"], SECRET)

    def test_page(self) -> None:
        """The challenge is S256 of the verifier, by the example of RFC 7636 appendix B; ours win."""
        verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        url = authorize_url(PLACE, "http://127.0.0.1:4242", "a-state", verifier)
        fields = form(urlsplit(url).query)
        self.assertEqual(fields["code_challenge"], "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
        self.assertEqual(fields["code_challenge_method"], "S256")
        self.assertEqual((fields["access_type"], fields["prompt"]), ("offline", "consent"))
        self.assertEqual((fields["state"], fields["redirect_uri"]), ("a-state", "http://127.0.0.1:4242"))
        self.assertNotIn(verifier, url)

    def test_further_parameters(self) -> None:
        """They stand as they are written, whatever their names mean elsewhere; none changes one of ours."""
        own = ("state=x", "code_challenge_method=plain", "uri=x", "self=1", "scope=more", "hd=a b&c=d")
        url = authorize_url(evolve(PLACE, parameters=own), "http://127.0.0.1:4242", "a-state", "v" * 43)
        fields = form(urlsplit(url).query)
        self.assertEqual((fields["state"], fields["code_challenge_method"]), ("a-state", "S256"))
        self.assertEqual((fields["uri"], fields["self"], fields["hd"]), ("x", "1", "a b&c=d"))
        self.assertNotIn("more", fields["scope"].split())
        self.assertNotIn("c", fields)

    def test_a_page_of_this_machine(self) -> None:
        """Tests and their providers have no TLS; oauthlib refuses that unless it is told otherwise."""
        local = Registration("me", "http://127.0.0.1:1/t", authorize_url="http://127.0.0.1:1/a")
        self.assertTrue(
            authorize_url(local, "http://127.0.0.1:2", "s", "v" * 43).startswith("http://127.0.0.1:1/a?")
        )

    def test_exchange_and_refresh(self) -> None:
        """The verifier goes along with the code, and the scopes with the refresh token."""
        fields = form(code_request(PLACE, "the-code", "http://127.0.0.1:1", "the-verifier").body)
        self.assertEqual((fields["code"], fields["code_verifier"]), ("the-code", "the-verifier"))
        self.assertEqual(fields["redirect_uri"], "http://127.0.0.1:1")
        fields = form(refresh_request(PLACE, "r1").body)
        self.assertEqual((fields["grant_type"], fields["refresh_token"]), ("refresh_token", "r1"))
        self.assertEqual((fields["client_id"], fields["scope"]), ("me & co", " ".join(PLACE.scopes)))
        self.assertNotIn("client_secret", fields)

    def test_no_secret_is_shown(self) -> None:
        """A traceback or a log line may hold any of these."""
        shown = repr([CONFIDENTIAL, refresh_request(CONFIDENTIAL, "refresh-me"), Granted("acc", "ref", 1)])
        for secret in (SECRET, "refresh-me", "acc'", "ref'"):
            self.assertNotIn(secret, shown)

    def test_random_bytes_in_addresses(self) -> None:
        """32 bytes are 43 characters that need no escape."""
        self.assertRegex(printable_of(bytes(range(32))), r"^[A-Za-z0-9_-]{43}$")


class AnswerTests(SynchronousTestCase):
    """What comes back."""

    def test_device_codes(self) -> None:
        """Numbers may be texts, and Google spells the address in another way."""
        found = device_answer(
            answer(device_code="d", user_code="A-B", verification_url="https://x.example", expires_in="600")
        )
        self.assertEqual(found, DeviceCode("d", "A-B", "https://x.example", "", 600, 5))
        self.assertNotIn("device_code='d'", repr(found))
        for url in ("http://evil.example", "javascript:alert(1)", "file:///etc/passwd"):
            given = answer(device_code="d", user_code="c", verification_uri=url)
            self.assertIsInstance(device_answer(given), Unavailable)
        self.assertIsInstance(device_answer(answer(400, error="invalid_client")), Misconfigured)

    def test_classes(self) -> None:
        """Every error has its class; a server that fails says nothing of the grant."""
        for status, error, text, kind in (
            (400, "authorization_pending", "", Pending),
            (400, "slow_down", "", SlowDown),
            (400, "expired_token", "", Expired),
            (400, "access_denied", "", Denied),
            (400, "authorization_declined", "", Denied),
            (400, "invalid_grant", "AADSTS70008: expired", Lost),
            (400, "interaction_required", "", Lost),
            (400, "consent_required", "", Lost),
            (401, "invalid_client", "AADSTS7000222: expired", Misconfigured),
            (401, "invalid_client", "AADSTS7000215: wrong", Misconfigured),
            (400, "unauthorized_client", "AADSTS700016: not found", Misconfigured),
            (400, "invalid_grant", "AADSTS7000218: public", Misconfigured),
            (400, "invalid_scope", "", Misconfigured),
            (400, "something_new", "", Misconfigured),
            (400, "temporarily_unavailable", "", Unavailable),
            (503, "invalid_grant", "", Unavailable),
            (429, "invalid_client", "", Unavailable),
        ):
            found = poll_answer(answer(status, error=error, error_description=text))
            self.assertIsInstance(found, kind, (status, error))
        named = poll_answer(
            answer(400, error="invalid_grant", error_description="AADSTS70008: a refresh token")
        )
        self.assertEqual(named, Lost("invalid_grant, AADSTS70008"))

    def test_no_answer_of_a_provider(self) -> None:
        """A portal's page, half an object, a token with a line break: trouble that passes."""
        for status, body in (
            (200, "<html>log in to the Wi-Fi</html>"),
            (200, '{"access_token": "half'),
            (200, "[]"),
            (200, "null"),
            (200, '{"access_token": "a\\nb"}'),
            (200, '{"access_token": 7}'),
            (200, '{"access_token": ""}'),
            (302, ""),
            (404, "not here"),
            (200, "[" * 100_000),
        ):
            self.assertIsInstance(token_answer(Answer(status, body)), Unavailable, body[:40])
        self.assertEqual(
            token_answer(Answer(503, "", "120")),
            Unavailable("what answers with 503 does not speak OAuth", 120.0),
        )

    def test_lifetimes(self) -> None:
        """A number, a text, nothing, nonsense."""
        for given_, seconds in (
            (1800, 1800),
            ("1800", 1800),
            (None, 3600),
            ("soon", 3600),
            (-5, 1),
            (1e300, 30 * 86_400),
        ):
            found = token_answer(answer(access_token="t", expires_in=given_))
            assert isinstance(found, Granted)
            self.assertEqual(found.lifetime, seconds, given_)
        found = token_answer(answer(access_token="t", refresh_token="r", scope="a b"))
        self.assertEqual(found, Granted("t", "r", 3600, ("a", "b")))

    def test_where_the_browser_ends(self) -> None:
        """The state is looked at first, and nothing is believed twice."""
        uri = "http://127.0.0.1:4242"
        good = f"{uri}/?code=abc&state=S"
        self.assertEqual(redirect_answer(f"  {good}\n", uri, "S"), AuthorizationCode("abc"))
        self.assertNotIn("abc", repr(redirect_answer(good, uri, "S")))
        for url in (
            f"{uri}/?code=abc&state=T",
            f"{uri}/?code=abc",
            f"{uri}/?code=abc&state=S&code=def",
            f"{uri}/?state=S",
            f"{uri}/other?code=abc&state=S",
            "http://127.0.0.1:4243/?code=abc&state=S",
            "https://127.0.0.1:4242/?code=abc&state=S",
            "http://[::1/?code=abc",
            "abc",
            "",
        ):
            self.assertIsInstance(redirect_answer(url, uri, "S"), Foreign, url)
        self.assertEqual(
            redirect_answer(f"{uri}?error=access_denied&state=S", uri, "S"), Denied("access_denied")
        )
        self.assertIsInstance(redirect_answer(f"{uri}?error=access_denied&state=T", uri, "S"), Foreign)

    @settings(max_examples=100)
    @given(
        st.integers(100, 599),
        st.text(max_size=200)
        | st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=20),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "access_token",
                            "expires_in",
                            "error",
                            "scope",
                            "refresh_token",
                            "interval",
                            "device_code",
                            "user_code",
                            "verification_uri",
                            "error_description",
                            "expires_at",
                        ]
                    ),
                    inner,
                    max_size=6,
                )
            ),
            max_leaves=12,
        ),
    )
    def test_whatever_is_answered(self, status: int, facts: Any) -> None:
        """Each answer is a value, and nothing is raised."""
        whole = Answer(status, facts if isinstance(facts, str) else json.dumps(facts))
        for read in (device_answer, poll_answer, token_answer):
            self.assertIsNotNone(read(whole))

    @settings(max_examples=60)
    @given(st.text(max_size=120))
    def test_whatever_is_pasted(self, text: str) -> None:
        """A person may paste anything."""
        self.assertIsInstance(redirect_answer(text, "http://127.0.0.1:1", "state"), Foreign)
