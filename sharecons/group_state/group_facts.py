"""The facts about a group that findings depend on."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sharecons._record import TopicPartition
from sharecons.config.validation import whole_number
from sharecons.protocol.admin.models import ConfigEntry, ShareGroup

__all__ = [
    "GroupFacts",
    "assigned_members",
    "first_offset_of",
    "group_facts",
    "reads_committed",
    "subscribers_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """The facts about a group that findings depend on; None if not readable.

    Attributes:
        members: number of members.
        record_locks: window of a partition, in offsets.
        delivery_limit: deliveries after which a record is archived.
        lock_duration: in seconds.
        offset_reset: where the group begins, such as "earliest".
        read_committed: it receives no records of open and aborted transactions.
    """

    members: int
    record_locks: int | None = None
    delivery_limit: int | None = None
    lock_duration: float | None = None
    offset_reset: str | None = None
    read_committed: bool = False


def group_facts(
    group: ShareGroup, configs: Mapping[str, ConfigEntry] | None
) -> GroupFacts:
    """Return the facts for findings; configs that are missing are unknown."""
    entries = configs or {}

    def number(name: str) -> int | None:
        entry = entries.get(name)
        return None if entry is None else whole_number(entry.value)

    lock = number("share.record.lock.duration.ms")
    reset = entries.get("share.auto.offset.reset")
    return GroupFacts(
        members=len(group.members),
        record_locks=number("share.partition.max.record.locks"),
        delivery_limit=number("share.delivery.count.limit"),
        lock_duration=None if lock is None else lock / 1000,
        offset_reset=reset.value if reset is not None else None,
        read_committed=reads_committed(entries),
    )


def reads_committed(entries: Mapping[str, ConfigEntry]) -> bool:
    """Return True if the group receives no records of open and aborted transactions."""
    entry = entries.get("share.isolation.level")
    return entry is not None and entry.value == "read_committed"


def first_offset_of(
    facts: GroupFacts, log_start_offset: int | None, earlier: int | None
) -> int | None:
    """Return the offset at which a group without a stored start offset begins.

    It is the log's start for `earliest`. Otherwise the brokers fix it when the first
    member fetches, and only they know it. But a member that had the partition before
    has fetched it, so the group begins at or before the log's end of that time.

    Args:
        earlier: the log's end when a member of today already had the partition; None
            if there was no look at it then.
    """
    return log_start_offset if facts.offset_reset == "earliest" else earlier


def assigned_members(group: ShareGroup) -> Mapping[TopicPartition, tuple[str, ...]]:
    """Return the ids of the members that have each partition assigned."""
    members: dict[TopicPartition, list[str]] = {}
    for each in group.members:
        for key in each.assignment:
            members.setdefault(key, []).append(each.member_id)
    return {key: tuple(ids) for key, ids in members.items()}


def subscribers_of(group: ShareGroup) -> Mapping[str, int]:
    """Return the number of members that subscribe to each topic."""
    return Counter(topic for member in group.members for topic in member.subscription)
