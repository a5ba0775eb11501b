"""Autoconfig documents (draft-ietf-mailmaint-autoconfig): servers, told in XML by a domain or by Mozilla.

Policy: such a document comes from a stranger's web server.  One that is long, that declares a document type
(and with it entities), or that names no host that could be one, is refused as a whole.  A server without TLS
is left out, and a document with no other is refused for that.  Of several servers the first with implicit TLS
counts, else the first.  This module fetches nothing; who fetched it must have done so by https.
"""

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree as ET

from mailgateway.errors import ProtocolViolation, TlsRefused
from mailgateway.providers import WHOLE_ADDRESS, Offer, SecretKind, Server
from mailgateway.wire.host_name import host_name

LARGEST = 64 * 1024
"""Bytes of a document; real ones have two thousand."""

_SOCKETS = {"SSL": False, "STARTTLS": True}
"""What makes TLS, and whether it is by STARTTLS; anything else is no TLS."""

_SECRETS = {
    "password-cleartext": SecretKind.PASSWORD,
    "plain": SecretKind.PASSWORD,
    "password-encrypted": SecretKind.PASSWORD,
    "secure": SecretKind.PASSWORD,
    "oauth2": SecretKind.OAUTH,
}
"""The kinds of authentication that we know; the others (NTLM, GSSAPI, certificates) are of no use to us."""


class _Builder(ET.TreeBuilder):
    """Builds a tree, of documents without a document type only."""

    def doctype(self, *_: Any) -> None:
        """Refuse: nobody needs one here, and entities are declared in it."""
        raise ProtocolViolation("the document declares a document type, which none needs")


def read(data: bytes, domain: str, source: str) -> Offer:
    """What the document offers to addresses of ``domain``; ``source`` is where it came from.

    ``ProtocolViolation`` for what is no such document, ``TlsRefused`` for one that offers no TLS.
    """
    if len(data) > LARGEST:
        raise ProtocolViolation(f"the document is longer than {LARGEST // 1024} KiB")
    parser = ET.XMLParser(target=_Builder())  # noqa: S314 - it takes no document type, hence no entities
    try:
        parser.feed(data)
        root = parser.close()
    except (ET.ParseError, LookupError, ValueError):
        raise ProtocolViolation("the document is no XML") from None
    provider = root.find("emailProvider") if root.tag == "clientConfig" else None
    if provider is None:
        raise ProtocolViolation("the document is no mail configuration")
    imap = _best(_servers(provider.iterfind("incomingServer[@type='imap']"), domain), "IMAP")
    smtp = _best(_servers(provider.iterfind("outgoingServer[@type='smtp']"), domain), "SMTP")
    if imap is None and smtp is None:
        raise ProtocolViolation("the document names no server that we could use")
    return Offer(name=_text(provider, "displayName"), imap=imap, smtp=smtp, source=source)


def _best(servers: Iterable[Server | None], door: str) -> Server | None:
    """The first with implicit TLS, else the first; ``None`` where the document names none at all."""
    told = list(servers)
    usable = [each for each in told if each is not None]
    if told and not usable:
        raise TlsRefused(f"the document offers {door} without TLS only, so it does not count")
    return next((each for each in usable if not each.starttls), None) or next(iter(usable), None)


def _servers(elements: Iterable[ET.Element], domain: str) -> Iterable[Server | None]:
    """Each server, ``None`` for one without TLS; those whose logins we do not know are left out."""
    for element in elements:
        host = host_name(_text(element, "hostname").replace("%EMAILDOMAIN%", domain))
        port = _text(element, "port")
        if host is None or not (port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
            raise ProtocolViolation("the document names a server without a proper host name and port")
        named = [each.text or "" for each in element.iterfind("authentication")]
        secrets = tuple(dict.fromkeys(_SECRETS[each.lower()] for each in named if each.lower() in _SECRETS))
        if named and not secrets:
            continue
        starttls = _SOCKETS.get(_text(element, "socketType"))
        if starttls is None:
            yield None
        else:
            yield Server(host, int(port), starttls, _text(element, "username") or WHOLE_ADDRESS, secrets)


def _text(element: ET.Element, name: str) -> str:
    """The text of a child, as one line of a sane length; empty where there is none."""
    text = " ".join((element.findtext(name) or "").split())
    if len(text) > 255 or not text.isprintable():
        raise ProtocolViolation(f"the document's {name} is no line of text")
    return text
