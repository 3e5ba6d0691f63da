"""The state of a source in its group, as consumers and workers show it."""

from uuid import UUID

from sharecons.config import validation
from sharecons.member.record_source import SourceState
from sharecons.metrics.application_metrics import ApplicationMetric
from sharecons.record import TopicPartition

__all__ = ["SourceHealth"]


class SourceHealth:
    """Shows partitions, heartbeats and problems; adds metrics to the pushed ones."""

    def __init__(self, source: SourceState) -> None:
        self._state = source

    @property
    def group_id(self) -> str:
        """The share group."""
        return self._state.group_id

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions; other members can have them as well."""
        return self._state.assignment

    @property
    def missing_topics(self) -> frozenset[str]:
        """The topics of the subscription that do not exist, by the latest metadata."""
        return self._state.missing_topics

    @property
    def connected(self) -> bool:
        """True while heartbeats, fetches and acknowledgements are accepted.

        False before the first heartbeat is accepted, after a failure, when one is
        overdue by a heartbeat interval, without topics, and once the member closes.
        """
        return self._state.is_connected

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that last now and are logged as warnings."""
        return self._state.problems

    @property
    def seconds_since_heartbeat(self) -> float | None:
        """Seconds since the group coordinator last accepted a heartbeat, or None."""
        return self._state.seconds_since_heartbeat

    def register_metric(self, metric: ApplicationMetric) -> None:
        """Push a metric of the application beside the consumer's own (KIP-1076).

        It can be registered at any time, and is pushed to brokers that want it.

        Raises:
            ConfigurationError: it is no `ApplicationMetric`, or its name is in use.
        """
        self._state.application_metrics.register(metric)

    def unregister_metric(self, name: str) -> None:
        """Push the application's metric of this name no more, if there is one."""
        self._state.application_metrics.unregister(name)

    async def client_instance_id(self, *, timeout: float = 30.0) -> UUID | None:
        """Return the id under which brokers know this client's metrics (KIP-714).

        The first broker that responds assigns it. Return None if brokers do not collect
        metrics of clients.

        Args:
            timeout: seconds to wait for it.

        Raises:
            ConsumerStateError: the client has `enable_metrics_push=False`, or is not
                started.
            ClosedError: it is closed.
            RequestTimedOutError: no broker has assigned an id in time.
        """
        validation.check_timeout(timeout)
        return await self._state.client_instance_id(timeout)
