"""The life of a question as a table of moves."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.question import MOVES, QuestionEvent, QuestionStatus, advance


class QuestionTests(SynchronousTestCase):
    """What may follow what."""

    def test_the_life(self) -> None:
        """Reserved, asked, answered."""
        status: QuestionStatus | None = QuestionStatus.RESERVED
        for event in (QuestionEvent.ASK, QuestionEvent.ANSWER):
            assert status is not None
            status = advance(status, event)
        self.assertEqual(status, QuestionStatus.ANSWERED)

    def test_what_ended_stays_ended(self) -> None:
        """No event leads out of an end."""
        for status in (QuestionStatus.ANSWERED, QuestionStatus.CANCELLED, QuestionStatus.EXPIRED):
            for event in QuestionEvent:
                self.assertIsNone(advance(status, event))

    def test_only_what_was_asked_is_answered(self) -> None:
        """A reservation has no text that could be answered, and is asked once."""
        self.assertIsNone(advance(QuestionStatus.RESERVED, QuestionEvent.ANSWER))
        self.assertIsNone(advance(QuestionStatus.OPEN, QuestionEvent.ASK))

    def test_every_status_can_be_reached(self) -> None:
        """No dead entry in the table."""
        self.assertEqual({*MOVES.values(), QuestionStatus.RESERVED}, set(QuestionStatus))
