"""What became of a mail that the account has sent to itself."""

from typing import Any

from attrs import frozen

from mailgateway.operator.findings import Finding


@frozen(kw_only=True)
class Smoked:
    """What was found out; ``None`` stands for what was not reached or not tried.

    ``sent_seconds`` is from MAIL to the answer to the final dot, ``back_seconds`` from there to the mailbox.
    ``folder`` is where the mail lies, ``junk`` whether that is the folder for junk.  ``plus`` says whether
    mail to the plus-address came.  ``authserv_id`` and ``results_above`` are those of ``Arrival``.
    """

    account: str
    to: str
    message_id: str = ""
    sent_seconds: float | None = None
    back_seconds: float | None = None
    folder: str = ""
    junk: bool = False
    seen_message_id: str = ""
    plus: bool | None = None
    authserv_id: str | None = None
    results_above: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def rewritten(self) -> bool:
        """Whether the mail lies there under another Message-ID than it was sent with."""
        return bool(self.seen_message_id) and self.seen_message_id != self.message_id

    def as_dict(self) -> dict[str, Any]:
        """The facts, without the findings, as an object of JSON."""
        return {
            "account": self.account,
            "to": self.to,
            "messageId": self.message_id,
            "sentSeconds": _rounded(self.sent_seconds),
            "backSeconds": _rounded(self.back_seconds),
            "folder": self.folder,
            "junk": self.junk,
            "seenMessageId": self.seen_message_id,
            "rewritten": self.rewritten,
            "plusAddress": self.plus,
            "authservId": self.authserv_id,
            "resultsAboveReceived": self.results_above,
        }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
