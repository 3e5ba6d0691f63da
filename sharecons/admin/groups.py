"""Groups: listing, describing and deleting them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from sharecons.admin.client_executor import ClientExecutor
from sharecons.errors import Error, UnsupportedVersionError
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.models import (
    UNKNOWN_BROKER,
    ConsumerGroup,
    GroupListing,
    ListedGroup,
    ShareGroup,
)
from sharecons.protocol.admin.requests import (
    DeleteGroups,
    DescribeClassicGroups,
    DescribeConsumerGroups,
    DescribeShareGroups,
    ListGroups,
    Reply,
)
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code

__all__ = [
    "delete_share_groups",
    "describe_consumer_groups",
    "describe_share_groups",
    "list_groups",
]

G = TypeVar("G", ShareGroup, ConsumerGroup)


async def list_groups(
    executor: ClientExecutor, states: Collection[str], types: Collection[str]
) -> GroupListing:
    request = ListGroups(states=tuple(states), types=tuple(types))

    async def send(node_id: int) -> Reply[tuple[ListedGroup, ...]]:
        response: Reply[tuple[ListedGroup, ...]] = await executor.send(node_id, request)
        return response

    listed = await executor.of_brokers(None, "list the groups of", send)
    groups = (group for groups in listed.found.values() for group in groups)
    by_id = {group.group_id: group for group in groups}
    return GroupListing(groups=dict(sorted(by_id.items())), errors=listed.errors)


async def describe_share_groups(
    executor: ClientExecutor,
    group_ids: Iterable[str],
    authorized_operations: bool = False,
    action: str = "describe share",
) -> Results[str, ShareGroup]:
    return await _describe(
        executor, group_ids, DescribeShareGroups, authorized_operations, action
    )


async def describe_consumer_groups(
    executor: ClientExecutor, group_ids: Iterable[str], authorized_operations: bool
) -> Results[str, ConsumerGroup]:
    """Describe groups of KIP-848 first, then the remaining ones as classic groups."""
    wanted, action = tuple(group_ids), "describe consumer"
    new: Results[str, ConsumerGroup] = await _describe(
        executor, wanted, DescribeConsumerGroups, authorized_operations, action
    )
    others = [key for key, error in new.errors.items() if _may_be_classic(error)]
    classic: Results[str, ConsumerGroup] = await _describe(
        executor, others, DescribeClassicGroups, authorized_operations, action
    )
    return Results({key: classic.get(key, new[key]) for key in new})


def _may_be_classic(error: Error) -> bool:
    # Kafka before 4.0 serves classic groups only.
    return isinstance(error, UnsupportedVersionError) or is_code(
        error, Code.GROUP_ID_NOT_FOUND, Code.UNSUPPORTED_VERSION
    )


async def _describe(
    executor: ClientExecutor,
    group_ids: Iterable[str],
    request: Callable[..., object],
    authorized_operations: bool,
    action: str,
) -> Results[str, G]:
    async def send(node_id: int, keys: tuple[str, ...]) -> Mapping[str, Reply[G]]:
        response: Mapping[str, Reply[G]] = await executor.send(
            node_id,
            request(group_ids=keys, authorized_operations=authorized_operations),
        )
        coordinator = executor.brokers.broker(node_id) or UNKNOWN_BROKER
        return {
            key: reply._replace(value=replace(reply.value, coordinator=coordinator))
            for key, reply in response.items()
            if reply.value is not None
        }

    return await executor.of_groups(group_ids, action, send)


async def delete_share_groups(
    executor: ClientExecutor, group_ids: Iterable[str]
) -> Results[str, None]:
    """Delete the share groups among these; DeleteGroups would delete any type."""
    action = "delete share"
    described = await describe_share_groups(executor, group_ids, action=action)

    async def send(node_id: int, keys: tuple[str, ...]) -> Mapping[str, Reply[None]]:
        response: Mapping[str, Reply[None]] = await executor.send(
            node_id, DeleteGroups(group_ids=keys)
        )
        return {key: _ignore_unknown_group(reply) for key, reply in response.items()}

    deleted = await executor.of_groups(described.found, action, send)
    failed = {key: Result[None](error=e) for key, e in described.errors.items()}
    return Results({key: failed.get(key) or deleted[key] for key in described})


def _ignore_unknown_group(reply: Reply[None]) -> Reply[None]:
    # It existed a moment ago: either the response to an earlier try was lost, or
    # another client has deleted it. It is gone either way.
    if reply.code == Code.GROUP_ID_NOT_FOUND:
        return Reply(Code.NONE, None, None)
    return reply
