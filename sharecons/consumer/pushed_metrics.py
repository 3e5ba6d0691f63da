"""Metrics of a consumer that brokers collect: the application's, and their client."""

from uuid import UUID

from sharecons.config import validation
from sharecons.consumer.lifecycle import Lifecycle
from sharecons.metrics.application_metrics import ApplicationMetric

__all__ = ["PushedMetrics"]


class PushedMetrics(Lifecycle):
    """Adds metrics of the application to the pushed ones."""

    def register_metric(self, metric: ApplicationMetric) -> None:
        """Push a metric of the application beside the consumer's own (KIP-1076).

        It can be registered at any time, and is pushed to brokers that want it.

        Raises:
            ConfigurationError: it is no `ApplicationMetric`, or its name is in use.
        """
        self._member.application_metrics.register(metric)

    def unregister_metric(self, name: str) -> None:
        """Push the application's metric of this name no more, if there is one."""
        self._member.application_metrics.unregister(name)

    async def client_instance_id(self, *, timeout: float = 30.0) -> UUID | None:
        """Return the id under which brokers know this client's metrics (KIP-714).

        The first broker that responds assigns it. Return None if brokers do not collect
        metrics of clients.

        Args:
            timeout: seconds to wait for it.

        Raises:
            ConsumerStateError: the consumer has `enable_metrics_push=False`, or is not
                started.
            ClosedError: the consumer is closed.
            RequestTimedOutError: no broker has assigned an id in time.
        """
        validation.check_timeout(timeout)
        return await self._member.client_instance_id(timeout)
