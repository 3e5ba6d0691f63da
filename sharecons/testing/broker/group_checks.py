"""Checks of requests of classic groups, and waiting for their responses."""

from typing import TypeVar

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import GROUP
from sharecons.testing.broker.errors import GroupError
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.groups.members import JoinResult, Reply, SyncResult
from sharecons.testing.broker.groups.offset_checks import OffsetChecks

__all__ = [
    "check_access",
    "check_coordinator",
    "check_group_id",
    "check_writable",
    "is_coordinator",
    "member_group",
    "new_group",
    "wait_for_reply",
]

ResultT = TypeVar("ResultT", JoinResult, SyncResult)


def check_access(context: Context, operation: str, group_id: str) -> None:
    """Check that no ACL denies access to the group.

    Raises:
        GroupError: an ACL denies it.
    """
    if context.cluster.authorizer.denies(operation, "GROUP", group_id):
        raise GroupError(ErrorCode.group_authorization_failed)


def check_group_id(group_id: str) -> None:
    """Check that the group id is not empty. Old clients can commit offsets without one.

    Raises:
        GroupError: it is empty.
    """
    if not group_id:
        raise GroupError(ErrorCode.invalid_group_id)


def is_coordinator(context: Context, group_id: str) -> bool:
    """Return whether the broker that got the request coordinates the group."""
    cluster = context.cluster
    return context.node_id == cluster.coordinators.node_for(
        GROUP, group_id, cluster.running
    )


def check_coordinator(context: Context, group_id: str) -> None:
    """Check that the broker that got the request coordinates the group.

    Afterwards the group has no expired offsets; if it has expired itself, it is gone.

    Raises:
        GroupError: another broker does, or this one still loads the group.
    """
    if not is_coordinator(context, group_id):
        raise GroupError(ErrorCode.not_coordinator)
    if context.cluster.coordinators.is_loading(GROUP, group_id):
        raise GroupError(ErrorCode.coordinator_load_in_progress)
    context.cluster.groups.advance_classic(group_id, context.now)


def check_writable(context: Context) -> None:
    """Check that enough brokers run to write to the log of the group coordinators.

    Raises:
        GroupError: fewer than `min.insync.replicas` of its replicas run.
    """
    cluster = context.cluster
    value = cluster.configs.broker_value
    replicas = min(int(value("offsets.topic.replication.factor")), len(cluster.brokers))
    if len(cluster.running) < min(int(value("min.insync.replicas")), replicas):
        raise GroupError(ErrorCode.coordinator_not_available)


def member_group(context: Context, group_id: str) -> ClassicGroup:
    """Return the group for a request of one of its members.

    Raises:
        GroupError: access is denied, or the group is unknown to this broker.
    """
    check_access(context, "READ", group_id)
    check_group_id(group_id)
    check_coordinator(context, group_id)
    group = context.cluster.groups.classic(group_id)
    if group is None:
        raise GroupError(ErrorCode.unknown_member_id)
    return group


def new_group(context: Context, group_id: str) -> ClassicGroup:
    """Create a group with the broker's settings; it is not registered yet."""
    value = context.cluster.configs.broker_value
    return ClassicGroup(
        group_id,
        initial_delay=int(value("group.initial.rebalance.delay.ms")) / 1000,
        max_size=int(value("group.max.size")),
        offset_checks=OffsetChecks(
            retention=int(value("offsets.retention.minutes")) * 60.0,
            interval=int(value("offsets.retention.check.interval.ms")) / 1000,
            start=context.now,
        ),
    )


async def wait_for_reply(
    context: Context, group: ClassicGroup, reply: Reply[ResultT]
) -> ResultT:
    """Wait for a group's response to a request, and return it.

    If the client disconnects meanwhile, its member stays until its session ends. Kafka
    does the same: it does not check connections here.

    Raises:
        ClientDisconnectedError: the client has disconnected.
        GroupError: another broker coordinates the group now.
    """
    cluster = context.cluster
    signals = (group.changed, cluster.changed, cluster.coordinators.moved)
    while reply.result is None:
        if not is_coordinator(context, group.group_id):
            group.drop_request(reply, context.now)
            raise GroupError(ErrorCode.not_coordinator)
        await context.wait(signals, group.next_deadline)
        group.advance(context.now)
    return reply.result
