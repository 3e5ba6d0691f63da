"""Direct changes to a cluster by a test, without the protocol."""

import itertools
import uuid
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

from sharecons.testing.broker.append import (
    Append,
    append_as_leader,
    check_append,
)
from sharecons.testing.broker.batch_writer import Header, NewRecord, encode_batches
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.coordinators import GROUP
from sharecons.testing.broker.create_topics import NewTopic, create_topic
from sharecons.testing.broker.errors import ConfigError, RequestError
from sharecons.testing.broker.log.batches import AppendError, decode_header
from sharecons.testing.broker.produce_arguments import check_produce
from sharecons.testing.broker.settings.validation import (
    SettingError,
    group_settings,
    topic_settings,
)
from sharecons.testing.broker.share.group import ShareGroup
from sharecons.testing.broker.topic_arguments import check_topic
from sharecons.testing.broker.topics import NO_LEADER, Partition, Topic

__all__ = ["Control"]


class Control:
    """Changes a cluster's state; call it on the event loop of the brokers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._round_robin = itertools.count()

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int | None,
        config: Mapping[str, object],
    ) -> None:
        check_topic(name, partitions)
        copies = len(self._cluster.brokers) if replication is None else replication
        wanted = NewTopic(
            name=name,
            partitions=partitions,
            replication=copies,
            config=topic_settings(config),
        )
        try:
            create_topic(self._cluster, wanted)
        except RequestError as error:
            text = str(error)
            named = text if repr(name) in text else f"topic {name!r}: {text}"
            raise RequestError(error.code, named) from None

    def delete_topic(self, name: str) -> None:
        self._cluster.delete_topic(self._cluster.topics.get(name))

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
        """Write records; `now` is the log's own time, in milliseconds.

        Raises:
            TypeError, ValueError: an argument is invalid; see `EmbeddedBroker.produce`.
            RequestError: a broker would reject one of the batches; none is written.
        """
        found = self._cluster.topics.get(topic)
        values = check_produce(
            values,
            partition=partition,
            keys=keys,
            headers=headers,
            batch=batch,
            timestamp=timestamp,
        )
        records = self._records(found, values, partition, keys, headers)
        limit = int(
            self._cluster.configs.topic_value(found.config, "max.message.bytes")
        )
        appends = [
            Append(topic=found, partition=target, data=data, header=decode_header(data))
            for index, of_partition in records.items()
            for target in (self._partition(topic, index),)
            for data in encode_batches(of_partition, timestamp, batch, limit)
        ]
        for append in appends:
            try:
                check_append(append, self._cluster, now)
            except AppendError as error:
                raise self._produce_error(append, error) from None
        for append in appends:
            append_as_leader(append, append.partition.leader, self._cluster, now)

    def _records(
        self,
        topic: Topic,
        values: Sequence[bytes | str | None],
        partition: int | None,
        keys: Sequence[bytes | str | None] | None,
        headers: Sequence[Header],
    ) -> dict[int, list[NewRecord]]:
        """Return the records of each partition."""
        records: dict[int, list[NewRecord]] = {}
        for value, key in zip(
            values, map(_bytes, keys or [None] * len(values)), strict=True
        ):
            index = (
                self._choose_partition(topic, key) if partition is None else partition
            )
            record = NewRecord(_bytes(value), key, headers)
            records.setdefault(index, []).append(record)
        return records

    def _produce_error(self, append: Append, error: AppendError) -> RequestError:
        """Return the error of `produce`: partition, setting and reason."""
        topic, index = append.topic_partition
        reasons = [f"topic {topic!r}, partition {index}"]
        if error.setting is not None:
            value = self._cluster.configs.topic_value(
                append.topic.config, error.setting
            )
            reasons.append(f"{error.setting}={value}")
        if append.partition.leader == NO_LEADER:
            reasons.append("no leader, because all brokers with a replica are stopped")
        else:
            reasons.append(next(iter(error.record_errors.values()), error.message))
        return RequestError(error.code, ": ".join(reasons))

    def load_log(self, topic: str, partition: int, data: bytes) -> None:
        self._partition(topic, partition).log.load(data)

    def corrupt_batch(self, topic: str, partition: int, offset: int) -> None:
        self._partition(topic, partition).log.corrupt(offset)

    def leader(self, topic: str, partition: int) -> int:
        return self._partition(topic, partition).leader

    def move_leader(self, topic: str, partition: int, to: int) -> None:
        self._cluster.move_leader(topic, partition, to)

    def coordinator(self, group_id: str) -> int:
        cluster = self._cluster
        return cluster.coordinators.node_for(GROUP, group_id, cluster.running)

    def move_coordinator(self, group_id: str, to: int) -> None:
        if to not in self._cluster.running:
            raise LookupError(f"broker {to!r} does not exist or is stopped")
        self._cluster.coordinators.move(GROUP, group_id, to)
        self._cluster.changed.notify()

    def set_group_config(self, group_id: str, config: Mapping[str, object]) -> None:
        settings = group_settings(config)
        try:
            self._cluster.configs.set_group(group_id, settings)
        except ConfigError as error:
            raise SettingError(str(error)) from None

    def expire_locks(
        self, group_id: str, topic: str | None, partition: int | None
    ) -> None:
        if not self._cluster.share_partitions.has_loaded(group_id):
            self._cluster.groups.share(group_id)  # raises if it does not exist
        topic_id: uuid.UUID | None = None
        if topic is not None:
            topic_id = self._cluster.topics.get(topic).topic_id
            if partition is not None:
                self._partition(topic, partition)
        self._cluster.share_partitions.expire_locks(group_id, topic_id, partition)

    def close_sessions(self, group_id: str, member_id: str) -> None:
        self._group_with(group_id, member_id)
        self._cluster.share_sessions.close_member(group_id, member_id)

    def remove_member(self, group_id: str, member_id: str) -> None:
        self._group_with(group_id, member_id).remove(member_id)

    def _group_with(self, group_id: str, member_id: str) -> ShareGroup:
        group = self._cluster.groups.share(group_id)
        if member_id not in group.members:
            raise LookupError(f"share group {group_id!r} has no member {member_id!r}")
        return group

    def _choose_partition(self, topic: Topic, key: bytes | None) -> int:
        number = next(self._round_robin) if key is None else crc32(key)
        return number % len(topic.partitions)

    def _partition(self, topic: str, index: int) -> Partition:
        partition = self._cluster.topics.get(topic).partition(index)
        if partition is None:
            raise LookupError(f"topic {topic!r} has no partition {index}")
        return partition


def _bytes(content: bytes | str | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content
