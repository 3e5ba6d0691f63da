"""Metrics of one consumer, under the names of KIP-932 ("Client metrics").

- `catalog`: names, units and descriptions. `METRICS` describes each value that
  `ShareConsumer.metrics()` returns.
- `recorder`: collects what the consumer does, and computes the values.
- `points`: the values at one time, as they are pushed to brokers (KIP-714).
- `application_metrics`: metrics of the application, which are pushed as well.
- `push_payload`: what one push contains; `otlp` encodes it.
"""

from sharecons.metrics.application_metrics import ApplicationMetric
from sharecons.metrics.catalog import METRICS, Metric, MetricName

__all__ = ["METRICS", "ApplicationMetric", "Metric", "MetricName"]
