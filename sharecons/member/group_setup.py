"""Checks and group configs before a consumer joins its group."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from sharecons.config.not_given import NotGiven
from sharecons.config.validation import check_offset_reset
from sharecons.errors import AuthorizationError, BrokerError, Error
from sharecons.log import get_logger
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.group.config_messages import (
    AlterGroupConfig,
    AlterGroupConfigResponse,
    DescribeGroupConfig,
    DescribeGroupConfigResponse,
)
from sharecons.wire import consumer_apis

__all__ = [
    "OFFSET_RESET",
    "GroupConfigs",
    "OffsetReset",
    "check_and_configure",
    "configure_command",
]

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


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """The value that a consumer sets as `share.auto.offset.reset` of its group.

    Attributes:
        value: the value to set; None leaves the group unchanged.
        is_default: the application has not chosen this. Then a value that the group has
            already is kept, and lacking the right to set it is a warning.
    """

    value: str | None
    is_default: bool = False

    @classmethod
    def of(cls, argument: str | None | NotGiven) -> "OffsetReset":
        """Return the setting for the argument `auto_offset_reset`.

        Raises:
            ConfigurationError: it is invalid.
        """
        if isinstance(argument, NotGiven):
            return cls(None, is_default=True)
        return cls(check_offset_reset(argument))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfigs:
    """Configs of the group, before the consumer joins it.

    Attributes:
        delivery_limit: how often a record is delivered before it is archived.
        offset_reset: the value in effect; None if it cannot be read.
        is_reset_chosen: it was set for the group, so that it is no default of brokers.
    """

    delivery_limit: int
    offset_reset: str | None
    is_reset_chosen: bool


async def check_and_configure(
    connection: Connection,
    cluster: Cluster,
    settings: FetchSettings,
    offset_reset: OffsetReset,
    timeout: float,
) -> GroupConfigs:
    """Check the broker's API versions, and set the group's offset reset.

    Raises:
        UnsupportedVersionError: the broker has no share groups, or no record limit.
        AuthorizationError, BrokerError: as `set_offset_reset`, unless it is a default.
        GroupError: the group has another type.
    """
    consumer_apis.check_share_groups(connection.served, connection.broker)
    if settings.record_limit:
        consumer_apis.check_record_limit(connection.served, connection.broker)
    group_id, value = settings.group_id, offset_reset.value
    is_chosen = value is not None and not offset_reset.is_default
    if value is not None and is_chosen:
        await set_offset_reset(connection, cluster, group_id, value, timeout)
    else:
        value, is_chosen = await _keep_or_set(
            connection, cluster, group_id, value, timeout
        )
    return GroupConfigs(
        delivery_limit=await read_delivery_limit(connection, group_id, timeout),
        offset_reset=value,
        is_reset_chosen=is_chosen,
    )


async def _keep_or_set(
    connection: Connection,
    cluster: Cluster,
    group_id: str,
    default: str | None,
    timeout: float,
) -> tuple[str | None, bool]:
    """Set the offset reset to the default unless the group has a value of its own.

    None as default sets nothing. Return the value in effect, or None if it cannot be
    read: then nothing is set, as this could replace a value of the group. And whether
    it is a value of the group.

    Raises:
        BrokerError: the broker rejects it, other than for a missing right.
    """
    try:
        response = await _describe(connection, group_id, OFFSET_RESET, timeout)
    except Error as error:
        _log.debug("offset reset unknown", group=group_id, reason=str(error))
        return None, False
    if default is None or response.is_set or response.value == default:
        return response.value, response.is_set
    try:
        await set_offset_reset(connection, cluster, group_id, default, timeout)
    except AuthorizationError as error:
        _log.warning(
            f"{OFFSET_RESET} of the group is not set: this client is not allowed to. "
            "A group that starts at the end never receives what is in its topics "
            "already. Grant ALTER_CONFIGS on the group, or run the command; "
            "auto_offset_reset=None leaves the config unchanged, without this warning",
            group=group_id,
            value=response.value,
            command=configure_command(group_id, default),
            error=str(error),
        )
        return response.value, False
    return default, True


def configure_command(group_id: str, offset_reset: str) -> str:
    """Return the command that sets the offset reset of a group."""
    return f"sharecons groups configure {group_id} --set {OFFSET_RESET}={offset_reset}"


async def set_offset_reset(
    connection: Connection,
    cluster: Cluster,
    group_id: str,
    offset_reset: str,
    timeout: float,
) -> None:
    """Set the group's `share.auto.offset.reset`, and wait until it is applied.

    Sends nothing if the group has this value already. The broker applies configs a
    moment after it responds. A member that joins before that starts at the old value,
    so this waits until the broker returns the new one.

    Raises:
        AuthorizationError: this principal is not allowed to set it.
        BrokerError: the broker rejects it, or does not apply it.
        GroupError: the group has another type; nothing is set.
    """
    read = partial(_read_config, connection, group_id, OFFSET_RESET, timeout)
    if await read() == offset_reset:
        return
    # Consumers do not load the admin client's requests unless they need them.
    from sharecons.member.group_type import check_group_type

    await check_group_type(connection, cluster, group_id, timeout)
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
    return (await _describe(connection, group_id, name, timeout)).value


async def _describe(
    connection: Connection, group_id: str, name: str, timeout: float
) -> DescribeGroupConfigResponse:
    request = DescribeGroupConfig(group_id=group_id, name=name)
    response: DescribeGroupConfigResponse = await connection.send(request, timeout)
    _check_response(response, group_id, "read")
    return response


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
