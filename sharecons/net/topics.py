"""Describes topics and their configs, and creates one."""

from collections.abc import Mapping
from typing import Final

import anyio

from sharecons.net.admin_executor import AdminExecutor
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import RETRIABLE, results_of
from sharecons.protocol.admin.models import ConfigEntry, CreatedTopic, NewTopic, Topic
from sharecons.protocol.admin.requests import (
    CreateTopic,
    CreateTopics,
    DescribeConfigs,
    Reply,
    Resource,
    ResourceKind,
)
from sharecons.protocol.admin.results import Results
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["create_topic", "describe_configs", "describe_topics"]

Entries = Mapping[str, ConfigEntry]
Described = Mapping[Resource, Reply[Entries]]
Created = Mapping[str, Reply[CreatedTopic]]

_MISSING_REPLY: Final[Reply[CreatedTopic]] = Reply(
    Code.UNKNOWN_SERVER_ERROR, "the response has no result for it", None
)


async def describe_topics(
    executor: AdminExecutor, names: tuple[str, ...], *, authorized_operations: bool
) -> Results[str, Topic]:
    """Describe topics, even if partitions have no leader at the moment."""
    response = await executor.brokers.request_topics(
        names or None, executor.deadline, authorized_operations=authorized_operations
    )
    replies = {name: response.topics[name] for name in names or sorted(response.topics)}
    return results_of(replies, "describe", lambda name: f"topic {name!r}")


async def describe_configs(
    executor: AdminExecutor,
    kind: ResourceKind,
    names: tuple[str, ...],
    configs: tuple[str, ...] | None = None,
) -> Results[str, Entries]:
    """Read configs of topics or groups, by name, or all of them."""
    resources = tuple(Resource(kind, name) for name in names)
    request = DescribeConfigs(resources=resources, names=configs)
    response: Described = await executor.send_to_any(request) if resources else {}
    missing: Reply[Entries] = Reply(Code.UNKNOWN_SERVER_ERROR, "no response", None)
    replies = {each.name: response.get(each, missing) for each in resources}
    noun = kind.name.lower()
    return results_of(replies, "read the configs of", lambda key: f"{noun} {key!r}")


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
