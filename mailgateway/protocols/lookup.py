"""Questions to the name servers of the system, by ``twisted.names``: TXT, SRV and MX records.

The servers are those of ``resolv.conf``, read at each question, so that a laptop in another network asks the
right ones; nothing runs between questions.  That there is no such record is an answer, and empty; that nobody
answers is ``Unreachable``.  What is told is not signed as far as we can see.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from attrs import define
from twisted.internet.defer import CancelledError
from twisted.internet.defer import TimeoutError as DeadlinePassed

from mailgateway.errors import Unreachable

TRIES: Final = (1, 2)
"""Seconds after which a question is sent again, and at last given up; all servers are asked in turn."""

SECONDS: Final = 4.5
PORT: Final = 53
RESOLV_CONF: Final = Path("/etc/resolv.conf")
_MX, _TXT, _SRV = 15, 16, 33
MOST: Final = 50
"""Records of one answer that are looked at."""

NameServer = tuple[str, int]


def system_servers(path: Path = RESOLV_CONF) -> list[NameServer]:
    """The name servers of the system (resolv.conf(5)); without any, the one on this machine."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    words = [line.split() for line in lines]
    found = [(each[1], PORT) for each in words if len(each) > 1 and each[0] == "nameserver"]
    return found or [("127.0.0.1", PORT)]


@define(eq=False)
class Lookup:
    """Asks."""

    reactor: Any
    servers: Callable[[], list[NameServer]] = system_servers

    async def texts(self, name: str) -> tuple[bytes, ...]:
        """The TXT records of a name, each put together from its strings."""
        records = await self._asked("lookupText", name, _TXT)
        return tuple(b"".join(each.data) for each in records)

    async def services(self, name: str) -> tuple[tuple[str, int, int, int], ...]:
        """The SRV records (RFC 2782) of a name: target, port, priority, weight."""
        records = await self._asked("lookupService", name, _SRV)
        return tuple((_shown(each.target), each.port, each.priority, each.weight) for each in records)

    async def exchangers(self, domain: str) -> tuple[str, ...]:
        """The mail exchangers of a domain, the preferred first; the root (RFC 7505) is none."""
        records = await self._asked("lookupMailExchange", domain, _MX)
        ranked = sorted((each.preference, _shown(each.name)) for each in records)
        return tuple(host for _, host in ranked if host)

    async def _asked(self, question: str, name: str, kind: int) -> list[Any]:
        """The payloads of one kind in the answer."""
        client = import_module("twisted.names.client")  # 50 ms, for those who ask
        errors = import_module("twisted.names.error")
        resolver = client.Resolver(servers=self.servers(), timeout=TRIES, reactor=self.reactor)
        try:
            asking = getattr(resolver, question)(name.encode("ascii"))
            answers, _, _ = await asking.addTimeout(SECONDS, self.reactor)
        except errors.DNSNameError:
            return []
        except CancelledError:
            raise
        except DeadlinePassed:
            raise Unreachable("DNS does not answer in time") from None
        except Exception as error:  # noqa: BLE001 - whatever a server may answer, and the library makes of it
            raise Unreachable(f"DNS does not tell ({type(error).__name__})") from None
        finally:
            for connection in tuple(resolver.connections):
                connection.transport.loseConnection()
        return [each.payload for each in answers if each.type == kind][:MOST]


def _shown(name: Any) -> str:
    """A name of an answer as text; whatever is no host name in it is for the caller to refuse."""
    return bytes(name.name).decode("ascii", "replace").lower().rstrip(".")
