"""Records of `__share_group_state`: what share coordinators write (KIP-932, "Records").

A key begins with its kind: 0 for snapshots, 1 for updates. Keys have no tagged fields,
values have: what newer brokers add there is passed over.
"""

import struct
from struct import Struct
from typing import Final

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.models import DeliveryState, StateBatch
from sharecons.protocol.diagnosis.state_replay import Snapshot, StateKey, Update
from sharecons.protocol.messages import SharePartition
from sharecons.wire.codec.fields import FieldReader

__all__ = ["SHARE_GROUP_STATE", "read_key", "read_value"]

SHARE_GROUP_STATE: Final = "__share_group_state"

SNAPSHOT: Final = 0
UPDATE: Final = 1

# Kind of the record, length of the group's id
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

_GARBAGE: Final = (struct.error, ValueError, IndexError)


def read_key(key: bytes) -> tuple[StateKey, int] | None:
    """Read whose state a record speaks of, and what kind it is.

    None for a kind that is not known: newer brokers may have more.

    Raises:
        ProtocolError: the bytes are no such key.
    """
    try:
        kind, length = _KEY_HEAD.unpack_from(key)
        if kind not in (SNAPSHOT, UPDATE):
            return None
        if length < 0:
            raise ValueError("null, where the id of a group is to be")
        end = _KEY_HEAD.size + length
        topic_id, partition = _KEY_TAIL.unpack_from(key, end)
        group_id = key[_KEY_HEAD.size : end].decode()
    except _GARBAGE as error:
        raise ProtocolError(f"no key of {SHARE_GROUP_STATE}: {error}") from error
    return StateKey(group_id, SharePartition(topic_id, partition)), kind


def read_value(kind: int, value: bytes) -> Snapshot | Update:
    """Read a record's value.

    Raises:
        ProtocolError: the bytes are no such value, or of a version not known.
    """
    try:
        return _value(kind, value)
    except _GARBAGE as error:
        raise ProtocolError(f"no value of {SHARE_GROUP_STATE}: {error}") from error


def _value(kind: int, value: bytes) -> Snapshot | Update:
    (version,) = _VERSION.unpack_from(value)
    if version != 0:
        raise ValueError(f"version {version} of its records is not known here")
    position = _VERSION.size
    if kind == SNAPSHOT:
        _, state_epoch, leader_epoch, start, _, _ = _SNAPSHOT.unpack_from(
            value, position
        )
        return Snapshot(
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=_known(start),
            batches=_batches(value, position + _SNAPSHOT.size),
        )
    _, leader_epoch, start = _UPDATE.unpack_from(value, position)
    return Update(
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
