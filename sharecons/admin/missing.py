"""Detection of unknown partitions and topics before a request to a coordinator.

Kafka 4.3.0 never responds to a request for the offsets of a partition that its topic
does not have. And a coordinator learns of a new topic a moment after other brokers, so
its UNKNOWN_TOPIC_OR_PARTITION is ignored if other brokers know the topic.
"""

from collections.abc import Iterable

from sharecons._record import TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import find_partition
from sharecons.protocol.codes import Code

__all__ = ["missing_partitions", "missing_topics"]


async def missing_partitions(
    executor: ClientExecutor, partitions: Iterable[TopicPartition], action: str
) -> dict[TopicPartition, Error]:
    """Return the unknown ones, each with its error."""
    keys = tuple(partitions)
    names = {key.topic for key in keys}
    if not names:
        return {}
    topics = (await executor.brokers.request_topics(names, executor.deadline)).topics
    replies = {key: find_partition(topics, key) for key in keys}
    return {
        key: broker_error(action, f"{key.topic}-{key.partition}", code, message)
        for key, (code, message, _) in replies.items()
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION
    }


async def missing_topics(
    executor: ClientExecutor, names: Iterable[str], action: str
) -> dict[str, Error]:
    """Return the unknown ones, each with its error."""
    wanted = tuple(names)
    if not wanted:
        return {}
    topics = (await executor.brokers.request_topics(wanted, executor.deadline)).topics
    return {
        name: broker_error(action, f"topic {name!r}", code, message)
        for name, (code, message, _) in topics.items()
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION
    }
