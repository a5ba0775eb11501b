"""The one route of the API that concerns people's pages: a link by which a person logs in there."""

from mailgateway.domain.people import CODE_BYTES, code_of, digest_of, link_of
from mailgateway.errors import Refusal
from mailgateway.flows import logins_of_people as flow
from mailgateway.http.doors import Doors
from mailgateway.http.guards import LOOPBACK_NAMES
from mailgateway.http.routes import Call, Reply
from mailgateway.settings import PersonDoor, Role, Settings
from mailgateway.shapes import LoginLink


async def make_link(doors: Doors, call: Call) -> Reply:
    """Make a login link: shown to who has the person's key, or else mailed to the person alone."""
    settings = doors.settings()
    by_mail = settings.security.person_door is PersonDoor.WEB
    if not by_mail and call.bearer.role is not Role.PERSON:
        raise Refusal("person_required", "this is for people, who use `person.key`")
    base = _base(settings)
    code = code_of(doors.keys().session, doors.mint(CODE_BYTES))
    link, digest = link_of(base, code), digest_of(code)
    if by_mail:
        sender = doors.sender()
        expires_at = await flow.mail_link(
            doors.database, doors.bell, doors.identity, sender, digest, link, doors.mint
        )
        return Reply(LoginLink(expires_at=expires_at, mailed_to=sender.recipient))
    allowed = settings.people.allowed
    person = allowed[0] if len(allowed) == 1 and call.bearer.own else call.bearer.name
    expires_at = await flow.make_link(doors.database, digest, person)
    return Reply(LoginLink(expires_at=expires_at, url=link))


def _base(settings: Settings) -> str:
    """Where people reach the pages: the public address, or else this machine's own."""
    daemon = settings.daemon
    if daemon.public_url:
        return daemon.public_url
    if not daemon.port:
        raise Refusal("invalid", "nobody can open a page on a socket; set `daemon.public_url`")
    return f"http://{LOOPBACK_NAMES[0]}:{daemon.port}"
