"""Mails that somebody wants tried now, or no more; and the sender that may be faster."""

from collections.abc import Coroutine
from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.domain.outbox import MOVES, OPEN_STATES, OutboxEvent, OutboxRow, OutboxState
from mailgateway.domain.question import QuestionStatus
from mailgateway.flows import deliver
from mailgateway.flows import outbox_orders as orders
from mailgateway.flows.bell import EventKind
from mailgateway.flows.outbox_orders import DROPPED, Page, Whose
from mailgateway.flows.submit import Submitted
from mailgateway.ids import OutboxId, QuestionId, SessionId
from mailgateway.store import questions
from tests.flows.outbound import S1, S2, OutboundTestCase

ALL = Whose()
Order = Coroutine[Deferred[Any], Any, OutboxRow]


class OrdersCase(OutboundTestCase):
    """A gateway whose mails are to be tried or dropped."""

    def retrying(self, mail: Submitted, whose: Whose = ALL, *, unclear: bool = False) -> Order:
        """The order to try a mail, not yet given."""
        gateway = self.gateway
        return orders.retry(
            gateway.database,
            gateway.bell,
            gateway.identity,
            whose,
            mail.outbox_id,
            though_it_may_have_arrived=unclear,
        )

    def dropping(self, mail: Submitted, whose: Whose = ALL) -> Order:
        """The order to drop a mail, not yet given."""
        gateway = self.gateway
        return orders.drop(
            gateway.database, gateway.bell, gateway.identity, whose, mail.outbox_id, mint=gateway.mint
        )

    def listed(
        self, *states: OutboxState, whose: Whose = ALL, cursor: str | None = None, limit: int = 50
    ) -> Page:
        """A page of the outbox."""
        gateway = self.gateway
        return self.now(orders.listing(gateway.database, gateway.identity, whose, states, cursor, limit))

    def question(self, mail: Submitted) -> QuestionStatus:
        """How the question of a mail stands."""
        assert mail.question_id is not None
        found = self.gateway.rows(lambda tx: questions.find(tx, QuestionId(mail.question_id or "")))
        assert found is not None
        return found.status

    def make_unclear(self, mail: Submitted) -> None:
        """Let the server take the mail and say nothing."""
        self.conclude(self.claim(), "unclear", None)
        self.assertEqual(self.row(mail).state, OutboxState.UNCLEAR)


class ListTests(OrdersCase):
    """What is shown, and to whom."""

    def test_pages(self) -> None:
        """The last one first, each once, however many come on a page."""
        mails = [self.submit(session=SessionId(f"s{number}")).outbox_id for number in range(5)]
        for limit in (1, 2, 5, 9):
            seen: list[OutboxId] = []
            cursor: str | None = None
            while True:
                page = self.listed(cursor=cursor, limit=limit)
                seen += [mail.id for mail in page.mails]
                cursor = page.cursor
                if cursor is None:
                    break
            self.assertEqual(seen, mails[::-1], limit)

    def test_states_and_sessions(self) -> None:
        """What waits, what has gone, and what is whose; of others not even that it is there."""
        gone = self.submit(session=S1)
        self.conclude(self.claim())
        waits = self.submit(session=S2)
        self.assertEqual([mail.id for mail in self.listed(*OPEN_STATES).mails], [waits.outbox_id])
        self.assertEqual([mail.id for mail in self.listed(OutboxState.SENT).mails], [gone.outbox_id])
        only = Whose(frozenset({S1}))
        self.assertEqual([mail.id for mail in self.listed(whose=only).mails], [gone.outbox_id])
        for refused in (self.retrying(waits, only), self.dropping(waits, only)):
            self.assertEqual(self.refused(refused).code, "not_yours")

    def test_a_strange_cursor(self) -> None:
        """It is refused, whatever it holds."""
        gateway = self.gateway
        for cursor in ("", "x", "-1", "1e3", "9" * 30, "٣"):
            listing = orders.listing(gateway.database, gateway.identity, ALL, (), cursor, 5)
            self.assertEqual(self.refused(listing).code, "invalid", cursor)


class RetryTests(OrdersCase):
    """Now, and not when it would be due."""

    def test_one_that_waits(self) -> None:
        """It is due at once, and the sender is rung."""
        mail = self.submit()
        self.conclude(self.claim(), "try-later", 451, error="451 later")
        self.assertIsNone(self.claim_next())
        self.gateway.kinds()
        self.now(self.retrying(mail))
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX])
        self.assertEqual(self.claim().id, mail.outbox_id)

    def test_one_that_has_failed(self) -> None:
        """It goes to whom it has not reached, under the same Message-ID."""
        mail = self.submit()
        before = self.claim()
        self.conclude(before, "rejected", 550, error="550 no")
        self.assertEqual(self.row(mail).state, OutboxState.FAILED)
        self.now(self.retrying(mail))
        again = self.claim()
        self.assertEqual((again.raw, again.recipients), (before.raw, before.recipients))
        self.conclude(again)
        self.assertEqual(self.row(mail).state, OutboxState.SENT)

    def test_one_that_may_have_arrived(self) -> None:
        """Only by an explicit word; and it is still looked for before it goes."""
        mail = self.submit()
        self.make_unclear(mail)
        self.assertEqual(self.refused(self.retrying(mail)).code, "may_have_arrived")
        self.assertIsNone(self.claim_next())
        retried = self.now(self.retrying(mail, unclear=True))
        self.assertEqual(retried.state, OutboxState.UNCLEAR)
        self.assertEqual(self.claim().id, mail.outbox_id)

    def test_what_cannot_be_tried(self) -> None:
        """What was sent, what is being sent, whose question is over, and what nobody knows."""
        mail = self.submit()
        claimed = self.claim()
        for order in (self.retrying(mail), self.dropping(mail)):
            self.assertEqual(self.refused(order).code, "being_sent")
        self.conclude(claimed)
        for order in (self.retrying(mail), self.dropping(mail)):
            self.assertEqual(self.refused(order).code, "settled")
        asked = self.submit("decision")
        self.later_refused(asked)
        self.assertEqual(self.refused(self.retrying(asked)).code, "settled")

    def later_refused(self, mail: Submitted) -> None:
        """Let the server refuse a decision whose caller has gone."""
        self.gateway.later(seconds=60)
        self.conclude(self.claim(), "rejected", 550)
        self.assertEqual(self.row(mail).state, OutboxState.FAILED)

    def test_a_mail_that_is_not_there(self) -> None:
        """Unknown, as one of another machine."""
        gateway = self.gateway
        order = orders.retry(gateway.database, gateway.bell, gateway.identity, ALL, OutboxId("o-1"))
        self.assertEqual(self.refused(order).code, "unknown")


class DropTests(OrdersCase):
    """No more, and nobody waits in vain."""

    def test_a_notification(self) -> None:
        """It never leaves, and its key is free again."""
        mail = self.submit(idempotency_key="k")
        self.now(self.dropping(mail))
        row = self.row(mail)
        self.assertEqual((row.state, row.last_error), (OutboxState.CANCELLED, DROPPED))
        self.assertIsNone(self.claim_next())
        self.assertNotEqual(self.submit(idempotency_key="k").outbox_id, mail.outbox_id)

    def test_a_decision(self) -> None:
        """Its question is over, its session hears of it, and may ask anew."""
        mail = self.submit("decision")
        self.gateway.kinds()
        self.now(self.dropping(mail))
        self.assertEqual(self.question(mail), QuestionStatus.CANCELLED)
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX, EventKind.QUESTION, EventKind.DELIVERY])
        gateway = self.gateway
        (notice,) = self.now(deliver.pending(gateway.database, gateway.identity, session=S1, kind=None))
        self.assertEqual((notice.kind, notice.question_id), ("notice", mail.question_id))
        self.assertIn("No answer will come by mail", notice.body)
        self.submit("decision")

    def test_one_that_may_have_arrived(self) -> None:
        """Its question stays answerable, and blocks no longer; late news change nothing."""
        mail = self.submit("decision")
        claimed = self.claim()
        self.conclude(claimed, "unclear", None)
        self.now(self.dropping(mail))
        self.assertEqual(self.question(mail), QuestionStatus.OPEN)
        self.assertEqual(self.conclude(claimed), OutboxState.CANCELLED)
        self.submit("decision")

    def test_the_sender_is_faster(self) -> None:
        """Whoever comes second finds the row changed, and nothing is half done."""
        mail = self.submit()
        self.gateway.database.before_writing.append(lambda: self.assertIsNotNone(self.claim()))
        self.assertEqual(self.refused(self.dropping(mail)).code, "being_sent")
        self.assertEqual(self.row(mail).state, OutboxState.SENDING)

    def test_a_settled_mail_does_not_move(self) -> None:
        """The table of moves has no way out of an end but the one of a failed mail."""
        for state in (OutboxState.SENT, OutboxState.CANCELLED, OutboxState.CARRIED, OutboxState.SENDING):
            for event in (OutboxEvent.RETRY, OutboxEvent.DROP):
                self.assertNotIn((state, event), MOVES)
        self.assertNotIn((OutboxState.FAILED, OutboxEvent.DROP), MOVES)
