"""Metrics of one consumer, under the names of KIP-932 ("Client metrics").

`METRICS` has the unit and description of each value that `ShareConsumer.metrics()`
returns.
"""

from sharecons.metrics.catalog import METRICS, Metric, MetricName

__all__ = ["METRICS", "Metric", "MetricName"]
