"""Reading a stream of server-sent events (WHATWG HTML, section 9.2.6), with bounds."""

import http.client
import json
from collections.abc import Iterator

from mailgateway.client.answers import Event
from mailgateway.client.connection import Answer, refusal_of
from mailgateway.client.failures import ServiceUnreachable, WrongService

SILENCE_SECONDS = 60.0
"""The service says ``: ping`` every 15 seconds; four missed ones mean that it is gone."""
LONGEST_LINE = 64 * 1024


def read_events(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
) -> Iterator[Event]:
    """Ask for the stream and yield its events; ends when the service ends it.

    ``ServiceUnreachable`` when it is silent for too long or breaks off, ``ApiRefused`` when it is refused.
    The connection is closed in the end.
    """
    try:
        if connection.sock is not None:
            connection.sock.settimeout(SILENCE_SECONDS)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            raise refusal_of(Answer(response.status, response.read(LONGEST_LINE)))
        lines = iter(lambda: response.readline(LONGEST_LINE), b"")
        yield from events_of(lines)
    except (OSError, http.client.HTTPException) as error:
        raise ServiceUnreachable(f"the stream of events broke ({type(error).__name__})") from None
    finally:
        connection.close()


def events_of(lines: Iterator[bytes]) -> Iterator[Event]:
    """Make events of the lines of a stream; comments and unknown fields are passed over.

    Data that is not JSON stays text.  ``WrongService`` when one line or one event is too long.
    """
    fields = {"id": "", "event": "message"}
    data: list[str] = []
    for raw in lines:
        if len(raw) >= LONGEST_LINE or len(data) > 1000:
            raise WrongService("an event is longer than mailgateway ever makes it")
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield Event(id=fields["id"], event=fields["event"], data=_value("\n".join(data)))
            fields["event"] = "message"
            data = []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name in fields:
            fields[name] = value


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
