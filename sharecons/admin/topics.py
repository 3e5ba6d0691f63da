"""Creating and deleting topics, and deleting their records."""

from collections.abc import Mapping

from sharecons._record import TopicPartition
from sharecons.admin.client_executor import ClientExecutor
from sharecons.protocol.admin.models import CreatedTopic, NewTopic
from sharecons.protocol.admin.requests import (
    CreateTopics,
    DeleteRecords,
    DeleteTopics,
    Reply,
)
from sharecons.protocol.admin.results import Results

__all__ = ["create_topics", "delete_records", "delete_topics"]


async def create_topics(
    executor: ClientExecutor, topics: Mapping[str, NewTopic], validate_only: bool
) -> Results[str, CreatedTopic]:
    async def send(names: tuple[str, ...]) -> Mapping[str, Reply[CreatedTopic]]:
        request = CreateTopics(
            tuple(topics[name] for name in names),
            _broker_timeout(executor),
            validate_only,
        )
        response: Mapping[str, Reply[CreatedTopic]] = await executor.send_to_any(
            request
        )
        return response

    return await executor.of_topics(topics, "create", send)


async def delete_topics(
    executor: ClientExecutor, names: tuple[str, ...]
) -> Results[str, None]:
    async def send(names: tuple[str, ...]) -> Mapping[str, Reply[None]]:
        request = DeleteTopics(names, _broker_timeout(executor))
        response: Mapping[str, Reply[None]] = await executor.send_to_any(request)
        return response

    return await executor.of_topics(names, "delete", send)


def _broker_timeout(executor: ClientExecutor) -> float:
    """Return how long a broker takes at most: until the client stops waiting for it."""
    return executor.deadline.attempt_timeout / 2


async def delete_records(
    executor: ClientExecutor, offsets: Mapping[TopicPartition, int]
) -> Results[TopicPartition, int]:
    async def send(
        node_id: int, keys: tuple[TopicPartition, ...]
    ) -> Mapping[TopicPartition, Reply[int]]:
        request = DeleteRecords(
            offsets={key: offsets[key] for key in keys},
            timeout=_broker_timeout(executor),
        )
        response: Mapping[TopicPartition, Reply[int]] = await executor.send(
            node_id, request
        )
        return response

    return await executor.of_partitions(offsets, "delete the records of", send)
