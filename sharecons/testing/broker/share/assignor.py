"""Kafka's simple share assignor (KIP-932, "Assignors").

Every partition is assigned. With no more members than partitions, each partition has
one member; else each partition is shared by the number of members that gives every
member one. Balance comes before stickiness: a member loses partitions beyond its quota,
keeps the others, and gets partitions that other members lack. Members with different
subscriptions are balanced topic by topic.

Kafka's choice among equals follows from the order of its hash maps. Here a member loses
its last partition first, and new members are served in the order of joining.
"""

import uuid
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

__all__ = ["Assignment", "TopicPartition", "assign"]

TopicPartition: TypeAlias = tuple[uuid.UUID, int]
Assignment: TypeAlias = frozenset[TopicPartition]


def assign(
    subscriptions: Mapping[str, Collection[uuid.UUID]],
    partitions: Mapping[uuid.UUID, Collection[int]],
    current: Mapping[str, Assignment],
) -> dict[str, Assignment]:
    """Return the partitions of each member, given the current assignment."""
    result: dict[str, Assignment] = dict.fromkeys(subscriptions, frozenset())
    for members, pool in _pools(subscriptions, partitions):
        for member, held in _spread(members, pool, current).items():
            result[member] |= held
    return result


def _pools(
    subscriptions: Mapping[str, Collection[uuid.UUID]],
    partitions: Mapping[uuid.UUID, Collection[int]],
) -> list[tuple[list[str], list[TopicPartition]]]:
    """Return sets of partitions to balance separately, each with its members."""
    by_topic = {
        topic_id: [(topic_id, index) for index in sorted(indexes)]
        for topic_id, indexes in partitions.items()
    }
    if len({frozenset(topics) for topics in subscriptions.values()}) == 1:
        topics = next(iter(subscriptions.values()))
        pool = [
            each for topic in by_topic if topic in topics for each in by_topic[topic]
        ]
        return [(list(subscriptions), pool)]
    return [
        ([member for member, topics in subscriptions.items() if topic in topics], pool)
        for topic, pool in by_topic.items()
    ]


def _spread(
    members: Sequence[str],
    pool: Sequence[TopicPartition],
    current: Mapping[str, Assignment],
) -> Mapping[str, Assignment]:
    if not members or not pool:
        return {}
    sharing = -(-len(members) // len(pool))
    quotas = _quotas(members, sharing * len(pool))
    held = {
        member: [each for each in pool if each in current.get(member, ())]
        for member in members
    }
    holders = Counter(each for had in held.values() for each in had)
    for member in members:
        _trim(held[member], quotas[member], holders)
    for partition in pool:
        _unshare(partition, sharing, held, holders)
    _fill(pool, sharing, quotas, held, holders)
    return {member: frozenset(had) for member, had in held.items()}


def _quotas(members: Sequence[str], total: int) -> dict[str, int]:
    """Divide evenly; the remainder is spread over the members as Kafka spreads it."""
    upto = [
        -(-total * partition // len(members)) for partition in range(len(members) + 1)
    ]
    return {
        member: upto[partition + 1] - upto[partition]
        for partition, member in enumerate(members)
    }


def _trim(
    had: list[TopicPartition], quota: int, holders: Counter[TopicPartition]
) -> None:
    """Remove partitions beyond the quota: shared ones first, then the last."""
    while len(had) > quota:
        surplus = max(reversed(had), key=holders.__getitem__)
        had.remove(surplus)
        holders[surplus] -= 1


def _unshare(
    partition: TopicPartition,
    sharing: int,
    held: Mapping[str, list[TopicPartition]],
    holders: Counter[TopicPartition],
) -> None:
    """Take a partition from the members with the most, if too many have it."""
    while holders[partition] > sharing:
        having = [had for had in held.values() if partition in had]
        max(having, key=len).remove(partition)
        holders[partition] -= 1


def _fill(
    pool: Sequence[TopicPartition],
    sharing: int,
    quotas: Mapping[str, int],
    held: Mapping[str, list[TopicPartition]],
    holders: Counter[TopicPartition],
) -> None:
    """Assign partitions with too few members in turn to members below their quota.

    A member that has the partition already is skipped. If no other member is left, the
    partition stays shared by fewer, as in Kafka: another order might do better, but not
    by much.
    """
    waiting = deque(member for member in held if len(held[member]) < quotas[member])
    for partition in pool:
        for _ in range(len(waiting)):
            if holders[partition] >= sharing:
                break
            member = waiting.popleft()
            if partition not in held[member]:
                held[member].append(partition)
                holders[partition] += 1
            if len(held[member]) < quotas[member]:
                waiting.append(member)
