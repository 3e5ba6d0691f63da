"""Errors of acknowledgements that no broker returned, and their reasons."""

from typing import Final

from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_scope import LockScope
from sharecons.protocol.acknowledge.result_log import AcknowledgeFailure
from sharecons.protocol.codes import Code

__all__ = [
    "MISSING_IN_RESPONSE",
    "SESSION_CLOSING",
    "buffer_overrun",
    "lock_overrun",
    "reacquired_error",
    "session_lost_error",
]

MISSING_IN_RESPONSE: Final = AcknowledgeFailure(
    Code.UNKNOWN_SERVER_ERROR,
    "UNKNOWN_SERVER_ERROR",
    "the response does not contain the partition: whether the acknowledgement was "
    "applied is unknown",
)


SESSION_CLOSING: Final = AcknowledgeFailure(
    Code.SHARE_SESSION_NOT_FOUND,
    Code.SHARE_SESSION_NOT_FOUND.name,
    "the session is being closed: the record is released, not renewed",
)


def reacquired_error(reason: str) -> AcknowledgeFailure:
    """Return the error for a late acknowledgement of a record acquired again."""
    code = Code.INVALID_RECORD_STATE
    return AcknowledgeFailure(
        code,
        code.name,
        f"{reason}; this consumer has acquired the record again meanwhile, and its "
        "later delivery is not affected",
    )


def session_lost_error(lock_scope: LockScope) -> AcknowledgeFailure:
    """Return the error for the locks of a session that has ended."""
    code = lock_scope.code
    return AcknowledgeFailure(
        code,
        code.name,
        f"{lock_scope.reason}; the broker releases unacknowledged records",
    )


def lock_overrun(lease: Lease, deadline: float, now: float) -> str:
    """Return the error message for a lock that expired before its acknowledgement."""
    seconds = now - deadline + lease.locks.duration
    return (
        f"processing took {_short(seconds)} s, the lock lasts "
        f"{_short(lease.locks.duration)} s: {lease.result_log.advice}"
    )


def buffer_overrun(lease: Lease, deadline: float, now: float) -> str:
    """Return the error message for a lock that ended before a record's delivery."""
    locks = lease.locks
    late = locks.held_until - locks.deadline
    if late < locks.duration:
        return lock_overrun(lease, deadline, now)
    return (
        f"the response took {_short(late)} s, the lock lasts "
        f"{_short(locks.duration)} s: a process or a broker was paused, or the "
        "network was slow"
    )


def _short(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 10.0 else f"{round(seconds, 1):g}"
