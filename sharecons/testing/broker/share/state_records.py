"""The records of `__share_group_state` (KIP-932, "Records").

Kafka's share coordinators write them at each change. Here they are written when a
client is about to read the topic: a snapshot of each share-partition that has changed,
with the time of its change.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from struct import Struct
from typing import Final

from sharecons.testing.broker.batch_writer import NewRecord, encode_batch
from sharecons.testing.broker.share.coordinator_state import CoordinatorState
from sharecons.testing.broker.share.partitions import SharePartitionKey
from sharecons.testing.broker.topics import Topic

__all__ = ["StateRecords", "state_partition_of"]

SNAPSHOT: Final = 0
VERSION: Final = 0
NO_TAGS: Final = b"\0"
# StateEpoch, LeaderEpoch, StartOffset
STATE: Final = Struct(">iiq")
# FirstOffset, LastOffset, DeliveryState, DeliveryCount
BATCH: Final = Struct(">qqbh")


class StateRecords:
    """Writes states to the log of the state topic."""

    def __init__(self) -> None:
        self._written: dict[SharePartitionKey, tuple[CoordinatorState, int]] = {}

    def write(
        self,
        topic: Topic,
        states: Mapping[SharePartitionKey, CoordinatorState],
        now_ms: int,
    ) -> None:
        """Append a record for each state that has changed since the last call."""
        for key, value, at in self._changed(states, now_ms):
            index = state_partition_of(key.coordinator_key, len(topic.partitions))
            batch = encode_batch([NewRecord(value, _encode_key(key))], at)
            topic.partitions[index].log.append(batch, now_ms)

    def _changed(
        self, states: Mapping[SharePartitionKey, CoordinatorState], now_ms: int
    ) -> Iterator[tuple[SharePartitionKey, bytes | None, int]]:
        """Yield the changed states with the time; None for one that was deleted."""
        for key, state in states.items():
            before, epoch = self._written.get(key, (None, -1))
            if state != before:
                copy = replace(state, batches=list(state.batches))
                self._written[key] = copy, epoch + 1
                value = _encode_value(state, epoch + 1, state.written_ms)
                yield key, value, state.written_ms
        for key in self._written.keys() - states.keys():
            del self._written[key]
            yield key, None, now_ms


def state_partition_of(coordinator_key: str, partitions: int) -> int:
    """Return the partition of the state topic for a key: by its hash in Java."""
    hashed = 0
    units = coordinator_key.encode("utf-16-be")
    for (unit,) in struct.iter_unpack(">H", units):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - (hashed >> 31 << 32)
    return 0 if signed == -0x80000000 else abs(signed) % partitions


def _encode_key(key: SharePartitionKey) -> bytes:
    group = key.group_id.encode()
    head = struct.pack(">hh", SNAPSHOT, len(group))
    return head + group + struct.pack(">16si", key.topic_id.bytes, key.partition)


def _encode_value(state: CoordinatorState, snapshot_epoch: int, now_ms: int) -> bytes:
    head = struct.pack(">hi", VERSION, snapshot_epoch)
    epochs = STATE.pack(state.state_epoch, state.leader_epoch, state.start_offset)
    times = struct.pack(">qq", now_ms, now_ms)
    batches = b"".join(BATCH.pack(*each) + NO_TAGS for each in state.batches)
    return head + epochs + times + _varint(len(state.batches) + 1) + batches + NO_TAGS


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
