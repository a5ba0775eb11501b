"""The way in on a real PostgreSQL: the same tests, and races that only a shared database has."""

from twisted.internet.defer import Deferred

from mailgateway.errors import Refusal, StaleWrite
from mailgateway.flows import deliver
from mailgateway.flows.bell import Bell
from mailgateway.flows.deliver import Target
from tests.fakes.database import ImmediateDatabase
from tests.flows import (
    test_attachments,
    test_bounces,
    test_commands,
    test_deliver,
    test_folders,
    test_held,
    test_notify_person,
    test_outbound_postgres,
    test_receive,
    test_sweep,
)
from tests.flows.inbound import InboundTestCase
from tests.flows.outbound import IDENTITY


class ReceiveTests(test_outbound_postgres.OnPostgres, test_receive.DecisionTests):
    """Filing answers."""


class OnceTests(test_outbound_postgres.OnPostgres, test_receive.OnceTests):
    """Nothing twice, nothing passed over."""


class RenumberingTests(test_outbound_postgres.OnPostgres, test_folders.RenumberingTests):
    """Renumbering."""


class ClaimTests(test_outbound_postgres.OnPostgres, test_deliver.ClaimTests):
    """Claims."""


class SweepTests(test_outbound_postgres.OnPostgres, test_sweep.SweepTests):
    """Upkeep."""


class HeldTests(test_outbound_postgres.OnPostgres, test_held.KeyTests):
    """Mail that waits for evidence."""


class RaceTests(test_outbound_postgres.OnPostgres, InboundTestCase):
    """Several gateways, one database."""

    def test_many_claims(self) -> None:
        """Of twenty instances on as many threads one wins, and the others hear why."""
        self.scan()
        self.receive(self.reply("one"))
        (found,) = self.pending()
        results: list[str] = []

        def act(number: int) -> None:
            database = ImmediateDatabase(self.gateway.database.engine)
            flow = deliver.claim(database, Bell(), IDENTITY, Target(id=found.id), self.by(f"i{number}"))
            Deferred.fromCoroutine(flow).addCallbacks(
                lambda claimed: results.append(claimed.claimant or ""),
                lambda failure: results.append(failure.value.code if failure.check(Refusal) else "stale"),
            )

        self.at_once(20, act)
        self.assertEqual(len(results), 20)
        winners = [each for each in results if each.startswith("i")]
        self.assertEqual(len(winners), 1, results)
        self.assertEqual({*results} - {*winners}, {"already_claimed"})

    def test_many_scans(self) -> None:
        """Gateways that file the same window at once (without a lease) file each mail once."""
        self.scan()
        uids = self.folder.put(*(self.reply(f"answer {n}") for n in range(5)))
        mails = [self.examined(uid) for uid in uids]
        broken: list[object] = []

        def file(_number: int) -> None:
            Deferred.fromCoroutine(self.receiving(*mails)).addErrback(
                lambda failure: broken.append(failure.trap(StaleWrite))
            )

        self.at_once(4, file)
        self.assertEqual(broken, [])
        self.assertEqual(len(self.pending()), 5)


class ToldTests(test_outbound_postgres.OnPostgres, test_notify_person.ToldTests):
    """What people are told."""


class LoopTests(test_outbound_postgres.OnPostgres, test_notify_person.LoopTests):
    """Its bounds."""


class CommandTests(test_outbound_postgres.OnPostgres, test_commands.ObeyTests):
    """Commands."""


class BounceTests(test_outbound_postgres.OnPostgres, test_bounces.BelievedTests):
    """Delivery reports."""


class AttachmentTests(test_outbound_postgres.OnPostgres, test_attachments.KeptTests):
    """Files."""
