"""Snapshots of records and share groups for a test, without the protocol.

A group is settled once each record below the end of each of its partitions is
acknowledged or archived.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import anyio

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.log.messages import contents_of
from sharecons.testing.broker.log.partition_log import StoredBatch
from sharecons.testing.broker.share.deliveries import Delivery, State
from sharecons.testing.broker.share.group import Member, ShareGroup
from sharecons.testing.broker.share.in_flight import Run
from sharecons.testing.broker.share.partitions import SharePartitionKey
from sharecons.testing.broker.snapshots import (
    GroupSnapshot,
    MemberSnapshot,
    OffsetSnapshot,
    OffsetState,
    PartitionSnapshot,
    RecordSnapshot,
)
from sharecons.testing.broker.topics import Partition, Topic

__all__ = ["Inspection"]

NO_LIMIT: Final = 2**63 - 1  # bytes
UNDELIVERED: Final = Delivery(State.AVAILABLE, 0)


class Inspection:
    """Takes snapshots of a cluster; call it on the event loop of the brokers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def records(self, topic: str, partition: int | None) -> tuple[RecordSnapshot, ...]:
        """Return the records of a topic or a partition, by partition and offset.

        Raises:
            LookupError: there is no such topic or partition.
            ValueError: a batch is damaged.
        """
        found = self._cluster.topics.get(topic)
        partitions = found.partitions
        if partition is not None:
            target = found.partition(partition)
            if target is None:
                raise LookupError(f"topic {topic!r} has no partition {partition}")
            partitions = [target]
        return tuple(each for target in partitions for each in _records(found, target))

    def group(self, group_id: str) -> GroupSnapshot:
        """Return the state of a share group.

        Raises:
            LookupError: there is no such share group.
        """
        group = self._share_group(group_id)
        members = (self._member(each) for each in group.members.values())
        return GroupSnapshot(
            group_id=group_id,
            members=tuple(sorted(members, key=lambda member: member.member_id)),
            partitions=tuple(
                _partition(
                    topic, partition, *self._in_flight(group_id, topic, partition)
                )
                for topic, partition in self._partitions(group)
            ),
        )

    def unsettled(self, group_id: str, topic: str | None) -> list[str]:
        """Return the unsettled records as lines of an error message; empty if none.

        Raises:
            LookupError: the topic does not exist, or the group is not a share group.
        """
        topics = None if topic is None else {self._cluster.topics.get(topic).name}
        if self._cluster.groups.get(group_id) is None:
            return ["the group does not exist: no consumer has joined it"]
        group = self._share_group(group_id)
        partitions = [
            (found, partition)
            for found, partition in self._partitions(group)
            if topics is None or found.name in topics
        ]
        if not partitions:
            of_topic = "" if topic is None else f" of topic {topic!r}"
            return [f"the group has no partition{of_topic}: no consumer has subscribed"]
        reasons = [
            reason
            for found, partition in partitions
            for reason in self._unsettled(group_id, found, partition)
        ]
        if reasons and not group.members:
            reasons.append("the group has no members")
        return reasons

    def _unsettled(
        self, group_id: str, topic: Topic, partition: Partition
    ) -> Iterator[str]:
        start, runs = self._in_flight(group_id, topic, partition)
        name = f"{topic.name}-{partition.index}"
        for run in runs:
            if not run.delivery.state.is_final:
                yield f"{name}: {_format_offsets(run)}: {_describe(run.delivery)}"
        first = partition.log.start_offset if start is None else start
        if runs:
            first = runs[-1].last_offset + 1
        last = partition.log.end_offset - 1
        if first <= last:
            rest = Run(first, last, UNDELIVERED)
            yield f"{name}: {_format_offsets(rest)}: {_describe(UNDELIVERED)}"

    def _in_flight(
        self, group_id: str, topic: Topic, partition: Partition
    ) -> tuple[int | None, list[Run]]:
        """Return the start offset, and each offset in flight without gaps."""
        key = SharePartitionKey(group_id, topic.topic_id, partition.index)
        start, runs = self._cluster.share_partitions.in_flight(key)
        if start < 0:
            return None, []
        start = max(start, partition.log.start_offset)
        return start, list(_fill_gaps(start, runs))

    def _partitions(self, group: ShareGroup) -> list[tuple[Topic, Partition]]:
        """Return the partitions that the group has state of, or has subscribed to."""
        topics = self._cluster.topics
        known = {
            (each.topic_id, each.partition)
            for each in self._cluster.share_partitions.offsets(group.group_id)
        }
        subscribed = {
            name for member in group.members.values() for name in member.topics
        }
        return [
            (topic, partition)
            for topic in sorted(topics, key=lambda topic: topic.name)
            for partition in topic.partitions
            if topic.name in subscribed or (topic.topic_id, partition.index) in known
        ]

    def _member(self, member: Member) -> MemberSnapshot:
        topics = self._cluster.topics
        assigned = (
            (topic.name, index)
            for topic_id, index in member.assigned
            if (topic := topics.by_id(topic_id))
        )
        return MemberSnapshot(
            member_id=member.member_id,
            member_epoch=member.epoch,
            client_id=member.client_id,
            topics=tuple(sorted(member.topics)),
            assignment=tuple(sorted(assigned)),
        )

    def _share_group(self, group_id: str) -> ShareGroup:
        group = self._cluster.groups.share(group_id)
        group.advance(anyio.current_time())
        return group


def _records(topic: Topic, partition: Partition) -> Iterator[RecordSnapshot]:
    log = partition.log
    for batch in log.batches(log.start_offset, log.end_offset, NO_LIMIT):
        if batch.is_control:
            continue
        try:
            yield from _of_batch(topic.name, partition.index, log.start_offset, batch)
        except ValueError as error:
            raise ValueError(
                f"topic {topic.name!r}, partition {partition.index}: the batch with "
                f"the offsets {batch.base_offset} to {batch.last_offset} is damaged"
            ) from error


def _of_batch(
    topic: str, partition: int, first: int, batch: StoredBatch
) -> Iterator[RecordSnapshot]:
    for each in contents_of(batch.data):
        if each.offset >= first:
            yield RecordSnapshot(
                topic=topic,
                partition=partition,
                offset=each.offset,
                timestamp=each.timestamp,
                key=each.key,
                value=each.value,
                headers=each.headers,
            )


def _partition(
    topic: Topic, partition: Partition, start: int | None, runs: Iterable[Run]
) -> PartitionSnapshot:
    return PartitionSnapshot(
        topic=topic.name,
        partition=partition.index,
        start_offset=start,
        end_offset=partition.log.end_offset,
        in_flight=tuple(
            OffsetSnapshot(
                offset=offset,
                state=OffsetState[run.delivery.state.name],
                delivery_count=run.delivery.count,
                member_id=run.delivery.member or None,
            )
            for run in runs
            for offset in range(run.first_offset, run.last_offset + 1)
        ),
    )


def _fill_gaps(start: int, runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the deliveries at or above the start offset; gaps are available."""
    following = start
    for run in runs:
        if run.first_offset > following:
            yield Run(following, run.first_offset - 1, UNDELIVERED)
        if run.last_offset >= start:
            yield run._replace(first_offset=max(run.first_offset, start))
        following = max(following, run.last_offset + 1)


def _format_offsets(run: Run) -> str:
    if run.length == 1:
        return f"offset {run.first_offset}"
    return f"offsets {run.first_offset} to {run.last_offset}"


def _describe(delivery: Delivery) -> str:
    if delivery == UNDELIVERED:
        return "not delivered yet"
    times = "1 delivery" if delivery.count == 1 else f"{delivery.count} deliveries"
    state = delivery.state.name.lower()
    by = f" by member {delivery.member}" if delivery.member else ""
    return f"{state}{by} after {times}"
