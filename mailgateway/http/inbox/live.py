"""Live events for the pages of one login: hints, upon which the page reads what has changed."""

from mailgateway.errors import Refusal
from mailgateway.http.events import CONTENT_TYPE, TOO_MANY, EventStream
from mailgateway.http.inbox.house import House, me
from mailgateway.http.inbox.visit import Page, Visit
from mailgateway.http.keys import Bearer


async def events(house: House, visit: Visit) -> Page | None:
    """Tell what changes, until the page goes, its login ends, or the service stops; ``None``: all is told."""
    doors = house.doors
    if visit.request.method == b"HEAD":
        return Page(content_type=CONTENT_TYPE)
    if doors.closed:
        raise Refusal("stopping", "the service is stopping; come back when it runs again")
    login = me(visit)
    bearer = Bearer(f"login {login.id}", None)
    with doors.subscribing.place(bearer, TOO_MANY):
        stream = EventStream(doors, visit.request, bearer, None)
        mine = house.streams.setdefault(login.id, set())
        mine.add(stream)
        try:
            stream.begin(visit.header("Last-Event-ID") or None)
            await stream.ended
        finally:
            stream.stop()
            mine.discard(stream)
            if not mine:
                house.streams.pop(login.id, None)
    return None
