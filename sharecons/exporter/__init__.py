"""Lag for machines: share groups as Prometheus metrics.

`readings` is what is known of groups at a time, `collecting` asks for it, `metrics`
says it in Prometheus' words, and `serving` does all that until it is told to stop.
"""

from sharecons.exporter.collector import Collecting
from sharecons.exporter.snapshot import GroupReading, PartitionReading, Readings

__all__ = ["Collecting", "GroupReading", "PartitionReading", "Readings"]
