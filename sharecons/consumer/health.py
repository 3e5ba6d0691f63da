"""The state of a consumer in its group: partitions, heartbeats, problems."""

from sharecons.consumer.delivery_queue import DeliveryQueue
from sharecons.consumer.lifecycle import Lifecycle
from sharecons.net.member import Member
from sharecons.record import TopicPartition

__all__ = ["Health"]


class Health(Lifecycle):
    """The properties of a consumer that show its state in the group."""

    _member: Member
    _queue: DeliveryQueue

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions; other members can have them as well."""
        return self._member.assignment if self._background else frozenset()

    @property
    def missing_topics(self) -> frozenset[str]:
        """The topics of the subscription that do not exist, by the latest metadata."""
        background = self._background
        return self._member.metadata.missing_topics() if background else frozenset()

    @property
    def connected(self) -> bool:
        """True while heartbeats are accepted, and `problems` has no rejected fetch.

        False before the first heartbeat is accepted, after a failure, when one is
        overdue by a heartbeat interval, without topics, and once the consumer closes.
        """
        return self._state == "open" and self._member.problems.is_connected()

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that last now and are logged as warnings."""
        return self._member.problems.lasting() if self._state == "open" else ()

    @property
    def seconds_since_heartbeat(self) -> float | None:
        """Seconds since the group coordinator last accepted a heartbeat, or None."""
        if self._background is None:
            return None
        last = self._member.membership.heartbeats.last_accepted
        return None if last is None else self._queue.clock() - last
