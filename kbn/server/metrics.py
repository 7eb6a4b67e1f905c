"""A broker's counters for Prometheus: read when they are scraped, never kept twice."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from datastore.store import Store
from kbn.broker.state import BrokerState
from kbn.broker.statistics import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FATES = ("refused", "duplicate", "expired", "unmatched", "matched")


class BrokerMetrics(Collector):
    """Everything the accounting laws are about, and what is held right now."""

    def __init__(self, state: BrokerState, store: Store | None = None) -> None:
        self._state = state
        self._store = store
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        core, accounts = self._state.core, self._state.core.accounts
        yield CounterMetricFamily(
            "kbn_publications_received", "Publications that came in.", accounts.received
        )
        fates = CounterMetricFamily(
            "kbn_publications", "What became of them; the fates add up.", labels=["fate"]
        )
        for fate in _FATES:
            fates.add_metric([fate], getattr(accounts, fate))
        yield fates
        yield CounterMetricFamily(
            "kbn_matches", "Pairs of a publication and a subscriber it matched.", accounts.matches
        )
        yield CounterMetricFamily(
            "kbn_delivered", "Deliveries handed to a transport.", accounts.delivered
        )
        yield CounterMetricFamily(
            "kbn_redelivered", "Of these, said again after a reconnect.", accounts.redelivered
        )
        dropped = CounterMetricFamily(
            "kbn_dropped", "Deliveries that will not happen.", labels=["reason"]
        )
        for reason, count in sorted(accounts.dropped.items()):
            dropped.add_metric([reason], count)
        yield dropped
        errors = CounterMetricFamily("kbn_errors", "Refusals by code.", labels=["code"])
        for code, count in sorted(accounts.errors.items()):
            errors.add_metric([code], count)
        yield errors
        packets = CounterMetricFamily("kbn_packets_in", "Other packets.", labels=["method"])
        for method, count in sorted(accounts.packets_in.items()):
            packets.add_metric([method], count)
        yield packets
        yield CounterMetricFamily(
            "kbn_malformed_legacy",
            "Refusals nobody could be told of: legacy peers hear no ERR.",
            accounts.malformed_legacy,
        )
        outboxes = core.outboxes()
        for name, help_text, value in (
            ("queued", "Deliveries waiting.", sum(o.waiting_ids for o in outboxes)),
            ("queued_bytes", "Bytes waiting or unconfirmed.", sum(o.size for o in outboxes)),
            ("connections", "Open connections.", len(core.links)),
            ("subscribers", "Known subscribers.", len(core.table.subscribers)),
            ("subscriptions", "Subscriptions held.", len(core.table)),
        ):
            yield GaugeMetricFamily(f"kbn_{name}", help_text, value)
        if self._state.memory is not None:
            yield from self._history()
            yield from self._archive()
        uplink = self._state.uplink
        if uplink is not None:
            yield GaugeMetricFamily(
                "kbn_spooled", "Publications waiting for the master.", uplink.spooled
            )
            yield GaugeMetricFamily(
                "kbn_master_up", "Whether the master is reached.", float(uplink.established)
            )
        balance = accounts.balance(outboxes)
        unaccounted = GaugeMetricFamily(
            "kbn_unaccounted",
            "What the accounting laws miss; 0 unless there is a bug.",
            labels=["law"],
        )
        for law, missing in balance.items():
            unaccounted.add_metric([law], missing)
        yield unaccounted

    def _history(self) -> Iterator[Metric]:
        """What is measured of each publication, and what is kept."""
        memory, statistics = self._state.memory, self._state.core.statistics
        assert memory is not None
        yield GaugeMetricFamily(
            "kbn_stored_publications", "The newest number of the log on disk.", memory.committed
        )
        yield GaugeMetricFamily(
            "kbn_pending_publications",
            "Accepted and on their way to the disk.",
            self._state.core.accounts.pending,
        )
        nodes = memory.engine.memory.nodes.values()
        yield GaugeMetricFamily("kbn_inner_filters", "Inner filters in memory.", len(nodes))
        yield GaugeMetricFamily(
            "kbn_remembered_events",
            "Events they hold in memory.",
            sum(len(node.held) for node in nodes),
        )
        told = HistogramMetricFamily(
            "kbn_publication_deliveries", "Subscribers that one publication went to."
        )
        _add(told, [], statistics.deliveries, 1)
        yield told
        for name, help_text, histogram in (
            ("accept", "Until a publication was matched and accepted.", statistics.accepted),
            ("total", "Until it was on disk and told to whom it matched.", statistics.total),
        ):
            family = HistogramMetricFamily(f"kbn_publication_{name}_seconds", help_text)
            _add(family, [], histogram)
            yield family
        family = HistogramMetricFamily(
            "kbn_store_seconds",
            "A publication's share of its transaction: a new event, or the end of one.",
            labels=["change"],
        )
        _add(family, ["insert"], statistics.inserted)
        _add(family, ["update"], statistics.updated)
        yield family
        family = HistogramMetricFamily(
            "kbn_operator_seconds",
            "One temporal operator asked of the history.",
            labels=["operator", "matched"],
        )
        for (operator, held), histogram in statistics.operators.items():
            _add(family, [operator, str(held).lower()], histogram)
        yield family

    def _archive(self) -> Iterator[Metric]:
        """How far old entries went to Delta, where they do."""
        told = None if self._store is None else self._store.archiving()
        if told is None:
            return
        yield CounterMetricFamily("kbn_archived_entries", "Entries archived.", told.entries)
        yield CounterMetricFamily(
            "kbn_archive_failures", "Runs of archiving that failed.", told.failures
        )
        yield CounterMetricFamily(
            "kbn_archive_reads", "How often entries were asked of the archive.", told.reads
        )
        yield GaugeMetricFamily(
            "kbn_archived_upto", "Up to this number the archive is complete.", told.upto
        )
        yield GaugeMetricFamily(
            "kbn_archive_failing",
            "1 if the last run failed; it is tried again.",
            float(told.failure is not None),
        )


def _add(
    family: HistogramMetricFamily, labels: list[str], histogram: Histogram, unit: float = 1e9
) -> None:
    """One series: counts up to each bound, and the sum, in seconds unless told otherwise."""
    so_far = 0
    buckets: list[tuple[str, float]] = []
    for bound, count in zip((*histogram.bounds, None), histogram.counts, strict=True):
        so_far += count
        buckets.append(("+Inf" if bound is None else str(bound / unit), so_far))
    family.add_metric(labels, buckets, histogram.total / unit)
