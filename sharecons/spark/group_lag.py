"""How far the group is, and what its topics hold: asked of the brokers now and then."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sharecons._record import TopicPartition
from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.protocol.admin.models import GroupOffset, OffsetSpec

__all__ = ["GroupLag", "read_bounds", "read_group_lag"]

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """Where the share partitions of a group start; empty if that cannot be known.

    Attributes:
        topic_ids: the topics' ids as the ledger had them when this was asked for. What
            it says of a topic that has another one by now is of the topic before.
    """

    offsets: Mapping[TopicPartition, GroupOffset] = field(default_factory=dict)
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def lag(self) -> int:
        """Offsets that the group has not worked off; -1 if that is unknown."""
        lags = [each.lag for each in self.offsets.values() if each.lag is not None]
        if not lags or len(lags) < len(self.offsets):
            return -1
        return sum(lags)

    @property
    def starts(self) -> Mapping[TopicPartition, int]:
        return {
            place: each.start_offset
            for place, each in self.offsets.items()
            if each.start_offset is not None
        }


async def read_group_lag(
    admin: ShareGroupAdmin, group_id: str, topic_ids: Mapping[str, bytes]
) -> GroupLag:
    """Ask the group's coordinator; what it does not say is left out.

    Nothing depends on it but how long ranges are remembered, and what is shown.
    """
    asked_with = dict(topic_ids)
    try:
        listed = (await admin.list_share_group_offsets(group_id))[group_id].value
    except Error as error:
        _log.debug("standing of the group unknown", group=group_id, reason=str(error))
        return GroupLag()
    return GroupLag(offsets=listed.found, topic_ids=asked_with)


async def read_bounds(
    admin: ShareGroupAdmin, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, tuple[int, int]]:
    """Ask the partitions' leaders for the first and the next offset of each log.

    Those whose leaders do not answer in time are left out.

    Raises:
        Error: no broker can be asked.
    """
    asked = tuple(partitions)
    if not asked:
        return {}
    first = (await admin.list_offsets(asked, OffsetSpec.EARLIEST)).found
    # A leader that did not answer would be waited for once more.
    after = (await admin.list_offsets(list(first), OffsetSpec.LATEST)).found
    bounds: dict[TopicPartition, tuple[int, int]] = {}
    for place in after:
        begin, end = first[place].offset, after[place].offset
        if begin is not None and end is not None:
            bounds[place] = (begin, end)
    return bounds
