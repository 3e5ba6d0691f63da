"""The action for each error code, by request.

Every action is an entry of a table here. A code without an entry means RETRY after a
backoff: a new error of a newer broker must cause neither a crash nor a busy loop.

Sources: "Supported errors" in Kafka's message files and KIP-932. Where they say
nothing, other clients' behaviour: an acknowledgement whose lock is lost is never sent
again, even if the code is called retriable.
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
    "PRODUCE",
    "ErrorAction",
    "action_for",
]


class ErrorAction(enum.Enum):
    PROCEED = enum.auto()
    """No error."""
    RETRY = enum.auto()
    """Send the same again after a backoff."""
    REJOIN = enum.auto()
    """Join again with epoch 0 and the same member id."""
    FIND_COORDINATOR = enum.auto()
    """Look up the coordinator again; keep the membership and the assignment."""
    REOPEN_SESSION = enum.auto()
    """Open a new share session; the locks stay, as they are the member's."""
    LOSE_SESSION = enum.auto()
    """Open a new share session; the locks acquired in the old one are lost."""
    FIND_LEADER = enum.auto()
    """The leader has changed: use the leader in the response, or request metadata."""
    REFRESH_METADATA = enum.auto()
    """Metadata is stale, or the topic is new: request it again, without a report."""
    REPORT = enum.auto()
    """Raise the error in the application once, and continue."""
    RAISE_FATAL = enum.auto()
    """Raise the error in the application and stop."""
    SPLIT_BATCH = enum.auto()
    """The broker rejected the whole batch, for one of its offsets or for its size: send
    it in parts."""
    FAIL_BATCH = enum.auto()
    """The batch has failed; sending it again cannot succeed."""
    NEW_PRODUCER_ID = enum.auto()
    """The leader does not know the producer's last batch: start again with a new id."""


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
    # A join creates the group again. In the response to a join the code means that the
    # id is a group of another type: `heartbeat` fails then.
    Code.GROUP_ID_NOT_FOUND: ErrorAction.REJOIN,
    Code.GROUP_MAX_SIZE_REACHED: ErrorAction.RAISE_FATAL,
    Code.INCONSISTENT_GROUP_PROTOCOL: ErrorAction.RAISE_FATAL,
    # Authorization can be granted later, so the member stays.
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
    # Called retriable, but the locks are lost with the leader or the topic.
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

PRODUCE: Final[Mapping[int, ErrorAction]] = {
    Code.NONE: ErrorAction.PROCEED,
    Code.DUPLICATE_SEQUENCE_NUMBER: ErrorAction.PROCEED,
    Code.NOT_LEADER_OR_FOLLOWER: ErrorAction.FIND_LEADER,
    Code.LEADER_NOT_AVAILABLE: ErrorAction.FIND_LEADER,
    Code.FENCED_LEADER_EPOCH: ErrorAction.FIND_LEADER,
    Code.KAFKA_STORAGE_ERROR: ErrorAction.FIND_LEADER,
    Code.UNKNOWN_TOPIC_OR_PARTITION: ErrorAction.FIND_LEADER,
    Code.MESSAGE_TOO_LARGE: ErrorAction.SPLIT_BATCH,
    Code.RECORD_LIST_TOO_LARGE: ErrorAction.SPLIT_BATCH,
    Code.OUT_OF_ORDER_SEQUENCE_NUMBER: ErrorAction.NEW_PRODUCER_ID,
    Code.UNKNOWN_PRODUCER_ID: ErrorAction.NEW_PRODUCER_ID,
    Code.INVALID_PRODUCER_EPOCH: ErrorAction.NEW_PRODUCER_ID,
    Code.TOPIC_AUTHORIZATION_FAILED: ErrorAction.FAIL_BATCH,
    Code.CLUSTER_AUTHORIZATION_FAILED: ErrorAction.FAIL_BATCH,
    Code.INVALID_TOPIC_EXCEPTION: ErrorAction.FAIL_BATCH,
    Code.INVALID_TIMESTAMP: ErrorAction.FAIL_BATCH,
    Code.UNSUPPORTED_FOR_MESSAGE_FORMAT: ErrorAction.FAIL_BATCH,
    Code.POLICY_VIOLATION: ErrorAction.FAIL_BATCH,
    Code.INVALID_RECORD: ErrorAction.FAIL_BATCH,
    Code.INVALID_REQUEST: ErrorAction.FAIL_BATCH,
    Code.UNSUPPORTED_COMPRESSION_TYPE: ErrorAction.FAIL_BATCH,
}
"""Codes of one partition's batch, and of a topic's metadata."""


def action_for(table: Mapping[int, ErrorAction], code: int) -> ErrorAction:
    """Return the action for a code; RETRY if the table has no entry."""
    return table.get(code, ErrorAction.RETRY)
