"""The JSON of the API, both ways: bodies and queries to frozen values, values to JSON.

Reading is strict, since what a request says wrongly must never be half understood: unknown fields, wrong
types, values out of bounds, repeated names and text that cannot be stored are refused with a sentence that
names the field.  Writing leaves out what is optional and absent.  One declaration of a class gives its
reader, its writer and its schema in the served description.

This layer knows neither HTTP nor the rules behind the routes.
"""

from mailgateway.shapes.answers import (
    AccountState,
    AttachmentShape,
    DeliveryShape,
    Fate,
    Fates,
    Health,
    LastScan,
    LeftOutShape,
    Mode,
    OutboxRow,
    Pending,
    PresenceShape,
    Recipient,
    Reloaded,
    Sent,
)
from mailgateway.shapes.fields import members, plain, read, rfc3339, schema, write
from mailgateway.shapes.requests import (
    ClaimantHeaders,
    EventsQuery,
    HealthQuery,
    InboundQuery,
    ModeRequest,
    NoQuery,
    Nothing,
    PendingQuery,
    PingRequest,
    SendBody,
    SessionRequest,
    SettleRequest,
    TargetRequest,
    UploadHeaders,
)
from mailgateway.shapes.text import parse, printed, read_query

__all__ = [
    "AccountState",
    "AttachmentShape",
    "ClaimantHeaders",
    "DeliveryShape",
    "EventsQuery",
    "Fate",
    "Fates",
    "Health",
    "HealthQuery",
    "InboundQuery",
    "LastScan",
    "LeftOutShape",
    "Mode",
    "ModeRequest",
    "NoQuery",
    "Nothing",
    "OutboxRow",
    "Pending",
    "PendingQuery",
    "PingRequest",
    "PresenceShape",
    "Recipient",
    "Reloaded",
    "SendBody",
    "Sent",
    "SessionRequest",
    "SettleRequest",
    "TargetRequest",
    "UploadHeaders",
    "members",
    "parse",
    "plain",
    "printed",
    "read",
    "read_query",
    "rfc3339",
    "schema",
    "write",
]
