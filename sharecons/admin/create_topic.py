"""Creating a topic with the brokers' default replication factor."""

import anyio

from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import RETRIABLE
from sharecons.protocol.admin.requests import CreateTopic, Reply
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["create_topic"]


async def create_topic(executor: AdminExecutor, request: CreateTopic) -> bool:
    """Create a topic; return False if it exists already.

    It is repeated while its errors are retriable. If a response was lost, the topic
    exists at the second attempt.

    Raises:
        AuthorizationError, BrokerError: the brokers reject it.
        ConnectionFailedError: no broker responded in time.
    """
    backoff = Backoff()
    while True:
        reply: Reply[None] = await executor.send_to_any(request)
        if reply.code in (Code.NONE, Code.TOPIC_ALREADY_EXISTS):
            return bool(reply.code == Code.NONE)
        delay = backoff.next_delay()
        if reply.code not in RETRIABLE or delay >= executor.deadline.left:
            target = f"topic {request.name!r}"
            raise broker_error("create", target, reply.code, reply.message)
        await anyio.sleep(delay)
