"""What is done about each error code, request by request.

Rule 1: every reaction to a code of the broker's is an entry of a table here.
Rule 2: a code without an entry is answered by RETRY (after a backoff): a newer
broker's new error must neither crash nor spin.

Sources: "Supported errors" in Kafka's message files and KIP-932; what peers do
where those are silent (never resend an acknowledgement after its lock is lost,
however "retriable" the code is called).
"""

import enum
from collections.abc import Mapping
from typing import Final

from sharecons.protocol.codes import Code

__all__ = [
    "ACKNOWLEDGE",
    "FETCH",
    "FETCH_PARTITION",
    "HEARTBEAT",
    "ErrorAction",
    "action_for",
]


class ErrorAction(enum.Enum):
    PROCEED = enum.auto()
    """No error."""
    RETRY = enum.auto()
    """The same again, after a backoff."""
    REJOIN = enum.auto()
    """Join again from epoch 0, under the same member id."""
    FIND_COORDINATOR = enum.auto()
    """Look the coordinator up again; membership and assignment are kept."""
    REOPEN_SESSION = enum.auto()
    """Open the share session again; the locks outlive it (same member id)."""
    LOSE_SESSION = enum.auto()
    """As REOPEN, and what the session had acquired is no longer ours."""
    FIND_LEADER = enum.auto()
    """Somebody else leads the partition: follow the hint, or ask for metadata."""
    REFRESH_METADATA = enum.auto()
    """Our metadata is old, or the topic is new: ask again, silently."""
    REPORT = enum.auto()
    """Raise it to the application once, and go on."""
    RAISE_FATAL = enum.auto()
    """Raise it to the application for good."""
    SPLIT_BATCH = enum.auto()
    """Something in it was not ours: all of it was refused; send it in parts."""
    FAIL_BATCH = enum.auto()
    """The acknowledgement has failed; sending it again cannot help."""


_SHARED: Final[Mapping[int, ErrorAction]] = {
    Code.NONE: ErrorAction.PROCEED,
    Code.GROUP_AUTHORIZATION_FAILED: ErrorAction.RAISE_FATAL,
    Code.INVALID_REQUEST: ErrorAction.RAISE_FATAL,
    Code.UNSUPPORTED_VERSION: ErrorAction.RAISE_FATAL,
    Code.INVALID_GROUP_ID: ErrorAction.RAISE_FATAL,
}

HEARTBEAT: Final[Mapping[int, ErrorAction]] = {
    **_SHARED,
    Code.NOT_COORDINATOR: ErrorAction.FIND_COORDINATOR,
    Code.COORDINATOR_NOT_AVAILABLE: ErrorAction.FIND_COORDINATOR,
    Code.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
    Code.UNKNOWN_MEMBER_ID: ErrorAction.REJOIN,
    Code.FENCED_MEMBER_EPOCH: ErrorAction.REJOIN,
    # Only a join makes a group again. In the answer to a join it says that the id
    # is a consumer group's: `membership` refuses then.
    Code.GROUP_ID_NOT_FOUND: ErrorAction.REJOIN,
    Code.GROUP_MAX_SIZE_REACHED: ErrorAction.RAISE_FATAL,
    Code.INCONSISTENT_GROUP_PROTOCOL: ErrorAction.RAISE_FATAL,
    # The grant may come while we wait, so the member stays.
    Code.TOPIC_AUTHORIZATION_FAILED: ErrorAction.REPORT,
}

FETCH: Final[Mapping[int, ErrorAction]] = {
    **_SHARED,
    Code.SHARE_SESSION_NOT_FOUND: ErrorAction.LOSE_SESSION,
    Code.INVALID_SHARE_SESSION_EPOCH: ErrorAction.REOPEN_SESSION,
    Code.SHARE_SESSION_LIMIT_REACHED: ErrorAction.RETRY,
}
"""Top-level codes of ShareFetch and ShareAcknowledge."""

FETCH_PARTITION: Final[Mapping[int, ErrorAction]] = {
    Code.NONE: ErrorAction.PROCEED,
    Code.NOT_LEADER_OR_FOLLOWER: ErrorAction.FIND_LEADER,
    Code.FENCED_LEADER_EPOCH: ErrorAction.FIND_LEADER,
    Code.LEADER_NOT_AVAILABLE: ErrorAction.FIND_LEADER,
    Code.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.REFRESH_METADATA,
    Code.UNKNOWN_TOPIC_ID: ErrorAction.REFRESH_METADATA,
    Code.INCONSISTENT_TOPIC_ID: ErrorAction.REFRESH_METADATA,
    Code.TOPIC_AUTHORIZATION_FAILED: ErrorAction.REPORT,
    Code.GROUP_AUTHORIZATION_FAILED: ErrorAction.REPORT,
    Code.CORRUPT_MESSAGE: ErrorAction.REPORT,
    Code.INVALID_REQUEST: ErrorAction.REPORT,
}

ACKNOWLEDGE: Final[Mapping[int, ErrorAction]] = {
    Code.NONE: ErrorAction.PROCEED,
    Code.INVALID_RECORD_STATE: ErrorAction.SPLIT_BATCH,
    Code.REQUEST_TIMED_OUT: ErrorAction.RETRY,
    Code.KAFKA_STORAGE_ERROR: ErrorAction.RETRY,
    Code.COORDINATOR_LOAD_IN_PROGRESS: ErrorAction.RETRY,
    Code.COORDINATOR_NOT_AVAILABLE: ErrorAction.RETRY,
    Code.NOT_COORDINATOR: ErrorAction.RETRY,
    # Retriable by name, but the lock went with the leader or the topic.
    Code.NOT_LEADER_OR_FOLLOWER: ErrorAction.FAIL_BATCH,
    Code.FENCED_LEADER_EPOCH: ErrorAction.FAIL_BATCH,
    Code.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.FAIL_BATCH,
    Code.UNKNOWN_TOPIC_ID: ErrorAction.FAIL_BATCH,
    Code.TOPIC_AUTHORIZATION_FAILED: ErrorAction.FAIL_BATCH,
    Code.GROUP_AUTHORIZATION_FAILED: ErrorAction.FAIL_BATCH,
    Code.INVALID_REQUEST: ErrorAction.FAIL_BATCH,
    Code.FENCED_STATE_EPOCH: ErrorAction.FAIL_BATCH,
    Code.UNKNOWN_SERVER_ERROR: ErrorAction.FAIL_BATCH,
}
"""Codes of one partition's acknowledgements."""


def action_for(table: Mapping[int, ErrorAction], code: int) -> ErrorAction:
    """Look up what to do about a code; RETRY for those that nobody foresaw."""
    return table.get(code, ErrorAction.RETRY)
