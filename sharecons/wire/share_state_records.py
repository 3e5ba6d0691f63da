"""Records of `__share_group_state`, written by share coordinators (KIP-932, "Records").

A key begins with its type: 0 for snapshots, 1 for updates. Keys have no tagged fields.
Values have tagged fields, which newer brokers can use; they are skipped.
"""

import struct
from struct import Struct
from typing import Final

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.models import DeliveryState, StateBatch
from sharecons.protocol.admin.state_records import StateKey, StateSnapshot, StateUpdate
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.codec.fields import FieldReader

__all__ = ["SHARE_GROUP_STATE", "read_key", "read_value"]

SHARE_GROUP_STATE: Final = "__share_group_state"

SNAPSHOT: Final = 0
UPDATE: Final = 1

# Type of the record, length of the group's id
_KEY_HEAD: Final = Struct(">hh")
# Topic id, partition
_KEY_TAIL: Final = Struct(">16si")
# Version
_VERSION: Final = Struct(">h")
# SnapshotEpoch, StateEpoch, LeaderEpoch, StartOffset, CreateTimestamp, WriteTimestamp
_SNAPSHOT: Final = Struct(">iiiqqq")
# SnapshotEpoch, LeaderEpoch, StartOffset
_UPDATE: Final = Struct(">iiq")
# FirstOffset, LastOffset, DeliveryState, DeliveryCount
_BATCH: Final = Struct(">qqbh")

_DECODE_ERRORS: Final = (struct.error, ValueError, IndexError)


def read_key(key: bytes) -> tuple[StateKey, int] | None:
    """Return the group and partition of a record, and the record's type.

    Return None for an unknown type, which newer brokers can write.

    Raises:
        ProtocolError: the bytes are not a valid key.
    """
    try:
        kind, length = _KEY_HEAD.unpack_from(key)
        if kind not in (SNAPSHOT, UPDATE):
            return None
        if length < 0:
            raise ValueError("the group id is null")
        end = _KEY_HEAD.size + length
        topic_id, partition = _KEY_TAIL.unpack_from(key, end)
        group_id = key[_KEY_HEAD.size : end].decode()
    except _DECODE_ERRORS as error:
        raise ProtocolError(f"invalid key in {SHARE_GROUP_STATE}: {error}") from error
    return StateKey(group_id, SharePartition(topic_id, partition)), kind


def read_value(kind: int, value: bytes) -> StateSnapshot | StateUpdate:
    """Return a record's value.

    Raises:
        ProtocolError: the bytes are not a valid value, or have an unknown version.
    """
    try:
        return _value(kind, value)
    except _DECODE_ERRORS as error:
        raise ProtocolError(f"invalid value in {SHARE_GROUP_STATE}: {error}") from error


def _value(kind: int, value: bytes) -> StateSnapshot | StateUpdate:
    (version,) = _VERSION.unpack_from(value)
    if version != 0:
        raise ValueError(f"version {version} is not supported")
    position = _VERSION.size
    if kind == SNAPSHOT:
        _, state_epoch, leader_epoch, start, _, _ = _SNAPSHOT.unpack_from(
            value, position
        )
        return StateSnapshot(
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=_known(start),
            batches=_batches(value, position + _SNAPSHOT.size),
        )
    _, leader_epoch, start = _UPDATE.unpack_from(value, position)
    return StateUpdate(
        leader_epoch=_known(leader_epoch),
        start_offset=_known(start),
        batches=_batches(value, position + _UPDATE.size),
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _batches(value: bytes, position: int) -> tuple[StateBatch, ...]:
    reader = FieldReader(value, position)
    batches = []
    for _ in range(reader.count(_BATCH.size + 1)):
        first, last, state, count = _BATCH.unpack_from(value, reader.position)
        reader.position += _BATCH.size
        reader.skip_tags()
        batches.append(
            StateBatch(
                first_offset=first,
                last_offset=last,
                state=DeliveryState(state),
                delivery_count=count,
            )
        )
    return tuple(batches)
