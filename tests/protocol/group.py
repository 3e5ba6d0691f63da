"""A membership and what its coordinator may say to it."""

from typing import Final

from sharecons.protocol.group.heartbeat import Membership, Request
from sharecons.protocol.messages import (
    CoordinatorFound,
    Endpoint,
    FindCoordinator,
    Heartbeat,
    HeartbeatAnswer,
    SharePartition,
)
from tests.protocol.making import P0

__all__ = [
    "HERE",
    "MEMBER_ID",
    "admitted",
    "asked",
    "error",
    "found",
    "joined",
    "looking",
    "member",
    "said",
]

HERE: Final = Endpoint("broker-1", 9092)
MEMBER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def member(*topics: str, rack: str | None = None) -> Membership:
    """A member that has subscribed at 0.0; without topics it has not."""
    membership = Membership("billing", MEMBER_ID, rack=rack)
    if topics:
        membership.subscribe(topics, now=0.0)
    return membership


def found(error: int = 0, endpoint: Endpoint = HERE) -> CoordinatorFound:
    return CoordinatorFound(error=error, message=None, node_id=1, endpoint=endpoint)


def admitted(
    epoch: int = 1,
    *assignment: SharePartition,
    interval: float = 5.0,
    throttle: float = 0.0,
) -> HeartbeatAnswer:
    """An answer without error; without partitions the assignment is as before."""
    return HeartbeatAnswer(
        error=0,
        message=None,
        member_epoch=epoch,
        heartbeat_interval=interval,
        assignment=frozenset(assignment) if assignment else None,
        throttle=throttle,
    )


def error(
    code: int, message: str | None = None, throttle: float = 0.0
) -> HeartbeatAnswer:
    return HeartbeatAnswer(
        error=code,
        message=message,
        member_epoch=0,
        heartbeat_interval=5.0,
        assignment=None,
        throttle=throttle,
    )


def asked(membership: Membership, now: float) -> Request:
    """The request that must be due."""
    request = membership.next_request(now)
    assert request is not None, "a request is due"
    return request


def said(membership: Membership, now: float) -> Heartbeat:
    """The heartbeat that must be due."""
    request = asked(membership, now)
    assert isinstance(request, Heartbeat), "a heartbeat is due"
    return request


def looking(membership: Membership, now: float) -> FindCoordinator:
    request = asked(membership, now)
    assert isinstance(request, FindCoordinator), "the coordinator is looked up"
    return request


def joined(
    *topics: str, epoch: int = 1, rack: str | None = None, now: float = 0.0
) -> Membership:
    """A member that was given P0 at `now`; the next heartbeat is due in 5 s."""
    membership = member(*(topics or ("orders",)), rack=rack)
    membership.answered(looking(membership, now), found(), now)
    membership.answered(said(membership, now), admitted(epoch, P0), now)
    return membership
