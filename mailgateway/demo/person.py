"""A person with a mail program: reads the question where it arrives, and answers above the quoted original.

The program is Twisted's stock ``IMAP4Client`` with a small subclass for IDLE, which the stock one lacks, and
stock SMTP.  It knows nothing of the gateway: the answer is what any mail program would make of the question.
"""

# mypy: disallow-untyped-calls=False
# (the clients of twisted.mail are untyped)

from collections.abc import Callable
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid, parseaddr
from html import escape
from io import BytesIO
from typing import Any, Final, cast

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import connectionDone
from twisted.mail import imap4, smtp

LOOK_AGAIN_SECONDS: Final = 5
"""The stock client loses what arrives while a command runs, so IDLE is left this often for a look."""


class IdlingClient(imap4.IMAP4Client):
    """The stock client plus IDLE (RFC 2177).

    The stock client keeps untagged lines back until the running command ends; while that command is IDLE
    they are acted on at once.
    """

    _idle: imap4.Command | None = None
    _news: Deferred[None] | None = None

    def serverGreeting(self, caps: object) -> None:
        """Note that the server is there."""
        del caps

    def _defaultHandler(self, tag: bytes, rest: bytes) -> None:
        """Act on untagged lines during IDLE; compare commands, since a queued one has no tag yet."""
        if tag == b"*" and self._idle is not None and (self.tags or {}).get(self.waiting) is self._idle:
            self._extraInfo([imap4.parseNestedParens(rest)])
        else:
            super()._defaultHandler(tag, rest)

    def newMessages(self, exists: int | None, recent: int | None) -> None:
        """Wake ``idle``: something has arrived."""
        del exists, recent
        self._wake()

    def connectionLost(self, reason: Any = connectionDone) -> None:
        """Wake ``idle``, which then fails."""
        super().connectionLost(reason)
        self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            news, self._news = self._news, None
            news.callback(None)

    async def idle(self, reactor: Any, seconds: float) -> None:
        """Stay in IDLE until mail arrives, ``seconds`` at most."""
        entered: Deferred[None] = Deferred()
        news = self._news = Deferred()
        self._idle = imap4.Command(b"IDLE", continuation=lambda _: entered.callback(None))
        ended = self.sendCommand(self._idle)
        timer = reactor.callLater(seconds, self._wake)
        try:
            await entered
            await news
            self.sendLine(b"DONE")
            await ended
        finally:
            self._idle = self._news = None
            if timer.active():
                timer.cancel()
            ended.addErrback(lambda _: None)  # whoever waits for us has been told already


@frozen
class Answer:
    """A reply that was sent: its subject, and its whole source."""

    subject: str
    raw: bytes = field(repr=False)


@define(eq=False)
class Person:
    """One person at one mail account on a server of this machine."""

    reactor: Any
    address: str
    name: str
    password: str = field(repr=False)
    imap_port: int
    smtp_port: int
    _client: IdlingClient | None = None
    _next_uid: int = 1

    async def open(self) -> None:
        """Log in and open the inbox."""
        endpoint = TCP4ClientEndpoint(self.reactor, "127.0.0.1", self.imap_port, timeout=10)
        client = self._client = await connectProtocol(endpoint, IdlingClient())
        await client.login(self.address.encode(), self.password.encode())
        await client.select(b"INBOX")

    async def close(self) -> None:
        """Leave; nothing is waited for."""
        client, self._client = self._client, None
        if client is not None and client.transport is not None:
            cast("Any", client.transport).abortConnection()

    async def next_mail(self, wanted: Callable[[EmailMessage], bool] = lambda _: True) -> EmailMessage:
        """Wait for the next mail that is wanted, read it, mark it as read; the caller sets the deadline."""
        client = self._client
        if client is None:
            raise RuntimeError("open() comes first")
        while True:
            fetched = await client.fetchMessage(f"{self._next_uid}:*", uid=True)
            for found in sorted(fetched.values(), key=lambda found: int(found["UID"])):
                uid = int(found["UID"])
                if uid < self._next_uid:  # `n:*` gives the last message even below n (RFC 3501 6.4.8)
                    continue
                self._next_uid = uid + 1
                await client.addFlags(str(uid), ["\\Seen"], silent=1, uid=1)
                # the stock client decodes everything as Latin-1; this gives the bytes back
                mail = message_from_bytes(found["RFC822"].encode("latin-1"), policy=policy.default)
                if wanted(mail):
                    return mail
            await client.idle(self.reactor, LOOK_AGAIN_SECONDS)

    async def answer(self, question: EmailMessage, typed: str) -> Answer:
        """Reply to a mail as a web mailer does, and submit it."""
        reply = reply_to(question, typed, self.name, self.address, datetime.now(UTC))
        done: Deferred[Any] = Deferred()
        factory = smtp.ESMTPSenderFactory(
            self.address.encode(),
            self.password.encode(),
            self.address,
            parseaddr(str(reply["To"]))[1],
            BytesIO(reply.as_bytes()),
            done,
            retries=0,
            contextFactory=None,
            requireTransportSecurity=False,
            requireAuthentication=True,
            hostname=None,
        )
        factory.noisy = False
        factory.domain = b"localhost"
        connector = self.reactor.connectTCP("127.0.0.1", self.smtp_port, factory, timeout=10)
        try:
            await done
        except CancelledError:
            connector.disconnect()
            raise
        return Answer(str(reply["Subject"]), reply.as_bytes())


def reply_to(question: EmailMessage, typed: str, name: str, address: str, now: datetime) -> EmailMessage:
    """Write a reply: the typed words on top, a line that says who wrote when, and the quoted original."""
    body = question.get_body(("plain",))
    original = body.get_content().replace("\r\n", "\n").strip("\n") if body is not None else ""
    wrote, sender = parseaddr(str(question["From"]))
    date = question["Date"].datetime if question["Date"] is not None else None
    when = date.strftime("%a, %b %d, %Y at %I:%M %p") if date is not None else "an unknown day"
    quoted = "\n".join(f"> {line}".rstrip() for line in original.split("\n"))
    reply = EmailMessage(policy=policy.default.clone(linesep="\n"))
    reply["From"] = f"{name} <{address}>"
    reply["To"] = str(question["Reply-To"] or question["From"])
    subject = str(question["Subject"])
    reply["Subject"] = subject if subject.lower().startswith("re:") else f"Re: {subject}"
    reply["Date"] = format_datetime(now)
    reply["Message-ID"] = make_msgid(domain=address.rpartition("@")[2])
    reply["In-Reply-To"] = str(question["Message-ID"])
    reply["References"] = f"{question['References'] or ''} {question['Message-ID']}".strip()
    reply.set_content(f"{typed}\n\nOn {when} {wrote} <{sender}> wrote:\n\n{quoted}\n")
    reply.add_alternative(
        f'<div dir="ltr">{escape(typed)}</div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">'
        f"On {escape(when)} {escape(wrote)} &lt;{escape(sender)}&gt; wrote:<br></div>"
        f'<blockquote class="gmail_quote"><pre>{escape(original)}</pre></blockquote></div>\n',
        subtype="html",
    )
    return reply
