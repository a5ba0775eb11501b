"""Asking DNS for the keys that domains sign their mail with (RFC 6376, section 3.6.2), by ``twisted.names``.

The servers are those of ``resolv.conf``, read at each question, so that a laptop in another network asks the
right ones; nothing runs between questions.  Answers are kept for as long as they say, an hour at most, and
trouble for some seconds, so that a flood of mail is not a flood of questions.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.defer import TimeoutError as DeadlinePassed
from twisted.internet.threads import deferToThreadPool

from mailgateway.flows.ports import KeyLookup
from mailgateway.mail.dkim_key import KeyAnswer, KeyTexts, KeyTrouble
from mailgateway.protocols.lookup import NameServer, system_servers

TRIES = (1, 2)
"""Seconds after which a question is sent again, and at last given up; all are asked at once."""

SECONDS = 3.5
"""The same for an answer that comes in other ways, such as by TCP."""

LONGEST = 3600.0
TROUBLE_SECONDS = 8.0
"""Shorter than the first pause of a mail that is held for a key, which would be spent for nothing else."""

MOST = 256
"""Answers that are kept."""

_TXT = 16


@define(eq=False)
class DnsKeys:
    """The lookup of one service."""

    reactor: Any
    servers: Callable[[], list[NameServer]] = system_servers
    _known: dict[str, tuple[float, KeyAnswer]] = field(factory=dict, init=False)
    """When each answer is over, in seconds of the reactor, and the answer; the oldest first."""

    async def find(self, names: Sequence[str]) -> Mapping[str, KeyAnswer]:
        """The answer for each name."""
        now = self.reactor.seconds()
        answers = {name: known[1] for name in names if (known := self._known.get(name)) and known[0] > now}
        missing = [name for name in names if name not in answers]
        if not missing:
            return answers
        # 50 ms and some memory, for those who need it, and not on the reactor's thread
        pool = self.reactor.getThreadPool()
        client = await deferToThreadPool(self.reactor, pool, import_module, "twisted.names.client")
        resolver = client.Resolver(servers=self.servers(), timeout=TRIES, reactor=self.reactor)
        asked = [Deferred.fromCoroutine(self._ask(resolver, name)) for name in missing]
        for _, (name, seconds, answer) in await DeferredList(asked):
            answers[name] = answer
            self._keep(name, now + seconds, answer)
        for connection in tuple(resolver.connections):
            connection.transport.loseConnection()
        return answers

    async def _ask(self, resolver: Any, name: str) -> tuple[str, float, KeyAnswer]:
        """The name, for how many seconds the answer holds, and the answer."""
        names_error = import_module("twisted.names.error")
        try:
            asking = resolver.lookupText(name.encode("ascii"))
            asking.addTimeout(SECONDS, self.reactor)
            records, _, _ = await asking
        except names_error.DNSNameError:
            return name, TROUBLE_SECONDS, KeyTexts()
        except CancelledError:
            raise
        except DeadlinePassed:
            return name, TROUBLE_SECONDS, KeyTrouble("DNS does not answer in time")
        except Exception:  # noqa: BLE001 (whatever a server may answer, and whatever the library makes of it)
            return name, TROUBLE_SECONDS, KeyTrouble("DNS does not tell the signature's key")
        texts = [record for record in records if record.type == _TXT]
        found = KeyTexts(tuple(b"".join(record.payload.data) for record in texts))
        if not texts:  # maybe it is about to be published
            return name, TROUBLE_SECONDS, found
        return name, min([LONGEST, *(float(record.ttl) for record in texts)]), found

    def _keep(self, name: str, until: float, answer: KeyAnswer) -> None:
        self._known.pop(name, None)
        self._known[name] = (until, answer)
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]


_proof: type[KeyLookup] = DnsKeys
