"""Reads the group's offsets and lag."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sharecons._record import TopicPartition
from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.protocol.admin.models import GroupOffset
from sharecons.spark.ledger import Ledger

__all__ = ["GroupLag", "read_group_lag"]

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """The offsets of a group's share partitions; empty if they could not be read.

    Attributes:
        topic_ids: the topic ids of the ledger when the offsets were requested. If a
            topic has another id now, its offsets here are of the old topic.
        ledger_end: the end of the ledger when the offsets were requested.
    """

    offsets: Mapping[TopicPartition, GroupOffset] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    ledger_end: int = 0

    @property
    def lag(self) -> int:
        """The number of offsets that the group has still to process; -1 if unknown."""
        lags = [each.lag for each in self.offsets.values() if each.lag is not None]
        if not lags or len(lags) < len(self.offsets):
            return -1
        return sum(lags)

    def lag_at(self, ledger_end: int) -> int:
        """Return the lag without the offsets that were entered since; -1 if unknown.

        They are in the ledger, and would count twice.
        """
        lag = self.lag
        return lag if lag < 0 else max(0, lag - (ledger_end - self.ledger_end))

    @property
    def start_offsets(self) -> Mapping[TopicPartition, int]:
        return {
            partition: each.start_offset
            for partition, each in self.offsets.items()
            if each.start_offset is not None
        }


async def read_group_lag(
    admin: ShareGroupAdmin, group_id: str, ledger: Ledger
) -> GroupLag:
    """Read the group's offsets from its coordinator; empty if it returns an error.

    They are for the progress, and to drop redeliverable ranges from the ledger.
    """
    topic_ids, ledger_end = dict(ledger.topics), ledger.end
    try:
        listed = (await admin.list_share_group_offsets(group_id))[group_id].value
    except Error as error:
        _log.debug("group offsets unavailable", group=group_id, reason=str(error))
        return GroupLag()
    return GroupLag(offsets=listed.found, topic_ids=topic_ids, ledger_end=ledger_end)
