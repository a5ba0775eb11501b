"""``smoke``: a real mail from the account to itself, looked for where replies are looked for.

Policy: one mail is sent, two with the plus-address; nothing is deleted, moved or flagged, and of other mail
that comes meanwhile nothing but one header field of ours is read.  A refused login ends it, so that no
credential is tried a second time; where the running service is held after a refusal, none is tried at all
unless that is wanted (``again``).  A mail that the server did not clearly take is not sent again.  The
marker on it makes every gateway that watches the mailbox take it as mail of its own kind.
"""

import os
import secrets
import socket
from datetime import UTC, datetime
from typing import Any, Final

from attrs import define, evolve, field

from mailgateway.errors import ConfigError, PeerError
from mailgateway.ids import MessageId, OutboxId, RouteId
from mailgateway.mail.compose import compose
from mailgateway.mail.letter import Letter, LetterKind
from mailgateway.operator.arrival import Arrival, Found, Postbox, arrival_of
from mailgateway.operator.findings import Record, Tell
from mailgateway.operator.learning import told_of_results
from mailgateway.operator.service import held_accounts
from mailgateway.operator.smoked import Smoked
from mailgateway.operator.troubles import Door
from mailgateway.protocols import smtp
from mailgateway.protocols.grants import Grants
from mailgateway.protocols.imap import ImapConnection
from mailgateway.protocols.servers import credential_of, peer_of
from mailgateway.providers import Provider
from mailgateway.settings import Account, Settings
from mailgateway.wire.sasl import Credential
from mailgateway.wire.smtp_outcome import Accepted, Unclear
from mailgateway.wire.submission import Submission

CONNECT_SECONDS: Final = 30.0
WAIT_SECONDS: Final = 120.0
"""How long the mail may be under way; most take some seconds."""
IDENTITY: Final = {"name": "mailgateway", "vendor": "mailgateway"}

PLAIN: Final = "plain"
PLUS: Final = "plus"

TEXT: Final = (
    "This mail was sent by `mailgateway smoke` to see whether mail leaves this account and comes back. "
    "It asks nothing, and may be deleted."
)


async def smoke(
    reactor: Any,
    settings: Settings,
    account: Account,
    tell: Tell,
    *,
    to: str = "",
    plus: bool = False,
    again: bool = False,
    seconds: float = WAIT_SECONDS,
) -> Smoked:
    """Send a mail and wait until it lies in the mailbox; what happened, failures too, is in the value.

    ``to`` is another address that leads to this mailbox; ``plus`` sends a second mail to the plus-address;
    ``again`` logs in although the service is held after a refusal; ``seconds`` is how long to wait.
    """
    record = Record(tell, reactor.seconds)
    grants = Grants(reactor, settings.daemon.state_dir, settings.oauth) if settings.oauth else None
    work = _Smoke(reactor, settings, account, record, grants, to or account.address, plus, seconds)
    if account.tag in (frozenset() if again else held_accounts(settings)):
        record.fail(
            f"{account.tag} login",
            "the service was refused and has stopped trying, so that the account is not locked: nothing was "
            "tried or sent",
            "If you have changed the password since: mailgateway smoke --force, then mailgateway reload",
        )
    else:
        await work.run()
    return evolve(work.smoked, findings=tuple(record.findings))


@define(eq=False)
class _Smoke:
    """One mail on its way."""

    reactor: Any
    settings: Settings
    account: Account
    record: Record
    grants: Grants | None
    to: str
    plus: bool
    seconds: float
    smoked: Smoked = field(init=False)
    _taken_at: float = field(default=0.0, init=False)
    """When the server had taken the mail, by the reactor's clock."""

    def __attrs_post_init__(self) -> None:
        self.smoked = Smoked(account=str(self.account.tag), to=self.to)

    def _step(self, words: str) -> str:
        return f"{self.account.tag} {words}"

    def _learn(self, **facts: Any) -> None:
        self.smoked = evolve(self.smoked, **facts)

    def _fail(self, door: Door, error: PeerError | ConfigError) -> None:
        if isinstance(error, ConfigError):
            self.record.fail(self._step(f"{door.name} certificate"), str(error))
            return
        trouble = door.trouble(error)
        self.record.fail(self._step(f"{door.name} {trouble.step}"), trouble.what, trouble.advice)

    async def _credential(self, door: Door) -> Credential:
        path = f"accounts.{self.account.tag}.{door.name}"
        return await credential_of(self.reactor, door.server, path, os.environ, self.grants)

    async def run(self) -> None:
        """Log in, send, and look; what fails is told, and ends it."""
        door = Door(self.account, "imap")
        box = Postbox(self.reactor, self.account.watch or ("INBOX",), idles=door.provider.idle)
        step = self._step("imap login")
        try:
            self.record.begin(step, f"logging in as {door.server.username}")
            imap = await ImapConnection.connect(self.reactor, peer_of(door.server), on_event=box.hear)
        except (PeerError, ConfigError) as error:
            self._fail(door, error)
            return
        try:
            await imap.login(await self._credential(door))
            self.record.ok(step, f"{door.server.username} is let in")
            await imap.identify(IDENTITY)
            for folder, reason in await box.open(imap):
                self.record.fail(
                    self._step(f"folder {folder}"),
                    f"it cannot be opened: {reason}",
                    f"Make the folder, or take it out of `watch` of [accounts.{self.account.tag}].",
                )
            under_way = await self._send() if box.places else {}
            if under_way:
                await self._read_back(box, under_way)
        except PeerError as error:
            self._fail(door, error)
        finally:
            await imap.logout()

    # Out

    async def _send(self) -> dict[str, str]:
        """Hand over the mail, and that to the plus-address; what is under way, by our id of each."""
        door = Door(self.account, "smtp")
        step = self._step("smtp login")
        under_way: dict[str, str] = {}
        try:
            self.record.begin(step, f"logging in as {door.server.username}")
            credential = await self._credential(door)
            name = socket.gethostname()
            session = await smtp.connect(
                self.reactor, peer_of(door.server), credential, name, CONNECT_SECONDS
            )
        except (PeerError, ConfigError) as error:
            self._fail(door, error)
            return {}
        try:
            self.record.ok(step, f"{door.server.username} is let in")
            for plus in (False, True) if self.plus else (False,):
                outbox_id = await self._hand_over(session, plus=plus)
                if outbox_id is not None:
                    under_way[outbox_id] = PLUS if plus else PLAIN
        except PeerError as error:
            self._fail(door, error)
        finally:
            await session.quit()
        return under_way if PLAIN in under_way.values() else {}

    async def _hand_over(self, session: smtp.SmtpConnection, *, plus: bool) -> OutboxId | None:
        """Send one mail; our id of it if it may be under way."""
        mark = secrets.token_hex(8)
        local, _, domain = self.to.rpartition("@")
        to = f"{local}+smoke{mark[:6]}@{domain}" if plus else self.to
        step = self._step("plus-address" if plus else "sending")
        outbox_id = OutboxId(f"smoke-{mark}")
        message_id = MessageId(f"<smoke.{mark}@{self.account.domain}>")
        raw = compose(self._letter(to, outbox_id, message_id)).raw
        self.record.begin(step, f"handing a mail to {to} over")
        began = self.reactor.seconds()
        result = await session.send(Submission(self.account.address, (to,), raw))
        if not plus:
            self._taken_at = self.reactor.seconds()
        outcome = result.outcomes[0]
        if isinstance(outcome, Accepted):
            self.record.ok(step, f"the server took a mail to {to}: {outcome.text}")
            if not plus:
                self._learn(message_id=message_id, sent_seconds=self._taken_at - began)
            return outbox_id
        if isinstance(outcome, Unclear):
            self.record.warn(
                step, f"the server fell silent after the mail to {to}, which may be under way: {outcome.text}"
            )
            if not plus:
                self._learn(message_id=message_id)
            return outbox_id
        advice = f"Look at `address` of [accounts.{self.account.tag}]: the server may let it send as another."
        if plus:
            self._learn(plus=False)
            self.record.fail(step, f"the server does not take mail to {to}: {outcome}", self._without_plus())
        else:
            self.record.fail(step, f"the server did not take the mail: {outcome}", advice)
        return None

    def _letter(self, to: str, outbox_id: OutboxId, message_id: MessageId) -> Letter:
        return Letter(
            kind=LetterKind.NOTIFICATION,
            sender_address=self.account.address,
            sender_name=self.account.from_name,
            recipient=to,
            tag=str(self.account.tag),
            route=RouteId(""),
            subject="Test of mailgateway",
            text=TEXT,
            message_id=message_id,
            date=datetime.now(UTC),
            instance="smoke",
            outbox_id=outbox_id,
        )

    # Back

    async def _read_back(self, box: Postbox, under_way: dict[str, str]) -> None:
        """Wait for what is under way, and say what was found, and what was not."""
        names = " and ".join(box.names)
        self.record.begin(self._step("arrival"), f"waiting for it in {names}, for {self.seconds:g} s at most")
        async for found in box.arrivals(set(under_way), self.seconds):
            took = self.reactor.seconds() - self._taken_at
            if under_way.pop(found.outbox_id) == PLUS:
                self._learn(plus=True)
                self.record.ok(self._step("plus-address"), f"mail to it came into {found.folder}")
            else:
                self._arrived(found, arrival_of(found.raw), took)
        for missing in under_way.values():
            if missing == PLUS:
                self._learn(plus=False)
                self.record.fail(
                    self._step("plus-address"), "mail to it did not come back", self._without_plus()
                )
            else:
                self.record.fail(
                    self._step("arrival"),
                    f"it did not come into {names} within {self.seconds:g} s",
                    why_not_back(Door(self.account, "imap").provider),
                )

    def _arrived(self, found: Found, arrival: Arrival, took: float) -> None:
        """Tell what the mail shows."""
        self._learn(
            back_seconds=took,
            folder=found.folder,
            junk=found.junk,
            seen_message_id=arrival.message_id,
            authserv_id=arrival.authserv_id,
            results_above=arrival.above,
        )
        step = self._step("arrival")
        if found.junk:
            self.record.warn(
                step,
                f"it came after {took:.2f} s, into {found.folder}, which is not watched",
                "Mark it as no junk, and put the address into the address book: answers may land there.",
            )
        else:
            self.record.ok(step, f"it came into {found.folder} after {took:.2f} s")
        self._about_id()
        self._about_results(arrival)

    def _about_id(self) -> None:
        step = self._step("message-id")
        if not self.smoked.rewritten:
            self.record.ok(step, "it is the one that was sent")
        elif Door(self.account, "smtp").provider.rewrites_ids:
            self.record.note(step, "the server writes another one, which is read back from the Sent folder")
        else:
            self.record.note(
                step,
                "the server writes another one",
                "Replies name that one; they reach the session by the tag in the subject, so leave it there.",
            )

    def _about_results(self, arrival: Arrival) -> None:
        """Who says whether mail is genuine, and whether that is to be trusted."""
        told = told_of_results(
            arrival.authserv_id,
            above=arrival.above,
            security=self.settings.security,
            provider=Door(self.account, "imap").provider,
        )
        self.record.add(self._step("authentication-results"), *told)

    def _without_plus(self) -> str:
        if not self.account.plus_address:
            return "It is not needed: leave `plus_address` off."
        return f"Set plus_address = false in [accounts.{self.account.tag}]: answers to it would be lost."


def why_not_back(provider: Provider) -> str:
    """What it may mean that mail to oneself does not come, and what to do."""
    if provider.name == "Gmail":
        return (
            "Gmail may not show mail to oneself in the inbox, so this says nothing of mail from others: "
            "write to the account from another address, and see whether it comes."
        )
    return "Look into the other folders: a filter may have moved it. A slow server may need --seconds 600."
