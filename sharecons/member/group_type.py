"""Checks that a group has no other type before its configs are set.

A consumer of another type fails when it joins, and its config would stay there.
"""

from collections.abc import Mapping
from typing import Final

from sharecons.errors import BrokerError, Error
from sharecons.log import get_logger
from sharecons.net.admin_executor import AdminExecutor
from sharecons.net.broker_pool import BrokerPool, Deadline
from sharecons.net.cluster import Cluster
from sharecons.net.connection import Connection
from sharecons.protocol.admin.fanout import RETRIABLE
from sharecons.protocol.admin.models import ShareGroup
from sharecons.protocol.admin.requests import DescribeShareGroups, Reply
from sharecons.protocol.codes import Code
from sharecons.protocol.group.rejections import rejection_error

__all__ = ["check_group_type"]

TIMEOUT: Final = 5.0
"""Seconds to find the group's coordinator; joining takes longer if there is none."""

OTHER_TYPE: Final = "not a share group"
"""Part of Kafka's message about a group of another type. A group that does not exist
has the same error code."""

_log = get_logger(__name__)

Described = Mapping[str, Reply[ShareGroup]]


async def check_group_type(
    connection: Connection, cluster: Cluster, group_id: str, timeout: float
) -> None:
    """Check the type of a group; a group that does not exist is valid.

    This usually takes one request. Other errors are ignored: joining shows them.

    Args:
        connection: to any broker.

    Raises:
        GroupError: the group has another type.
    """
    timeout = min(timeout, TIMEOUT)
    try:
        code, message = await _describe(connection, cluster, group_id, timeout)
    except Error as error:
        _log.debug("group type unknown", group=group_id, reason=str(error))
        return
    if code == Code.GROUP_ID_NOT_FOUND and OTHER_TYPE in message:
        raise rejection_error(group_id, code, f"it is {OTHER_TYPE}")


async def _describe(
    connection: Connection, cluster: Cluster, group_id: str, timeout: float
) -> tuple[int, str]:
    """Return the code and message from this broker, or from the group's coordinator."""
    request = DescribeShareGroups(group_ids=(group_id,), authorized_operations=False)
    described: Described = await connection.send(request, timeout)
    reply = described[group_id]
    if reply.code not in RETRIABLE:
        return reply.code, reply.message or ""
    async with BrokerPool(cluster) as brokers:
        executor = AdminExecutor(brokers, Deadline(timeout))

        async def send(node_id: int, keys: tuple[str, ...]) -> Described:
            response: Described = await executor.send(node_id, request)
            return response

        outcome = (await executor.of_groups([group_id], "describe share", send))[
            group_id
        ]
    error = outcome.error
    return (error.code, str(error)) if isinstance(error, BrokerError) else (0, "")
