"""CreateTopics 2 to 7: create topics, and from version 5 on describe them.

Partitions and replication are numbers, or -1 for the broker's defaults (KIP-464), or a
manual assignment. With `validate_only` nothing is created. CREATE on the cluster allows
any topic, even one whose own ACLs deny it.
"""

import uuid
from collections import Counter

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.create_topics import NewTopic, create_topic, plan_topic
from sharecons.testing.broker.placement import RequestError

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    times = Counter(topic.name for topic in request.topics)
    asked = {topic.name: topic for topic in request.topics}
    answers = []
    for name, topic in asked.items():
        try:
            _check(context.cluster, name, times[name])
            answers.append(_create(context, _wanted(topic), request.validate_only))
        except RequestError as refusal:
            answers.append(_refused(name, refusal))
    return {"topics": answers}


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


def _wanted(topic: Request) -> NewTopic:
    return NewTopic(
        name=topic.name,
        partitions=topic.num_partitions,
        replication=topic.replication_factor,
        assignments=[
            (each.partition_index, each.broker_ids) for each in topic.assignments
        ],
        config={each.name: each.value for each in topic.configs},
    )


def _create(context: Context, wanted: NewTopic, validate_only: bool) -> Response:
    cluster = context.cluster
    replicas = plan_topic(cluster, wanted)
    topic_id = uuid.uuid4()
    if not validate_only:
        topic_id = create_topic(cluster, wanted).topic_id
    answer: Response = {"name": wanted.name, "topic_id": topic_id, "configs": []}
    if cluster.authorizer.denies("DESCRIBE_CONFIGS", "TOPIC", wanted.name):
        code = ErrorCode.topic_authorization_failed
        return {**answer, "topic_config_error_code": int(code)}
    return {
        **answer,
        "num_partitions": len(replicas),
        "replication_factor": len(replicas[0]),
        "configs": _configs(wanted, context),
    }


def _configs(wanted: NewTopic, context: Context) -> list[Response]:
    configs = context.cluster.configs
    entries = configs.describe_topic(wanted.config_values, context.node_id)
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


def _refused(name: str, refusal: RequestError) -> Response:
    return {
        "name": name,
        "error_code": refusal.code,
        "error_message": refusal.message,
        "configs": [],
    }
