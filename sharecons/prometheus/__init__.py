"""Metrics of workers and consumers for an application's own Prometheus registry.

    from prometheus_client import REGISTRY

    REGISTRY.register(WorkerCollector(worker))

Needs the package prometheus-client (`pip install 'sharecons[exporter]'`).

- `collectors`: `WorkerCollector` and `ConsumerCollector`, and the conversion of metric
  families.
"""

from sharecons.prometheus.collectors import ConsumerCollector, WorkerCollector

__all__ = ["ConsumerCollector", "WorkerCollector"]
__dir__ = __all__.copy
