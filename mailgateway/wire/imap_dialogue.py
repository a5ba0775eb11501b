"""One connection with an IMAP server, as bytes in and events out (RFC 3501 sections 3 and 7, RFC 2177).

``receive`` takes what came and gives the events in their order on the wire, at once, whether or not a
command is running: mailbox news is never held back until a command ends.  One command runs at a time; only
the one that follows on IDLE may go out together with DONE (RFC 2177, RFC 3501 section 5.5).
``command``, ``authenticate`` and ``done`` give the bytes to send now; ``outgoing`` gives what has to follow
because of what came (a literal, an answer of a mechanism, a DONE that waited for the ``+``), and is to be
asked after each ``receive``.

A breach by the server is the last event, ``Broken``; what comes after it is not read.  The dialogue tracks
the capabilities, which are unknown (None) before the server told them and again after TLS and after a login
that did not tell them, and the facts of the selected mailbox.  It knows no time: deadlines are the
caller's.
"""

import binascii
from typing import assert_never

from attrs import define, field

from mailgateway.errors import PeerError, ProtocolViolation, TlsRefused
from mailgateway.wire import Misuse, imap_command
from mailgateway.wire.imap_command import Command
from mailgateway.wire.imap_event import (
    Broken,
    Bye,
    Completed,
    CountChanged,
    Event,
    Greeted,
    Idling,
    State,
)
from mailgateway.wire.imap_fetch import Fetched, Unreadable, take_usual
from mailgateway.wire.imap_lexer import MAX_LINE, MAX_LITERAL, Framer
from mailgateway.wire.imap_response import (
    Capability,
    Condition,
    Continuation,
    Exists,
    Expunge,
    Found,
    Identification,
    Listed,
    MailboxStatus,
    Other,
    Response,
    Status,
    Vanished,
    names_of,
    parse,
)
from mailgateway.wire.sasl import Mechanism

MOST_UNASKED = 4096
"""Octets of a literal that are sent without waiting for the server's ``+`` (LITERAL-, RFC 7888 section 5)."""

BEHIND_IDLE = frozenset({b"UID FETCH", b"UID STORE", b"UID SEARCH", b"NOOP"})
"""Commands that name messages by UID, or none: what IDLE has told last changes nothing of what they mean."""


@define(eq=False)
class MailboxFacts:
    """What the server told of the selected mailbox, up to date as far as it tells news."""

    exists: int = 0
    uid_validity: int | None = None
    uid_next: int | None = None
    read_only: bool = False


@define(eq=False)
class _Running:
    """The command on the wire."""

    tag: bytes
    command: Command
    unsent: list[bytes] = field(factory=list, repr=False)
    mechanism: Mechanism | None = field(default=None, repr=False)
    cancelled: bool = False
    idling: bool = False
    done: bool = False
    """Whether DONE was sent, or shall be as soon as the server has entered IDLE."""
    told_capabilities: bool = False


@define(eq=False)
class Dialogue:
    """The client's side of one connection."""

    max_line: int = MAX_LINE
    max_literal: int = MAX_LITERAL
    state: State = field(default=State.GREETING, init=False)
    capabilities: frozenset[bytes] | None = field(default=None, init=False)
    mailbox: MailboxFacts | None = field(default=None, init=False)
    """The selected mailbox, also while SELECT is running; None if there is none."""

    _framer: Framer = field(init=False, repr=False)
    _running: _Running | None = field(default=None, init=False)
    _behind: _Running | None = field(default=None, init=False)
    """The command that follows on IDLE; with ``unsent`` while the server has not entered IDLE."""
    _tags: int = field(default=0, init=False)
    _outgoing: bytes = field(default=b"", init=False, repr=False)
    _tls_due: bool = field(default=False, init=False)
    _broken: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._framer = Framer(self.max_line, self.max_literal)

    @property
    def running(self) -> Command | None:
        """The command that waits for its end."""
        return self._running.command if self._running else None

    @property
    def idling(self) -> bool:
        """Whether the server is in IDLE, DONE sent or not."""
        return self._running is not None and self._running.idling

    @property
    def resting(self) -> bool:
        """Whether IDLE runs, entered or not, and no command follows on it yet."""
        return self._running is not None and self._running.command.verb == b"IDLE" and self._behind is None

    @property
    def ending_idle(self) -> bool:
        """Whether IDLE runs and DONE was asked for."""
        return self._running is not None and self._running.done

    def supports(self, capability: str) -> bool:
        """Whether the server told this capability, in any case; False while it has told none."""
        return self.capabilities is not None and capability.upper().encode("ascii") in self.capabilities

    def mechanisms(self) -> frozenset[str]:
        """The SASL mechanisms that the server offers, in upper case."""
        return frozenset(
            name[5:].decode("ascii", "replace")
            for name in self.capabilities or ()
            if name.startswith(b"AUTH=")
        )

    def command(self, command: Command) -> bytes:
        """Begin a command; the bytes to send now.

        In IDLE, DONE goes in front of it.  Before the server has entered IDLE nothing may be sent, so both
        are then kept for ``outgoing``.  ``Misuse`` while any other command runs, before the greeting, after
        the end, or when its words are not to be sent; in IDLE also when it needs more than one piece.
        """
        return self._begin(command, None)

    def authenticate(self, mechanism: Mechanism) -> bytes:
        """Begin AUTHENTICATE and play it to its end; ``mechanism.failure`` tells more when it was refused.

        The initial response goes with the command if the server takes it so (SASL-IR, RFC 4959).
        """
        initial = mechanism.initial() if self.supports("SASL-IR") else None
        coded = None if initial is None else (_base64(initial) or b"=")
        return self._begin(imap_command.authenticate(mechanism.name, coded), mechanism)

    def done(self) -> bytes:
        """End IDLE; the bytes to send now.

        Before the server has entered IDLE nothing may be sent: DONE is then kept for ``outgoing``.  Empty
        too if the server has ended IDLE by itself.
        """
        running = self._running
        if running is None or running.command.verb != b"IDLE" or running.done:
            return b""
        running.done = True
        return imap_command.DONE if running.idling else b""

    def encrypted(self) -> None:
        """TLS has begun: what was told before counts no longer (RFC 3501 section 6.2.1)."""
        self._tls_due = False
        self.capabilities = None

    def outgoing(self) -> bytes:
        """What has to be sent because of what was received; each byte once."""
        data, self._outgoing = self._outgoing, b""
        return data

    def receive(self, data: bytes) -> list[Event]:
        """The events in what came, and in what had been left over of it before."""
        events: list[Event] = []
        if self._broken:
            return events
        try:
            if self._tls_due:
                raise TlsRefused("the server sent plain text after it agreed to TLS")
            framer = self._framer
            framer.feed(data)
            while True:
                if self._running is not None:
                    events += take_usual(framer)
                frame = framer.next_frame()
                if frame is None:
                    break
                response = parse(frame)
                if type(response) is Fetched and self._running is not None:
                    events.append(response)
                elif response is not None:
                    self._take(response, events)
        except PeerError as error:
            self._broken = True
            events.append(Broken(error))
        return events

    def _begin(self, command: Command, mechanism: Mechanism | None) -> bytes:
        """Put a command on the wire."""
        idle = self._running
        if idle is not None and not self.resting:
            raise Misuse(f"{command.verb.decode()} while {idle.command.verb.decode()} runs")
        if self.state in {State.GREETING, State.LOGOUT} or self._broken or self._tls_due:
            raise Misuse(f"{command.verb.decode()} on a connection that is {self.state.value}")
        tag = b"A%d" % (self._tags + 1)
        first, *unsent = command.pieces(tag, unasked=self._unasked())
        if idle is not None:
            return self._begin_behind(idle, _Running(tag, command, [first, *unsent], mechanism))
        self._tags += 1
        self._running = _Running(tag, command, unsent, mechanism)
        if command.verb in {b"SELECT", b"EXAMINE"}:
            self.mailbox = MailboxFacts(read_only=command.verb == b"EXAMINE")
            self.state = State.AUTHENTICATED
        return first

    def _unasked(self) -> int:
        """How large a literal may be that goes out before the server has agreed to it.

        With LITERAL- the bound is the extension's own; with LITERAL+ it is ours, since a server that refuses
        a large mail should be able to say so before it is on its way.
        """
        told = self.supports("LITERAL+") or self.supports("LITERAL-")
        return MOST_UNASKED if told else 0

    def _begin_behind(self, idle: _Running, behind: _Running) -> bytes:
        """Let a command follow on IDLE."""
        if len(behind.unsent) > 1 or behind.command.verb not in BEHIND_IDLE:
            raise Misuse(f"{behind.command.verb.decode()} while IDLE runs")
        self._tags += 1
        self._behind = behind
        done = self.done()
        return done + behind.unsent.pop() if idle.idling else b""

    def _take(self, response: Response, events: list[Event]) -> None:
        """Let one response change the dialogue, and pass on what others need to know."""
        if self.state is State.GREETING and not (isinstance(response, Status) and response.tag is None):
            raise ProtocolViolation("the server did not begin with a greeting")
        match response:
            case Status(tag=None):
                self._told(response, events)
            case Status():
                self._complete(response, events)
            case Continuation(text):
                self._go_on(text, events)
            case Capability(names):
                self._learn(names)
            case Exists(count):
                self._count(count, events)
            case Expunge():
                if self.mailbox is not None:
                    self.mailbox.exists = max(self.mailbox.exists - 1, 0)
                events.append(response)
            case Vanished(uids, earlier):
                if self.mailbox is not None and not earlier:
                    self.mailbox.exists = max(self.mailbox.exists - len(uids), 0)
                events.append(response)
            case Found() | Listed() | MailboxStatus() | Identification() | Fetched() | Unreadable():
                events.append(response)
            case Other():
                pass
            case _:
                assert_never(response)

    def _count(self, count: int, events: list[Event]) -> None:
        """EXISTS: news, unless it is the answer to SELECT or says what is known."""
        if self.mailbox is None:
            return
        if self.state is State.SELECTED and count != self.mailbox.exists:
            events.append(CountChanged(count))
        self.mailbox.exists = count

    def _told(self, status: Status, events: list[Event]) -> None:
        """An untagged status response: the greeting, news of the mailbox, or a word to people."""
        if status.code == b"CAPABILITY":
            self._learn(names_of(status.arguments))
        elif self.mailbox is not None:
            match status.code:
                case b"UIDVALIDITY":
                    self.mailbox.uid_validity = _number(status.arguments)
                case b"UIDNEXT":
                    self.mailbox.uid_next = _number(status.arguments)
                case b"READ-ONLY":
                    self.mailbox.read_only = True
                case b"READ-WRITE":
                    self.mailbox.read_only = False
                case b"CLOSED":
                    self.mailbox = MailboxFacts(read_only=self.mailbox.read_only)
                case _:
                    pass
        if status.condition is Condition.BYE:
            greeting = self.state is State.GREETING
            self.state = State.LOGOUT
            events.append(Greeted(status) if greeting else Bye(status))
        elif self.state is State.GREETING:
            if status.condition not in {Condition.OK, Condition.PREAUTH}:
                raise ProtocolViolation("the server did not begin with a greeting")
            preauth = status.condition is Condition.PREAUTH
            self.state = State.AUTHENTICATED if preauth else State.NOT_AUTHENTICATED
            events.append(Greeted(status))
        else:
            events.append(status)

    def _complete(self, status: Status, events: list[Event]) -> None:
        """The tagged end of the running command."""
        running = self._running
        if status.tag == b"DONE":
            return  # the server had ended IDLE by itself, and took our DONE for a command
        if running is None or status.tag is None or status.tag.upper() != running.tag:
            raise ProtocolViolation("the server answered a command that was not sent")
        if status.condition not in {Condition.OK, Condition.NO, Condition.BAD}:
            raise ProtocolViolation("the server ended a command with neither OK nor NO nor BAD")
        if status.code == b"CAPABILITY":
            self._learn(names_of(status.arguments))
        self._running, self._behind = self._behind, None
        # IDLE that has ended takes no DONE: the command behind it goes alone, if it has not gone yet
        unsent, self._outgoing = self._outgoing.removeprefix(imap_command.DONE), b""
        if self._running is not None:
            self._outgoing = self._running.unsent.pop() if self._running.unsent else unsent
        succeeded = status.condition is Condition.OK
        match running.command.verb:
            case b"STARTTLS" if succeeded:
                if self._framer.pending:
                    raise TlsRefused("plain text was slipped in between STARTTLS and the handshake")
                self._tls_due = True
            case b"LOGIN" | b"AUTHENTICATE" if succeeded:
                self.state = State.AUTHENTICATED
                if not running.told_capabilities:
                    self.capabilities = None
            case b"SELECT" | b"EXAMINE":
                self._selected(status, succeeded=succeeded)
            case b"LOGOUT":
                self.state = State.LOGOUT
            case _:
                pass
        events.append(Completed(running.command, status))

    def _selected(self, status: Status, *, succeeded: bool) -> None:
        """SELECT has ended; a failed one leaves no mailbox selected, also if there was one before."""
        if not succeeded:
            self.mailbox = None
            return
        self.state = State.SELECTED
        if self.mailbox is not None and status.code in {b"READ-ONLY", b"READ-WRITE"}:
            self.mailbox.read_only = status.code == b"READ-ONLY"

    def _go_on(self, text: bytes, events: list[Event]) -> None:
        """``+``: send what waited for it; one that nobody waited for means nothing."""
        running = self._running
        if running is None:
            return
        if running.unsent:
            self._outgoing += running.unsent.pop(0)
        elif running.mechanism is not None:
            self._outgoing += self._answer(running, running.mechanism, text)
        elif running.command.verb == b"IDLE" and not running.idling:
            running.idling = True
            events.append(Idling())
            if running.done:
                self._outgoing += imap_command.DONE
            if self._behind is not None:
                self._outgoing += self._behind.unsent.pop()

    def _answer(self, running: _Running, mechanism: Mechanism, challenge: bytes) -> bytes:
        """The mechanism's answer to a challenge, or ``*`` to end the exchange."""
        if running.cancelled:
            raise ProtocolViolation("the server goes on with an authentication that was cancelled")
        try:
            answer = mechanism.respond(binascii.a2b_base64(challenge))
        except binascii.Error:
            answer = None
        if answer is None:
            running.cancelled = True
            return b"*\r\n"
        return _base64(answer) + b"\r\n"

    def _learn(self, names: frozenset[bytes]) -> None:
        """The server told its capabilities."""
        self.capabilities = names
        if self._running is not None:
            self._running.told_capabilities = True


def _base64(content: bytes) -> bytes:
    """Base64 in one line, however long (RFC 3501 section 9, ``base64``)."""
    return binascii.b2a_base64(content, newline=False)


def _number(text: bytes) -> int | None:
    """A number that is not 0, None for anything else: unknown is not the same as changed."""
    return int(text) or None if text.isdigit() and len(text) < 20 else None
