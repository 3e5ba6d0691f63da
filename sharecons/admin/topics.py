"""Descriptions of topics, and the deletion of their records."""

from collections.abc import Mapping

from sharecons._record import TopicPartition
from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.fanout import results_of
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.requests import DeleteRecords, Reply
from sharecons.protocol.admin.results import Results

__all__ = ["delete_records", "describe_topics"]


async def describe_topics(
    executor: AdminExecutor, names: tuple[str, ...], authorized_operations: bool
) -> Results[str, Topic]:
    """Describe topics, even if partitions have no leader at the moment."""
    response = await executor.brokers.request_topics(
        names or None, executor.deadline, authorized_operations=authorized_operations
    )
    replies = {name: response.topics[name] for name in names or sorted(response.topics)}
    return results_of(replies, "describe", lambda name: f"topic {name!r}")


async def delete_records(
    executor: AdminExecutor, offsets: Mapping[TopicPartition, int]
) -> Results[TopicPartition, int]:
    async def send(
        node_id: int, keys: tuple[TopicPartition, ...]
    ) -> Mapping[TopicPartition, Reply[int]]:
        request = DeleteRecords(
            offsets={key: offsets[key] for key in keys},
            # The leader's response must arrive before the client stops waiting for it.
            timeout=executor.deadline.attempt_timeout / 2,
        )
        response: Mapping[TopicPartition, Reply[int]] = await executor.send(
            node_id, request
        )
        return response

    return await executor.of_partitions(offsets, "delete the records of", send)
