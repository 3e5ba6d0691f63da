"""AddPartitionsToTxn 0 to 5: add partitions to a transaction, or verify them.

Clients add to one transaction, in versions up to 3; not with transactions of version 2,
since Produce 12 adds partitions (KIP-890). Since version 4, brokers add or verify for
several transactions. If one partition cannot be added, none is; the others get
OPERATION_NOT_ATTEMPTED. PRODUCER_FENCED exists since version 2 (KIP-588).
"""

from collections.abc import Iterable, Mapping

from sharecons.testing.broker import transaction_checks
from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.transactions import Producer, TopicPartition
from sharecons.testing.broker.txn_markers import abort_expired
from sharecons.testing.broker.wall_clock import milliseconds

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    abort_expired(context.cluster, context.now, milliseconds())
    if context.version < 4:
        return {"results_by_topic_v3_and_below": _client_results(request, context)}
    if context.cluster.authorizer.denies("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        return {"error_code": ErrorCode.cluster_authorization_failed}
    return {
        "results_by_transaction": [
            {
                "transactional_id": each.transactional_id,
                "topic_results": _broker_results(each, context),
            }
            for each in request.transactions
        ]
    }


def _client_results(request: Request, context: Context) -> list[Response]:
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
    return _results(errors)


def _broker_results(request: Request, context: Context) -> list[Response]:
    name = request.transactional_id
    producer = Producer(request.producer_id, request.producer_epoch)
    partitions = _topic_partitions(request.topics)
    error = transaction_checks.transactional_id_error(context, name)
    if error or not request.verify_only:
        return _results(_add(name, producer, partitions, context))
    return _results(context.cluster.transactions.verify(name, producer, partitions))


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
