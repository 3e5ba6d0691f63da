"""Pauses of partitions whose error the application has received."""

import math
from collections.abc import Collection
from typing import Final, final

from sharecons.protocol import error_actions
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.retried_errors import RetriedPartitions
from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.protocol.share_messages import PartitionResponse

__all__ = ["AUTHORIZATION", "FetchPauses"]

AUTHORIZATION: Final = (
    Code.TOPIC_AUTHORIZATION_FAILED,
    Code.GROUP_AUTHORIZATION_FAILED,
)
"""Errors that a leader returns for every partition of a topic, before reading."""

_Scope = TopicId | SharePartition


@final
class _Pause:
    __slots__ = ("backoff", "until")

    def __init__(self, spread: float) -> None:
        self.backoff = Backoff(spread)
        self.until = -math.inf


@final
class FetchPauses:
    """The partitions whose last fetch failed, with their pauses.

    A partition with an error that is raised in the application is not fetched until a
    pause has passed. The leaders of a member share one `FetchPauses`: a topic's
    authorization is the same at all of them, and a partition's error outlives a change
    of its leader.

    Attributes:
        codes: the error of each of them.
        changes: how often they have changed.
        retried: the partitions whose errors are only repeated.
        left_out: the topics that the application does not want records of at present.
    """

    def __init__(self, spread: float = 1.0) -> None:
        self.retried = RetriedPartitions()
        self.codes: dict[SharePartition, int] = {}
        self.changes = 0
        self.left_out: frozenset[TopicId] = frozenset()
        self._spread = spread
        self._pauses: dict[_Scope, _Pause] = {}

    def on_error(self, share_partition: SharePartition, code: int, now: float) -> None:
        """Begin a pause, if the error is raised in the application.

        A topic's partitions that fail together share one.
        """
        if action_for(error_actions.FETCH_PARTITION, code) is not ErrorAction.REPORT:
            return
        self.codes[share_partition] = code
        self.changes += 1
        scope = _scope(share_partition, code)
        pause = self._pauses.get(scope)
        if pause is None:
            pause = self._pauses[scope] = _Pause(self._spread)
        if now >= pause.until:
            pause.until = now + pause.backoff.next_delay()

    def leave_out(self, topics: Collection[TopicId]) -> None:
        """Fetch no records of these topics; fetch all others again."""
        left_out = frozenset(topics)
        if left_out != self.left_out:
            self.left_out = left_out
            self.changes += 1

    def take_recovered(
        self,
        requested: Collection[SharePartition],
        responses: Collection[PartitionResponse],
    ) -> list[SharePartition]:
        """Forget the partitions that a response shows to be fetched again.

        Leaders check a topic's authorization even without records, so the absence of
        the error is enough. Other errors come from reading, and end with a record.
        """
        failed = {each.share_partition for each in responses if each.error}
        brought = {each.share_partition for each in responses if each.acquired}
        recovered = [
            each
            for each, code in self.codes.items()
            if each in requested
            and each not in failed
            and (code in AUTHORIZATION or each in brought)
        ]
        for each in recovered:
            # This ends the pause of the whole topic.
            self._pauses.pop(_scope(each, self.codes.pop(each)), None)
            self.changes += 1
        return recovered

    def unpaused_errors(
        self, failed: Collection[PartitionResponse], now: float
    ) -> list[PartitionResponse]:
        """Return the partitions whose errors did not start a pause."""
        return [p for p in failed if self.paused_until(p.share_partition) <= now]

    def keep_only(self, partitions: Collection[SharePartition]) -> None:
        """Drop all other partitions, as they are no longer assigned."""
        self.retried.keep_only(partitions)
        for each in self.codes.keys() - partitions:
            del self.codes[each]
        scopes = {_scope(each, code) for each, code in self.codes.items()}
        for scope in self._pauses.keys() - scopes:
            del self._pauses[scope]
        self.changes += 1

    def paused_until(self, share_partition: SharePartition) -> float:
        """Return when the partition can be fetched."""
        code = self.codes.get(share_partition)
        if code is None:
            return -math.inf
        pause = self._pauses.get(_scope(share_partition, code))
        return -math.inf if pause is None else pause.until


def _scope(share_partition: SharePartition, code: int) -> _Scope:
    return share_partition.topic_id if code in AUTHORIZATION else share_partition
