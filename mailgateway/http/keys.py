"""Who knocks: keys, what their bearers may do, and the proof that we hold the key ourselves.

Keys are compared in constant time and every key is compared, so that time tells nothing about any of them.
The text of a key is never in a repr.
"""

import hmac
from collections.abc import Mapping

from attrs import Factory, field, frozen

from mailgateway import secrets
from mailgateway.contract import proof_of
from mailgateway.errors import Refusal
from mailgateway.ids import SessionId
from mailgateway.settings import PersonDoor, Role, Settings


@frozen
class Bearer:
    """Who sends a request: the role, and the sessions it may speak for (none named: all of them)."""

    name: str
    role: Role | None
    sessions: frozenset[SessionId] = frozenset()
    own: bool = False
    """Whether the key is one of our own two: whoever uses it is at this machine, and many do."""

    def speaks_for(self, session: SessionId | None) -> bool:
        """Whether the bearer may act for this session; ``None`` is a row of no session, the machine's own."""
        return not self.sessions or session in self.sessions

    def require(self, session: SessionId | None) -> None:
        """Refuse a session that is another's."""
        if not self.speaks_for(session):
            raise Refusal("not_yours", "this key does not speak for that session; use the key of its machine")


NOBODY = Bearer("", None)
"""The sender of a request to a route that asks for no key."""

VISITOR = Bearer("a visitor", None)
"""The sender of a request to people's pages, before it is known who it is."""


@frozen
class NamedKey:
    """The key of another machine, ``[keys.NAME]``."""

    text: str = field(repr=False)
    role: Role = Role.SESSION
    sessions: frozenset[SessionId] = frozenset()


@frozen
class Keys:
    """Every key that opens a door: our own two, and those of other machines by their names."""

    session: str = field(repr=False)
    person: str | None = field(default=None, repr=False)
    named: Mapping[str, NamedKey] = Factory(dict)

    def bearer(self, token: bytes) -> Bearer | None:
        """Find whose key this is; ``None`` when it is nobody's."""
        found = None
        if hmac.compare_digest(token, self.session.encode()):
            found = Bearer("session", Role.SESSION, own=True)
        if self.person is not None and hmac.compare_digest(token, self.person.encode()):
            found = Bearer("person", Role.PERSON, own=True)
        for name, key in self.named.items():
            if hmac.compare_digest(token, key.text.encode()):
                found = Bearer(name, key.role, key.sessions)
        return found

    @property
    def in_words(self) -> Mapping[str, str]:
        """Every key by what it is in words, for who looks after texts that leave."""
        named = {f"the key of {name}": key.text for name, key in self.named.items()}
        person = {} if self.person is None else {"the person's key": self.person}
        return {"the session key": self.session, **person, **named}

    def proof(self, challenge: str) -> str:
        """Answer a client's challenge, so that it sends its key only to us."""
        return proof_of(self.session, challenge)


def read_keys(settings: Settings) -> Keys:
    """Read all keys that the settings name, and make our own when missing; ``ConfigError`` when unusable."""
    state_dir = settings.daemon.state_dir
    with_person = settings.security.person_door is PersonDoor.KEY
    return Keys(
        session=secrets.session_key(state_dir),
        person=secrets.person_key(state_dir) if with_person else None,
        named={
            name: NamedKey(secrets.read_key(key.file), key.role, frozenset(map(SessionId, key.sessions)))
            for name, key in settings.keys.items()
        },
    )
