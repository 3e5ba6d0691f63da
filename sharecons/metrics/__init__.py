"""Metrics of one consumer, under the names of KIP-932 ("Client metrics").

- `catalog`: names, units and descriptions. `METRICS` describes each value that
  `ShareConsumer.metrics()` returns.
- `recorder`: collects what the consumer does, and computes the values.
"""

from sharecons.metrics.catalog import METRICS, Metric, MetricName

__all__ = ["METRICS", "Metric", "MetricName"]
