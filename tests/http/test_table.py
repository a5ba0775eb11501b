"""The table of routes, the served description and the documentation agree."""

import re
from pathlib import Path

from mailgateway.http.openapi import GENERAL_CODES
from mailgateway.http.problems import STATUS
from mailgateway.http.table import ROUTES
from tests.http.case import RouteCase
from tests.http.rig import PERSON, request


class TableTests(RouteCase):
    """The table, the description and the documentation agree."""

    def test_every_route_is_served(self) -> None:
        """None is unknown, and none fails on an empty request."""
        for route in ROUTES:
            client = self.rig.connect()
            client.feed(request(route.method, re.sub(r"\{\w+\}", "none", route.path), key=PERSON))
            status = int(client.text()[9:12])
            self.assertIn(status, {200, 202, 400, 404}, route.name)
            self.assertNotIn(b"there is nothing at this path", client.text(), route.name)

    def test_every_route_is_described(self) -> None:
        """With its codes, and nothing that is not in the table."""
        described = self.ask("GET", "/openapi.json").json
        found = {f"{method.upper()} {path}" for path, each in described["paths"].items() for method in each}
        self.assertEqual(found, {route.name for route in ROUTES})
        for route in ROUTES:
            text = str(described["paths"][route.path][route.method.lower()])
            for code in (*GENERAL_CODES, *route.codes):
                self.assertIn(f"`{code}`", text, route.name)
        self.assertEqual(described["paths"]["/health"]["get"]["security"], [])

    def test_every_code_is_known_and_used(self) -> None:
        """The table of statuses holds what routes may answer with, and nothing else."""
        used = {*GENERAL_CODES, *(code for route in ROUTES for code in route.codes)}
        self.assertEqual(set(STATUS) - used, {"method_not_allowed"})
        self.assertEqual(used - set(STATUS), set())

    def test_every_refusal_of_the_flows_has_a_status(self) -> None:
        """A flow must not invent a code that no door knows."""
        package = Path(__file__).parents[2] / "mailgateway"
        codes = set()
        for folder in ("flows", "shapes", "http"):
            for path in (package / folder).rglob("*.py"):
                codes |= set(re.findall(r"Refusal\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8")))
        self.assertEqual(codes - set(STATUS), set())
        self.assertIn("send_budget", codes)

    def test_every_route_and_code_is_documented(self) -> None:
        """``docs/api.md`` lists them all."""
        text = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
        for route in ROUTES:
            self.assertIn(f"`{route.method} {route.path}`", text)
        for code, status in STATUS.items():
            self.assertRegex(text, rf"\| `{code}` \| {status} \|")
