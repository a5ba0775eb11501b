"""Commands of an IMAP client, and the one place that turns them into bytes (RFC 3501 section 6).

What comes from outside (names, passwords, search texts) is written as an atom, a quoted string or a
literal, whichever its bytes allow; CR, LF and NUL are allowed in none of them and are a ``Misuse``, since
they would end the command and begin another.  Lines stay below 1000 bytes (RFC 2683 section 3.2.1.5): a set
of UIDs has to be handed in by batches.

A literal makes the client wait for the server's ``+``, so a command is a list of pieces: the first is sent at
once, each further one after a continuation.  With LITERAL+ or LITERAL- (RFC 7888) literals that the server
takes unasked go along.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from attrs import field, frozen

from mailgateway.wire import Misuse
from mailgateway.wire.modified_utf7 import encode
from mailgateway.wire.uid_set import UidSet

MAX_COMMAND = 1000
"""Bytes of a line of ours, end included."""

_ATOM = re.compile(rb"[!#$&'+,\-./0-9:;<=>?@A-Z\[^_`a-z|}]+")
_QUOTABLE = re.compile(rb"[ -~]*")
_FORBIDDEN = re.compile(rb"[\r\n\0]")
_FIELD = re.compile(rb"[!-9;-~]+")
_MONTHS = b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


@frozen
class Text:
    """A string from outside, to be written so that the server reads exactly these bytes."""

    content: bytes = field(repr=False)


@frozen
class Literal:
    """A whole mail, written as a literal whatever its bytes are; it must hold no NUL."""

    content: bytes = field(repr=False)


@frozen
class Command:
    """A command without its tag.

    ``words`` are written with a blank between them: bytes as they stand, ``Text`` by what it needs.
    """

    verb: bytes
    """Its name in upper case, for reports and for the dialogue: ``UID FETCH``."""
    words: tuple[bytes | Text | Literal, ...] = field(default=(), repr=False)
    long: bool = False
    """Whether a long line is in order: an initial response with a token in it."""

    def pieces(self, tag: bytes, *, unasked: int = 0) -> list[bytes]:
        """The bytes to send, cut where the server's ``+`` has to come first.

        ``unasked`` is how many octets a literal may have that is sent without waiting for it.
        """
        pieces = [bytearray(tag + b" " + self.verb)]
        for word in self.words:
            pieces[-1] += b" "
            if isinstance(word, bytes):
                _refuse_line_ends(word)
                pieces[-1] += word
            elif isinstance(word, Text) and (written := _inline(word.content)) is not None:
                pieces[-1] += written
            elif b"\0" in word.content:
                raise Misuse("NUL in an IMAP literal")
            elif len(word.content) <= unasked:
                pieces[-1] += b"{%d+}\r\n" % len(word.content) + word.content
            else:
                pieces[-1] += b"{%d}\r\n" % len(word.content)
                pieces.append(bytearray(word.content))
        pieces[-1] += b"\r\n"
        if not self.long and any(len(piece) > MAX_COMMAND for piece in pieces):
            raise Misuse(f"a {self.verb.decode()} command of more than {MAX_COMMAND} bytes")
        return [bytes(piece) for piece in pieces]


def _refuse_line_ends(content: bytes) -> None:
    """Misuse, without showing what it is: it may be a password."""
    if _FORBIDDEN.search(content):
        raise Misuse("CR, LF or NUL in an IMAP command")


def _inline(content: bytes) -> bytes | None:
    """A string as atom or quoted string; None if it needs a literal."""
    _refuse_line_ends(content)
    if _ATOM.fullmatch(content) and content.upper() != b"NIL":
        return content
    if _QUOTABLE.fullmatch(content):
        return b'"' + content.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
    return None


CAPABILITY = Command(b"CAPABILITY")
NOOP = Command(b"NOOP")
LOGOUT = Command(b"LOGOUT")
STARTTLS = Command(b"STARTTLS")
IDLE = Command(b"IDLE")
DONE = b"DONE\r\n"
"""Ends IDLE (RFC 2177); no command of its own, so it has no tag."""


def login(username: str, password: str) -> Command:
    """LOGIN; both sent as UTF-8, as a literal if they are not ASCII."""
    return Command(b"LOGIN", (Text(username.encode()), Text(password.encode())), long=True)


def authenticate(mechanism: str, initial: bytes | None) -> Command:
    """AUTHENTICATE, with an initial response in base64 (RFC 4959) or None to wait for the server."""
    words = (mechanism.encode("ascii"),) if initial is None else (mechanism.encode("ascii"), initial)
    return Command(b"AUTHENTICATE", words, long=True)


def mailbox(name: bytes | str) -> Text:
    """The name of a mailbox: bytes as LIST gave them, or text that is encoded in modified UTF-7."""
    return Text(encode(name) if isinstance(name, str) else name)


def select(name: bytes | str, *, read_only: bool = False) -> Command:
    """SELECT, or EXAMINE to change nothing."""
    return Command(b"EXAMINE" if read_only else b"SELECT", (mailbox(name),))


def status(name: bytes | str, items: Sequence[bytes] = (b"MESSAGES", b"UIDNEXT", b"UIDVALIDITY")) -> Command:
    """STATUS of a mailbox that need not be selected."""
    return Command(b"STATUS", (mailbox(name), b"(" + b" ".join(items) + b")"))


def list_mailboxes(reference: bytes = b"", pattern: bytes = b"*", *, purposes: bool = False) -> Command:
    """LIST: every mailbox below ``reference`` that fits ``pattern``.

    ``purposes`` asks for the attributes of RFC 6154, which a server otherwise need not tell.
    """
    words = (_quoted(reference), _quoted(pattern))
    return Command(b"LIST", (*words, b"RETURN (SPECIAL-USE)") if purposes else words)


def xlist() -> Command:
    """XLIST: what servers had for the purposes of mailboxes before RFC 6154."""
    return Command(b"XLIST", (b'""', b'"*"'))


def append(folder: bytes | str, message: bytes) -> Command:
    r"""APPEND of a whole mail, as one that is ``\Seen``."""
    return Command(b"APPEND", (mailbox(folder), rb"(\Seen)", Literal(message)), long=True)


def identify(fields: Mapping[str, str]) -> Command:
    """ID (RFC 2971): who we are, in ASCII; empty says nothing (``NIL``)."""
    pairs = [_quoted(text.encode("ascii")) for pair in fields.items() for text in pair]
    return Command(b"ID", (b"(" + b" ".join(pairs) + b")" if pairs else b"NIL",))


def fetch_headers(first: int, last: int | None, fields: Iterable[str], *, small_body: int = 0) -> Command:
    """UID FETCH of facts and header fields of the messages from ``first`` to ``last`` (None: the newest).

    With ``small_body`` above 0 also the first ``small_body + 1`` octets of each message: who gets no more
    than ``small_body`` then knows that this is the whole.  Nothing of it sets ``\\Seen``.
    """  # noqa: D301 - a raw docstring would only hide the escape
    names = [name.encode("ascii") for name in fields]
    if not names or not all(map(_FIELD.fullmatch, names)):
        raise Misuse("no header field, or one with an impossible name")
    span = b"%d:*" % first if last is None else bytes(UidSet.span(first, last))
    items = [b"UID", b"RFC822.SIZE", b"INTERNALDATE", b"BODY.PEEK[HEADER.FIELDS (%b)]" % b" ".join(names)]
    if small_body > 0:
        items.append(b"BODY.PEEK[]<0.%d>" % (small_body + 1))
    return Command(b"UID FETCH", (span, b"(" + b" ".join(items) + b")"))


def fetch_message(uid: int, limit: int) -> Command:
    """UID FETCH of the first ``limit`` octets of one message."""
    return Command(b"UID FETCH", (b"%d" % uid, b"(UID RFC822.SIZE BODY.PEEK[]<0.%d>)" % limit))


def fetch_highest() -> Command:
    """UID FETCH of the UID of the last message; the mailbox must not be empty."""
    return Command(b"UID FETCH", (b"*", b"(UID)"))


def add_seen(uids: UidSet) -> Command:
    r"""UID STORE that sets ``\Seen``; the server need not tell the new flags."""
    return Command(b"UID STORE", (bytes(uids), rb"+FLAGS.SILENT (\Seen)"))


def search(*criteria: bytes | Text, extended: bool = False) -> Command:
    """UID SEARCH; ``extended`` asks for ranges (RFC 4731), which keeps a long answer short."""
    words: list[bytes | Text] = [b"RETURN (ALL)"] if extended else []
    if any(isinstance(word, Text) and not word.content.isascii() for word in criteria):
        words.append(b"CHARSET UTF-8")
    return Command(b"UID SEARCH", (*words, *criteria))


def since(day: date) -> bytes:
    """The criterion for messages whose INTERNALDATE is on ``day`` or later; months are English."""
    return b"SINCE %d-%s-%d" % (day.day, _MONTHS[day.month - 1], day.year)


def header_holds(name: str, text: str) -> tuple[bytes | Text, ...]:
    """The criterion for messages with a header field ``name`` that holds ``text``."""
    return b"HEADER", Text(name.encode("ascii")), Text(text.encode())


def _quoted(content: bytes) -> bytes:
    """A quoted string always: so servers want the arguments of LIST and the fields of ID."""
    _refuse_line_ends(content)
    return b'"' + content.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
