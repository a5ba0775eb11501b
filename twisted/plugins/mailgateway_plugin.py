"""Tells twistd of the service; nothing else, since twistd imports this file at every start of any service."""

from twisted.application.service import ServiceMaker

mailgateway = ServiceMaker(
    "mailgateway",
    "mailgateway.service",
    "Connects a mailbox with running coding-agent sessions.",
    "mailgateway",
)
