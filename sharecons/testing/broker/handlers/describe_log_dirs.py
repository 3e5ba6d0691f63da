"""DescribeLogDirs 1 to 5 (KIP-113, KIP-827): the sizes of partitions on this broker.

The one directory is fictional: logs are in memory. kafka-reassign-partitions sends this
request before it moves partitions.
"""

from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.topics import Partition, Topic

__all__ = ["handle"]

DIRECTORY: Final = "/memory"
NO_LIMIT: Final = 1 << 62  # bytes


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    if cluster.authorizer.denies("DESCRIBE", "CLUSTER", CLUSTER_NAME):
        return {"error_code": ErrorCode.cluster_authorization_failed}
    requested = None
    if request.topics is not None:
        requested = {each.topic: set(each.partitions) for each in request.topics}
    local = {
        topic.name: [
            partition
            for partition in topic.partitions
            if context.node_id in partition.replicas
            and _is_requested(topic, partition, requested)
        ]
        for topic in cluster.topics
    }
    topics = [
        {
            "name": name,
            "partitions": [_partition(partition) for partition in partitions],
        }
        for name, partitions in local.items()
        if partitions
    ]
    return {"results": [{"log_dir": DIRECTORY, "topics": topics}]}


def _is_requested(
    topic: Topic, partition: Partition, requested: dict[str, set[int]] | None
) -> bool:
    return requested is None or partition.index in requested.get(topic.name, ())


def _partition(partition: Partition) -> Response:
    log = partition.log
    batches = log.batches(log.start_offset, log.end_offset, NO_LIMIT)
    size = sum(len(batch.data) for batch in batches)
    return {"partition_index": partition.index, "partition_size": size}
