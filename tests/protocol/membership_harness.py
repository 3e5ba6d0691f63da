"""Members, and the responses of their coordinator."""

from typing import Final

from sharecons.errors import ConnectionFailedError
from sharecons.protocol.group.heartbeat import Membership, Request
from sharecons.protocol.group.messages import (
    FindCoordinator,
    FindCoordinatorResponse,
    Heartbeat,
    HeartbeatResponse,
)
from sharecons.protocol.partitions import Endpoint, SharePartition
from tests.protocol.message_factories import P0

__all__ = [
    "CONNECTION_LOST",
    "COORDINATOR",
    "MEMBER_ID",
    "NO_PARTITIONS",
    "coordinator_response",
    "error_response",
    "exchange_find_coordinator",
    "exchange_heartbeat",
    "heartbeat_response",
    "joined_member",
    "new_member",
    "next_find_coordinator",
    "next_heartbeat",
    "next_request",
]

COORDINATOR: Final = Endpoint("broker-1", 9092)
MEMBER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
CONNECTION_LOST: Final = ConnectionFailedError("the connection broke")
NO_PARTITIONS: Final[frozenset[SharePartition]] = frozenset()


def new_member(*topics: str, rack: str | None = None) -> Membership:
    """Return a member that subscribed to the topics, if any, at 0.0."""
    membership = Membership("billing", MEMBER_ID, rack=rack)
    if topics:
        membership.subscribe(topics, now=0.0)
    return membership


def coordinator_response(
    error: int = 0, endpoint: Endpoint = COORDINATOR
) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error=error, message=None, node_id=1, endpoint=endpoint
    )


def heartbeat_response(
    epoch: int = 1,
    *assignment: SharePartition,
    interval: float = 5.0,
    throttle: float = 0.0,
) -> HeartbeatResponse:
    """Return a response without error; no partitions: unchanged assignment."""
    return HeartbeatResponse(
        error=0,
        message=None,
        member_epoch=epoch,
        heartbeat_interval=interval,
        assignment=frozenset(assignment) if assignment else None,
        throttle=throttle,
    )


def error_response(
    code: int, message: str | None = None, throttle: float = 0.0
) -> HeartbeatResponse:
    return HeartbeatResponse(
        error=code,
        message=message,
        member_epoch=0,
        heartbeat_interval=5.0,
        assignment=None,
        throttle=throttle,
    )


def next_request(membership: Membership, now: float) -> Request:
    """Return the request that must be due."""
    request = membership.next_request(now)
    assert request is not None, "no request is due"
    return request


def next_heartbeat(membership: Membership, now: float) -> Heartbeat:
    """Return the heartbeat that must be due."""
    request = next_request(membership, now)
    assert isinstance(request, Heartbeat), "not a heartbeat"
    return request


def next_find_coordinator(membership: Membership, now: float) -> FindCoordinator:
    request = next_request(membership, now)
    assert isinstance(request, FindCoordinator), "not a coordinator lookup"
    return request


def exchange_heartbeat(
    membership: Membership,
    response: HeartbeatResponse,
    *,
    now: float,
    received_at: float | None = None,
) -> None:
    """Send the heartbeat that must be due; its response arrives then or at a time."""
    request = next_heartbeat(membership, now)
    membership.on_response(
        request, response, now if received_at is None else received_at
    )


def exchange_find_coordinator(
    membership: Membership,
    response: FindCoordinatorResponse | None = None,
    *,
    now: float,
    received_at: float | None = None,
) -> None:
    """Look up the coordinator, as `exchange_heartbeat`; by default it is found."""
    request = next_find_coordinator(membership, now)
    at = now if received_at is None else received_at
    membership.on_response(request, response or coordinator_response(), at)


def joined_member(
    *topics: str, epoch: int = 1, rack: str | None = None, now: float = 0.0
) -> Membership:
    """Return a member with P0 assigned at `now`; the next heartbeat is due in 5 s."""
    membership = new_member(*(topics or ("orders",)), rack=rack)
    exchange_find_coordinator(membership, now=now)
    exchange_heartbeat(membership, heartbeat_response(epoch, P0), now=now)
    return membership
