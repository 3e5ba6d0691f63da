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
    "Reaction",
    "reaction",
]


class Reaction(enum.Enum):
    PROCEED = enum.auto()
    """No error."""
    RETRY = enum.auto()
    """The same again, after a backoff."""
    REJOIN = enum.auto()
    """Join again from epoch 0, under the same member id."""
    FIND_COORDINATOR = enum.auto()
    """Look the coordinator up again; membership and assignment are kept."""
    REOPEN = enum.auto()
    """Open the share session again; the locks outlive it (same member id)."""
    LOSE_SESSION = enum.auto()
    """As REOPEN, and what the session had acquired is no longer ours."""
    MOVE = enum.auto()
    """Somebody else leads the partition: follow the hint, or ask for metadata."""
    DESCRIBE = enum.auto()
    """Our metadata is old, or the topic is new: ask again, silently."""
    REPORT = enum.auto()
    """Raise it to the application once, and go on."""
    REFUSE = enum.auto()
    """Raise it to the application for good."""
    SPLIT = enum.auto()
    """Something in it was not ours: all of it was refused; send it in parts."""
    FAIL = enum.auto()
    """The acknowledgement has failed; sending it again cannot help."""


_SHARED: Final[Mapping[int, Reaction]] = {
    Code.NONE: Reaction.PROCEED,
    Code.GROUP_AUTHORIZATION_FAILED: Reaction.REFUSE,
    Code.INVALID_REQUEST: Reaction.REFUSE,
    Code.UNSUPPORTED_VERSION: Reaction.REFUSE,
    Code.INVALID_GROUP_ID: Reaction.REFUSE,
}

HEARTBEAT: Final[Mapping[int, Reaction]] = {
    **_SHARED,
    Code.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    Code.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    Code.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    Code.UNKNOWN_MEMBER_ID: Reaction.REJOIN,
    Code.FENCED_MEMBER_EPOCH: Reaction.REJOIN,
    # Only a join makes a group again. In the answer to a join it says that the id
    # is a consumer group's: `membership` refuses then.
    Code.GROUP_ID_NOT_FOUND: Reaction.REJOIN,
    Code.GROUP_MAX_SIZE_REACHED: Reaction.REFUSE,
    Code.INCONSISTENT_GROUP_PROTOCOL: Reaction.REFUSE,
    # The grant may come while we wait, so the member stays.
    Code.TOPIC_AUTHORIZATION_FAILED: Reaction.REPORT,
}

FETCH: Final[Mapping[int, Reaction]] = {
    **_SHARED,
    Code.SHARE_SESSION_NOT_FOUND: Reaction.LOSE_SESSION,
    Code.INVALID_SHARE_SESSION_EPOCH: Reaction.REOPEN,
    Code.SHARE_SESSION_LIMIT_REACHED: Reaction.RETRY,
}
"""Top-level codes of ShareFetch and ShareAcknowledge."""

FETCH_PARTITION: Final[Mapping[int, Reaction]] = {
    Code.NONE: Reaction.PROCEED,
    Code.NOT_LEADER_OR_FOLLOWER: Reaction.MOVE,
    Code.FENCED_LEADER_EPOCH: Reaction.MOVE,
    Code.LEADER_NOT_AVAILABLE: Reaction.MOVE,
    Code.UNKNOWN_TOPIC_OR_PARTITION: Reaction.DESCRIBE,
    Code.UNKNOWN_TOPIC_ID: Reaction.DESCRIBE,
    Code.INCONSISTENT_TOPIC_ID: Reaction.DESCRIBE,
    Code.TOPIC_AUTHORIZATION_FAILED: Reaction.REPORT,
    Code.GROUP_AUTHORIZATION_FAILED: Reaction.REPORT,
    Code.CORRUPT_MESSAGE: Reaction.REPORT,
    Code.INVALID_REQUEST: Reaction.REPORT,
}

ACKNOWLEDGE: Final[Mapping[int, Reaction]] = {
    Code.NONE: Reaction.PROCEED,
    Code.INVALID_RECORD_STATE: Reaction.SPLIT,
    Code.REQUEST_TIMED_OUT: Reaction.RETRY,
    Code.KAFKA_STORAGE_ERROR: Reaction.RETRY,
    Code.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    Code.COORDINATOR_NOT_AVAILABLE: Reaction.RETRY,
    Code.NOT_COORDINATOR: Reaction.RETRY,
    # Retriable by name, but the lock went with the leader or the topic.
    Code.NOT_LEADER_OR_FOLLOWER: Reaction.FAIL,
    Code.FENCED_LEADER_EPOCH: Reaction.FAIL,
    Code.UNKNOWN_TOPIC_OR_PARTITION: Reaction.FAIL,
    Code.UNKNOWN_TOPIC_ID: Reaction.FAIL,
    Code.TOPIC_AUTHORIZATION_FAILED: Reaction.FAIL,
    Code.GROUP_AUTHORIZATION_FAILED: Reaction.FAIL,
    Code.INVALID_REQUEST: Reaction.FAIL,
    Code.FENCED_STATE_EPOCH: Reaction.FAIL,
    Code.UNKNOWN_SERVER_ERROR: Reaction.FAIL,
}
"""Codes of one partition's acknowledgements."""


def reaction(table: Mapping[int, Reaction], code: int) -> Reaction:
    """Look up what to do about a code; RETRY for those that nobody foresaw."""
    return table.get(code, Reaction.RETRY)
