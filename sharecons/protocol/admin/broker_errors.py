"""Errors from brokers' error codes, with the request, its target and advice.

Rule 1: the texts for all error codes of the admin client are here.
Rule 2: nothing here depends on how the request was sent.
"""

from collections.abc import Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    Error,
    UnsupportedVersionError,
)
from sharecons.protocol.admin.requests import Reply
from sharecons.protocol.codes import Code, code_name
from sharecons.protocol.group.rejections import SHARE_GROUPS_OFF

__all__ = ["broker_error", "check_altered", "is_code"]

_FORBIDDEN: Final = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.GROUP_AUTHORIZATION_FAILED,
    Code.CLUSTER_AUTHORIZATION_FAILED,
)

_ADVICE: Final[Mapping[int, str]] = {
    Code.NON_EMPTY_GROUP: "it has members; stop its consumers first",
    Code.GROUP_ID_NOT_FOUND: "there is no such group of this type",
    Code.GROUP_SUBSCRIBED_TO_TOPIC: "its members read the topic; stop them first",
    Code.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    Code.UNKNOWN_TOPIC_ID: "the topic was deleted",
    Code.INVALID_GROUP_ID: "the name is not valid for a group",
    Code.INVALID_TOPIC_EXCEPTION: "the name is not valid for a topic",
    Code.UNKNOWN_MEMBER_ID: "it has members; stop its consumers first",
    Code.ILLEGAL_GENERATION: "it has members; stop its consumers first",
    Code.STALE_MEMBER_EPOCH: "it has members; stop its consumers first",
    Code.REBALANCE_IN_PROGRESS: "it has members; stop its consumers first",
    Code.INVALID_COMMIT_OFFSET_SIZE: "the commit is larger than the broker accepts; "
    "commit fewer partitions at a time",
    Code.UNSTABLE_OFFSET_COMMIT: "a transaction is in progress; wait for its end",
    Code.OFFSET_METADATA_TOO_LARGE: "the metadata is longer than the broker accepts",
    Code.TOPIC_AUTHORIZATION_FAILED: "this principal has no right to the topic",
    Code.GROUP_AUTHORIZATION_FAILED: "this principal has no right to the group",
    Code.CLUSTER_AUTHORIZATION_FAILED: "this principal has no right to the cluster",
}


_SELF_EXPLANATORY: Final = (Code.GROUP_ID_NOT_FOUND, Code.UNKNOWN_TOPIC_OR_PARTITION)
"""Codes whose advice is left out if the broker sent a message, which says more."""

_CONSUMER_GROUPS: Final = ("describe consumer", "fetch the offsets of", "commit for")
"""Actions on groups that are no share groups."""

_EMPTY_MESSAGES: Final = ("This server does not host this topic-partition",)
"""Default messages of brokers, which add nothing to the code."""


def broker_error(action: str, target: str, code: int, message: str | None) -> Error:
    """Return the error for a code: cannot `action` ("describe") `target`."""
    name = code_name(code)
    kind = AuthorizationError if code in _FORBIDDEN else BrokerError
    note = (message or "").rstrip(".")
    if note in _EMPTY_MESSAGES:
        note = ""
    advice = _ADVICE.get(code, "")
    if note and code in _SELF_EXPLANATORY:
        advice = ""
    text = f"cannot {action} {target}: {name}"
    text += f" ({note})" if note else ""
    if code == Code.UNSUPPORTED_VERSION and action not in _CONSUMER_GROUPS:
        # Brokers respond so to all share group requests without share.version.
        return UnsupportedVersionError(f"{text}: {SHARE_GROUPS_OFF}")
    text += f": {advice}" if advice else ""
    return kind(text, code=code, name=name)


def check_altered(reply: Reply[Mapping[TopicPartition, Reply[None]]]) -> None:
    """Raise UnsupportedVersionError if a broker ignored AlterShareGroupOffsets.

    Kafka 4.1.1 changes nothing, and returns success without results.
    """
    if reply.code == Code.NONE and not reply.value:
        raise UnsupportedVersionError(
            "the broker ignored AlterShareGroupOffsets, and no start offset was "
            "changed; use Kafka 4.2 or newer"
        )


def is_code(error: Error | None, *codes: int) -> bool:
    """Return True if an error is a broker's, with one of these codes."""
    return isinstance(error, BrokerError) and error.code in codes
