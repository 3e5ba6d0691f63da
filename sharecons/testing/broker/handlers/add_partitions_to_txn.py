"""AddPartitionsToTxn 0 to 3: add partitions to a transaction.

Producers with transactions of version 2 do not send it: Produce 12 adds partitions
(KIP-890). Only brokers send versions 4 and 5. If one partition cannot be added, none
is; the others get OPERATION_NOT_ATTEMPTED. PRODUCER_FENCED exists since version 2
(KIP-588).
"""

from collections.abc import Iterable, Mapping

from sharecons.testing.broker import transaction_checks
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.transactions import Producer, TopicPartition
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    abort_expired(context.cluster, context.now, milliseconds())
    name = request.v3_and_below_transactional_id
    producer = Producer(
        request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
    )
    partitions = _topic_partitions(request.v3_and_below_topics)
    errors = _add(name, producer, partitions, context)
    if context.version < 2:
        errors = {
            topic_partition: _old_error(code)
            for topic_partition, code in errors.items()
        }
    return {"results_by_topic_v3_and_below": _results(errors)}


def _add(
    name: str, producer: Producer, partitions: list[TopicPartition], context: Context
) -> Mapping[TopicPartition, ErrorCode]:
    cluster = context.cluster
    if error := transaction_checks.transactional_id_error(context, name):
        return dict.fromkeys(partitions, error)
    errors = {
        topic_partition: _partition_error(topic_partition, context)
        for topic_partition in partitions
    }
    if any(errors.values()):
        not_attempted = ErrorCode.operation_not_attempted
        return {
            topic_partition: fault or not_attempted
            for topic_partition, fault in errors.items()
        }
    error = cluster.transactions.add_partitions(name, producer, partitions, context.now)
    return dict.fromkeys(partitions, error)


def _partition_error(topic_partition: TopicPartition, context: Context) -> ErrorCode:
    topic, partition = topic_partition
    found = context.cluster.topics.by_name(topic)
    internal = found is not None and found.internal
    if internal or context.cluster.authorizer.denies("WRITE", "TOPIC", topic):
        return ErrorCode.topic_authorization_failed
    if found is None or found.partition(partition) is None:
        return ErrorCode.unknown_topic_or_partition
    return ErrorCode.none


def _old_error(code: ErrorCode) -> ErrorCode:
    fenced = code is ErrorCode.producer_fenced
    return ErrorCode.invalid_producer_epoch if fenced else code


def _topic_partitions(topics: Iterable[Request]) -> list[TopicPartition]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results(errors: Mapping[TopicPartition, ErrorCode]) -> list[Response]:
    topics: dict[str, list[Response]] = {}
    for (topic, partition), code in errors.items():
        result = {"partition_index": partition, "partition_error_code": code}
        topics.setdefault(topic, []).append(result)
    return [
        {"name": topic, "results_by_partition": results}
        for topic, results in topics.items()
    ]
