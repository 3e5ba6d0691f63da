"""Records of __share_group_state, captured from Kafka 4.3.0."""

import pytest

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.models import DeliveryState, StateBatch
from sharecons.protocol.admin.state_records import StateKey, StateSnapshot, StateUpdate
from sharecons.protocol.partitions import SharePartition
from sharecons.wire.share_state_records import read_key, read_value

TOPIC_ID = bytes.fromhex("55adba65e2d942c89579195064571d6c")
KEY = bytes.fromhex("0001 0007 62696c6c696e67") + TOPIC_ID + bytes.fromhex("00000004")

SNAPSHOT = bytes.fromhex(
    "0000"  # version
    "00000001 00000004 00000000"  # snapshot, state and leader epoch
    "0000000000000005"  # start offset
    "000001a1ff8eecc9 000001a1ff8eecc9"  # when it was made, and written
    "01"  # no batches
    "01 00 04 00000000"  # a tagged field: DeliveryCompleteCount
)
UPDATE = bytes.fromhex(
    "0000"  # version
    "00000000 00000000"  # snapshot and leader epoch
    "ffffffffffffffff"  # start offset: as before
    "03"  # two batches
    "0000000000000028 000000000000002c 04 0001 00"
    "0000000000000032 0000000000000036 00 0002 00"
    "01 00 04 0000000f"
)


def test_key_is_decoded():
    key = StateKey("billing", SharePartition(TOPIC_ID, 4))

    assert (key, 1) == read_key(KEY)


def test_unknown_record_type_is_skipped():
    assert read_key(b"\0\x02" + KEY[2:]) is None


def test_snapshot_is_decoded():
    assert StateSnapshot(
        state_epoch=4, leader_epoch=0, start_offset=5, batches=()
    ) == read_value(0, SNAPSHOT)


def test_update_is_decoded():
    assert StateUpdate(
        leader_epoch=0,
        start_offset=None,
        batches=(
            StateBatch(
                first_offset=40,
                last_offset=44,
                state=DeliveryState.ARCHIVED,
                delivery_count=1,
            ),
            StateBatch(
                first_offset=50,
                last_offset=54,
                state=DeliveryState.AVAILABLE,
                delivery_count=2,
            ),
        ),
    ) == read_value(1, UPDATE)


@pytest.mark.parametrize(("number", "name"), [(3, "ARCHIVING"), (99, "UNKNOWN_99")])
def test_unknown_state_in_a_batch_is_decoded(number, name):
    newer = UPDATE.replace(b"\x04\x00\x01\x00", bytes([number, 0, 1, 0]))
    first, second = read_value(1, newer).batches

    assert (number, name) == (first.state, first.state.name)
    assert (number == 3) is first.state.is_known
    assert second.state is DeliveryState.AVAILABLE


@pytest.mark.parametrize(("kind", "value"), [(0, SNAPSHOT), (1, UPDATE)])
def test_truncated_value_is_rejected(kind, value):
    # The tagged fields at the end are not decoded.
    for length in range(len(value) - 7):
        with pytest.raises(ProtocolError, match="invalid value in __share_group_state"):
            read_value(kind, value[:length])


def test_truncated_key_is_rejected():
    for length in range(len(KEY)):
        with pytest.raises(ProtocolError, match="invalid key in __share_group_state"):
            read_key(KEY[:length])


def test_newer_version_is_rejected():
    with pytest.raises(ProtocolError, match="version 1 is not supported"):
        read_value(0, b"\0\x01" + SNAPSHOT[2:])
