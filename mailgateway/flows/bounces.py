"""What a delivery report means for a mail of ours: which recipient did not get it, and who must know.

Nothing of a report can be verified.  It counts only when the copy in it holds a Message-ID of a mail that is
in the outbox, and only for a recipient to whom that mail was sent and who is not known to have failed; so
whoever forges one must have seen the mail, and moves one row once.  What the report says in words is a
stranger's text: sessions are told the status code and its meaning by RFC 3463, and nothing else.
"""

from collections.abc import Iterable

from attrs import evolve, frozen

from mailgateway.domain.judge import BounceOf
from mailgateway.domain.outbox import (
    MailKind,
    OutboxEvent,
    OutboxRow,
    OutboxState,
    RecipientRow,
    RecipientState,
)
from mailgateway.domain.question import QuestionStatus
from mailgateway.flows.bell import Event, EventKind
from mailgateway.mail.bounce import Outcome, RecipientReport
from mailgateway.mail.own import normalise_address
from mailgateway.store import outbox, questions
from mailgateway.store.database import Tx

MEANINGS = {
    "1.1": "the mailbox does not exist",
    "1.2": "the domain does not exist or takes no mail",
    "1.3": "the address is not a valid one",
    "1.10": "the domain takes no mail",
    "2.0": "the mailbox has a problem",
    "2.1": "the mailbox is disabled",
    "2.2": "the mailbox is full",
    "2.3": "the mail is too large for the mailbox",
    "3.4": "the mail is too large for the server",
    "4.1": "the server did not answer",
    "4.4": "no way to the server was found",
    "4.7": "it could not be delivered in time",
    "7.0": "the server refuses it for a policy",
    "7.1": "the server refuses it for a policy",
    "7.23": "the sender's SPF record does not permit it",
    "7.26": "the sender's authentication was not accepted",
}
"""Subject and detail of a status code (RFC 3463, RFC 7505, RFC 7372) -> what it means."""

_TAKEN = frozenset({RecipientState.ACCEPTED, RecipientState.UNCLEAR, RecipientState.LOST})


@frozen
class Reported:
    """A report about a mail of ours that is believed as far as a report can be.

    ``failed`` and ``delayed`` are the recipients whose row changes, as they are to be; ``why`` are the status
    codes of those that failed, by address.
    """

    mail: OutboxRow
    failed: tuple[RecipientRow, ...]
    delayed: tuple[RecipientRow, ...]
    why: dict[str, str]

    @property
    def words(self) -> str:
        """What the session is told: our words, and the standard's."""
        lines = [
            f'The mail "{self.mail.subject}" to {address} could not be delivered: {why}.'
            for address, why in self.why.items()
        ]
        if self.mail.kind is MailKind.DECISION and self.nobody_has_it:
            lines.append("Nobody else was asked, so no answer will come by mail; the session may ask anew.")
        return "\n".join(lines)

    @property
    def nobody_has_it(self) -> bool:
        """Whether all recipients have failed by now."""
        failed = {one.address for one in self.failed}
        return all(
            one.address in failed or one.state in {RecipientState.REJECTED, RecipientState.BOUNCED}
            for one in self.mail.recipients
        )


def read_report(tx: Tx, bounce: BounceOf) -> Reported | None:
    """The mail of ours that a report is about, and the recipients that it has news of; ``None``: no news."""
    for mail in outbox.of_message_ids(tx, bounce.message_ids):
        failed, delayed, why = [], [], {}
        for one in mail.recipients:
            report = _about(one, bounce, alone=len(mail.recipients) == 1)
            if report is None or not _reached(mail, one) or _has_answered(tx, mail, one):
                continue
            if report.outcome is Outcome.FAILED:
                why[one.address] = _meaning(report)
                failed.append(evolve(one, state=RecipientState.BOUNCED, reply=_reply("bounced", report)))
            elif report.outcome is Outcome.DELAYED:
                delayed.append(evolve(one, reply=_reply("delayed", report)))
        if failed or delayed:
            return Reported(mail, tuple(failed), tuple(delayed), why)
    return None


def _reached(mail: OutboxRow, one: RecipientRow) -> bool:
    """Whether a server has taken the mail for the recipient, or may have; it may report before we know."""
    sending = mail.state is OutboxState.SENDING and one.state is RecipientState.WAITING
    return sending or one.state in _TAKEN


def _has_answered(tx: Tx, mail: OutboxRow, one: RecipientRow) -> bool:
    """Whether the recipient has answered the question in the mail by mail, which shows that it arrived."""
    answer = None if mail.question_id is None else questions.answer_of(tx, mail.question_id)
    return answer is not None and answer.door == "mail" and answer.by == normalise_address(one.address)


def _about(one: RecipientRow, bounce: BounceOf, *, alone: bool) -> RecipientReport | None:
    """What the report says of a recipient; one that names nobody speaks of the only one there is."""
    address = normalise_address(one.address)
    for report in bounce.recipients:
        if address in _named(report):
            return report
    if not alone or any(report.recipient for report in bounce.recipients):
        return None
    outcome = Outcome.FAILED if bounce.failed else Outcome.DELAYED
    return next(iter(bounce.recipients), RecipientReport(recipient="", outcome=outcome))


def _named(report: RecipientReport) -> Iterable[str]:
    return (report.recipient, *report.also)


def _meaning(report: RecipientReport) -> str:
    meaning = MEANINGS.get(report.status.partition(".")[2], "")
    status = f"status {report.status}" if report.status else "the server's report gives no status"
    return f"{meaning} ({status})" if meaning else status


def _reply(word: str, report: RecipientReport) -> str:
    return " ".join(each for each in (f"{word}:", report.status, report.diagnostic) if each)


def mark(tx: Tx, reported: Reported) -> tuple[Event, ...]:
    """Write what a report tells; what to ring after the commit.

    The mail has failed when no recipient is left who has it or may get it; its question then blocks its
    session no longer, and stays answerable, since the report may be false.
    """
    mail = reported.mail
    outbox.write_recipients(tx, mail.id, (*reported.failed, *reported.delayed))
    if not reported.failed:
        return ()
    events = [Event(EventKind.OUTBOX, mail.id, mail.session_id)]
    if reported.nobody_has_it and mail.state in {OutboxState.SENT, OutboxState.UNCLEAR}:
        first = reported.failed[0]
        outbox.move(tx, mail, OutboxEvent.BOUNCED, last_error=f"bounced: {reported.why[first.address]}")
        question = None if mail.question_id is None else questions.find(tx, mail.question_id)
        if question is not None and question.status is QuestionStatus.OPEN and question.blocking:
            questions.unblock(tx, question.id)
            events.append(Event(EventKind.QUESTION, question.id, question.session_id))
    return tuple(events)
