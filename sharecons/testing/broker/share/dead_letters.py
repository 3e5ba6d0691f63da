"""Writes the records that a share group archives to its dead letter topic (KIP-1191).

Active if the group has `errors.deadletterqueue.topic.name`. That name must begin with
the brokers' `errors.deadletterqueue.topic.name.prefix`, and the topic must have
`errors.deadletterqueue.group.enable`. A missing topic is created only if the brokers'
`errors.deadletterqueue.auto.create.topics.enable` is true. Any other obstacle is not
reported: the records are archived without a copy.

Measured on Kafka 4.4.0: a copy goes to the partition of the same number, modulo the
topic's partitions. It has the time of writing and the headers below, but none of the
source's. Its key and value are null; with `errors.deadletterqueue.copy.record.enable`
they are the source's, if the log still has them and the topic accepts them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from sharecons.testing.broker.batch_writer import (
    Header,
    NewRecord,
    encode_batches_within,
)
from sharecons.testing.broker.configs import DEAD_LETTERS, Configs
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.log.batches import decode_header
from sharecons.testing.broker.log.messages import decode_messages, is_message
from sharecons.testing.broker.log.partition_log import (
    AppendError,
    LogRules,
    PartitionLog,
)
from sharecons.testing.broker.log.records import (
    RecordContent,
    decode_records,
    decompress,
)
from sharecons.testing.broker.placement import Nodes, place_replicas
from sharecons.testing.broker.share.in_flight import Run
from sharecons.testing.broker.share.partitions import SharePartitionKey
from sharecons.testing.broker.topics import (
    NO_LEADER,
    Partition,
    Topic,
    Topics,
    topic_name_error,
)
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["DeadLetters"]

COPY: Final = "errors.deadletterqueue.copy.record.enable"
ENABLE: Final = "errors.deadletterqueue.group.enable"
CREATE: Final = "errors.deadletterqueue.auto.create.topics.enable"
PREFIX: Final = "errors.deadletterqueue.topic.name.prefix"

REJECTED: Final = b"Offset rejected by client."
TOO_MANY_DELIVERIES: Final = b"Offset delivery count exceeded the threshold."

NO_LIMIT: Final = 2**63 - 1


class ClusterView(Protocol):
    """The attributes of a cluster that dead letters need."""

    @property
    def topics(self) -> Topics: ...

    @property
    def configs(self) -> Configs: ...

    @property
    def nodes(self) -> Nodes: ...

    def add_topic(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> Topic: ...


class DeadLetters:
    """Writes dead letters for the leaders of share partitions."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster

    def write(self, key: SharePartitionKey, node_id: int, run: Run) -> bool:
        """Write neighbours, for the leader of their share partition.

        Returns whether they can be archived, written or not; False as long as the
        target partition has no leader.
        """
        source = self._cluster.topics.by_id(key.topic_id)
        topic = self._topic(key.group_id, node_id)
        if source is None or topic is None:
            return True
        target = topic.partitions[key.partition % len(topic.partitions)]
        if target.leader == NO_LEADER:
            return False
        if not self._has_too_few_replicas(topic, target):
            rules = LogRules.from_settings(partial(self._topic_value, topic))
            copies = self._copies(key, source, run, rules.max_message_bytes)
            records = list(_records(key, source.name, run, copies))
            with suppress(AppendError):
                _append(target, records, rules)
        return True

    def _topic(self, group_id: str, node_id: int) -> Topic | None:
        """Return the group's topic, created if necessary; None if there is none."""
        configs = self._cluster.configs
        name = configs.group_value(group_id, DEAD_LETTERS)
        if not name or not name.startswith(configs.broker_value(PREFIX, node_id)):
            return None
        topic = self._cluster.topics.by_name(name)
        if topic is None:
            may_create = _is_true(configs.broker_value(CREATE, node_id))
            return self._create_topic(name) if may_create else None
        return topic if _is_true(self._topic_value(topic, ENABLE)) else None

    def _create_topic(self, name: str) -> Topic | None:
        cluster = self._cluster
        if topic_name_error(name) or cluster.topics.find_collision(name):
            return None
        partitions = int(cluster.configs.broker_value("num.partitions"))
        replication = int(cluster.configs.broker_value("default.replication.factor"))
        try:
            replicas = place_replicas(cluster.nodes, range(partitions), replication)
        except RequestError:
            return None
        config = {ENABLE: "true", "message.timestamp.type": "CreateTime"}
        return cluster.add_topic(name, replicas, config)

    def _has_too_few_replicas(self, topic: Topic, target: Partition) -> bool:
        configured = int(self._topic_value(topic, "min.insync.replicas"))
        living = target.in_sync(self._cluster.nodes.running)
        return len(living) < min(configured, len(target.replicas))

    def _topic_value(self, topic: Topic, name: str) -> str:
        return self._cluster.configs.topic_value(topic.config, name)

    def _copies(
        self, key: SharePartitionKey, source: Topic, run: Run, max_bytes: int
    ) -> Mapping[int, RecordContent]:
        partition = source.partition(key.partition)
        if partition is None or not _is_true(
            self._cluster.configs.group_value(key.group_id, COPY)
        ):
            return {}
        found = _readable_contents(
            partition.log, run.first_offset, run.last_offset, max_bytes
        )
        return {each.offset: each for each in found}


def _readable_contents(
    log: PartitionLog, first_offset: int, last_offset: int, max_bytes: int
) -> Iterator[RecordContent]:
    """Yield the records of a range that the log has and that are not too large.

    As in Kafka, a range that begins before the log start yields none, and neither does
    a compressed batch that is too large when decompressed.
    """
    if first_offset < log.start_offset:
        return
    with suppress(ValueError):
        for batch in log.batches(first_offset, last_offset + 1, NO_LIMIT):
            if is_message(batch.data):
                yield from _small_contents(
                    decode_messages(batch.data), first_offset, last_offset, max_bytes
                )
                continue
            header = decode_header(batch.data)
            body = decompress(batch.data, header)
            if header.compression and len(body) > max_bytes:
                continue
            yield from _small_contents(
                decode_records(body, header), first_offset, last_offset, max_bytes
            )


def _small_contents(
    contents: Iterable[RecordContent],
    first_offset: int,
    last_offset: int,
    max_bytes: int,
) -> Iterator[RecordContent]:
    for content in contents:
        is_wanted = first_offset <= content.offset <= last_offset
        if is_wanted and content.size <= max_bytes:
            yield content


def _records(
    key: SharePartitionKey, topic: str, run: Run, copies: Mapping[int, RecordContent]
) -> Iterator[NewRecord]:
    for offset in range(run.first_offset, run.last_offset + 1):
        copy = copies.get(offset)
        yield NewRecord(
            copy.value if copy else None,
            copy.key if copy else None,
            _headers(key, topic, offset, run),
        )


def _headers(key: SharePartitionKey, topic: str, offset: int, run: Run) -> list[Header]:
    values: tuple[tuple[str, str | int], ...] = (
        ("topic", topic),
        ("partition", key.partition),
        ("offset", offset),
        ("group", key.group_id),
        ("delivery.count", run.delivery.count),
    )
    message = REJECTED if run.delivery.is_rejected else TOO_MANY_DELIVERIES
    return [
        *((f"__dlq.errors.{name}", str(value).encode()) for name, value in values),
        ("__dlq.errors.message", message),
    ]


def _append(target: Partition, records: Sequence[NewRecord], rules: LogRules) -> None:
    """Append batches, up to the first that the topic rejects.

    Raises:
        AppendError: the topic rejects a batch.
    """
    now_ms = milliseconds()
    for batch in encode_batches_within(records, now_ms, rules.max_message_bytes):
        target.log.append(batch, now_ms, leader_epoch=target.leader_epoch, rules=rules)


def _is_true(value: str) -> bool:
    return value.lower() == "true"
