"""The state of a consumer in its group: partitions, heartbeats, problems."""

from sharecons.consumer.lifecycle import Lifecycle
from sharecons.record import TopicPartition

__all__ = ["Health"]


class Health(Lifecycle):
    """Shows the state of a consumer in its group."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions; other members can have them as well."""
        return self._member.assignment

    async def assigned(self) -> frozenset[TopicPartition]:
        """Wait until partitions are assigned, and return them.

        Records that are written to these partitions from now on belong to the group,
        even if it is new and starts at the end (`auto_offset_reset="latest"`), and even
        if nothing was read yet. This takes about a second after joining, and up to
        `max_wait` more while a loop waits for records. Partitions can be added later.
        After `subscribe` this waits until all partitions are of the new topics; not
        each of these topics has partitions then.

        It waits as long as no partition is assigned, for example until a topic is
        created: use `anyio.fail_after`. Cancelling it changes nothing. Several tasks
        can call it at any time, beside loops.

        Raises:
            AuthorizationError, BrokerError: a topic or partition cannot be read. Loops
                raise the error as well.
            ClosedError, NotSubscribedError, ConsumerStateError: it cannot be read now.
            Error: the error that ended the consumer.
        """
        return await self._member.assigned()

    @property
    def missing_topics(self) -> frozenset[str]:
        """The topics of the subscription that do not exist, by the latest metadata."""
        return self._member.missing_topics

    @property
    def connected(self) -> bool:
        """True while heartbeats, fetches and acknowledgements are accepted.

        False before the first heartbeat is accepted, after a failure, when one is
        overdue by a heartbeat interval, without topics, and once the consumer closes.
        """
        return self._member.is_connected

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems that last now and are logged as warnings."""
        return self._member.problems

    @property
    def seconds_since_heartbeat(self) -> float | None:
        """Seconds since the group coordinator last accepted a heartbeat, or None."""
        return self._member.seconds_since_heartbeat
