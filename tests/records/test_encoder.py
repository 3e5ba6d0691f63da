"""What goes into a batch by the encoder's arguments (its bytes: see `test_golden`)."""

from sharecons.records.encoder import NewRecord, encode
from sharecons.records.layout import HEADER, LENGTH_END
from tests.records.reading import read

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


def test_a_batch_of_no_records():
    payload = encode([], base_offset=7, last_offset_delta=2)
    fields = header(payload)

    assert (0, 2, -1) == (
        fields["count"],
        fields["last_offset_delta"],
        fields["max_timestamp"],
    )
    assert [(7, 9)] == read(payload, [(7, 9, 1)]).gaps


def test_offsets_follow_the_one_given_last():
    payload = encode(
        [NewRecord(), NewRecord(offset_delta=4), NewRecord()], base_offset=10
    )

    assert [10, 14, 15] == [record.offset for record in read(payload).records]
    assert 5 == header(payload)["last_offset_delta"]


def test_the_last_offset_may_be_beyond_the_last_record():
    payload = encode([NewRecord()], last_offset_delta=9)

    assert 9 == header(payload)["last_offset_delta"]


def test_timestamps_are_told_from_the_first_to_the_highest():
    records = [NewRecord(timestamp=timestamp) for timestamp in (20, 30, 10)]
    fields = header(encode(records))

    assert (20, 30) == (fields["base_timestamp"], fields["max_timestamp"])


def test_timestamps_may_be_told_from_any_other():
    records = [NewRecord(timestamp=timestamp) for timestamp in (20, 30, 10)]
    payload = encode(records, base_timestamp=5)

    assert 5 == header(payload)["base_timestamp"]
    assert [20, 30, 10] == [record.timestamp for record in read(payload).records]


def test_who_produced_it():
    payload = encode(
        [NewRecord()],
        partition_leader_epoch=4,
        producer_id=3,
        producer_epoch=2,
        base_sequence=1,
    )
    fields = header(payload)

    assert (4, 3, 2, 1) == (
        fields["partition_leader_epoch"],
        fields["producer_id"],
        fields["producer_epoch"],
        fields["base_sequence"],
    )


def test_by_default_nobody_in_particular_produced_it():
    fields = header(encode([NewRecord()]))

    assert (-1, -1, -1, -1) == (
        fields["partition_leader_epoch"],
        fields["producer_id"],
        fields["producer_epoch"],
        fields["base_sequence"],
    )


def test_the_length_counts_what_follows_it():
    payload = encode([NewRecord(b"k", b"v")])

    assert len(payload) - LENGTH_END == header(payload)["length"]
