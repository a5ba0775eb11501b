"""One request for a page, read; and the page that answers it.

Cookies are read under the name that fits the way the request came: behind https only ``__Host-`` counts,
which no other host and no plain connection can set.  Forms are bounded, and parsed strictly.
"""

import re
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from attrs import Factory, define, field, frozen

from mailgateway.domain.people import IDLE, Login, form_token
from mailgateway.errors import Refusal
from mailgateway.http.doors import Doors
from mailgateway.http.request import LimitedRequest

COOKIE = "mailgateway"
SECURE_COOKIE = f"__Host-{COOKIE}"
HTML = "text/html; charset=utf-8"

MOST_FIELDS = 100
_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@frozen
class Page:
    """What a page answers."""

    content: bytes = b""
    status: int = 200
    content_type: str = HTML
    headers: Mapping[str, str] = Factory(dict)
    cookie: str | None = None
    """The value of the ``Set-Cookie`` field, where there is one."""


def see_other(path: str, cookie: str | None = None) -> Page:
    """After a form: go and see (RFC 9110, section 15.4.4)."""
    return Page(status=303, headers={"Location": path}, cookie=cookie)


@define(eq=False)
class Visit:
    """One request; ``login`` says who it is, once that was found out."""

    doors: Doors
    request: LimitedRequest
    parts: Mapping[str, str] = Factory(dict)
    """The variable parts of the path."""
    login: Login | None = None
    prolonged: bool = False
    """Whether the login lives longer by this visit, so that the browser has to keep its cookie longer."""
    _form: Mapping[str, list[str]] | None = field(default=None)

    @property
    def address(self) -> str:
        """Where the request comes from, as far as the connection tells."""
        return str(getattr(self.request.client, "host", "")) or "here"

    @property
    def secure(self) -> bool:
        """Whether the browser speaks https with us, by the public address that it uses."""
        public = urlsplit(self.doors.settings().daemon.public_url.lower())
        if public.scheme != "https":
            return False
        host = self.header("Host").lower()
        return host in {public.netloc, public.netloc.removesuffix(":443")} or self.header(
            "Origin"
        ).lower().startswith("https://")

    def header(self, name: str) -> str:
        """A field of the request's header; ``""`` when it is absent or there are several."""
        found = self.request.requestHeaders.getRawHeaders(name.encode(), [])
        return found[0].decode("latin-1") if len(found) == 1 else ""

    @property
    def cookie(self) -> str:
        """The cookie by which somebody is known; ``""``: none."""
        given = _cookies(self.header("Cookie"))
        secure = given.get(SECURE_COOKIE, "")
        return secure if self.secure or secure else given.get(COOKIE, "")

    def set_cookie(self, value: str) -> str:
        """The field that sets the cookie, or with ``""`` removes it (RFC 6265bis)."""
        life = int(IDLE.total_seconds()) if value else 0
        name, secure = (SECURE_COOKIE, "; Secure") if self.secure else (COOKIE, "")
        return f"{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}"

    @property
    def form(self) -> Mapping[str, list[str]]:
        """The fields of the form; ``Refusal("invalid")`` when it is none."""
        if self._form is None:
            kind = self.header("Content-Type").split(";")[0].strip().lower()
            if kind != "application/x-www-form-urlencoded":
                raise Refusal("invalid", "this is for the forms of the pages")
            self._form = _fields(self.request.content.read())
        return self._form

    def field(self, name: str) -> str:
        """One field of the form; ``""`` when it is absent."""
        return self.form.get(name, [""])[0]

    def asked(self, name: str) -> str:
        """One parameter of the query; ``""`` when it is absent."""
        _, _, query = self.request.uri.partition(b"?")
        return _fields(query).get(name, [""])[0][:1_000]

    @property
    def token(self) -> str:
        """What a form of this login carries."""
        return form_token(self.cookie)


def _fields(raw: bytes) -> dict[str, list[str]]:
    try:
        found = parse_qs(
            raw.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=MOST_FIELDS,
        )
    except ValueError:
        raise Refusal("invalid", "the form cannot be read; go back and try again") from None
    return {
        name: [_UNSEEN.sub("", value.replace("\r\n", "\n")) for value in values]
        for name, values in found.items()
    }


def _cookies(header: str) -> dict[str, str]:
    """The cookies of a request; of two with one name, neither: somebody tries something."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for pair in header.split(";")[:MOST_FIELDS]:
        name, _, value = pair.strip().partition("=")
        if name in found:
            twice.add(name)
        found[name] = value
    return {name: value for name, value in found.items() if name not in twice}
