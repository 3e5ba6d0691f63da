"""Produce, batch by batch: validate it, verify its transaction, append it.

`EmbeddedBroker.produce()` also appends by `append_as_leader`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.log.batches import BatchHeader, decode_header
from sharecons.testing.broker.log.partition_log import (
    Appended,
    AppendError,
    LogRules,
)
from sharecons.testing.broker.log.rules import check_batch
from sharecons.testing.broker.topics import NO_LEADER, Partition, Topic
from sharecons.testing.broker.transactions import (
    Producer,
    TopicPartition,
    TransactionSupport,
)

__all__ = [
    "Append",
    "Result",
    "append_as_leader",
    "check_append",
    "validate_batch",
    "verify_transactions",
    "write",
]

ALL_REPLICAS: Final = -1  # of acks
ZSTD: Final = 4
ZSTD_SINCE: Final = 7  # the version of Produce (KIP-110)

NOT_APPENDED: Final = Appended(-1, -1)

WITHOUT_START_OFFSET: Final = (
    ErrorCode.corrupt_message,
    ErrorCode.invalid_topic_exception,
    ErrorCode.message_too_large,
    ErrorCode.not_leader_or_follower,
)
"""Errors for which Kafka's response has no log start offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """A batch to append to a partition's log."""

    topic: Topic
    partition: Partition
    data: bytes
    header: BatchHeader

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic.name, self.partition.index

    @property
    def producer(self) -> Producer:
        return Producer(self.header.producer_id, self.header.producer_epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of appending one partition's batch."""

    code: ErrorCode = ErrorCode.none
    message: str | None = None
    record_errors: Mapping[int, str] = field(default_factory=dict)
    appended: Appended = NOT_APPENDED
    start_offset: int = -1
    leader: Partition | None = None
    """The partition, if another broker is its leader."""


def validate_batch(
    topic: Topic, partition: Partition, batches: Sequence[bytes], version: int
) -> Append:
    """Return the one batch of a partition, with its header.

    Raises:
        AppendError: there is not exactly one batch, or its format is not allowed.
    """
    if len(batches) != 1:
        raise AppendError(
            ErrorCode.invalid_record,
            "Produce requests must have exactly one record batch per partition",
        )
    header = decode_header(batches[0])
    if header.compression == ZSTD and version < ZSTD_SINCE:
        raise AppendError(
            ErrorCode.unsupported_compression_type,
            f"Produce requests with version {version} are not allowed to use "
            "ZStandard compression",
        )
    return Append(topic=topic, partition=partition, data=batches[0], header=header)


def verify_transactions(
    appends: Iterable[Append],
    transactional_id: str,
    support: TransactionSupport,
    context: Context,
) -> Mapping[TopicPartition, Result]:
    """Verify the batches of a transaction with the coordinator; return the errors.

    A batch of a transaction that is already open in the log needs no verification.
    """
    unverified = [
        each
        for each in appends
        if each.header.is_transactional
        and each.partition.leader == context.node_id
        and not each.partition.log.has_open_transaction(
            each.header.producer_id, each.header.producer_epoch
        )
    ]
    if not unverified:
        return {}
    codes = context.cluster.transactions.verify_or_add(
        transactional_id,
        unverified[0].producer,
        [each.topic_partition for each in unverified],
        support,
        context.now,
    )
    return {partition: _error_result(code) for partition, code in codes.items() if code}


def _error_result(code: ErrorCode) -> Result:
    message = None
    if code is ErrorCode.invalid_txn_state:
        message = "Partition was not added to the transaction"
    return Result(code=code, message=message)


def write(
    append: Append,
    acks: int,
    support: TransactionSupport,
    context: Context,
    now_ms: int,
) -> Result:
    """Append a batch, if this broker is the leader of its partition."""
    partition, log = append.partition, append.partition.log
    try:
        appended = append_as_leader(
            append,
            context.node_id,
            context.cluster,
            now_ms,
            acks=acks,
            transaction_version=2 if support is TransactionSupport.ADD_PARTITION else 1,
        )
    except AppendError as error:
        has_moved = error.code is ErrorCode.not_leader_or_follower
        return Result(
            code=error.code,
            message=error.message if error.record_errors else None,
            record_errors=error.record_errors,
            start_offset=-1 if error.code in WITHOUT_START_OFFSET else log.start_offset,
            leader=partition if has_moved else None,
        )
    return Result(appended=appended, start_offset=log.start_offset)


def append_as_leader(
    append: Append,
    node_id: int,
    cluster: Cluster,
    now_ms: int,
    *,
    acks: int = ALL_REPLICAS,
    transaction_version: int = 0,
) -> Appended:
    """Append a batch as the broker `node_id`, by the settings of the topic.

    Raises:
        AppendError: the batch is rejected; nothing has changed.
    """
    _check_partition(append, node_id, cluster, acks)
    return append.partition.log.append(
        append.data,
        now_ms,
        leader_epoch=append.partition.leader_epoch,
        rules=_rules(append, cluster),
        transaction_version=transaction_version,
    )


def check_append(append: Append, cluster: Cluster, now_ms: int) -> None:
    """Check whether the partition's leader would append a batch without a transaction.

    Raises:
        AppendError: the batch would be rejected.
    """
    _check_partition(append, append.partition.leader, cluster, ALL_REPLICAS)
    check_batch(append.data, append.header, _rules(append, cluster), now_ms)


def _check_partition(append: Append, node_id: int, cluster: Cluster, acks: int) -> None:
    name, index = append.topic_partition
    if append.topic.internal:
        raise AppendError(
            ErrorCode.invalid_topic_exception, f"Topic '{name}' is internal."
        )
    if append.partition.leader != node_id or node_id == NO_LEADER:
        raise AppendError(
            ErrorCode.not_leader_or_follower,
            f"Broker {node_id} is not the leader of partition {index} of '{name}'.",
        )
    if acks == ALL_REPLICAS and _has_too_few_replicas(append, cluster):
        raise AppendError(
            ErrorCode.not_enough_replicas,
            "Fewer replicas than that are in sync.",
            setting="min.insync.replicas",
        )


def _rules(append: Append, cluster: Cluster) -> LogRules:
    return LogRules.from_settings(
        partial(cluster.configs.topic_value, append.topic.config)
    )


def _has_too_few_replicas(append: Append, cluster: Cluster) -> bool:
    configured = cluster.configs.topic_value(append.topic.config, "min.insync.replicas")
    replicas = append.partition.replicas
    required = min(int(configured), len(replicas))
    return len(append.partition.in_sync(cluster.running)) < required
