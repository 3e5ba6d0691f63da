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
            place
            for place in topic.partitions
            if context.node_id in place.replicas
            and _is_requested(topic, place, requested)
        ]
        for topic in cluster.topics
    }
    topics = [
        {"name": name, "partitions": [_partition(place) for place in places]}
        for name, places in local.items()
        if places
    ]
    return {"results": [{"log_dir": DIRECTORY, "topics": topics}]}


def _is_requested(
    topic: Topic, place: Partition, requested: dict[str, set[int]] | None
) -> bool:
    return requested is None or place.index in requested.get(topic.name, ())


def _partition(place: Partition) -> Response:
    log = place.log
    every = log.batches(log.start_offset, log.end_offset, NO_LIMIT)
    size = sum(len(batch.data) for batch in every)
    return {"partition_index": place.index, "partition_size": size}
