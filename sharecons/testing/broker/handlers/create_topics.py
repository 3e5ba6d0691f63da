"""CreateTopics 2 to 7: create topics, and from version 5 on describe them.

Partitions and replication are numbers, or -1 for the broker's defaults (KIP-464), or a
manual assignment. With `validate_only` nothing is created. CREATE on the cluster allows
any topic, even one whose own ACLs deny it.
"""

import uuid
from collections import Counter
from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.create_topics import NewTopic, create_topic, plan_topic
from sharecons.testing.broker.errors import RequestError

__all__ = ["handle"]


MAX_PARTITIONS: Final = 10_000
"""Partitions that one request can create."""

TOO_LARGE: Final = RequestError(
    ErrorCode.policy_violation,
    "Excessively large number of partitions per request.",
)


async def handle(request: Request, context: Context) -> Response:
    times = Counter(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}
    is_too_large = _count_partitions(request, context.cluster) > MAX_PARTITIONS
    results = []
    for name, topic in topics.items():
        try:
            if is_too_large:
                raise TOO_LARGE
            _check(context.cluster, name, times[name])
            results.append(_create(context, _new_topic(topic), request.validate_only))
        except RequestError as error:
            results.append({"name": name, **error.fields, "configs": []})
    return {"topics": results}


def _check(cluster: Cluster, name: str, times: int) -> None:
    denies = cluster.authorizer.denies
    if times > 1:
        raise RequestError(ErrorCode.invalid_request, "Duplicate topic name.")
    if name == "__cluster_metadata":
        raise RequestError(
            ErrorCode.invalid_request,
            f"Creation of internal topic {name} is prohibited.",
        )
    if denies("CREATE", "CLUSTER", CLUSTER_NAME) and denies("CREATE", "TOPIC", name):
        raise RequestError(
            ErrorCode.topic_authorization_failed, "Authorization failed."
        )


def _count_partitions(request: Request, cluster: Cluster) -> int:
    default = int(cluster.configs.broker_value("num.partitions"))
    counts = (
        len(topic.assignments) or topic.num_partitions for topic in request.topics
    )
    return sum(default if count == -1 else max(0, count) for count in counts)


def _new_topic(topic: Request) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication=topic.replication_factor,
        assignments=[
            (each.partition_index, each.broker_ids) for each in topic.assignments
        ],
        config={each.name: each.value for each in topic.configs},
    )


def _create(context: Context, new_topic: NewTopic, validate_only: bool) -> Response:
    cluster = context.cluster
    replicas = plan_topic(cluster, new_topic)
    topic_id = uuid.uuid4()
    if not validate_only:
        topic_id = create_topic(cluster, new_topic).topic_id
    result: Response = {"name": new_topic.name, "topic_id": topic_id, "configs": []}
    if cluster.authorizer.denies("DESCRIBE_CONFIGS", "TOPIC", new_topic.name):
        code = ErrorCode.topic_authorization_failed
        return {**result, "topic_config_error_code": int(code)}
    return {
        **result,
        "num_partitions": len(replicas),
        "replication_factor": len(replicas[0]),
        "configs": _configs(new_topic, context),
    }


def _configs(new_topic: NewTopic, context: Context) -> list[Response]:
    configs = context.cluster.configs
    entries = configs.describe_topic(new_topic.config_values, context.node_id)
    return [
        {
            "name": entry.name,
            "value": entry.value,
            "read_only": entry.read_only,
            "config_source": entry.source,
            "is_sensitive": entry.sensitive,
        }
        for entry in sorted(entries, key=lambda entry: entry.name)
    ]
