"""Which offsets of a group expire, and when (KIP-211).

The retention of a group without members starts when it loses its last member. Offsets
of a group that never had members, and of topics that no member of a stable group
subscribes to, expire by the time of their commit. An offset whose commit has set a
retention time (OffsetCommit 2 to 4) expires after that.
"""

import math
from collections.abc import Iterator

from sharecons.testing.broker.groups.offset_checks import OffsetChecks
from sharecons.testing.broker.groups.offsets import GroupOffsets, Offset, TopicPartition
from sharecons.testing.broker.groups.rebalance import CONSUMER, Rebalance, State

__all__ = ["OffsetExpiry"]


class OffsetExpiry:
    """Deletes the expired offsets of one group, and the group with the last of them."""

    def __init__(
        self, checks: OffsetChecks, offsets: GroupOffsets, rebalance: Rebalance
    ) -> None:
        self.has_deleted_group = False
        self._checks = checks
        self._offsets = offsets
        self._rebalance = rebalance

    @property
    def next_check(self) -> float:
        """The time of the next check that deletes something; infinite if none does."""
        if self.has_deleted_group:
            return math.inf
        times = [at for _, at in self._expiry_times()]
        if self._is_unused():
            times.append(self._rebalance.empty_since)
        return self._checks.next_check(min(times, default=math.inf))

    def check(self, at: float) -> None:
        """Delete what has expired."""
        for topic_partition, expiry in list(self._expiry_times()):
            if expiry <= at:
                self._offsets.delete(topic_partition)
        self.has_deleted_group = self._is_unused()
        self._checks.skip_until(at)

    def skip_until(self, at: float) -> None:
        """Record that no check until a time has deleted anything."""
        self._checks.skip_until(at)

    def _is_unused(self) -> bool:
        """Return whether the group has no members and no offsets, not even pending."""
        return self._rebalance.state is State.EMPTY and self._offsets.is_empty

    def _expiry_times(self) -> Iterator[tuple[TopicPartition, float]]:
        """Yield the offsets that expire if the group stays in its state."""
        if not self._can_expire():
            return
        for topic_partition in self._offsets:
            offset = self._offsets.get(topic_partition)
            subscribed = self._rebalance.is_subscribed(topic_partition[0])
            if offset and not (subscribed or self._offsets.is_pending(topic_partition)):
                yield topic_partition, self._expiry_time(offset)

    def _can_expire(self) -> bool:
        """Return whether offsets expire in the present state of the group.

        With members they do so only if all subscriptions are known and settled.
        """
        rebalance = self._rebalance
        protocol_type = rebalance.members.protocol_type
        if protocol_type is None or rebalance.state is State.EMPTY:
            return True
        is_known = protocol_type == CONSUMER and rebalance.subscribed is not None
        return is_known and rebalance.state is State.STABLE

    def _expiry_time(self, offset: Offset) -> float:
        if offset.expires_at is not None:
            return offset.expires_at
        rebalance = self._rebalance
        has_had_members = rebalance.members.protocol_type is not None
        if has_had_members and rebalance.state is State.EMPTY:
            return rebalance.empty_since + self._checks.retention
        return offset.committed_at + self._checks.retention
