"""Checks and group configs before a consumer joins its group."""

from functools import partial
from typing import Final

import anyio

from sharecons.errors import AuthorizationError, BrokerError, Error
from sharecons.log import get_logger
from sharecons.net.connection import Connection
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.messages import (
    AlterGroupConfig,
    AlterGroupConfigResponse,
    DescribeGroupConfig,
    DescribeGroupConfigResponse,
    FetchSettings,
)
from sharecons.wire import consumer_apis

__all__ = ["DEFAULT_DELIVERY_LIMIT", "check_and_configure"]

OFFSET_RESET: Final = "share.auto.offset.reset"
DELIVERY_LIMIT: Final = "share.delivery.count.limit"
DEFAULT_DELIVERY_LIMIT: Final = 5

APPLY_TIMEOUT: Final = 5.0
APPLY_INTERVAL: Final = 0.02

_FORBIDDEN: Final = (
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)

_log = get_logger(__name__)


async def check_and_configure(
    connection: Connection,
    settings: FetchSettings,
    offset_reset: str | None,
    timeout: float,
) -> int:
    """Check the broker's API versions, and set the group's offset reset.

    Return the delivery limit: how often a record is delivered before it is archived.

    Raises:
        UnsupportedVersionError: the broker has no share groups, or no record limit.
        AuthorizationError, BrokerError: as `set_offset_reset`.
    """
    consumer_apis.check_share_groups(connection.served, connection.broker)
    if settings.record_limit:
        consumer_apis.check_record_limit(connection.served, connection.broker)
    if offset_reset is not None:
        await set_offset_reset(connection, settings.group_id, offset_reset, timeout)
    return await read_delivery_limit(connection, settings.group_id, timeout)


async def set_offset_reset(
    connection: Connection, group_id: str, offset_reset: str, timeout: float
) -> None:
    """Set the group's `share.auto.offset.reset`, and wait until it is applied.

    Sends nothing if the group has this value already. The broker applies configs a
    moment after it responds. A member that joins before that starts at the old value,
    so this waits until the broker returns the new one.

    Raises:
        AuthorizationError: this principal is not allowed to set it.
        BrokerError: the broker rejects it, or does not apply it.
    """
    read = partial(_read_config, connection, group_id, OFFSET_RESET, timeout)
    if await read() == offset_reset:
        return
    request = AlterGroupConfig(group_id=group_id, name=OFFSET_RESET, value=offset_reset)
    _check_response(
        await connection.send(request, timeout), group_id, f"set to {offset_reset!r}"
    )
    with anyio.move_on_after(APPLY_TIMEOUT):
        while await read() != offset_reset:  # noqa: ASYNC110
            # Polling is the only way to find out.
            await anyio.sleep(APPLY_INTERVAL)
        return
    code = Code.REQUEST_TIMED_OUT
    raise BrokerError(
        f"group {group_id!r}: {OFFSET_RESET}={offset_reset!r} was set, but broker "
        f"{connection.broker} does not return it after {APPLY_TIMEOUT:g} s; start the "
        "consumer again",
        code=code,
        name=code.name,
    )


async def read_delivery_limit(
    connection: Connection, group_id: str, timeout: float
) -> int:
    """Return the group's delivery limit.

    It is used for warnings only, so Kafka's default is returned if the client is not
    allowed to read the config, or if it does not exist (Kafka 4.1).
    """
    try:
        value = await _read_config(connection, group_id, DELIVERY_LIMIT, timeout)
        return int(value) if value else DEFAULT_DELIVERY_LIMIT
    except (Error, ValueError) as error:
        _log.debug("delivery limit unknown", group=group_id, reason=str(error))
        return DEFAULT_DELIVERY_LIMIT


async def _read_config(
    connection: Connection, group_id: str, name: str, timeout: float
) -> str | None:
    request = DescribeGroupConfig(group_id=group_id, name=name)
    response: DescribeGroupConfigResponse = await connection.send(request, timeout)
    _check_response(response, group_id, "read")
    return response.value


def _check_response(
    response: DescribeGroupConfigResponse | AlterGroupConfigResponse,
    group_id: str,
    action: str,
) -> None:
    if response.error == Code.NONE:
        return
    name = code_name(response.error)
    text = f"group {group_id!r}: its configs cannot be {action}: {name}"
    if response.message:
        text += f" ({response.message})"
    if response.error in _FORBIDDEN:
        hint = (
            "; grant DESCRIBE_CONFIGS and ALTER_CONFIGS on the group, or omit "
            "auto_offset_reset and let an operator set the config"
        )
        raise AuthorizationError(text + hint, code=response.error, name=name)
    raise BrokerError(text, code=response.error, name=name)
