"""Waiting until a consumer has partitions, and a new group starts in them."""

from sharecons.consumer.delivery_queue import DeliveryQueue
from sharecons.consumer.lifecycle import Lifecycle
from sharecons.errors import NotSubscribedError
from sharecons.member.member_tasks import MemberTasks
from sharecons.protocol.codes import Code
from sharecons.protocol.reported_errors import fetch_error, topic_error
from sharecons.record import TopicPartition

__all__ = ["AssignmentWait"]


class AssignmentWait(Lifecycle):
    """The method `assigned` of a consumer."""

    _member: MemberTasks
    _queue: DeliveryQueue
    _topics: tuple[str, ...]

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
        self._check_assignable()
        await self._member.wait_for_starts(self._has_assignment)
        return self._member.assignment

    def _has_assignment(self) -> bool:
        self._check_assignable()
        topics = {each.topic for each in self._member.assignment}
        return bool(topics) and topics.issubset(self._topics)

    def _check_assignable(self) -> None:
        """Raise the error because of which the consumer gets no records, if any."""
        self._check_open()
        self._queue.buffer.raise_fatal_error()
        if not self._topics:
            raise NotSubscribedError(
                "the consumer has no topics, so that no partition is assigned; call "
                "subscribe() first"
            )
        metadata = self._member.metadata
        for topic in sorted(metadata.unauthorized_topics().intersection(self._topics)):
            raise topic_error(topic, Code.TOPIC_AUTHORIZATION_FAILED)
        errors = self._member._leaders.pauses.codes
        for (topic_id, partition), code in errors.items():
            name = metadata.topic_names.get(topic_id, "?")
            raise fetch_error(name, partition, code, None)
