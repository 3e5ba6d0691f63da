"""How far the group is, and what its topics hold: asked of the brokers now and then."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import Error
from sharecons.log import get_logger
from sharecons.protocol.admin_values import GroupOffset, OffsetSpec
from sharecons.untyped import TopicPartition

__all__ = ["Logs", "Standing", "read_logs", "read_standing"]

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where the share partitions of a group start; empty if that cannot be known."""

    offsets: Mapping[TopicPartition, GroupOffset] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What topics hold: their ids, and each partition's first and next offset.

    A partition without a leader just now is not among them.
    """

    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    bounds: Mapping[TopicPartition, tuple[int, int]] = field(default_factory=dict)


async def read_standing(admin: ShareGroupAdmin, group_id: str) -> Standing:
    """Ask the group's coordinator; what it does not say is left out.

    Nothing depends on it but how long ranges are remembered, and what is shown.
    """
    try:
        listed = (await admin.list_offsets(group_id))[group_id].value
    except Error as error:
        _log.debug("standing of the group unknown", group=group_id, reason=str(error))
        return Standing()
    return Standing(offsets=listed.found)


async def read_logs(admin: ShareGroupAdmin, names: Sequence[str]) -> Logs:
    """Ask the leaders of all partitions of these topics.

    Raises:
        Error: no broker can be asked.
    """
    topics = (await admin.topics(*names)).found
    # Those without a leader would be asked for until time is up.
    led = [
        TopicPartition(name, partition)
        for name, topic in topics.items()
        for partition, told in topic.partitions.items()
        if told.leader is not None
    ]
    first = (await admin.log_offsets(led, OffsetSpec.EARLIEST)).found
    after = (await admin.log_offsets(led, OffsetSpec.LATEST)).found
    bounds: dict[TopicPartition, tuple[int, int]] = {}
    for place in first.keys() & after.keys():
        begin, end = first[place].offset, after[place].offset
        if begin is not None and end is not None:
            bounds[place] = (begin, end)
    ids = {name: topic.topic_id for name, topic in topics.items()}
    return Logs(topic_ids=ids, bounds=bounds)
