"""An identity provider for tests, on loopback: device codes, authorization codes with PKCE, refreshing.

It rotates refresh tokens and watches for one that is used twice: then everything of that grant is revoked,
as the strict providers do.  Troubles are laid ready in ``troubles``: each is given to the next question for
a token.  Mail servers ask ``/introspect`` whether a token is good.  As a program of its own it serves tests
whose reactor does not run; they steer it by ``/control``.
"""

import base64
import hashlib
import json
import subprocess
import sys
import time
import urllib.request
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlencode

from attrs import define, field
from klein import Klein
from twisted.web.server import Site

CLIENT = "a-client-of-the-tests"
USER = "agent@example.org"
SCOPES = ("mail.read", "mail.send", "offline_access")
PROGRAM = "from tests.fakes.identity_provider import serve; serve()"


@define
class Family:
    """Everything that came of one signing in."""

    refresh: str
    used: set[str] = field(factory=set)
    access: dict[str, float] = field(factory=dict)
    """Access tokens, and when they end."""
    revoked: bool = False


@define(eq=False)
class IdentityProvider:
    """What it knows, and how it is to behave."""

    lifetime: Any = 3600
    """``expires_in`` as it is answered; ``None`` leaves it out."""
    rotates: bool = True
    gives_refresh: bool = True
    interval: int = 1
    code_lifetime: int = 900
    typed: bool = True
    """Whether the person has typed the device code."""
    troubles: deque[Any] = field(factory=deque)
    """Answers to the next questions for a token: ``(status, object or text, {field: value})``."""
    asked: list[dict[str, str]] = field(factory=list)
    """The forms of all questions for a token."""
    pages: list[dict[str, str]] = field(factory=list)
    """The queries of all visits to the page."""
    scope: str = ""
    reused: int = 0
    """How often a refresh token came that was used before."""
    families: list[Family] = field(factory=list)
    introspected: int = 0
    delay: float = 0.0
    """Seconds before a token is answered."""
    reactor: Any = None
    _codes: dict[str, tuple[str, str]] = field(factory=dict)
    app: Klein = field(factory=Klein)

    def __attrs_post_init__(self) -> None:
        for path, method, function in (
            ("/device", "POST", self.device),
            ("/authorize", "GET", self.authorize),
            ("/token", "POST", self.token),
            ("/introspect", "POST", self.introspect),
            ("/control", "POST", self.control),
        ):
            self.app.route(path, methods=[method])(function)

    # --- what clients ask -----------------------------------------------------------------------------

    def device(self, request: Any) -> Any:
        """Give a device code (RFC 8628 section 3.2)."""
        form = _form(request)
        if form.get("client_id") != CLIENT:
            return _json(request, 400, {"error": "invalid_client"})
        return _json(
            request,
            200,
            {
                "device_code": token_urlsafe(24),
                "user_code": "WDJB-MJHT",
                "verification_uri": "https://login.example/device",
                "expires_in": str(self.code_lifetime),
                "interval": self.interval,
            },
        )

    def authorize(self, request: Any) -> Any:
        """Let the person consent at once, and send the browser back."""
        query = {key.decode(): values[0].decode() for key, values in request.args.items()}
        self.pages.append(query)
        code = token_urlsafe(16)
        self._codes[code] = (query["code_challenge"], query["redirect_uri"])
        back = f"{query['redirect_uri']}/?{urlencode({'code': code, 'state': query['state']})}"
        request.setResponseCode(302)
        request.setHeader("location", back)
        return b""

    def token(self, request: Any) -> Any:
        """Answer a question for a token, as late as is wanted."""
        form = _form(request)
        self.asked.append(form)
        if self.delay and self.reactor is not None:
            from twisted.internet.task import deferLater  # noqa: PLC0415 - the reactor is the caller's

            return deferLater(self.reactor, self.delay, self._token, request, form)
        return self._token(request, form)

    def _token(self, request: Any, form: Mapping[str, str]) -> Any:
        if self.troubles:
            status, answer, headers = self.troubles.popleft()
            for name, value in headers.items():
                request.setHeader(name, value)
            return _json(request, status, answer)
        if form.get("client_id") != CLIENT:
            return _json(request, 401, {"error": "invalid_client"})
        match form.get("grant_type", ""):
            case "refresh_token":
                return self._refreshed(request, form["refresh_token"])
            case "authorization_code":
                challenge, uri = self._codes.pop(form["code"], ("", ""))
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
                if proof != challenge or uri != form["redirect_uri"]:
                    return _json(request, 400, {"error": "invalid_grant"})
                return self._begun(request)
            case "urn:ietf:params:oauth:grant-type:device_code":
                if not self.typed:
                    return _json(request, 400, {"error": "authorization_pending"})
                return self._begun(request)
            case _:
                return _json(request, 400, {"error": "unsupported_grant_type"})

    def _begun(self, request: Any) -> bytes:
        family = Family(token_urlsafe(24))
        self.families.append(family)
        return self._answer(request, family, family.refresh if self.gives_refresh else "")

    def _refreshed(self, request: Any, refresh: str) -> bytes:
        for family in self.families:
            if refresh in family.used:
                self.reused += 1
                family.revoked = True
                family.access.clear()
            if refresh == family.refresh and not family.revoked:
                if not self.rotates:
                    return self._answer(request, family, "")
                family.used.add(refresh)
                family.refresh = token_urlsafe(24)
                return self._answer(request, family, family.refresh)
        return _json(request, 400, {"error": "invalid_grant", "error_description": "AADSTS70008: it is gone"})

    def _answer(self, request: Any, family: Family, refresh: str) -> bytes:
        access = token_urlsafe(32)
        seconds = 3600.0 if self.lifetime is None else float(self.lifetime)
        family.access[access] = time.time() + seconds
        answer: dict[str, Any] = {"access_token": access, "token_type": "Bearer"}
        if self.lifetime is not None:
            answer["expires_in"] = self.lifetime
        if refresh:
            answer["refresh_token"] = refresh
        if self.scope:
            answer["scope"] = self.scope
        return _json(request, 200, answer)

    # --- what mail servers ask ------------------------------------------------------------------------

    def accepts(self, token: str) -> bool:
        """Whether an access token is good now."""
        return any(
            family.access.get(token, 0.0) > time.time() for family in self.families if not family.revoked
        )

    def introspect(self, request: Any) -> bytes:
        """Say whether a token is good (RFC 7662)."""
        self.introspected += 1
        good = self.accepts(_form(request).get("token", ""))
        answer = {"active": True, "username": USER, "sub": USER} if good else {"active": False}
        return _json(request, 200, answer)

    # --- what tests ask -------------------------------------------------------------------------------

    def revoke_access(self) -> None:
        """Let every access token be worth nothing; refresh tokens stay good."""
        for family in self.families:
            family.access.clear()

    def control(self, request: Any) -> bytes:
        """Change how it behaves, and tell what it knows."""
        wishes = json.loads(request.content.read())
        for name, value in wishes.items():
            if name == "revoke_access":
                self.revoke_access()
            elif name == "revoke_all":
                for family in self.families:
                    family.revoked = True
            elif name == "troubles":
                self.troubles = deque(tuple(each) for each in value)
            else:
                setattr(self, name, value)
        return _json(
            request,
            200,
            {
                "asked": self.asked,
                "reused": self.reused,
                "introspected": self.introspected,
                "tokens": [token for family in self.families for token in family.access],
                "refresh": [family.refresh for family in self.families],
            },
        )

    def site(self) -> Site:
        """What a port serves."""
        site = Site(self.app.resource())
        site.noisy = False
        return site


def registration(base: str, **changes: Any) -> dict[str, Any]:
    """An ``[oauth.NAME]`` table for the provider at an address."""
    return {
        "client_id": CLIENT,
        "token_url": f"{base}/token",
        "device_url": f"{base}/device",
        "authorize_url": f"{base}/authorize",
        "scopes": list(SCOPES),
        **changes,
    }


def _form(request: Any) -> dict[str, str]:
    body = request.content.read().decode()
    return {key: values[0] for key, values in parse_qs(body, keep_blank_values=True).items()}


def _json(request: Any, status: int, answer: Any) -> bytes:
    request.setResponseCode(status)
    request.setHeader("content-type", "application/json")
    return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()


def serve() -> None:
    """Serve until killed; the port stands in the file that is the first argument."""
    from twisted.internet import reactor  # noqa: PLC0415 - the program's own

    any_reactor: Any = reactor
    provider = IdentityProvider(reactor=any_reactor)
    port = any_reactor.listenTCP(0, provider.site(), interface="127.0.0.1")
    Path(sys.argv[1]).write_text(str(port.getHost().port), encoding="ascii")
    any_reactor.run()


@define(eq=False)
class ProviderProgram:
    """The provider as a process of its own, for tests that block."""

    folder: Path
    port: int = 0
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> "ProviderProgram":
        """Start, and wait until it answers."""
        from tests.fakes.dovecot import eventually  # noqa: PLC0415 - they know nothing of each other else

        told = self.folder / "provider-port"
        with (self.folder / "provider.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(told)],
                cwd=Path(__file__).parent.parent.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.port = int(eventually("the provider listens", lambda: told.read_text() if told.exists() else ""))
        return self

    def stop(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def base(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def control(self, **wishes: Any) -> dict[str, Any]:
        """Change how it behaves; what it knows."""
        answer: dict[str, Any] = json.loads(self._post("/control", json.dumps(wishes)))
        return answer

    def accepts(self, token: str) -> bool:
        """Whether an access token is good now."""
        return bool(json.loads(self._post("/introspect", urlencode({"token": token})))["active"])

    def _post(self, path: str, body: str) -> str:
        request = urllib.request.Request(f"{self.base}{path}", body.encode())  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return str(answer.read().decode())
