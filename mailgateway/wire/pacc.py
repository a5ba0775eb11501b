"""PACC documents (draft-ietf-mailmaint-pacc): servers, told in JSON by a domain that vouches for it in DNS.

Policy: the document counts only with its digest in a TXT record of the same domain, so whoever would lie to
us must hold both.  All servers in it are by implicit TLS on their usual ports; it has no words for others.
It is still a draft: the key of the submission server was ``smtp`` and became ``submit``, and both are read.
"""

import json
from base64 import b64decode
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from mailgateway.errors import ProtocolViolation
from mailgateway.providers import WHOLE_ADDRESS, Offer, SecretKind, Server
from mailgateway.wire.host_name import host_name

LARGEST = 64 * 1024
"""Bytes of a document."""

IMAP_PORT = 993
SUBMISSION_PORT = 465


def document_url(domain: str) -> str:
    """Where the document of a domain is."""
    return f"https://ua-auto-config.{domain}/.well-known/user-agent-configuration.json"


def digest_name(domain: str) -> str:
    """The name whose TXT records hold the digest."""
    return f"_ua-auto-config.{domain}"


def vouched_for(data: bytes, texts: Iterable[bytes]) -> bool:
    """Whether one of the TXT records (``v=UAAC1; a=sha256; d=<base64>``) holds the digest of the document."""
    digest = sha256(data).digest()
    return any(compare_digest(told, digest) for told in map(_told, texts))


def _told(text: bytes) -> bytes:
    """The digest in a TXT record, empty for a record of another kind."""
    pairs = (each.partition("=") for each in text.decode("latin-1").split(";"))
    tags = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if tags.get("v", "").upper() != "UAAC1" or tags.get("a", "").lower() != "sha256":
        return b""
    try:
        return b64decode(tags.get("d", ""), validate=True)
    except ValueError:
        return b""


def read(data: bytes, source: str) -> Offer:
    """What the document offers; ``ProtocolViolation`` for what is no such document."""
    if len(data) > LARGEST:
        raise ProtocolViolation(f"the document is longer than {LARGEST // 1024} KiB")
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        raise ProtocolViolation("the document is no JSON") from None
    protocols, means = _table(whole, "protocols"), _table(whole, "authentication")
    secrets = tuple(
        kind
        for name, kind in (("password", SecretKind.PASSWORD), ("oauth-public", SecretKind.OAUTH))
        if means.get(name)
    )
    imap = _server(_table(protocols, "imap"), IMAP_PORT, secrets)
    smtp = _server(_table(protocols, "submit") or _table(protocols, "smtp"), SUBMISSION_PORT, secrets)
    if imap is None and smtp is None:
        raise ProtocolViolation("the document names no server that we could use")
    name = _table(_table(whole, "info"), "provider").get("name")
    shown = name if isinstance(name, str) and len(name) < 256 and name.isprintable() else ""
    return Offer(name=shown, imap=imap, smtp=smtp, source=source)


def _server(table: dict[str, Any], port: int, secrets: tuple[SecretKind, ...]) -> Server | None:
    if not table:
        return None
    told = table.get("host")
    host = host_name(told) if isinstance(told, str) else None
    if host is None:
        raise ProtocolViolation("the document names a server without a proper host name")
    return Server(host, port, False, WHOLE_ADDRESS, secrets)


def _table(value: Any, key: str) -> dict[str, Any]:
    """A table inside another one; empty where there is none."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}
