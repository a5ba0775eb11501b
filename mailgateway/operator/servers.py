"""The first half of ``setup``: from an address to two servers that a person has agreed to.

Policy: what flags name is taken; the rest is looked for, shown with its source, and tried by TLS without a
login.  A password is not even asked for before the person has said yes, and what only DNS tells has to be
agreed to by name.
"""

import socket
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field

from mailgateway.domain.discovery import DOORS, Choice, Door, Found, Rank
from mailgateway.errors import ConfigError, PeerError, Problem, Refusal, TlsRefused
from mailgateway.operator.discovery import Asked, Search, prober
from mailgateway.operator.findings import Finding, State, Tell
from mailgateway.operator.running import run
from mailgateway.operator.wishes import Progress, Talk, Wishes
from mailgateway.protocols.https import Https
from mailgateway.protocols.lookup import Lookup
from mailgateway.providers import Offer, Server, username_of

WHOLE_SECONDS: Final = 30.0
"""When a search is given up whose sources do not keep to their own time."""

_PORTS: Final = {"imap": (993, 143), "smtp": (465, 587)}
"""Of implicit TLS and of STARTTLS."""

_NAMES: Final = {"imap": "IMAP", "smtp": "SMTP"}


def server_of(text: str, door: Door, tls: str = "") -> Server:
    """A server as a flag names it, ``HOST`` or ``HOST:PORT``; ``ValueError`` with a sentence.

    The usual port of STARTTLS means STARTTLS unless ``tls`` says otherwise.
    """
    host, port = text.strip(), ""
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    elif host.count(":") == 1:
        host, _, port = host.partition(":")
    if not host or not all(char.isalnum() or char in "-._:" for char in host):
        raise ValueError("give a host name, perhaps with a port: imap.example.org or imap.example.org:993")
    implicit, plain = _PORTS[door]
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
        raise ValueError("the port is a number from 1 to 65535")
    starttls = tls == "starttls" or (not tls and port == str(plain))
    return Server(host, int(port) if port else (plain if starttls else implicit), starttls)


@define(eq=False)
class Servers:
    """The search for the servers of one address."""

    address: str
    wishes: Wishes
    talk: Talk
    progress: Progress
    ca_file: str = field(init=False)
    """The file with the servers' own trust anchor; empty for that of the system."""

    def __attrs_post_init__(self) -> None:
        """Begin with the file that a flag names."""
        self.ca_file = self.wishes.ca_file

    def agreed(self) -> Choice:
        """The servers, both of them, tried and agreed to; ``Refusal`` says why there are none."""
        choice = self._complete(self._found())
        choice = self._named(choice)
        trust = self._trust(choice)
        self._show(choice)
        if not self.wishes.dry_run:
            self._try(choice, trust)
        self._agree(choice)
        return choice

    @property
    def domain(self) -> str:
        """The domain of the address."""
        return self.address.rpartition("@")[2].lower()

    # Looking

    def _found(self) -> Choice:
        given = self._given()
        with self.progress() as tell:
            choice = run(lambda reactor: self._search(reactor, tell, given), seconds=WHOLE_SECONDS)
        if choice.closed and choice.facts is not None:
            raise Refusal("no_imap", " ".join(choice.facts.hints))
        worst = max((each.rank for each in (choice.imap, choice.smtp) if each), default=Rank.GUESS)
        undecided = self.wishes.ispdb is None and self.talk.present
        if undecided and (not choice.complete or worst > Rank.ISPDB):
            self.talk.tell(f"Nothing certain was found for {self.domain}.")
            question = f"Ask Mozilla's directory as well? It learns the domain {self.domain}"
            if self.talk.agrees(question, "--ispdb or --no-ispdb", default=False):
                with self.progress() as tell:
                    choice = run(
                        lambda reactor: self._directory(reactor, tell, choice), seconds=WHOLE_SECONDS
                    )
        return choice

    async def _search(self, reactor: Any, tell: Tell, given: Offer | None) -> Choice:
        what = f"asking {self.domain}, its DNS and the usual names, for 5 s at most"
        tell(Finding("servers", State.UNDERWAY, what))
        return await self._searcher(reactor, tell).find(self.domain, given, ispdb=bool(self.wishes.ispdb))

    async def _directory(self, reactor: Any, tell: Tell, choice: Choice) -> Choice:
        return await self._searcher(reactor, tell).find_in_directory(self.domain, choice)

    def _searcher(self, reactor: Any, tell: Tell) -> Search:
        probe = prober(reactor, self._anchors(), socket.gethostname())
        return Search(reactor, Https(reactor), Lookup(reactor), probe, lambda asked: tell(_finding(asked)))

    def _given(self) -> Offer | None:
        """What the flags name."""
        try:
            imap = server_of(self.wishes.imap, "imap", self.wishes.imap_tls) if self.wishes.imap else None
            smtp = server_of(self.wishes.smtp, "smtp", self.wishes.smtp_tls) if self.wishes.smtp else None
        except ValueError as error:
            raise ConfigError([Problem("--imap, --smtp", str(error))]) from None
        return Offer(name="", imap=imap, smtp=smtp, source="your flags") if imap or smtp else None

    def _complete(self, choice: Choice) -> Choice:
        """Ask for what was not found."""
        for door in DOORS:
            if getattr(choice, door) is None:
                self.talk.tell(f"No {_NAMES[door]} server was found for {self.domain}.")
                flag = f"--{door} HOST[:PORT]"
                typed = self.talk.text(f"{_NAMES[door]} server", flag, partial(_checked, door))
                found = Found(server_of(typed, door), Rank.GIVEN, "your answer")
                choice = evolve(choice, imap=found) if door == "imap" else evolve(choice, smtp=found)
        return choice

    def _named(self, choice: Choice) -> Choice:
        """Put in the user names that flags name; SMTP has that of IMAP unless told another."""

        def with_name(found: Found | None, name: str) -> Found | None:
            if found is None or not name:
                return found
            return evolve(found, server=evolve(found.server, username=name))

        imap = with_name(choice.imap, self.wishes.username)
        smtp = with_name(choice.smtp, self.wishes.smtp_username or self.wishes.username)
        return evolve(choice, imap=imap, smtp=smtp)

    # Agreeing

    def _anchors(self) -> bytes | None:
        """The certificates of ``--ca-file``."""
        if not self.ca_file:
            return None
        try:
            return _read(self.ca_file)
        except ValueError as error:
            raise ConfigError([Problem("--ca-file", str(error))]) from None

    def _trust(self, choice: Choice) -> bytes | None:
        if not self.ca_file and choice.facts is not None and choice.facts.needs_ca_file:
            self.talk.tell(*choice.facts.hints)
            question = "File with the certificate of this server"
            self.ca_file = self.talk.text(question, "--ca-file FILE", _readable)
        return self._anchors()

    def _show(self, choice: Choice) -> None:
        """Say what was found, and what the person must know before there is a password to give."""
        facts = choice.facts
        for door in DOORS:
            found: Found = getattr(choice, door)
            how = "STARTTLS" if found.server.starttls else "TLS"
            name = username_of(found.server.username, self.address)
            self.talk.tell(f"{_NAMES[door]}  {found.server}, {how}, user name {name} ({found.rank.words})")
        if facts is not None:
            self.talk.tell("", *facts.hints, *([f"{facts.name}: {facts.page}"] if facts.page else []), "")

    def _try(self, choice: Choice, trust: bytes | None) -> None:
        """Connect to both by TLS, without a login; ``Refusal`` when that cannot be had."""

        async def tried(reactor: Any, tell: Tell) -> dict[Door, PeerError]:
            tell(Finding("servers", State.UNDERWAY, "connecting by TLS, without a login"))
            probe = prober(reactor, trust, socket.gethostname())
            return await Search(reactor, Https(reactor), Lookup(reactor), probe, lambda _: None).refusals(
                choice
            )

        with self.progress() as tell:
            refusals = run(lambda reactor: tried(reactor, tell), seconds=WHOLE_SECONDS)
            for door in DOORS:
                if door not in refusals:
                    server = getattr(choice, door).server
                    what = f"{server} answers, and its certificate is for that name"
                    tell(Finding(_NAMES[door], State.OK, what))
        if not refusals:
            return
        unsafe = any(isinstance(error, TlsRefused) for error in refusals.values())
        told = " ".join(f"{_NAMES[door]}: {error.text}." for door, error in refusals.items())
        advice = (
            "A password is only given to a server whose certificate is for the name that you see; name "
            "another server with --imap and --smtp, or your own server's certificate with --ca-file."
            if unsafe
            else "Look at the names, or name other servers with --imap and --smtp."
        )
        raise Refusal("tls_refused" if unsafe else "no_connection", f"{told} {advice}")

    def _agree(self, choice: Choice) -> None:
        """Let the person say yes; what flags named needs no further word."""
        found = [each for each in (choice.imap, choice.smtp) if each and each.rank is not Rank.GIVEN]
        doubtful = sorted({each.server.host for each in found if each.doubtful})
        if doubtful:
            names = " and ".join(doubtful)
            question = (
                f"Only DNS, which is not signed, says that {self.domain} has its mail at {names}. Right?"
            )
            yes = self.talk.agrees(question, "--imap HOST --smtp HOST", default=False)
        elif found and not self.wishes.yes:
            yes = self.talk.agrees("Use these servers? A password will go to them.", "--yes", default=True)
        else:
            yes = True
        if not yes:
            raise Refusal("declined", "Nothing was written. Name the servers with --imap and --smtp.")


def _read(file: str) -> bytes:
    """The certificates in a file; ``ValueError`` with a sentence."""
    try:
        return Path(file).expanduser().read_bytes()
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from None


def _readable(file: str) -> str:
    _read(file)
    return str(Path(file).expanduser())


def _checked(door: Door, text: str) -> str:
    server_of(text, door)
    return text


def _finding(asked: Asked) -> Finding:
    """What one source said, as one line."""
    if asked.offer is None:
        return Finding("servers", State.NOTE, f"{asked.rank.words}: {asked.why}")
    servers = [str(each) for each in (asked.offer.imap, asked.offer.smtp) if each is not None]
    if not servers:
        return Finding("servers", State.FAILED, f"{asked.rank.words}: it lets no mail program in")
    return Finding("servers", State.OK, f"{asked.rank.words}: {', '.join(servers)}")
