"""DeleteTopics 1 to 6: by name, and since version 6 by id as well (KIP-516).

A topic's share partitions and committed offsets are deleted with it.
"""

import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.topics import Topic

__all__ = ["handle"]

DELETION_CAN_BE_DISABLED_FROM: Final = 3


@dataclass(frozen=True, slots=True)
class Target:
    """A topic named by a request, by its name or its id."""

    name: str | None
    topic_id: uuid.UUID | None


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    failed: list[Response] = []
    found: list[Topic] = []
    times = Counter(_targets(request))
    for target in times:
        try:
            _check_target(target, times[target])
            found.append(_find_topic(cluster, target, context.version))
        except RequestError as error:
            failed.append(_error_result(target, error))
    counts = Counter(topic.topic_id for topic in found)
    topics = {topic.topic_id: topic for topic in found}
    return {
        "responses": [
            *failed,
            *(
                _delete(cluster, topics[topic_id], counts[topic_id])
                for topic_id in topics
            ),
        ]
    }


def _delete(cluster: Cluster, topic: Topic, times: int) -> Response:
    response = {"name": topic.name, "topic_id": topic.topic_id}
    if times > 1:
        return {
            **response,
            "error_code": ErrorCode.invalid_request,
            "error_message": SAME_ID,
        }
    cluster.delete_topic(topic)
    return response


SAME_ID: Final = "The provided topic name maps to an ID that was already supplied."


def _targets(request: Request) -> list[Target]:
    by_name = [Target(name, None) for name in field_or(request, "topic_names", ())]
    states = field_or(request, "topics", ())
    return by_name + [Target(each.name, each.topic_id) for each in states]


def _check_target(target: Target, times: int) -> None:
    if target.name is None and target.topic_id is None:
        message = "Neither topic name nor id were specified."
    elif target.name is not None and target.topic_id is not None:
        message = "You may not specify both topic name and topic id."  # prose: ok
    elif times > 1:
        message = f"Duplicate topic {'id' if target.name is None else 'name'}."
    else:
        return
    raise RequestError(ErrorCode.invalid_request, message)


def _find_topic(cluster: Cluster, target: Target, version: int) -> Topic:
    _check_deletion(cluster, version)
    if target.name is None:
        topic = cluster.topics.by_id(target.topic_id)
        if topic is None:
            raise RequestError(ErrorCode.unknown_topic_id, NO_SUCH_ID)
        _check_access(cluster, topic.name)
        return topic
    # Without permission, clients do not learn whether the topic exists.
    _check_access(cluster, target.name)
    topic = cluster.topics.by_name(target.name)
    if topic is None:
        raise RequestError(ErrorCode.unknown_topic_or_partition, NO_SUCH_NAME)
    return topic


NO_SUCH_ID: Final = "This server does not host this topic ID."
NO_SUCH_NAME: Final = "This server does not host this topic-partition."


def _check_access(cluster: Cluster, name: str) -> None:
    denies = cluster.authorizer.denies
    if not denies("DELETE", "CLUSTER", CLUSTER_NAME):
        return
    if denies("DESCRIBE", "TOPIC", name) or denies("DELETE", "TOPIC", name):
        raise RequestError(ErrorCode.topic_authorization_failed, NOT_AUTHORIZED)


NOT_AUTHORIZED: Final = "Topic authorization failed."


def _check_deletion(cluster: Cluster, version: int) -> None:
    if cluster.configs.broker_value("delete.topic.enable") == "true":
        return
    if version < DELETION_CAN_BE_DISABLED_FROM:
        raise RequestError(ErrorCode.invalid_request, "Topic deletion is disabled.")
    raise RequestError(ErrorCode.topic_deletion_disabled, "Topic deletion is disabled.")


def _error_result(target: Target, error: RequestError) -> Response:
    return {"name": target.name, "topic_id": target.topic_id, **error.fields}
