"""What a test does to a cluster by hand, past the protocol."""

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.coordinators import GROUP
from sharecons.testing.broker.creation import NewTopic, create_topic
from sharecons.testing.broker.share.group import ShareGroup
from sharecons.testing.broker.topics import Partition, Topic
from sharecons.testing.broker.writing import Header, NewRecord, batches_of

__all__ = ["Control"]


class Control:
    """A test's hands on the cluster's state."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._turn = itertools.count()

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int | None,
        config: Mapping[str, str],
    ) -> None:
        copies = len(self._cluster.brokers) if replication is None else replication
        wanted = NewTopic(
            name=name, partitions=partitions, replication=copies, config=config
        )
        create_topic(self._cluster, wanted)

    def delete_topic(self, name: str) -> None:
        self._cluster.delete_topic(self._topic(name))

    def produce(
        self,
        topic: str,
        values: Iterable[bytes | str | None],
        *,
        partition: int | None,
        keys: Sequence[bytes | str | None] | None,
        headers: Sequence[Header],
        batch: int | None,
        timestamp: int,
        now: int,
    ) -> None:
        """Write records; `now` is the log's own time, in milliseconds."""
        found = self._topic(topic)
        records: dict[int, list[NewRecord]] = {}
        for number, value in enumerate(values):
            key = None if keys is None else _bytes(keys[number])
            index = self._choose(found, key) if partition is None else partition
            record = NewRecord(_bytes(value), key, headers)
            records.setdefault(index, []).append(record)
        for index, of_partition in records.items():
            log = self._partition(topic, index).log
            for content in batches_of(of_partition, timestamp, batch):
                log.append(content, now)

    def corrupt_batch(self, topic: str, partition: int, offset: int) -> None:
        self._partition(topic, partition).log.corrupt(offset)

    def leader(self, topic: str, partition: int) -> int:
        return self._partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        self._cluster.move_leader(topic, partition, to)

    def coordinator(self, group_id: str) -> int:
        cluster = self._cluster
        return cluster.coordinators.of(GROUP, group_id, cluster.running)

    def move_coordinator(self, group_id: str, to: int) -> None:
        self._cluster.coordinators.move(GROUP, group_id, to)
        self._cluster.changed.ring()

    def set_group_config(self, group_id: str, config: Mapping[str, str]) -> None:
        self._cluster.configs.set_group(group_id, config)

    def expire_locks(
        self, group_id: str, topic: str | None, partition: int | None
    ) -> None:
        topic_id: uuid.UUID | None = None
        if topic is not None:
            topic_id = self._topic(topic).topic_id
        self._cluster.share_partitions.expire_locks(group_id, topic_id, partition)

    def forget_session(self, group_id: str, member_id: str) -> None:
        self._cluster.share_sessions.forget(group_id, member_id)

    def forget_member(self, group_id: str, member_id: str) -> None:
        group = self._cluster.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            raise LookupError(f"no share group {group_id!r}")
        group.forget(member_id)

    def _choose(self, topic: Topic, key: bytes | None) -> int:
        number = next(self._turn) if key is None else crc32(key)
        return number % len(topic.partitions)

    def _topic(self, name: str) -> Topic:
        topic = self._cluster.topics.named(name)
        if topic is None:
            raise LookupError(f"no topic {name!r}")
        return topic

    def _partition(self, topic: str, index: int) -> Partition:
        partition = self._topic(topic).partition(index)
        if partition is None:
            raise LookupError(f"no partition {index} of topic {topic!r}")
        return partition


def _bytes(content: bytes | str | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
