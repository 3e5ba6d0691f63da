"""The state of a worker in its group: partitions, heartbeats, conditions, metrics."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from sharecons.config import validation
from sharecons.errors import ConfigurationError, ConsumerStateError
from sharecons.member.record_source import RecordSource
from sharecons.member.source_health import SourceHealth
from sharecons.metrics.catalog import MetricName, values_of
from sharecons.record import TopicPartition
from sharecons.worker.conditions import Condition, WorkerConditions
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.source_run import SourceRun

__all__ = ["WorkerHealth"]


class WorkerHealth(SourceHealth, ABC):
    """Shows the state of a worker in its group, and pauses topics."""

    def __init__(self, source: RecordSource, policy: HealthPolicy) -> None:
        super().__init__(source)
        self._source = source
        self._source_run = SourceRun(source)
        self._conditions = WorkerConditions(source, policy)

    # Implemented by the worker.

    @property
    @abstractmethod
    def _releases_paused(self) -> bool:
        """True if long pauses can release records: a second delivery has a call."""

    @property
    def member_id(self) -> str:
        """The member id, as sent to the group coordinator.

        Can be set to any name until the worker starts; it is converted to a UUID.
        """
        return self._source.member_id

    @member_id.setter
    def member_id(self, name: str) -> None:
        self._source.set_member_id(name)

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics that the worker consumes, including its retry topics."""
        return self._source.topics

    async def assigned(self) -> frozenset[TopicPartition]:
        """Wait until the worker has started and has partitions, and return these.

        Another task calls `run`, or this task is in the block of `async with worker:`.
        Records that are written from now on are processed, even if a new group starts
        at the end. See `ShareConsumer.assigned`.

        Raises:
            ClosedError: the worker has ended.
            Error: others, as `ShareConsumer.assigned`.
        """
        return await self._source_run.wait_until_assigned()

    # Conditions, for any thread.

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that the worker has now. Can be read in any thread."""
        return self._conditions.all()

    @property
    def not_ready(self) -> tuple[Condition, ...]:
        """The conditions that fail the readiness; empty if the worker is ready.

        Can be read in any thread.
        """
        return self._conditions.not_ready()

    @property
    def not_live(self) -> tuple[Condition, ...]:
        """The conditions that fail the liveness; empty if the worker is live.

        A supervisor restarts the process then. `HealthPolicy.liveness` names them. Can
        be read in any thread.
        """
        return self._conditions.not_live()

    # Metrics.

    def consumer_metrics(self) -> Mapping[MetricName, float]:
        """Return the metrics of the worker's consumer; as `ShareConsumer.metrics`."""
        return values_of(self._source.recorder)

    # Pausing.

    def pause(self, *topics: str | Iterable[str]) -> None:
        """Call no handler for further records of these topics, until `resume`.

        The assignment stays, and heartbeats continue. Records that the worker holds are
        processed. Records that were fetched before wait for `resume` while their locks
        last; then the broker delivers them again, which uses up a delivery. Retry
        topics are paused by their own names.

        Raises:
            ConfigurationError: the worker does not consume a topic.
            ConsumerStateError: the worker does not run.
            WrongThreadError: this is not its event loop.
        """
        names = self._consumed("pause", topics)
        self._set_paused(self.paused.union(names))

    def resume(self, *topics: str | Iterable[str]) -> None:
        """Process records of these topics again.

        Topics that are not paused, and no names, change nothing. Raises as `pause`.
        """
        names = self._consumed("resume", topics)
        self._set_paused(self.paused.difference(names))

    @property
    def paused(self) -> frozenset[str]:
        """The topics that are paused."""
        return self._source.paused

    def _set_paused(self, topics: frozenset[str]) -> None:
        self._source.set_paused(topics, releases=self._releases_paused)

    def _consumed(
        self, verb: str, topics: Iterable[str | Iterable[str]]
    ) -> tuple[str, ...]:
        """Return the names of topics; raises as `pause`."""
        if self._source.state != "open":
            raise ConsumerStateError(
                f"cannot {verb} topics: the worker does not run; call this between its "
                "start and its end"
            )
        self._source.check_caller()
        names = validation.check_topics(topics)
        for name in names:
            if name not in self.subscription:
                raise ConfigurationError(
                    f"cannot {verb} topic {name!r}: the worker does not consume it"
                )
        return names
