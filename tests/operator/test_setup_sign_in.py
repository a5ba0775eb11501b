"""What ``setup`` makes of a sign-in that comes to nothing: the settings are written by then."""

import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

from attrs import evolve, field, frozen
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.operator.auth import SignInFailed
from mailgateway.operator.findings import State
from mailgateway.operator.installing import Installation
from mailgateway.operator.plan import OAuthPlan, Plan, SecretPlan, text_of
from mailgateway.operator.setup import Setup
from mailgateway.operator.wishes import Wishes
from mailgateway.providers import Endpoints, Server
from mailgateway.settings import Settings, parse

ENVIRON = {"HOME": "/home/robin"}
ENDPOINTS = Endpoints(device_url="https://example.org/device", token_url="https://example.org/token")
PLAN = Plan(
    address="agent@example.org",
    imap=Server("imap.example.org", 993),
    smtp=Server("smtp.example.org", 465),
    secret=SecretPlan("oauth", "main"),
    oauth=OAuthPlan("main", "id", ENDPOINTS),
    allowed=("robin@example.org",),
)


@frozen
class Quiet:
    """A person who is there, reads, and is asked nothing."""

    told: list[str] = field(factory=list)
    present: bool = True

    def text(self, question: str, flag: str, check: Callable[[str], str], default: str | None = None) -> str:
        """Not asked."""
        raise AssertionError(question, flag, check, default)

    def secret(self, question: str, flag: str) -> str:
        """Not asked."""
        raise AssertionError(question, flag)

    def agrees(self, question: str, flag: str, *, default: bool) -> bool:
        """Not asked."""
        raise AssertionError(question, flag, default)

    def tell(self, *lines: str) -> None:
        """Read."""
        self.told.extend(lines)

    def missing(self, question: str, flag: str) -> NoReturn:
        """Not so."""
        raise AssertionError(question, flag)


def refuse(settings: Settings, name: str) -> None:
    """The person says no at the provider."""
    del settings, name
    raise SignInFailed("The sign-in was declined")


class SignInTests(SynchronousTestCase):
    """Each place of the settings."""

    def test_a_sign_in_that_fails(self) -> None:
        """It is a step that failed, with the command that does it again for these very settings."""
        for place, command in (
            ("/home/robin/.config/mailgateway/config.toml", "mailgateway auth main"),
            ("/srv/own.toml", "mailgateway auth main --config /srv/own.toml"),
        ):
            person = Quiet()
            setup = Setup(
                Wishes(),
                person,
                lambda: nullcontext(lambda _: None),
                ENVIRON,
                Installation("", False, ENVIRON),
                refuse,
            )
            settings = parse(tomllib.loads(text_of(PLAN, "2026-12-01")), ENVIRON)
            [finding] = setup._checked(evolve(settings, source=Path(place)), PLAN)
            self.assertEqual((finding.state, finding.advice), (State.FAILED, f"Sign in: {command}"))
            self.assertEqual(person.told, ["", "The sign-in was declined.", f"Sign in: {command}"])
