"""The encoder's arguments in the batch header (for its bytes see `test_golden`)."""

from sharecons.records.batch_header import HEADER
from sharecons.records.encoder import NewRecord, encode
from tests.records.reading import decode_payload

FIELDS = (
    "base_offset",
    "length",
    "partition_leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)


def header(payload):
    return dict(zip(FIELDS, HEADER.unpack_from(payload), strict=True))


def test_batch_without_records():
    payload = encode([], base_offset=7, last_offset_delta=2)
    fields = header(payload)

    assert (0, 2, -1) == (
        fields["count"],
        fields["last_offset_delta"],
        fields["max_timestamp"],
    )
    assert [(7, 9)] == decode_payload(payload, [(7, 9, 1)]).gaps


def test_default_offset_delta_follows_the_previous_one():
    payload = encode(
        [NewRecord(), NewRecord(offset_delta=4), NewRecord()], base_offset=10
    )

    assert [10, 14, 15] == [record.offset for record in decode_payload(payload).records]
    assert 5 == header(payload)["last_offset_delta"]


def test_last_offset_delta_may_be_after_the_last_record():
    payload = encode([NewRecord()], last_offset_delta=9)

    assert 9 == header(payload)["last_offset_delta"]


def test_base_timestamp_is_the_first_and_max_the_highest():
    records = [NewRecord(timestamp=timestamp) for timestamp in (20, 30, 10)]
    fields = header(encode(records))

    assert (20, 30) == (fields["base_timestamp"], fields["max_timestamp"])


def test_base_timestamp_may_be_given():
    records = [NewRecord(timestamp=timestamp) for timestamp in (20, 30, 10)]
    payload = encode(records, base_timestamp=5)

    assert 5 == header(payload)["base_timestamp"]
    assert [20, 30, 10] == [
        record.timestamp for record in decode_payload(payload).records
    ]
