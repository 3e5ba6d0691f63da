"""Metrics of share groups for Prometheus.

`collector` reads a `snapshot` of all groups, and `ledgers` the backlogs of Spark
queries; `stalls` and `archived` add what depends on earlier snapshots. `metrics`
converts it to Prometheus metrics, `server` serves them (by `http_server`), and
`reachability` detects that no broker responds.
"""

from sharecons.exporter.collector import Collector
from sharecons.exporter.snapshot import ExportedGroup, ExportedPartition, Snapshot

__all__ = ["Collector", "ExportedGroup", "ExportedPartition", "Snapshot"]
