"""CreatePartitions 0 to 3 (KIP-195): add partitions to existing topics."""

from collections import Counter

from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.create_topics import add_partitions
from sharecons.testing.broker.errors import RequestError

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    times = Counter(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}
    results: list[Response] = []
    for name, topic in topics.items():
        try:
            _check(context.cluster, name, times[name])
            _add(context.cluster, topic, request.validate_only)
            results.append({"name": name})
        except RequestError as error:
            results.append({"name": name, **error.fields})
    return {"results": results}


def _check(cluster: Cluster, name: str, times: int) -> None:
    if times > 1:
        raise RequestError(ErrorCode.invalid_request, "Duplicate topic name.")
    if cluster.authorizer.denies("ALTER", "TOPIC", name):
        raise RequestError(ErrorCode.topic_authorization_failed)


def _add(cluster: Cluster, topic: Request, validate_only: bool) -> None:
    assignments = topic.assignments
    by_hand = None if assignments is None else [each.broker_ids for each in assignments]
    add_partitions(
        cluster, topic.name, topic.count, by_hand, validate_only=validate_only
    )
