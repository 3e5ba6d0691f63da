"""Metrics of share groups for Prometheus.

`collector` reads all groups (`sharecons.group_state`), and `ledgers` the backlogs of
Spark queries. `metrics` converts a `snapshot` to Prometheus metrics: `stalls` finds why
partitions are stalled, `archived` counts over all snapshots. `server` serves them (by
`http_server`). Collections are repeated by `sharecons.group_state.polling`.
"""

from sharecons.exporter.collector import Collector
from sharecons.exporter.snapshot import Snapshot

__all__ = ["Collector", "Snapshot"]
__dir__ = __all__.copy
