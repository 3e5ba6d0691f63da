"""The errors that a leader repeats: events when they begin, and when they end.

They are retried without a report to the application. An error that lasts would go
unnoticed, so `member.fetch_problems` logs it.
"""

from collections.abc import Collection
from typing import NamedTuple, final

from sharecons.protocol.codes import Code
from sharecons.protocol.partitions import SharePartition
from sharecons.protocol.share_messages import (
    PartitionResponse,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)

__all__ = [
    "AcksAccepted",
    "AcksRejected",
    "FetchAccepted",
    "FetchRejected",
    "PartitionFetched",
    "PartitionRetried",
    "RejectedAcks",
    "RetriedPartitions",
]


class FetchRejected(NamedTuple):
    """A leader rejected a whole fetch; it is sent again."""

    node_id: int
    code: int
    message: str | None


class FetchAccepted(NamedTuple):
    """A leader that had rejected a fetch accepted one."""

    node_id: int


class PartitionRetried(NamedTuple):
    """The fetch of a partition failed; it is fetched again."""

    share_partition: SharePartition
    code: int
    message: str | None


class PartitionFetched(NamedTuple):
    """A response no longer has the error of a partition."""

    share_partition: SharePartition


class AcksRejected(NamedTuple):
    """The acknowledgements of a partition were rejected; later ones are sent.

    Attributes:
        is_whole: the leader rejected the whole request.
    """

    share_partition: SharePartition
    code: int
    message: str | None
    is_whole: bool


class AcksAccepted(NamedTuple):
    """A leader accepts acknowledgements of a partition again."""

    share_partition: SharePartition


@final
class RejectedAcks:
    """The partitions of one leader whose last acknowledgements were rejected.

    An acknowledgement that comes after its lock has ended is no error of the broker.
    """

    def __init__(self) -> None:
        self._rejected: set[SharePartition] = set()

    def keep_only(self, partitions: Collection[SharePartition]) -> None:
        """Drop all other partitions: a deleted topic accepts nothing again."""
        self._rejected.intersection_update(partitions)

    def on_response(
        self,
        request: ShareFetch | ShareAcknowledge,
        response: ShareFetchResponse | ShareAcknowledgeResponse,
    ) -> list[AcksRejected | AcksAccepted]:
        """Return the events of a response, if the request has acknowledgements."""
        acknowledged = request.acknowledgements
        if not acknowledged:
            return []
        if response.error and isinstance(request, ShareFetch):
            return []  # `FetchRejected` reports it
        if response.error:
            failed = [
                AcksRejected(each, response.error, response.message, True)
                for each in acknowledged
            ]
        else:
            failed = [
                AcksRejected(
                    each.share_partition,
                    each.acknowledge_error,
                    each.acknowledge_message,
                    False,
                )
                for each in response.partitions
                if each.acknowledge_error not in (Code.NONE, Code.INVALID_RECORD_STATE)
            ]
        if not failed and not self._rejected:
            return []  # the usual case
        rejected = {each.share_partition for each in failed}
        accepted = self._rejected.intersection(acknowledged) - rejected
        self._rejected = (self._rejected - accepted) | rejected
        return [*failed, *map(AcksAccepted, accepted)]


@final
class RetriedPartitions:
    """The partitions whose last fetch failed and is repeated.

    The leaders of a member share one, as partitions move between them.

    Attributes:
        failed: these partitions.
    """

    def __init__(self) -> None:
        self.failed: set[SharePartition] = set()

    def on_error(self, partition: PartitionResponse) -> PartitionRetried:
        """Add a partition to the failed ones; return the event for its error."""
        self.failed.add(partition.share_partition)
        return PartitionRetried(
            partition.share_partition, partition.error, partition.message
        )

    def take_fetched(
        self,
        requested: Collection[SharePartition],
        responses: Collection[PartitionResponse],
    ) -> list[PartitionFetched]:
        """Forget the requested partitions that a response has without an error.

        A partition without records is not in a response.
        """
        failing = {each.share_partition for each in responses if each.error}
        fetched = [p for p in self.failed if p in requested and p not in failing]
        self.failed.difference_update(fetched)
        return [PartitionFetched(share_partition) for share_partition in fetched]

    def keep_only(self, partitions: Collection[SharePartition]) -> None:
        """Drop all other partitions, as they are no longer assigned."""
        self.failed.intersection_update(partitions)
