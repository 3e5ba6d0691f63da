"""Metrics of consumers, under the names of KIP-932 ("Client metrics"), and of workers.

- `catalog`: names, units and descriptions. `METRICS` describes each value that
  `ShareConsumer.metrics()` returns.
- `worker_catalog`: the same of a worker: `WORKER_METRICS`, for `ShareWorker.metrics()`.
- `histogram`, `histogram_recorder`: counts of values between bounds; counts them.
- `families`: both under Prometheus' names, and how the values of processes add up.
- `recorder`: collects what the consumer does, and computes the values.
- `points`: the values at one time, as they are pushed to brokers (KIP-714).
- `application_metrics`: metrics of the application, which are pushed as well.
- `push_payload`: the contents of one push; `otlp` encodes them.
"""

from sharecons.metrics.application_metrics import ApplicationMetric
from sharecons.metrics.catalog import METRICS, Metric, MetricName
from sharecons.metrics.histogram import Histogram
from sharecons.metrics.worker_catalog import (
    WORKER_METRICS,
    WorkerMetric,
    WorkerMetricName,
)

__all__ = [
    "METRICS",
    "WORKER_METRICS",
    "ApplicationMetric",
    "Histogram",
    "Metric",
    "MetricName",
    "WorkerMetric",
    "WorkerMetricName",
]
