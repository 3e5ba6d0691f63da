"""The events for the errors in a leader's responses."""

from typing import Final

from sharecons.errors import AuthorizationError, BrokerError, UnsupportedVersionError
from sharecons.protocol import error_actions
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.events import (
    FatalError,
    LeaderEvent,
    LeaderMoved,
    MetadataStale,
    PartitionError,
)
from sharecons.protocol.share_messages import (
    PartitionResponse,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
)

__all__ = ["ack_error_event", "fatal_error", "fetch_error_event", "is_retried"]

_RETRIED: Final = (
    ErrorAction.RETRY,
    ErrorAction.FIND_LEADER,
    ErrorAction.REFRESH_METADATA,
)


def fetch_error_event(partition: PartitionResponse) -> list[LeaderEvent]:
    """Return the events for the error of one partition's fetch."""
    share_partition = partition.share_partition
    match action_for(error_actions.FETCH_PARTITION, partition.error):
        case ErrorAction.FIND_LEADER:
            return [LeaderMoved(share_partition, partition.leader)]
        case ErrorAction.REFRESH_METADATA:
            return [MetadataStale(code_name(partition.error), is_logged=True)]
        case ErrorAction.REPORT:
            return [PartitionError(share_partition, partition.error, partition.message)]
        case _:
            return []  # no error, or one that the next fetch retries


def is_retried(code: int) -> bool:
    """Return whether the error of a partition is retried with no other report."""
    return action_for(error_actions.FETCH_PARTITION, code) in _RETRIED


def ack_error_event(partition: PartitionResponse) -> list[LeaderEvent]:
    """Return the events for the error of one partition's acknowledgements."""
    moved = (Code.NOT_LEADER_OR_FOLLOWER, Code.FENCED_LEADER_EPOCH)
    if partition.acknowledge_error in moved and not partition.error:
        return [LeaderMoved(partition.share_partition, partition.leader)]
    return []


def fatal_error(
    group_id: str, node_id: int, response: ShareFetchResponse | ShareAcknowledgeResponse
) -> FatalError:
    """Return the event for an error with which a leader rejects this member."""
    name = code_name(response.error)
    error = f"{name} ({response.message})" if response.message else name
    text = f"share group {group_id!r}: node {node_id} rejects this member: {error}"
    if response.error == Code.UNSUPPORTED_VERSION:
        return FatalError(UnsupportedVersionError(text))
    if response.error == Code.GROUP_AUTHORIZATION_FAILED:
        text += "; the principal needs READ on the group"
        return FatalError(AuthorizationError(text, code=response.error, name=name))
    return FatalError(BrokerError(text, code=response.error, name=name))
