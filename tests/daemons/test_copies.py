"""Copies of what was sent: only where they are needed, once, and never at the cost of a mail."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from attrs import define, field
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.copies import Copies, keeps_copies
from mailgateway.daemons.sender import Sender
from mailgateway.domain.outbox import OutboxState
from mailgateway.errors import CommandRefused, Unreachable
from mailgateway.ids import MessageId
from mailgateway.store import upkeep
from mailgateway.store.database import Tx
from tests.daemons.sending import SenderTestCase
from tests.daemons.world import IMAP_PORT, PASSWORD, SMTP_PORT, Run, account, server
from tests.fakes.sent import FakeSentFolder
from tests.fakes.smtp_script import DROP


def _tomorrow(prune: Callable[[Tx, datetime], int], tx: Tx) -> int:
    return prune(tx, tx.now + timedelta(days=1))


class WhereTests(SynchronousTestCase):
    """At which providers."""

    def test_by_the_submission_server(self) -> None:
        """Not where it puts a copy there by itself, and never into a mailbox at Gmail."""
        for imap, smtp, keeps in (
            ("imap.example.org", "smtp.example.org", True),
            ("imap.fastmail.com", "smtp.fastmail.com", True),
            ("imap.gmail.com", "smtp.gmail.com", False),
            ("imap.gmail.com", "email-smtp.eu-west-1.amazonaws.com", False),
            ("outlook.office365.com", "smtp.office365.com", False),
            ("outlook.office365.com", "smtp.example.org", True),
            ("imap.zoho.eu", "smtp.zoho.eu", False),
        ):
            doors = {
                "imap": server(IMAP_PORT, "X", host=imap),
                "smtp": server(SMTP_PORT, "X", host=smtp),
            }
            self.assertEqual(keeps_copies(account(**doors)), keeps, (imap, smtp))


@define(eq=False)
class NotingFolder(FakeSentFolder):
    """Notes what is so whenever somebody looks."""

    what: Callable[[], int] = field(kw_only=True)
    noted: list[int] = field(factory=list)

    async def find(self, message_id: MessageId, limit: int = 65_536) -> bytes | None:
        """Look."""
        self.noted.append(self.what())
        return await super().find(message_id, limit)


class CopyTestCase(SenderTestCase):
    """An account whose Sent folder is in memory."""

    keeps = True
    folder: FakeSentFolder

    def setUp(self) -> None:
        self.folder = FakeSentFolder()
        self.keepers: list[Copies] = []
        super().setUp()

    def begin(self, password: str = PASSWORD, *, remembering: bool = True) -> Run:
        """A new process on the same database, which sends and keeps copies."""
        gateway = self.gateway
        run = Run(self.network, gateway.database, environ={"IMAP_PASSWORD": password})
        if remembering:
            self.now(run.load())
        what = (self.network, gateway.database, gateway.bell, gateway.identity, run.logins)
        sender = Sender(*what, "box.example", self.folder, keeps_copies=self.keeps)
        self.keepers.append(Copies(*what, self.folder))
        self.senders.append(sender)
        for part in (sender, self.keepers[-1]):
            part.startService()
            self.addCleanup(self.end, part)
        self.network.settle()
        return run

    def end(self, sender: Any) -> None:
        """Stop a part."""
        super().end(sender)


class KeepTests(CopyTestCase):
    """At a provider that does not do it."""

    def test_a_copy_of_what_was_sent(self) -> None:
        """The same bytes, a little later, once."""
        sent = self.submit()
        self.assertEqual(self.folder.kept, [])
        self.later(10)
        self.assertEqual(self.folder.kept, [sent.message_id])
        self.assertEqual(self.folder.mails[sent.message_id], self.script.taken[0].message)
        self.later(3_600)
        self.assertEqual(len(self.folder.asked), 1)

    def test_not_where_it_is_already(self) -> None:
        """The server was faster."""
        sent = self.submit()
        self.folder.mails[sent.message_id] = b"by the server"
        self.later(3_600)
        self.assertEqual((self.folder.kept, self.folder.asked), ([], [sent.message_id]))

    def test_not_of_what_was_not_sent(self) -> None:
        """A refused mail has no copy."""
        self.script.answer("RCPT", "550 no such user")
        self.submit()
        self.later(3_600)
        self.assertEqual(self.folder.asked, [])

    def test_a_restart_forgets_none(self) -> None:
        """It is a row."""
        sent = self.submit()
        self.end(self.keepers[-1])
        self.restart()
        self.later(10)
        self.assertEqual(self.folder.kept, [sent.message_id])

    def test_a_failure_is_no_failure_of_the_mail(self) -> None:
        """It is tried a few times, hours apart in the end, and the mail goes no second time."""
        self.folder.outage = Unreachable("no connection")
        sent = self.submit()
        for _ in range(40):
            self.later(900)
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.SENT, 1))
        self.assertEqual(len(self.folder.asked), 5)
        self.later(48 * 3_600)
        self.assertEqual(len(self.folder.asked), 5)

    def test_it_works_later(self) -> None:
        """When the server has recovered."""
        self.folder.outage = Unreachable("no connection")
        sent = self.submit()
        self.later(60)
        self.folder.outage = None
        self.later(120)
        self.assertEqual(self.folder.kept, [sent.message_id])

    def test_a_refusal_that_stays(self) -> None:
        """No such folder, no room: it is not asked again."""
        for code in ("NOSENT", "TRYCREATE", "OVERQUOTA"):
            self.setUp()
            self.folder.outage = CommandRefused("no", code=code)
            self.submit()
            self.later(3_600)
            self.assertEqual(len(self.folder.asked), 1, code)

    def test_what_is_forgotten_is_not_copied(self) -> None:
        """A mail whose bytes are gone leaves no copy behind, and can be forgotten itself."""
        for prune in (upkeep.prune_sent_bytes, upkeep.prune_outbox):
            self.setUp()
            self.submit()
            self.assertEqual(self.gateway.rows(partial(_tomorrow, prune)), 1)
            self.later(3_600)
            self.assertEqual(self.folder.asked, [])


class NoCopyTests(CopyTestCase):
    """At a provider that does it by itself."""

    keeps = False

    def test_nothing_is_put_there(self) -> None:
        """Nor searched."""
        self.submit()
        self.later(3_600)
        self.assertEqual(self.folder.asked, [])


class DoubtTests(CopyTestCase):
    """A mail of unclear fate is looked for before it goes once more (row 56)."""

    keeps = False

    def lost(self) -> Any:
        """A mail whose final dot was not answered."""
        self.script.answer("END", DROP)
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.UNCLEAR)
        return sent

    def test_it_lies_in_the_sent_folder(self) -> None:
        """Then it was taken, and goes no second time."""
        sent = self.lost()
        self.folder.mails[sent.message_id] = b"taken"
        self.later(599)
        self.assertEqual(self.folder.asked, [])
        self.later(400)
        self.assertEqual((self.state(sent), len(self.script.taken)), (OutboxState.SENT, 1))
        self.assertEqual(self.row(sent).recipients[0].state, "accepted")

    def test_it_lies_there_by_another_id(self) -> None:
        """Where the server gives mails ids of its own, our header tells which one it is."""
        sent = self.lost()
        self.folder.names[sent.outbox_id] = MessageId("<theirs@mx.example>")
        self.later(700)
        self.assertEqual((self.state(sent), len(self.script.taken)), (OutboxState.SENT, 1))

    def test_it_does_not(self) -> None:
        """Then it goes once more, and was looked for first."""
        sent = self.lost()
        self.later(700)
        self.assertEqual(self.folder.asked, [sent.message_id])
        self.assertEqual((self.state(sent), len(self.script.taken)), (OutboxState.SENT, 2))

    def test_nobody_can_look(self) -> None:
        """That proves nothing: it goes once more."""
        sent = self.lost()
        self.folder.outage = Unreachable("no connection")
        self.later(700)
        self.assertEqual((self.state(sent), len(self.script.taken)), (OutboxState.SENT, 2))

    def test_other_mails_do_not_wait_for_a_look(self) -> None:
        """What is clearly to be sent goes first."""
        self.lost()
        self.folder = folder = NotingFolder(what=lambda: len(self.script.taken))
        self.end(self.senders[-1])
        self.gateway.database.advance(seconds=700)
        self.network.advance(700)
        self.submit()
        self.begin()
        self.assertEqual(folder.noted, [2])
