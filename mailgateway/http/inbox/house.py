"""What all pages share: the service, the templates, who is logged in, and which streams are theirs."""

from typing import Any

from attrs import Factory, define, field
from jinja2 import Environment

from mailgateway.domain.people import Login, digest_of, is_of_ours
from mailgateway.errors import Refusal
from mailgateway.flows import logins_of_people as logins
from mailgateway.http.doors import Doors, Stream
from mailgateway.http.inbox.attempts import Attempts
from mailgateway.http.inbox.visit import Page, Visit
from mailgateway.http.inbox.writing import environment
from mailgateway.ids import SessionId

LONGEST_CODE = 600


@define(eq=False)
class House:
    """The pages of one service."""

    doors: Doors
    attempts: Attempts = field(factory=Attempts)
    templates: Environment = field(factory=environment)
    streams: dict[str, set[Stream]] = Factory(dict)
    """The live events of each login, which end with it."""

    def page(self, template: str, *, status: int = 200, **values: Any) -> Page:
        """Write a page."""
        content = self.templates.get_template(template).render(values)
        return Page(content.encode("utf-8", "replace"), status)

    def waits(self, session: SessionId) -> bool:
        """Whether a session waits for its questions now."""
        return session in self.doors.questions.waits

    async def know(self, visit: Visit) -> Login | None:
        """Find out who it is."""
        if visit.cookie:
            found = await logins.who(self.doors.database, digest_of(visit.cookie))
            visit.login, visit.prolonged = found
        return visit.login

    def is_of_ours(self, code: str) -> bool:
        """Whether a code was made by this service, or one that shares its key."""
        return is_of_ours(self.doors.keys().session, code)

    def end_streams(self, login_id: str) -> None:
        """A login has ended: so do its live events."""
        for stream in tuple(self.streams.get(login_id, ())):
            stream.end()

    def login_page(self, to: str, notice: str = "", status: int = 200) -> Page:
        """The page with the form for a code."""
        mailed = self.doors.settings().security.person_door.value == "web"
        return self.page("login.html", status=status, to=to, notice=notice, mailed=mailed)


def me(visit: Visit) -> Login:
    """Who is logged in; pages that need it are never made without."""
    if visit.login is None:
        raise Refusal("unauthorized", "log in first")
    return visit.login
