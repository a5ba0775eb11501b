"""What ``doctor`` says of this machine and of the domain: each fact with what to do about it."""

import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any

from twisted.internet.task import Clock

from mailgateway.errors import Unreachable
from mailgateway.operator.doctor import Doctor
from mailgateway.operator.domain_records import look_at_domain, tell_dmarc, tell_spf
from mailgateway.operator.findings import Record, State
from mailgateway.operator.surroundings import look_at_disk, look_at_files, look_at_people, look_at_service
from mailgateway.protocols.lookup import Lookup
from mailgateway.settings import Settings
from tests.client.stand_in import HEALTH, KEY, StandIn
from tests.fakes.smtp_sink import free_port
from tests.operator.mail_world import WorldCase, reactor


class Answers(Lookup):
    """Answers from a table; a name that is not in it gets none."""

    def __init__(self, texts: Mapping[str, tuple[bytes, ...]], *, silent: bool = False) -> None:
        super().__init__(Clock())
        self.known = texts
        self.silent = silent

    async def texts(self, name: str) -> tuple[bytes, ...]:
        """The TXT records."""
        if self.silent:
            raise Unreachable("DNS does not answer in time")
        return self.known.get(name, ())


class MachineTests(WorldCase):
    """Files, disk, people and the service."""

    def setUp(self) -> None:
        super().setUp()
        self.record = Record(self.told.append, Clock().seconds)
        self.state = self.folder / "state"

    def serve(self, **more: Any) -> Settings:
        """Let a stand-in answer where the settings say."""
        service = StandIn(**more)
        service.start()
        self.addCleanup(service.stop)
        self.state.mkdir(0o700)
        key = self.state / "secret.key"
        key.write_text(f"{KEY}\n")
        key.chmod(0o600)
        self.service = service
        return self.settings(port=service.base.port)

    def hold_lock(self) -> None:
        """Hold the lock of the service, as it does."""
        path = self.state / "service.lock"
        path.write_text(json.dumps({"pid": os.getpid()}))
        handle = os.open(path, os.O_RDWR)
        self.addCleanup(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX)

    def test_the_service_is_well(self) -> None:
        """Who holds the lock, and which version answers."""
        settings = self.serve()
        self.hold_lock()
        self.assertTrue(look_at_service(settings, self.record))
        found = self.only("service")
        self.assertEqual(found.state, State.OK)
        self.assertIn(f"process {os.getpid()} holds the lock", found.what)
        self.assertIn(HEALTH["version"], found.what)

    def test_it_does_not_run(self) -> None:
        """That is no failure, whether it has ever run or not."""
        for _ in range(2):
            self.told.clear()
            self.assertFalse(look_at_service(self.settings(port=free_port()), self.record))
            self.assertEqual(self.only("service").state, State.NOTE)
            self.assertIn("mailgateway ensure", self.only("service").advice)
            self.state.mkdir(exist_ok=True)

    def test_it_holds_the_lock_and_does_not_answer(self) -> None:
        """It hangs, or listens elsewhere: its process is named."""
        settings = self.serve()
        self.service.stop()
        self.hold_lock()
        self.assertFalse(look_at_service(settings, self.record))
        found = self.only("service")
        self.assertEqual(found.state, State.FAILED)
        self.assertIn(f"process {os.getpid()} holds", found.what)

    def test_somebody_else_has_the_port(self) -> None:
        """Who cannot prove to be ours gets no key."""
        self.assertFalse(look_at_service(self.serve(proves=False), self.record))
        self.assertEqual(self.only("service").state, State.FAILED)
        self.assertEqual(self.service.with_key, [])

    async def test_a_public_address_that_is_none(self) -> None:
        """What no phone can reach is said as a failure."""
        await Doctor(
            reactor, self.settings(daemon='public_url = "https://localhost"'), self.told.append, self.folder
        )._public(self.record, runs=True)
        self.assertIn("names no public host", self.only("public address").what)
        self.assertEqual(self.failures(), ["public address"])

    def test_files(self) -> None:
        """A state directory and keys that others may read are said, with the command that mends it."""
        look_at_files(self.settings(), self.record)
        self.assertEqual(self.only("state directory").state, State.NOTE)
        self.state.mkdir()
        for mode, state in ((0o700, State.OK), (0o777, State.WARNING)):
            self.told.clear()
            self.state.chmod(mode)
            look_at_files(self.settings(), self.record)
            self.assertEqual(self.only("state directory").state, state)
        self.assertIn(f"chmod 700 {self.state}", self.only("state directory").advice)
        self.state.chmod(0o700)
        (self.state / "person.key").write_text(KEY)
        (self.state / "person.key").chmod(0o640)
        look_at_files(self.settings(), self.record)
        self.assertEqual(self.failures(), ["state directory"])
        self.assertNotIn(KEY, self.said())

    def test_people(self) -> None:
        """Who is obeyed must be heard, and the agents' own mailbox is nobody."""
        look_at_people(self.settings(), self.record)
        self.assertEqual(self.only("people").state, State.OK)
        self.told.clear()
        allowed = 'allowed = ["robin@example.org"]'
        look_at_people(self.settings((allowed, 'allowed = ["Agent@example.org"]')), self.record)
        self.assertEqual(self.only("people").state, State.WARNING)
        self.assertIn("single-mailbox", self.only("people").advice)

    def test_disk(self) -> None:
        """The room is that of the folder, also before it is made."""
        look_at_disk(self.settings(), self.record)
        self.assertIn("MB are free", self.only("disk").what)


class DomainTests(WorldCase):
    """SPF and DMARC."""

    def test_spf(self) -> None:
        """None, one, two, and one that lets everybody in."""
        for texts, state in (
            ((), State.WARNING),
            ((b"v=spf10 -all", b"v=spfx"), State.WARNING),
            ((b"v=spf1 mx -all", b"other"), State.OK),
            ((b"v=spf1",), State.OK),
            ((b"V=SPF1 mx -all", b"v=spf1 a -all"), State.FAILED),
            ((b"v=spf1 mx +all",), State.WARNING),
            ((b"v=spf1 mx all",), State.WARNING),
            ((b"v=spf1 include:small.example ~all",), State.OK),
        ):
            told = tell_spf("example.org", texts)
            self.assertEqual((told[0], bool(told[2])), (state, state is not State.OK), texts)

    def test_dmarc(self) -> None:
        """None, one with each policy, one without any, two."""
        for texts, state in (
            ((), State.NOTE),
            ((b"v=DMARC1; p=none",), State.OK),
            ((b"v=DMARC1;p=Reject; rua=mailto:x@example.org", b"other"), State.OK),
            ((b"v=DMARC1; sp=none",), State.FAILED),
            ((b"v=DMARC1; p=none", b"v=DMARC1; p=none"), State.FAILED),
        ):
            self.assertEqual(tell_dmarc("example.org", texts)[0], state, texts)

    async def test_asking(self) -> None:
        """Both names are asked for; without DNS it is said once, and is no failure."""
        record = Record(self.told.append, Clock().seconds)
        account = self.settings().sending
        known = {"example.org": (b"v=spf1 -all",), "_dmarc.example.org": (b"v=DMARC1; p=reject",)}
        await look_at_domain(Answers(known), account, record)
        self.assertEqual([each.state for each in record.findings], [State.OK, State.OK])
        self.assertIn("policy is reject", record.findings[1].what)
        record.findings.clear()
        await look_at_domain(Answers({}, silent=True), account, record)
        self.assertEqual([each.state for each in record.findings], [State.WARNING])
