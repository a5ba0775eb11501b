"""Letters as people get them, one of each kind: for tests, and for the pictures in the documents."""

import struct
import zlib
from datetime import UTC, datetime, timedelta

from attrs import evolve

from mailgateway.ids import MessageId, OutboxId, RouteId
from mailgateway.mail.letter import Enclosure, Item, Letter, LetterKind, Offer, Who
from tests.mail.mails import AGENT

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
PERSON = "robin@example.net"


def picture(width: int, height: int) -> bytes:
    """A PNG with a chart of bars in it."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            bar = (x * 12 // width * 37 + 20) % 60 + 30
            filled = x % (width // 12) > 6 and (height - y) * 100 // height < bar
            rows += b"\x24\x58\xc6" if filled else b"\xff\xff\xff"

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, data)
        for kind, data in ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows))), (b"IEND", b""))
    )


DECISION = Letter(
    kind=LetterKind.DECISION,
    sender_address=AGENT,
    sender_name="Coding agents",
    recipient=PERSON,
    tag="mg",
    route=RouteId("f913c9"),
    subject="Keep the old API during the migration?",
    text="""\
Two clients still call `/v1/users`: the mobile app up to 4.2, and the nightly export of the billing team.

The handlers of both versions share the store, so keeping the old one costs little code, but each new field
has to be left out of its answers by hand:

```python
@route("/v1/users/<int:user_id>")
def user_v1(user_id: int) -> Reply:
    \"\"\"The shape that 4.2 expects: no `locale`, dates without a zone.\"\"\"
    user = users.find(user_id)
    return Reply({"id": user.id, "name": user.name})  # remove with v1
```

What I have found in the logs of the last week:

| client | calls a day | last release |
| --- | ---: | --- |
| mobile 4.2 and older | 1,204 | March |
| billing export | 1 | none planned |

I have changed nothing yet. See [the migration plan](https://wiki.example.org/api/migration) for the dates.
""",
    message_id=MessageId("<mg.f913c9.00112233445566778899aabb.0a1b2c3d@example.org>"),
    date=NOW,
    instance="i-1",
    outbox_id=OutboxId("o-1"),
    who=Who(title="Port the users service", project="api", branch="migrate-v2", device="laptop"),
    ambiguity="The plan says “drop v1 in December”, and two clients still use it.",
    options=(
        Offer(
            label="Keep it until March",
            value="keep",
            description="Both versions run side by side.",
            impact="no client breaks, and I mark every line that is to go",
        ),
        Offer(
            label="Remove it now",
            value="remove",
            description="One version only.",
            impact="the app up to 4.2 and the billing export stop working",
        ),
        Offer(label="Remove it, but answer 410 with a link", value="gone"),
    ),
    recommendation="keep",
    card_url="https://gateway.example.org/inbox/questions/q-1f0e",
    expires_at=NOW + timedelta(days=7),
)

NOTIFICATION = evolve(
    DECISION,
    kind=LetterKind.NOTIFICATION,
    subject="The import is twice as fast",
    ambiguity="",
    options=(),
    recommendation=None,
    card_url="",
    text="""\
The rows go in by `COPY` now, **4,100 a second** instead of 1,900. Nothing else has changed, and all tests
pass.

![Rows a second, by batch size](attachment:f-chart)

- Batches of 500 are best; larger ones only take memory.
- The old path stays for SQLite.
""",
    attachments=(Enclosure("rows.png", "image/png", picture(600, 220), "f-chart"),),
    who=Who(title="Speed up the import", project="warehouse", branch="main", device="laptop"),
    route=RouteId("0b7e42"),
    message_id=MessageId("<mg.0b7e42.00112233445566778899aabb.0a1b2c3d@example.org>"),
)

SETTLE = evolve(
    NOTIFICATION,
    kind=LetterKind.SETTLE,
    subject="Done: 14 tests fixed · api · laptop",
    text="""\
14 tests fixed; the whole suite passes (2 min 10 s).

All of them failed for one reason: the clock of the tests was local, the one of the service is UTC.

```diff
--- a/tests/clock.py
+++ b/tests/clock.py
@@ -3,4 +3,4 @@
 def now() -> datetime:
-    return datetime.now()
+    return datetime.now(UTC)
```

Not done: `test_export_at_midnight` is still skipped, since it needs the billing sandbox.
""",
    attachments=(),
    who=Who(title="Fix the red tests", project="api", branch="fix-clock", device="laptop"),
    route=RouteId("c3d9a1"),
)

ANSWER = evolve(
    NOTIFICATION,
    kind=LetterKind.ANSWER,
    subject="Re: [mg:f913c9] Keep the old API during the migration?",
    text="""\
There were no words of yours in your mail, only what it quotes or a signature, so nothing was handed on; the
question is still open. Please reply once more, with your words above the quoted text.
""",
    attachments=(),
    who=Who(device="laptop"),
    route=RouteId("f913c9"),
    expires_at=None,
)

REMINDER = evolve(
    DECISION, kind=LetterKind.REMINDER, asked_at=NOW - timedelta(hours=3), ambiguity="", text="Which one?"
)

DIGEST = evolve(
    NOTIFICATION,
    kind=LetterKind.DIGEST,
    subject="2 messages from 2 sessions · laptop",
    text="",
    attachments=(),
    route=RouteId(""),
    who=Who(device="laptop"),
    items=tuple(
        Item(subject=each.subject, text=each.text, who=each.who, at=NOW, route=each.route)
        for each in (SETTLE, NOTIFICATION)
    ),
)

FOUR = {"decision": DECISION, "notification": NOTIFICATION, "settle": SETTLE, "answer": ANSWER}
"""Those that the documents show."""

ALL = {**FOUR, "reminder": REMINDER, "digest": DIGEST}
