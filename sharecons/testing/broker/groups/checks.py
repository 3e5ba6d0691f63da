"""What the handlers of classic groups share: who may ask, and waiting for a reply."""

from typing import TypeVar

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import GROUP
from sharecons.testing.broker.groups.classic import ClassicGroup
from sharecons.testing.broker.groups.errors import GroupError
from sharecons.testing.broker.groups.members import Joined, Reply, Synced

__all__ = [
    "check_access",
    "check_coordinator",
    "check_id",
    "coordinates",
    "member_group",
    "new_group",
    "parked",
]

AnswerT = TypeVar("AnswerT", Joined, Synced)


def check_access(context: Context, operation: str, group_id: str) -> None:
    """See whether an ACL denies the group.

    Raises:
        GroupError: it does.
    """
    if context.cluster.access.denies(operation, "GROUP", group_id):
        raise GroupError(ErrorCode.group_authorization_failed)


def check_id(group_id: str) -> None:
    """Insist on a name; offsets alone may be kept without one, for clients of old.

    Raises:
        GroupError: there is none.
    """
    if not group_id:
        raise GroupError(ErrorCode.invalid_group_id)


def coordinates(context: Context, group_id: str) -> bool:
    """Tell whether the broker that is asked coordinates the group."""
    cluster = context.cluster
    return context.node_id == cluster.coordinators.of(GROUP, group_id, cluster.running)


def check_coordinator(context: Context, group_id: str) -> None:
    """See whether the right broker is asked.

    Raises:
        GroupError: it is not.
    """
    if not coordinates(context, group_id):
        raise GroupError(ErrorCode.not_coordinator)


def member_group(context: Context, group_id: str) -> ClassicGroup:
    """Give the group for what a member asks of its coordinator.

    Raises:
        GroupError: the client may not, or there is no such group here.
    """
    check_access(context, "READ", group_id)
    check_id(group_id)
    check_coordinator(context, group_id)
    group = context.cluster.groups.classic(group_id)
    if group is None:
        raise GroupError(ErrorCode.unknown_member_id)
    return group


def new_group(context: Context, group_id: str) -> ClassicGroup:
    """Make a group as the broker's settings want it; nobody knows of it yet."""
    configs = context.cluster.configs
    delay = int(configs.broker("group.initial.rebalance.delay.ms"))
    return ClassicGroup(
        group_id,
        initial_delay=delay / 1000,
        max_size=int(configs.broker("group.max.size")),
    )


async def parked(
    context: Context, group: ClassicGroup, reply: Reply[AnswerT]
) -> AnswerT:
    """Wait for the group's answer.

    A client that goes away meanwhile leaves its member behind, to be given up when
    its session ends: so does Kafka, which does not look at connections here.

    Raises:
        ClientGoneError: nobody waits for it any more.
        GroupError: another broker coordinates the group now.
    """
    cluster = context.cluster
    signals = (group.changed, cluster.changed, cluster.coordinators.moved)
    while reply.answer is None:
        if not coordinates(context, group.group_id):
            group.let_go(reply, context.now)
            raise GroupError(ErrorCode.not_coordinator)
        await context.wait(signals, group.next_deadline)
        group.advance(context.now)
    return reply.answer
