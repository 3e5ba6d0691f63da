"""Creating a topic, with retries until a deadline."""

from collections.abc import Mapping
from typing import Final

import anyio

from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import RETRIABLE
from sharecons.protocol.admin.models import CreatedTopic, NewTopic
from sharecons.protocol.admin.requests import CreateTopic, CreateTopics, Reply
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["create_topic"]

Created = Mapping[str, Reply[CreatedTopic]]

_MISSING_REPLY: Final[Reply[CreatedTopic]] = Reply(
    Code.UNKNOWN_SERVER_ERROR, "the response has no result for it", None
)


async def create_topic(executor: AdminExecutor, request: CreateTopic) -> bool:
    """Create a topic; return False if it exists already.

    It is repeated while its errors are retriable. If a response was lost, the topic
    exists at the second attempt.

    Raises:
        AuthorizationError, BrokerError: the brokers reject it.
        ConnectionFailedError: no broker responded in time.
    """
    backoff = Backoff()
    partitions = None if request.partitions < 0 else request.partitions
    topic = NewTopic(
        request.name,
        partitions=partitions,
        replication_factor=request.replication_factor,
        configs=request.configs,
    )
    while True:
        response: Created = await executor.send_to_any(
            CreateTopics((topic,), request.timeout)
        )
        reply = response.get(request.name, _MISSING_REPLY)
        if reply.code in (Code.NONE, Code.TOPIC_ALREADY_EXISTS):
            return reply.code == Code.NONE
        delay = backoff.next_delay()
        if reply.code not in RETRIABLE or delay >= executor.deadline.left:
            target = f"topic {request.name!r}"
            raise broker_error("create", target, reply.code, reply.message)
        await anyio.sleep(delay)
