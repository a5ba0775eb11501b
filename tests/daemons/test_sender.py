"""Sending: one attempt for each claim, one connection for a burst, and no hammering."""

from attrs import evolve

from mailgateway.daemons.sender import SHARED_LOOK_SECONDS, STUCK_SECONDS
from mailgateway.domain.outbox import OutboxState
from tests.daemons.sending import THINK, SenderTestCase
from tests.daemons.world import SMTP_PORT
from tests.fakes.smtp_script import SmtpServer


class WalkTests(SenderTestCase):
    """Without trouble."""

    def test_a_mail_is_claimed_before_anybody_dials(self) -> None:
        """A crash at any moment of the dialogue leaves a mark in the row."""
        states: list[str] = []

        def accept() -> SmtpServer:
            states.extend(row.state for row in [self.row(self.sent)])
            return SmtpServer(self.script)

        self.network.servers.clear()
        self.end(self.senders[-1])
        self.sent = self.submit()
        self.network.servers[SMTP_PORT] = accept
        self.begin()
        self.assertEqual(states, [OutboxState.SENDING])
        self.assertEqual(self.state(self.sent), OutboxState.SENT)

    def test_a_burst_goes_over_one_connection(self) -> None:
        """Ten mails that wait are one login, and the connection is left politely in the end."""
        self.end(self.senders[-1])
        sent = [self.submit() for _ in range(10)]
        self.begin()
        self.assertEqual([self.state(each) for each in sent], [OutboxState.SENT] * 10)
        self.assertEqual((self.script.connections, self.script.logins), (1, 1))
        self.assertEqual(self.script.verbs()[-1], "QUIT")

    def test_more_mails_than_one_connection_takes(self) -> None:
        """After twenty mails the next connection goes on, and none is left over."""
        self.gateway.sender = evolve(self.gateway.sender, budget_per_minute=100)
        self.end(self.senders[-1])
        sent = [self.submit() for _ in range(25)]
        self.begin()
        self.assertEqual({self.state(each) for each in sent}, {OutboxState.SENT})
        self.assertEqual((self.copies(), self.script.connections), (25, 2))

    def test_a_mail_that_is_to_be_tried_later_is_tried_when_it_is_due(self) -> None:
        """Greylisting: the timer wakes for the row's own time, not before."""
        self.script.answer("RCPT", "451 4.7.1 greylisted")
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.QUEUED)
        self.later(295)
        self.assertEqual(self.script.connections, 1)
        self.later(6)
        self.assertEqual((self.state(sent), self.script.connections), (OutboxState.SENT, 2))

    def test_a_shared_database_is_looked_at_without_a_ring(self) -> None:
        """Another process cannot ring our bell."""
        self.gateway.database.shared = True
        self.restart()
        self.senders[-1]._unsubscribe()  # the bell rings in another process
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.QUEUED)
        self.later(SHARED_LOOK_SECONDS)
        self.assertEqual(self.state(sent), OutboxState.SENT)


class StuckTests(SenderTestCase):
    """A server that thinks about a final dot."""

    def test_a_decision_does_not_wait_behind_a_thoughtful_server(self) -> None:
        """Another connection is opened when the first has been stuck for so long, and no earlier."""
        self.script.answer("END", THINK)
        first = self.submit()
        self.later(5)
        decision = self.submit("decision")
        self.later(STUCK_SECONDS - 5.1)
        self.assertEqual((self.state(decision), self.script.connections), (OutboxState.QUEUED, 1))
        self.later(0.2)
        self.assertEqual((self.state(decision), self.script.connections), (OutboxState.SENT, 2))
        self.answer(b"250 2.0.0 at last", connection=0)
        self.assertEqual(self.state(first), OutboxState.SENT)
        self.assertEqual(self.copies(), 2)

    def test_only_so_many_connections(self) -> None:
        """A server that thinks about everything gets three connections, not one for each mail."""
        self.script.answer("END", *[THINK] * 6)
        for _ in range(6):
            self.submit()
        for _ in range(10):
            self.later(STUCK_SECONDS)
        self.assertEqual(self.script.connections, 3)


class LoginTests(SenderTestCase):
    """A password that is refused."""

    def test_many_mails_are_one_login(self) -> None:
        """However many wait: the refused password is not tried with the next one."""
        self.script.users.clear()
        self.end(self.senders[-1])
        decisions = [self.submit("decision") for _ in range(3)]
        notifications = [self.submit() for _ in range(3)]
        self.begin()
        self.assertEqual(self.script.logins, 1)
        for decision in decisions:
            self.assertEqual(self.state(decision), OutboxState.CANCELLED)
        self.assertEqual(self.row(decisions[1]).last_code, 535)
        self.assertEqual({self.state(each) for each in notifications}, {OutboxState.QUEUED})

    def test_a_decision_that_comes_later_fails_at_once(self) -> None:
        """Nobody waits a minute for a password that is known to be wrong."""
        self.script.users.clear()
        self.submit()
        decision = self.submit("decision")
        self.assertEqual((self.state(decision), self.script.logins), (OutboxState.CANCELLED, 1))
        self.submit("decision")

    def test_twice_in_all_over_hours_and_restarts(self) -> None:
        """One more try after ten minutes, and then the operator is waited for."""
        self.script.users.clear()
        self.submit()
        self.restart()
        self.later(590)
        self.submit("decision")
        self.assertEqual(self.script.logins, 1)
        self.later(20)
        self.submit("decision")
        self.assertEqual(self.script.logins, 2)
        for _ in range(5):
            self.restart()
            self.submit("decision")
            self.later(7_200)
        self.assertEqual(self.script.logins, 2)

    def test_a_mended_password_sends_what_has_waited(self) -> None:
        """A reload begins with the new password at once, and mail that was never tried goes."""
        self.script.users.clear()
        self.end(self.senders[-1])
        waiting = [self.submit() for _ in range(3)]
        self.begin()
        self.script.users["agent"] = "mended"
        self.end(self.senders[-1])
        self.begin("mended")
        self.assertEqual(
            [self.state(each) for each in waiting],
            [OutboxState.QUEUED, OutboxState.SENT, OutboxState.SENT],
            "the first one was tried, so its own time counts",
        )


class PauseTests(SenderTestCase):
    """A server that cannot be reached, or asks for patience."""

    def test_a_full_outbox_does_not_hammer_a_server_that_is_not_there(self) -> None:
        """One attempt, then a pause: not one attempt for each mail."""
        self.network.servers.clear()
        self.end(self.senders[-1])
        sent = [self.submit() for _ in range(8)]
        self.begin()
        self.later(0.5)
        self.assertEqual(self.network.dialled, [SMTP_PORT])
        self.listen()
        self.later(3)
        self.assertEqual([self.state(each) for each in sent], [OutboxState.QUEUED] + [OutboxState.SENT] * 7)

    def test_a_decision_finds_out_at_once_that_nobody_is_there(self) -> None:
        """Its caller is told instead of left waiting."""
        self.network.servers.clear()
        decision = self.submit("decision")
        self.later(0.5)
        row = self.row(decision)
        self.assertEqual((row.state, row.temporary), (OutboxState.CANCELLED, True))

    def test_a_sleep_ends_the_wait_for_the_network(self) -> None:
        """The network may be another one: whoever waits for it goes on at once."""
        self.network.servers.clear()
        self.submit()
        self.later(0.5)
        self.listen()
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.QUEUED)
        self.senders[-1].woke()
        self.network.settle()
        self.assertEqual(self.state(sent), OutboxState.SENT)

    def test_a_sleep_hurries_no_server_that_asked_for_patience(self) -> None:
        """Only the network is another one."""
        self.script.answer("GREETING", "421 4.7.0 too many connections")
        self.submit()
        self.senders[-1].woke()
        self.later(30)
        self.assertEqual(self.script.connections, 1)

    def test_a_sleep_in_the_middle_of_a_mail(self) -> None:
        """Before the final dot it goes again; after it nobody knows, so it rests."""
        for point, state in (("DATA", OutboxState.QUEUED), ("END", OutboxState.UNCLEAR)):
            self.setUp()
            self.script.answer(point, THINK)
            sent = self.submit()
            self.senders[-1].woke()
            self.network.settle()
            self.assertEqual(self.state(sent), state, point)

    def test_too_many_connections(self) -> None:
        """After 421 nobody dials for a minute, and decisions that come meanwhile are told why."""
        self.script.answer("GREETING", "421 4.7.0 too many connections")
        first = self.submit()
        decision = self.submit("decision")
        self.assertEqual((self.state(decision), self.script.connections), (OutboxState.CANCELLED, 1))
        self.assertIn("421", self.row(decision).last_error)
        second = self.submit()
        self.later(59)
        self.assertEqual(self.script.connections, 1)
        self.later(10)
        self.assertEqual((self.state(second), self.state(first)), (OutboxState.SENT, OutboxState.QUEUED))

    def test_a_restart_honours_the_pause(self) -> None:
        """A service manager that restarts us cannot make us hammer."""
        self.script.answer("GREETING", "421 4.7.0 too many connections")
        self.submit()
        self.restart()
        self.submit()
        self.assertEqual(self.script.connections, 1)
