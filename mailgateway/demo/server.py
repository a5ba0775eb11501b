"""A mail server on loopback: Twisted's IMAP4Server and ESMTP over mailboxes in memory.

It does what a provider does for its users: they log in, submit mail under their own address, and whatever it
delivers carries its own verdict on the sender in an Authentication-Results field on top (RFC 8601).  The
verdict is honest: ``pass`` is written only when From is the address of the one who logged in.

Twisted's servers are completed where a careful client would notice: SELECT tells UIDNEXT, and header fields
and partial bodies come from the raw bytes, where the stock server rebuilds them from a dictionary.
"""

# mypy: disallow-untyped-calls=False
# (the servers of twisted.mail are untyped)

import hmac
import re
from collections.abc import Callable, Mapping
from email import message_from_bytes
from email.utils import formatdate, parseaddr
from typing import Any, Final, cast

from attrs import Factory, define, field
from twisted.cred.checkers import ICredentialsChecker
from twisted.cred.credentials import IUsernamePassword
from twisted.cred.error import UnauthorizedLogin
from twisted.cred.portal import IRealm, Portal
from twisted.internet.defer import Deferred, fail, maybeDeferred, succeed
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import Factory as ProtocolFactory
from twisted.internet.protocol import Protocol
from twisted.mail import imap4, smtp
from zope.interface import implementer

from mailgateway.demo.mailbox import Letter, Mailbox, MailboxFull, split

AUTHSERV_ID: Final = "mx.demo.example"
"""Who signs the Authentication-Results fields; the settings of the demo's gateway trust it."""

LARGEST: Final = 5_000_000
"""Bytes of one submitted message; a larger one is refused."""

_CLAIM = re.compile(
    rb"(?im)^authentication-results:[ \t]*" + re.escape(AUTHSERV_ID.encode()) + rb"\b.*\n(?:[ \t].*\n)*"
)


class Imap(imap4.IMAP4Server):
    """Twisted's IMAP server, with UIDNEXT, and with header fields as they stand in the message."""

    def _cbSelectWork(self, mbox: Mailbox | None, cmdName: bytes, tag: bytes) -> None:
        """Add UIDNEXT to the answer of SELECT."""
        if mbox is not None:
            self.sendPositiveResponse(None, b"[UIDNEXT %d] Predicted next UID" % mbox.getUIDNext())
        super()._cbSelectWork(mbox, cmdName, tag)

    def spew_body(self, part: Any, id: int, msg: Letter, _w: Any = None, _f: Any = None) -> Any:  # noqa: A002 - Twisted's name
        """Answer BODY[], BODY[HEADER] and BODY[HEADER.FIELDS] from the raw bytes."""
        if part.part or not (part.header or part.empty):
            return super().spew_body(part, id, msg, _w, _f)
        raw = chosen_fields(msg.raw, part.header) if part.header else msg.raw
        begin, length = part.partialBegin, part.partialLength
        section = f"[{part.header}]".encode() if part.header else b"[]"
        origin = b"" if begin is None else b"<%d>" % begin
        shown = raw if begin is None else raw[begin : begin + length]
        _w(b"BODY" + section + origin + b" {%d}\r\n" % len(shown) + shown)
        return None


def chosen_fields(raw: bytes, header: Any) -> bytes:
    """Cut the header fields that a FETCH names out of a message, order and doubles kept."""
    block, _ = split(raw)
    if not header.fields:
        return block
    wanted = {name.lower() for name in header.fields}
    fields = re.findall(rb"[^\r\n]+\r\n(?:[ \t][^\r\n]*\r\n)*", block)
    kept = (
        line for line in fields if (line.partition(b":")[0].strip().lower() in wanted) is not header.negate
    )
    return b"".join(kept) + b"\r\n"


@implementer(ICredentialsChecker)
@define(eq=False)
class Passwords:
    """Knows the passwords of the demo's few users."""

    users: Mapping[str, str] = field(repr=False)
    credentialInterfaces = (IUsernamePassword,)

    def requestAvatarId(self, credentials: Any) -> Deferred[bytes | tuple[()]]:
        """Check one login, in constant time."""
        known = self.users.get(credentials.username.decode("utf-8", "replace"), "")
        if known and hmac.compare_digest(known.encode(), credentials.password):
            return succeed(credentials.username)
        return fail(UnauthorizedLogin())


@implementer(IRealm)
@define(eq=False)
class Users:
    """What a user gets after login: the mailbox by IMAP, the right to send by SMTP."""

    mailboxes: Mapping[str, Mailbox]

    def requestAvatar(
        self, avatarId: bytes | tuple[()], mind: object, *interfaces: Any
    ) -> tuple[Any, Any, Callable[[], None]]:
        """Open the one or the other for a user who has logged in."""
        del mind
        address = bytes(avatarId).decode()
        if imap4.IAccount in interfaces:
            account = imap4.MemoryAccount(address)
            account.addMailbox("INBOX", self.mailboxes[address])
            return imap4.IAccount, account, lambda: None
        if smtp.IMessageDelivery in interfaces:
            return smtp.IMessageDelivery, Submission(address, self.mailboxes), lambda: None
        raise NotImplementedError


@implementer(smtp.IMessageDelivery)
@define(eq=False)
class Submission:
    """What one user may send: mail from the own address, to the mailboxes of this server."""

    address: str
    mailboxes: Mapping[str, Mailbox]

    def receivedHeader(self, helo: tuple[bytes, bytes], origin: smtp.Address, recipients: list[Any]) -> bytes:
        """Leave it to ``Incoming``, which writes its two fields in the right order."""
        del helo, origin, recipients
        return b""

    def validateFrom(self, helo: tuple[bytes, bytes], origin: smtp.Address) -> smtp.Address:
        """Accept the own address as the sender, and no other."""
        del helo
        if str(origin) != self.address:
            raise smtp.SMTPBadSender(origin, 550, "you may send under your own address only")
        return origin

    def validateTo(self, user: smtp.User) -> "Callable[[], Incoming]":
        """Accept the mailboxes that are here."""
        mailbox = self.mailboxes.get(str(user.dest))
        if mailbox is None:
            raise smtp.SMTPBadRcpt(user, 550, "there is no such mailbox here")
        return lambda: Incoming(self.address, mailbox)


@implementer(smtp.IMessage)
@define(eq=False)
class Incoming:
    """One message on its way into a mailbox; ``sender`` is who logged in."""

    sender: str
    mailbox: Mailbox
    _lines: list[bytes] = Factory(list)
    _size: int = 0

    def lineReceived(self, line: bytes) -> None:
        """Take one line, without its end; what is beyond the bound is counted only."""
        self._size += len(line) + 2
        if self._size <= LARGEST:
            self._lines.append(line + b"\r\n")

    def eomReceived(self) -> Deferred[bytes]:
        """File the whole message, or refuse it."""
        if self._size > LARGEST:
            return fail(smtp.SMTPServerError(552, "the message is too large"))
        try:
            letter = self.mailbox.file(stamped(b"".join(self._lines), self.sender))
        except MailboxFull:
            return fail(smtp.SMTPServerError(452, "the mailbox is full"))
        return succeed(b"filed as %d" % letter.uid)

    def connectionLost(self) -> None:
        """Forget what came so far."""
        self._lines.clear()


def stamped(raw: bytes, sender: str) -> bytes:
    """Put our fields on top, and take away what others wrote in our name (RFC 8601 section 5)."""
    header, body = split(raw)
    header = _CLAIM.sub(b"", header)
    domain = sender.rpartition("@")[2]
    froms = message_from_bytes(header).get_all("From", [])
    verdict = f"dkim=none; dmarc=fail header.from={domain}"
    if len(froms) == 1 and parseaddr(str(froms[0]))[1] == sender:
        verdict = f"dkim=pass header.d={domain}; dmarc=pass header.from={domain}"
    top = (
        f"Authentication-Results: {AUTHSERV_ID}; {verdict}\r\n"
        f"Received: from [127.0.0.1] by {AUTHSERV_ID} with ESMTPA; {formatdate()}\r\n"
    )
    return top.encode("ascii") + header + body


class Smtp(smtp.ESMTP):
    """Twisted's submission server, which tells its limits."""

    def extensions(self) -> dict[bytes, Any]:
        """Offer SIZE and 8BITMIME, which it takes anyway."""
        return {**super().extensions(), b"SIZE": [b"%d" % LARGEST], b"8BITMIME": None}


@define(eq=False)
class Connections(ProtocolFactory):
    """Makes the server's half of each connection, and can cut them all."""

    make: Callable[[], Protocol]
    _open: list[Protocol] = Factory(list)
    noisy = False

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """Serve one client."""
        del addr
        protocol = self.make()
        protocol.factory = self
        self._open.append(protocol)
        return protocol

    def cut(self) -> None:
        """End every connection at once."""
        for protocol in self._open:
            if protocol.transport is not None:
                cast("Any", protocol.transport).abortConnection()
        self._open.clear()


@define(eq=False)
class MailServer:
    """The embedded mail server: ``users`` are addresses with passwords, each has one INBOX."""

    users: Mapping[str, str] = field(repr=False)
    mailboxes: dict[str, Mailbox] = field(init=False, repr=False)
    _ports: list[IListeningPort] = field(init=False, factory=list)
    _factories: list[Connections] = field(init=False, factory=list)
    _portal: Portal = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.mailboxes = {address: Mailbox(number) for number, address in enumerate(self.users, 1001)}
        self._portal = Portal(Users(self.mailboxes), [Passwords(self.users)])

    def imap(self) -> Imap:
        """Make one IMAP connection's server half."""
        server = Imap({b"PLAIN": imap4.PLAINCredentials, b"LOGIN": imap4.LOGINCredentials})
        server.portal = cast("Any", self._portal)
        return server

    def smtp(self) -> Smtp:
        """Make one submission connection's server half."""
        server = Smtp({b"PLAIN": imap4.PLAINCredentials, b"LOGIN": smtp.LOGINCredentials})
        server.portal = cast("Any", self._portal)
        server.host = AUTHSERV_ID.encode()
        server.noisy = False
        return server

    def start(self, reactor: Any) -> None:
        """Listen on two free ports of the loopback interface."""
        for make in (self.imap, self.smtp):
            factory = Connections(make)
            self._factories.append(factory)
            self._ports.append(reactor.listenTCP(0, factory, interface="127.0.0.1"))

    @property
    def imap_port(self) -> int:
        """Where IMAP is served."""
        return cast("int", cast("Any", self._ports[0].getHost()).port)

    @property
    def smtp_port(self) -> int:
        """Where SMTP submission is served."""
        return cast("int", cast("Any", self._ports[1].getHost()).port)

    async def stop(self) -> None:
        """Stop listening, and cut what is open."""
        for port in self._ports:
            await maybeDeferred(port.stopListening)
        for factory in self._factories:
            factory.cut()
        self._ports.clear()
        self._factories.clear()
