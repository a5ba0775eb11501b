"""A route, what it is asked, and what it answers: the vocabulary of the route table.

The table drives serving, the served description and the documentation's test; so a route that is in one of
them is in all.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from attrs import AttrsInstance, Factory, define, frozen

from mailgateway.errors import Refusal
from mailgateway.http.doors import Doors
from mailgateway.http.keys import Bearer
from mailgateway.http.request import LimitedRequest
from mailgateway.ids import SessionId
from mailgateway.settings import Role
from mailgateway.shapes import NoQuery, Nothing, members, parse, read, read_query

T = TypeVar("T", bound=AttrsInstance)


@frozen
class Reply:
    """What a route answers: a value for JSON, or bytes of some other type."""

    value: Any = Factory(dict)
    status: int = 200
    content: bytes | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = Factory(dict)
    after: Callable[[], None] | None = None
    """Called when the answer has been handed to the transport."""


@frozen
class Streamed:
    """The route has written its answer itself."""


@define(eq=False)
class Call:
    """One request that the guards have let in."""

    route: "Route"
    request: LimitedRequest
    bearer: Bearer
    parameters: Mapping[str, str]
    """The variable parts of the path."""

    def body(self, made: type[T]) -> T:
        """Read the body; a session that it names must be one the bearer speaks for."""
        assert self.request.content is not None  # noqa: S101 (for the type checker: the request is complete)
        raw = self.request.content.read()
        value = read(made, parse(raw) if raw.strip() or made is not Nothing else {})
        session: SessionId | None = getattr(value, "session_id", None)
        if session is not None:
            self.bearer.require(session)
        return value

    def query(self, made: type[T]) -> T:
        """Read the query string."""
        return read_query(made, self.request.args or {})

    def headers(self, made: type[T]) -> T:
        """Read header fields, each given at most once; fields that ``made`` does not know are no concern."""
        names = [member.name for member in members(made)]
        fields = self.request.requestHeaders
        given = {name: fields.getRawHeaders(name.encode(), []) for name in names}
        for name, values in given.items():
            if len(values) > 1:
                raise Refusal("invalid", f"`{name}` is given more than once", {"field": name})
        return read(made, {name: values[0].decode("latin-1") for name, values in given.items() if values})


@frozen
class Route:
    """One line of the table."""

    method: str
    path: str
    """With ``{name}`` for variable parts."""
    answer: Callable[[Doors, Call], Awaitable[Reply | Streamed]]
    summary: str
    body: type[AttrsInstance] = Nothing
    takes_file: bool = False
    """Whether the body is a file, streamed to disk."""
    query: type[AttrsInstance] = NoQuery
    headers: type[AttrsInstance] | None = None
    reply: type[AttrsInstance] | None = None
    content_type: str = "application/json"
    status: int = 200
    codes: tuple[str, ...] = ()
    """Error codes beside those that every route may answer with."""
    role: Role = Role.SESSION
    whole_machine: bool = False
    """Whether it concerns the machine and all its sessions: nothing for a key that speaks for some only."""
    open: bool = False
    """Whether it asks for no key."""
    waits: bool = False
    """Whether the answer may take long and means nothing to a client that has gone: then it is given up.
    All others are finished whether or not somebody still listens, since they have begun to change things."""

    @property
    def name(self) -> str:
        """How logs and metrics call it."""
        return f"{self.method} {self.path}"
