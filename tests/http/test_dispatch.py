"""Paths and methods find their routes, and nothing else does."""

from tests.http.case import WHO, RouteCase
from tests.http.rig import request


class DispatchTests(RouteCase):
    """What is matched, and with which parameters."""

    def test_head_is_answered_as_get(self) -> None:
        """Without a body, and named among what a path allows."""
        client = self.rig.connect()
        client.feed(request("HEAD", "/mode"))
        head, found, body = client.text().partition(b"\r\n\r\n")
        self.assertEqual((head.split(b"\r\n")[0], found, body), (b"HTTP/1.1 200 OK", b"\r\n\r\n", b""))
        self.assertEqual(self.rig.ask("DELETE", "/mode", WHO).headers["allow"], "GET, HEAD, POST")

    def test_a_name_stands_for_one_segment(self) -> None:
        """Neither for none nor for several, an encoded slash included."""
        for path in ("/outbox/", "/outbox/a/b", "/outbox/a%2Fb", "//outbox/a", "/outbox/a/"):
            self.refused(self.rig.ask("GET", path), 404, "unknown")
