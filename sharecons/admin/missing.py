"""Partitions and topics that are not there, sorted out before a coordinator is asked.

Asked for the offsets of a partition that its topic does not have, Kafka 4.3.0 never
answers; and a coordinator learns of a new topic a moment later than other brokers, so
that its word that there is none counts for nothing where they know it.
"""

from collections.abc import Iterable

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import find_partition
from sharecons.protocol.codes import Code

__all__ = ["missing_partitions", "missing_topics"]


async def missing_partitions(
    executor: AdminExecutor, partitions: Iterable[TopicPartition], action: str
) -> dict[TopicPartition, Error]:
    """Give those that are not there, each with its error."""
    keys = tuple(partitions)
    names = {key.topic for key in keys}
    if not names:
        return {}
    topics = (await executor.brokers.ask_topics(names, executor.deadline)).topics
    replies = {key: find_partition(topics, key) for key in keys}
    return {
        key: broker_error(action, f"{key.topic}-{key.partition}", code, message)
        for key, (code, message, _) in replies.items()
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION
    }


async def missing_topics(
    executor: AdminExecutor, names: Iterable[str], action: str
) -> dict[str, Error]:
    """Give those that are not there, each with its error."""
    wanted = tuple(names)
    if not wanted:
        return {}
    topics = (await executor.brokers.ask_topics(wanted, executor.deadline)).topics
    return {
        name: broker_error(action, f"topic {name!r}", code, message)
        for name, (code, message, _) in topics.items()
        if code == Code.UNKNOWN_TOPIC_OR_PARTITION
    }
