"""Between the shapes of the API and the values of the flows, field by field."""

from mailgateway import shapes
from mailgateway.domain.envelope import Envelope, rendered
from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import MailKind, OutboxRow
from mailgateway.flows.deliver import Claimant, Target
from mailgateway.flows.fates import Fate
from mailgateway.flows.outbox_orders import Page
from mailgateway.flows.ports import AccountStatus, Reloaded, ScanSummary
from mailgateway.flows.sessions import Ping, Presence
from mailgateway.flows.submit import SendRequest, Submitted
from mailgateway.ids import SessionId


def ping(asked: shapes.PingRequest) -> Ping:
    """Make the flow's value of a ping."""
    return Ping(
        session=asked.session_id,
        instance=asked.instance_id,
        harness=asked.harness,
        title=asked.title,
        cwd=asked.cwd,
        project=asked.project,
        branch=asked.branch,
        worktree=asked.worktree,
        head=asked.head,
        dirty=asked.dirty,
        state=asked.state or "",
    )


def presence(found: Presence) -> shapes.PresenceShape:
    """Make the answer to a ping."""
    return shapes.PresenceShape(mode=found.mode, pending=found.pending)


def target(asked: shapes.TargetRequest) -> Target:
    """Say which delivery is meant."""
    return Target(
        id=asked.id,
        uid=asked.uid,
        uid_validity=asked.uid_validity,
        account=asked.account,
        folder=asked.folder,
    )


def claimant(identity: Identity, asked: shapes.TargetRequest, sessions: frozenset[SessionId]) -> Claimant:
    """Say who acts, by a key that speaks for these sessions (none named: for all)."""
    return Claimant(
        instance=asked.instance_id,
        machine=identity.machine_id,
        pid=asked.pid,
        process_started_at=asked.process_started_at,
        sessions=sessions,
    )


def delivery(envelope: Envelope) -> shapes.DeliveryShape:
    """Make the Delivery of an envelope."""
    source = envelope.source
    return shapes.DeliveryShape(
        id=envelope.id,
        session_id=envelope.session_id,
        kind=envelope.kind,
        trust=envelope.trust,
        state=envelope.state,
        subject=envelope.subject,
        body=envelope.body,
        quoted=envelope.quoted or None,
        rendered=rendered(envelope),
        from_address=envelope.from_address,
        from_name=envelope.from_name,
        received_at=envelope.received_at,
        attachments=tuple(
            shapes.AttachmentShape(part.id, part.filename, part.content_type, part.size)
            for part in envelope.kept
        ),
        left_out=tuple(
            shapes.LeftOutShape(part.filename, part.content_type, part.size, part.left_out)
            for part in envelope.left_out
        ),
        route=envelope.route_id,
        device=envelope.device,
        account=source.account if source else None,
        folder=source.folder if source else None,
        uid=source.uid if source else None,
        uid_validity=source.uid_validity if source else None,
        message_id=envelope.message_id,
        in_reply_to=envelope.in_reply_to or None,
        question_id=envelope.question_id,
        choice=envelope.choice,
        note=envelope.note,
        lease_until=envelope.lease_until,
    )


def send_request(asked: shapes.SendBody, by: str) -> SendRequest:
    """Make the flow's value of a mail that is asked for with the key of this name."""
    return SendRequest(
        kind=MailKind(asked.kind),
        session=asked.session_id,
        subject=asked.subject,
        text=asked.text,
        options=asked.options,
        recommendation=asked.recommendation,
        attachments=asked.attachments,
        idempotency_key=asked.idempotency_key,
        by=by,
    )


def sent(submitted: Submitted) -> shapes.Sent:
    """Say what became of a mail that was asked for."""
    return shapes.Sent(
        message_id=submitted.message_id,
        route=submitted.route_id,
        subject=submitted.subject,
        outbox_id=submitted.outbox_id,
        question_id=submitted.question_id,
        state=submitted.state,
        held_until=submitted.held_until,
    )


def outbox_row(row: OutboxRow) -> shapes.OutboxRow:
    """Say how far a mail has come."""
    return shapes.OutboxRow(
        id=row.id,
        kind=row.kind,
        session_id=row.session_id,
        subject=row.subject,
        message_id=row.message_id,
        created_at=row.created_at,
        state=row.state,
        attempts=row.attempts,
        last_error=row.last_error,
        recipients=tuple(shapes.Recipient(each.address, each.state) for each in row.recipients),
        next_attempt_at=row.next_attempt_at,
        question_id=row.question_id,
        held_until=row.held_until,
        carried_by=row.carried_by,
    )


def outbox_page(page: Page) -> shapes.OutboxPage:
    """Make a page of the outbox."""
    return shapes.OutboxPage(tuple(map(outbox_row, page.mails)), page.cursor)


def fate(found: Fate) -> shapes.Fate:
    """Say what became of a mail."""
    return shapes.Fate(
        received_at=found.received_at,
        from_address=found.from_address,
        subject=found.subject,
        verdict=found.verdict,
        step=found.step,
        reason=found.reason,
        delivery_id=found.envelope_id or None,
        reply_id=found.reply_id,
    )


def account_state(status: AccountStatus) -> shapes.AccountState:
    """Say how an account goes, without naming it."""
    return shapes.AccountState(
        status.state.value, status.since, status.next_attempt_at, status.remarks or None
    )


def last_scan(summary: ScanSummary) -> shapes.LastScan:
    """Say what the last scan did."""
    return shapes.LastScan(summary.at, summary.examined, summary.routed, summary.refused)


def reloaded(outcome: Reloaded) -> shapes.Reloaded:
    """Say what reading the settings again gave."""
    return shapes.Reloaded(outcome.loaded_at, outcome.warning or None)
