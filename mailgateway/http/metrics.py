"""The numbers as Prometheus text: counts and states, never an id, an address or a word.

Everything is read at the time of the scrape, on a registry of our own; imported by the first scrape only.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from mailgateway.flows.counts import Counts
from mailgateway.http.doors import Doors

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Numbers(Collector):
    def __init__(self, doors: Doors, numbers: Counts) -> None:
        self._doors = doors
        self._numbers = numbers

    def collect(self) -> Iterator[Metric]:
        doors, numbers = self._doors, self._numbers
        gauges = {
            "pending": ("Envelopes that wait for their sessions.", numbers.pending),
            "held_elsewhere": ("Envelopes that wait for sessions of other machines.", numbers.held_elsewhere),
            "decisions_outstanding": ("Decisions that wait for a person.", numbers.registry),
            "sessions_live": ("Sessions that pinged lately.", numbers.clients),
            "outbox_waiting": ("Mails that wait to be sent.", numbers.outbox_waiting),
            "muted": ("Threads and people to whom nothing is said by itself for now.", numbers.muted),
            "held": ("Mails that wait for the end of quiet hours or of a bundle.", numbers.held),
            "withheld": ("Settled turns of a day that are not mailed: they hold a secret.", numbers.withheld),
            "subscribers": ("Open streams of events.", len(doors.streams)),
            "connections": ("Open connections to the API.", len(doors.connections.open)),
        }
        for name, (help_text, number) in gauges.items():
            yield GaugeMetricFamily(f"mailgateway_{name}", help_text, value=number)
        states = GaugeMetricFamily("mailgateway_accounts", "Watched accounts by state.", labels=["state"])
        accounts = [account.state for account in doors.control.accounts()]
        for state in sorted(set(accounts)):
            states.add_metric([state], accounts.count(state))
        yield states
        if (scan := doors.control.last_scan()) is not None:
            yield GaugeMetricFamily(
                "mailgateway_last_scan_timestamp_seconds",
                "When the last scan that examined a mail ended.",
                value=scan.at.timestamp(),
            )
        answers = CounterMetricFamily(
            "mailgateway_http_answers", "Answers of the API.", labels=["route", "status"]
        )
        for (route, status), number in sorted(doors.requests.items()):
            answers.add_metric([route, str(status)], number)
        yield answers


def text(doors: Doors, numbers: Counts) -> bytes:
    """Write all numbers."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Numbers(doors, numbers))
    return generate_latest(registry)
