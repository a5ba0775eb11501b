"""How many mails a second are understood: read, judged, and their words taken out; one core, no I/O.

The mails are those of the corpus.  The plain alternative is the parser of the standard library, which only
finds the parts and decodes the text.
"""

import email
import email.policy
import time
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from functools import partial

from _world import show_help

from mailgateway.domain.explain import Context
from mailgateway.domain.judge import judge_inbound
from mailgateway.mail.inbound import Inbound, is_candidate, read
from mailgateway.mail.own import Own
from mailgateway.mail.reply import typed_words
from tests.corpus.scoring import CASES, context

TURNS = 3


def understood(raw: bytes, own: Own, sent_text: str | None) -> None:
    """All that a candidate goes through outside of the transaction, and the reading of its words."""
    is_candidate(raw[:4096], own)
    inbound = read(raw)
    if isinstance(inbound, Inbound):
        judge_inbound(inbound, own)
        typed_words(inbound, own, sent_text)


def parsed(raw: bytes) -> None:
    """What the standard library does with it."""
    try:
        message = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        body = message.get_body(("plain", "html"))
        if body is not None:
            body.get_content()
    except Exception:  # noqa: BLE001 - it raises on some mails, which count as parsed
        return


def rate(work: Callable[[bytes], None], mails: Sequence[bytes]) -> float:
    """Mails a second of the processor's time, the best of some turns."""
    best = 0.0
    for _ in range(TURNS):
        began = time.process_time()
        for raw in mails:
            work(raw)
        best = max(best, len(mails) / (time.process_time() - began))
    return best


def main() -> None:
    """Measure both."""
    mails = [path.read_bytes() for path in sorted(CASES.glob("*.eml"))] * 4
    known = Context.from_json(context())
    own = known.applied_to(Own())
    ours = rate(partial(understood, own=own, sent_text=known.sent_text), mails)
    plain = rate(parsed, mails)
    print(f"understood     {ours:6.0f} mails a second")
    print(f"parsed by the standard library {plain:6.0f} mails a second")
    print(f"ratio          {ours / plain:6.2f}")


if __name__ == "__main__":
    show_help(__doc__)
    main()
