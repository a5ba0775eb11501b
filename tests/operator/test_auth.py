"""Signing in: every flow and error, against a provider over HTTP, with a person made of a function."""

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from attrs import evolve
from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SkipTest, SynchronousTestCase, TestCase

from mailgateway.errors import ConfigError, MailgatewayError, Unreachable
from mailgateway.operator.auth import (
    Flow,
    Invitation,
    OpenPage,
    SignedIn,
    SignInFailed,
    TypeCode,
    authorize,
    flow_of,
)
from mailgateway.operator.loopback import listen
from mailgateway.operator.pasting import Lines
from mailgateway.protocols.grant_file import GrantFile
from mailgateway.secrets import SESSION_KEY
from mailgateway.settings import OAuth
from mailgateway.wire.oauth import Request as Form
from mailgateway.wire.oauth_answer import Answer
from tests.fakes.identity_provider import IdentityProvider, registration

reactor: Any = global_reactor
LOCAL = OAuth(client_id="me", token_url="https://x.example/t", device_url="https://x.example/d")


class NoRedirect(HTTPRedirectHandler):
    """A browser that stops where it is sent."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow nothing."""


def visit(url: str, host: str = "") -> tuple[int, str, dict[str, str]]:
    """What a browser gets: status, page, fields."""
    request = Request(url, headers={"Host": host} if host else {})  # noqa: S310 - ours
    try:
        with build_opener(NoRedirect).open(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.headers.items()}
    except HTTPError as error:
        with error:
            return error.code, error.read().decode(), {k.lower(): v for k, v in error.headers.items()}


class FlowCase(TestCase):
    """A provider on loopback, and a state directory."""

    timeout = 30

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.provider = IdentityProvider(reactor=reactor)
        port = reactor.listenTCP(0, self.provider.site(), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        table = registration(
            f"http://127.0.0.1:{port.getHost().port}",
            redirect_host="127.0.0.1",
            authorize_parameters=("access_type=offline",),
        )
        self.written = OAuth(**{**table, "scopes": tuple(table["scopes"])})
        self.invitations: list[Invitation] = []
        self.invited: Deferred[Any] = Deferred()

    def invite(self, invitation: Invitation) -> None:
        """A person is told what to do."""
        self.invitations.append(invitation)
        if not self.invited.called:
            self.invited.callback(invitation)

    def begin(
        self, flow: Flow, paste: Callable[[], Awaitable[str]] | None = None, **more: Any
    ) -> "Deferred[SignedIn]":
        """Begin to sign in."""
        written = more.pop("written", self.written)
        return Deferred.fromCoroutine(
            authorize(
                reactor, self.folder, "work", written, invite=self.invite, flow=flow, paste=paste, **more
            )
        )

    async def page(self) -> OpenPage:
        """The page that the person is sent to."""
        invitation = await self.invited
        assert isinstance(invitation, OpenPage)
        return invitation

    async def back(self, page: OpenPage) -> str:
        """The address that the provider sends the browser to."""
        status, _, fields = await deferToThread(visit, page.url)
        self.assertEqual(status, 302)
        return fields["location"]


class PlaceTests(FlowCase):
    """Where tokens are written."""

    async def test_a_state_directory_that_is_not_there(self) -> None:
        """It is made for us alone, before anybody signs in."""
        self.folder = self.folder / "new" / "state"
        signing_in = self.begin(Flow.BROWSER)
        await self.page()
        self.assertEqual(stat.S_IMODE(self.folder.stat().st_mode), 0o700)
        signing_in.cancel()
        await self.assertFailure(signing_in, CancelledError)

    async def test_root_beside_a_service_of_another_user(self) -> None:
        """It is told who has to do it, before anybody signs in: that service could not read the tokens."""
        if os.geteuid() != 0:
            raise SkipTest("only root can do that")
        key = self.folder / SESSION_KEY
        key.write_text("x" * 32)
        os.chown(key, 65534, 65534)
        error = await self.assertFailure(self.begin(Flow.BROWSER), ConfigError)
        self.assertIn("sudo -u nobody", str(error))
        self.assertEqual(self.invitations, [])
        os.chown(key, 0, 0)
        signing_in = self.begin(Flow.BROWSER)
        await self.page()
        signing_in.cancel()
        await self.assertFailure(signing_in, CancelledError)


class BrowserTests(FlowCase):
    """Authorization code and PKCE, with a browser on this machine."""

    async def test_it_comes_back(self) -> None:
        """The page carries nothing, the port is closed, and what is granted is on disk for us alone."""
        running = self.begin(Flow.BROWSER)
        page = await self.page()
        self.assertFalse(page.paste)
        address = await self.back(page)
        status, text, fields = await deferToThread(visit, address)
        signed_in = await running
        self.assertEqual((status, signed_in.lasting, signed_in.remarks), (200, True, ()))
        self.assertIn("You can close this window", text)
        for word in ("code", "state", "<script", "http"):
            self.assertNotIn(word, text.replace("color-scheme", "").replace("charset", ""))
        self.assertIn("default-src 'none'", fields["content-security-policy"])
        self.assertEqual((fields["referrer-policy"], fields["cache-control"]), ("no-referrer", "no-store"))
        grant = GrantFile.of(self.folder, "work").read()
        assert grant is not None
        self.assertTrue(self.provider.accepts(grant.access_token))
        self.assertEqual(self.provider.pages[0]["access_type"], "offline")
        self.assertEqual(self.provider.pages[0]["code_challenge_method"], "S256")
        with self.assertRaises(OSError):
            await deferToThread(visit, address)

    async def test_who_else_comes(self) -> None:
        """A wrong state, another name for this machine, another path: turned away; it waits on."""
        running = self.begin(Flow.BROWSER)
        page = await self.page()
        good = await self.back(page)
        port = urlsplit(good).port
        for address, host, wanted in (
            (good.replace("state=", "state=x"), "", 400),
            (f"http://127.0.0.1:{port}/favicon.ico", "", 404),
            (good, f"evil.example:{port}", 404),
            (f"http://127.0.0.1:{port}/", "", 400),
        ):
            status, text, _ = await deferToThread(visit, address, host)
            self.assertEqual((status, "You can close" in text), (wanted, False), address)
        self.assertNoResult(running)
        await deferToThread(visit, good)
        await running

    async def test_declined(self) -> None:
        """A person says no: a sentence, and nothing is written."""
        running = self.begin(Flow.BROWSER)
        page = await self.page()
        state = parse_qs(urlsplit(page.url).query)["state"][0]
        await deferToThread(visit, f"{page.redirect_uri}/?error=access_denied&state={state}")
        with self.assertRaises(SignInFailed) as caught:
            await running
        self.assertIn("declined", str(caught.exception))
        self.assertIsNone(GrantFile.of(self.folder, "work").read())

    async def test_a_port_that_is_taken(self) -> None:
        """It says which, and how to name another."""
        port = reactor.listenTCP(0, self.provider.site(), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        with self.assertRaises(Unreachable) as caught:
            await self.begin(Flow.BROWSER, port=port.getHost().port)
        self.assertIn("--port", str(caught.exception))

    async def test_the_name_of_this_machine(self) -> None:
        """As the registration says it."""
        running = self.begin(Flow.BROWSER, written=evolve(self.written, redirect_host="localhost"))
        page = await self.page()
        self.assertTrue(page.redirect_uri.startswith("http://localhost:"))
        await deferToThread(visit, await self.back(page))
        await running

    async def test_less_than_was_asked_for(self) -> None:
        """No refresh token, a scope that was not ticked: it works, and says what will not."""
        self.provider.gives_refresh, self.provider.scope = False, "mail.read"
        running = self.begin(Flow.BROWSER)
        await deferToThread(visit, await self.back(await self.page()))
        signed_in = await running
        self.assertFalse(signed_in.lasting)
        self.assertIn("offline_access", signed_in.remarks[0])
        self.assertIn("mail.send", signed_in.remarks[1])
        self.assertNotIn("mail.read", signed_in.remarks[1])


class PortTests(SynchronousTestCase):
    """By what name a browser comes back."""

    def test_the_usual_port_is_not_said(self) -> None:
        """A browser leaves 80 away, and no other number."""
        for port, hosts in (
            (80, {b"localhost", b"localhost:80"}),
            (8080, {b"localhost:8080"}),
        ):
            ports = MemoryReactor()
            listener = listen(ports, "localhost", port)
            self.assertEqual(listener._resource.hosts, hosts)
            self.assertEqual({each[3] for each in ports.tcpServers}, {"127.0.0.1", "::1"})


class PasteTests(FlowCase):
    """A machine without a browser."""

    async def test_pasted(self) -> None:
        """Wrong pastes are told why, and nothing listens."""
        lines: list[Deferred[str]] = [Deferred() for _ in range(3)]
        waiting = iter(lines)

        async def paste() -> str:
            return await next(waiting)

        running = self.begin(Flow.PASTE, paste)
        page = await self.page()
        self.assertTrue(page.paste)
        address = await self.back(page)
        with self.assertRaises(OSError):
            await deferToThread(visit, address)
        lines[0].callback("what?")
        lines[1].callback(address.replace("state=", "state=x"))
        self.assertEqual(
            [bool(each.remark) for each in self.invitations if isinstance(each, OpenPage)],
            [False, True, True],
        )
        lines[2].callback(f" {address}\n")
        self.assertTrue((await running).lasting)

    async def test_too_many_wrong_ones(self) -> None:
        """It ends with why the last was wrong, and shows nothing of it."""

        async def paste() -> str:
            return "http://127.0.0.1/?code=secret-code"

        with self.assertRaises(SignInFailed) as caught:
            await self.begin(Flow.PASTE, paste)
        self.assertNotIn("secret-code", str(caught.exception))

    async def test_an_input_that_ends(self) -> None:
        """Nothing can come any more, so nobody waits a quarter of an hour for it."""

        async def paste() -> str:
            raise EOFError

        with self.assertRaises(SignInFailed) as caught:
            await self.begin(Flow.PASTE, paste).addTimeout(5, reactor)
        self.assertIn("input has ended", str(caught.exception))

    async def test_browser_or_paste(self) -> None:
        """Whichever comes first; the other is let go."""
        never: Deferred[str] = Deferred()

        async def paste() -> str:
            return await never

        running = self.begin(Flow.BROWSER, paste)
        page = await self.page()
        self.assertTrue(page.paste)
        await deferToThread(visit, await self.back(page))
        await running
        self.assertTrue(never.called, "it is still read")

    async def test_lines_of_a_pipe(self) -> None:
        """A line in pieces, a line without an end, and then no more."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        lines = Lines(reactor, read)
        first = Deferred.fromCoroutine(lines.next())
        os.write(write, b"http://127.0.0.1:1/?co")
        reactor.callLater(0, os.write, write, b"de=1\r\nnext\nlast")
        self.assertEqual(await first, "http://127.0.0.1:1/?code=1")
        self.assertEqual(await lines.next(), "next")
        os.close(write)
        self.assertEqual(await lines.next(), "last")
        with self.assertRaises(EOFError):
            await lines.next()


class DeviceTests(FlowCase):
    """Device codes, over HTTP."""

    async def test_typed(self) -> None:
        """The code and the page are told, and what is granted is on disk."""
        signed_in = await self.begin(Flow.DEVICE)
        (told,) = self.invitations
        assert isinstance(told, TypeCode)
        self.assertEqual(
            (told.code, told.url, told.again), ("WDJB-MJHT", "https://login.example/device", False)
        )
        self.assertEqual((signed_in.lasting, signed_in.seconds), (True, 3600))
        self.assertTrue(GrantFile.of(self.folder, "work").path.exists())

    async def test_a_flow_without_its_address(self) -> None:
        """The setting that is missing is named."""
        with self.assertRaises(ConfigError) as caught:
            await self.begin(Flow.DEVICE, written=evolve(self.written, device_url=""))
        self.assertIn("oauth.work.device_url", str(caught.exception))
        with self.assertRaises(ConfigError):
            await self.begin(Flow.BROWSER, written=evolve(self.written, authorize_url=""))


class Scripted:
    """A provider that answers what was laid ready, and notes when it was asked."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.answers: list[tuple[int, str]] = []
        self.times: list[float] = []

    async def post(self, form: Form) -> Answer:
        """Give a device code, or the next answer."""
        if form.url.endswith("/d"):
            return Answer(
                200,
                '{"device_code": "d", "user_code": "C", "verification_uri": "https://x.example", '
                '"interval": 5, "expires_in": 60}',
            )
        self.times.append(self.clock.seconds())
        status, text = self.answers.pop(0) if self.answers else (400, '{"error": "authorization_pending"}')
        if status == 0:
            raise Unreachable("gone")
        return Answer(status, text)


class PaceTests(SynchronousTestCase):
    """How often a provider is asked whether a code was typed."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.clock = Clock()
        self.posts = Scripted(self.clock)
        self.told: list[Invitation] = []

    def run_(self, *errors: str, seconds: int = 400) -> "SignedIn | MailgatewayError":
        """Sign in while the provider says these, the last of which is ``ok`` or an end."""
        for error in errors:
            match error:
                case "ok":
                    self.posts.answers.append((200, '{"access_token": "a", "refresh_token": "r"}'))
                case "gone":
                    self.posts.answers.append((0, ""))
                case _:
                    self.posts.answers.append((400, f'{{"error": "{error}"}}'))
        running = Deferred.fromCoroutine(
            authorize(self.clock, self.folder, "work", LOCAL, invite=self.told.append, posts=self.posts)
        )
        ended: list[Any] = []
        running.addBoth(ended.append)
        self.clock.pump([1.0] * seconds)
        self.assertEqual(len(ended), 1, "it waits")
        return getattr(ended[0], "value", ended[0])  # type: ignore[no-any-return]  # a failure's, or the result

    def test_pace(self) -> None:
        """The interval is waited for before each question; slow_down adds five seconds for good."""
        self.assertIsInstance(
            self.run_("authorization_pending", "slow_down", "authorization_pending", "slow_down", "ok"),
            SignedIn,
        )
        self.assertEqual(self.posts.times, [5, 10, 20, 30, 45])

    def test_trouble_slows_down(self) -> None:
        """A connection that is lost doubles the interval (RFC 8628 section 3.5)."""
        self.assertIsInstance(self.run_("gone", "ok"), SignedIn)
        self.assertEqual(self.posts.times, [5, 15])

    def test_codes_run_out(self) -> None:
        """Another one is offered, three in all."""
        self.assertIsInstance(self.run_("expired_token", "ok"), SignedIn)
        self.assertEqual([each.again for each in self.told if isinstance(each, TypeCode)], [False, True])
        self.told.clear()
        failed = self.run_()
        self.assertIsInstance(failed, SignInFailed)
        self.assertIn("`mailgateway auth work`", str(failed))
        self.assertEqual(len(self.told), 3)

    def test_ends(self) -> None:
        """No and wrong end at once, each with a sentence."""
        for error, word in (
            ("access_denied", "declined"),
            ("authorization_declined", "declined"),
            ("unauthorized_client", "registration"),
            ("invalid_client", "secret"),
        ):
            failed = self.run_(error)
            self.assertIsInstance(failed, SignInFailed, error)
            self.assertIn(word, str(failed))

    def test_which_flow(self) -> None:
        """By what the table has."""
        page = "https://x.example/a"
        self.assertEqual(flow_of(LOCAL), Flow.DEVICE)
        self.assertEqual(flow_of(evolve(LOCAL, authorize_url=page)), Flow.DEVICE)
        self.assertEqual(flow_of(evolve(LOCAL, device_url="", authorize_url=page)), Flow.BROWSER)
