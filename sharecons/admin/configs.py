"""Group configs: validating, setting, and waiting until they apply."""

from collections.abc import Mapping
from typing import Final

import anyio

from sharecons.admin.client_executor import ClientExecutor
from sharecons.admin.cluster import describe_broker_configs
from sharecons.admin.config_validation import (
    DEAD_LETTER_PREFIX,
    ConfigChanges,
    bound_names,
    check_configs,
    read_bounds,
)
from sharecons.errors import Error
from sharecons.net.topics import describe_configs
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.fanout import RETRIABLE
from sharecons.protocol.admin.models import ConfigEntry
from sharecons.protocol.admin.requests import (
    AlterConfigs,
    DescribeConfigs,
    Reply,
    Resource,
    ResourceKind,
)
from sharecons.protocol.admin.results import Result
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code

__all__ = ["alter_group_configs"]

Entries = Mapping[str, ConfigEntry]
Described = Mapping[Resource, Reply[Entries]]

MAX_APPLY_TIME: Final = 5.0
"""Seconds; a broker normally reports new values after some 20 ms."""


async def alter_group_configs(
    executor: ClientExecutor, group_id: str, changes: ConfigChanges, validate_only: bool
) -> Result[None]:
    current = (await describe_configs(executor, ResourceKind.GROUP, (group_id,)))[
        group_id
    ]
    current_values = {} if current.error else _values(current.value)
    brokers = await _broker_values(executor)
    prefix = brokers.get(DEAD_LETTER_PREFIX) or ""
    values = check_configs(changes, read_bounds(brokers), current_values, prefix)
    request = AlterConfigs(
        resource=Resource(ResourceKind.GROUP, group_id),
        configs=values,
        validate_only=validate_only,
    )
    reply = await _send_until_done(executor, request)
    if reply.code != Code.NONE:
        action = "set the configs of"
        target = f"group {group_id!r}"
        return Result(error=broker_error(action, target, reply.code, reply.message))
    if current.error is None and not validate_only:
        await _wait_until_applied(executor, group_id, values)
    return Result(None)


async def _broker_values(executor: ClientExecutor) -> Mapping[str, str | None]:
    """Return the brokers' configs that limit group configs; if not readable, none.

    Brokers check the bounds as well.
    """
    bounds = [bound for name in read_bounds({}) for bound in bound_names(name)]
    names = (*bounds, DEAD_LETTER_PREFIX)
    try:
        return _values(await describe_broker_configs(executor, names, None))
    except Error:
        return {}


def _values(entries: Entries) -> dict[str, str | None]:
    return {name: entry.value for name, entry in entries.items()}


async def _send_until_done(
    executor: ClientExecutor, request: AlterConfigs
) -> Reply[None]:
    backoff = Backoff()
    while True:
        reply: Reply[None] = await executor.send_to_any(request)
        delay = backoff.next_delay()
        if reply.code not in RETRIABLE or delay >= executor.deadline.left:
            return reply
        await anyio.sleep(delay)


async def _wait_until_applied(
    executor: ClientExecutor, group_id: str, values: Mapping[str, str | None]
) -> None:
    """Wait until the group's coordinator reports the new values.

    The values are set already, so errors in reading them back are ignored.
    """
    resource = Resource(ResourceKind.GROUP, group_id)
    request = DescribeConfigs(resources=(resource,), names=tuple(values))

    async def send(node_id: int, keys: tuple[str, ...]) -> Mapping[str, Reply[Entries]]:
        response: Described = await executor.send(node_id, request)
        code, message, entries = response[resource]
        if (
            code == Code.NONE
            and entries is not None
            and not _has_values(entries, values)
        ):
            return {group_id: Reply(Code.OFFSET_NOT_AVAILABLE, "not applied yet", None)}
        return {group_id: Reply(code, message, entries)}

    with anyio.move_on_after(MAX_APPLY_TIME):
        await executor.of_groups([group_id], "read the configs of", send)


def _has_values(entries: Entries, values: Mapping[str, str | None]) -> bool:
    return all(
        entries[name].is_default if value is None else entries[name].value == value
        for name, value in values.items()
        if name in entries
    )
