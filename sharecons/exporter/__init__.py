"""Lag for machines: share groups as Prometheus metrics.

`readings` is what is known of groups at a time, `collecting` asks for it, `metrics`
says it in Prometheus' words, and `serving` does all that until it is told to stop.
"""

from sharecons.exporter.collector import Collector
from sharecons.exporter.snapshot import GroupSnapshot, PartitionSnapshot, Snapshot

__all__ = ["Collector", "GroupSnapshot", "PartitionSnapshot", "Snapshot"]
