"""The state of records in their group, which the share coordinator keeps."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import anyio

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.admin import SharePartitionState
from tests.chaos.ledger import Position

__all__ = ["read_group_state", "state_notes", "state_of"]

SETTLED: Final = "acknowledged or archived"
MISSING: Final = "not in the topic"

States = Mapping[TopicPartition, SharePartitionState]


def read_group_state(servers: str, group: str) -> States:
    """Return the states of all partitions that the group has read."""

    async def read() -> States:
        async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
            return (await admin.read_state(group)).found

    return anyio.run(read)


def state_of(position: Position, states: States) -> str:
    topic, partition, offset = position
    state = states.get(TopicPartition(topic, partition))
    if state is None or state.start_offset is None:
        return "in a partition without a state"
    if offset < state.start_offset:
        return SETTLED
    for batch in state.batches:
        if batch.first_offset <= offset <= batch.last_offset:
            name = batch.state.name.lower()
            return f"{name} after {batch.delivery_count} deliveries"
    return "not delivered yet, or locked for the first time"


def state_notes(
    lost: Iterable[int],
    positions: Mapping[int, Sequence[Position]],
    states: States,
) -> list[str]:
    """Return how many of the lost numbers have which state.

    Of several records with one number, such as attempts of a task, a record counts that
    is not settled.
    """
    found: Counter[str] = Counter()
    for number in lost:
        all_of = {state_of(where, states) for where in positions.get(number, ())}
        found[max(all_of - {SETTLED}, default=SETTLED if all_of else MISSING)] += 1
    return [f"{count} lost: {state}" for state, count in found.most_common()]
