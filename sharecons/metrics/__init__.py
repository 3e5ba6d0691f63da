"""Metrics: the table of a consumer's, and what all outlets share.

CONTRIBUTING.md says how to add one. The table of workers is `sharecons.worker.metrics`.
The exporter's metrics of groups (`sharecons.exporter.metrics`) are its own.

- `metric`: a row of a table: name, kind, unit, description, and how to read it.
- `catalog`: the table of consumers, under the names of KIP-932 ("Client metrics").
  `METRICS` describes each value that `ShareConsumer.metrics()` returns.
- `recorder`: counts what the consumer does.
- `families`: values under Prometheus' names, and how the values of processes add up.
- `application_metrics`: metrics of the application, which are pushed as well.
- `push_payload`: the contents of one push (KIP-714); `otlp` encodes them.
"""

from sharecons.metrics.application_metrics import ApplicationMetric
from sharecons.metrics.catalog import METRICS, MetricName
from sharecons.metrics.metric import Metric

__all__ = ["METRICS", "ApplicationMetric", "Metric", "MetricName"]
__dir__ = __all__.copy
