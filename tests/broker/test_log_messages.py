"""Messages of formats 0 and 1 in a log of the embedded broker."""

import pytest

from sharecons.records.compression import Codec
from sharecons.testing.broker.log.messages import contents_of
from sharecons.testing.broker.log.partition_log import LogPosition, PartitionLog
from tests.broker.raw_batches import NOW, batch
from tests.records.golden_messages import APPEND_TIMESTAMP, JAVA, MESSAGES
from tests.records.message_sets import message, wrapper

END = 1 << 40


def places(log):
    return [(b.base_offset, b.last_offset) for b in log.batches(0, END, END)]


@pytest.mark.parametrize("name", JAVA, ids=" ".join)
def test_message_set_that_java_wrote_has_its_records(name):
    log = PartitionLog()
    log.load(JAVA[name])

    contents = [c for b in log.batches(0, END, END) for c in contents_of(b.data)]

    times = {"magic0": [-1] * 3, "append_time": [APPEND_TIMESTAMP] * 3}
    expected = times.get(name[0], [each[1] for each in MESSAGES])
    assert [(each[0], *each[2:]) for each in MESSAGES] == [
        (content.offset, content.key, content.value) for content in contents
    ]
    assert expected == [content.timestamp for content in contents]


def test_loaded_log_has_the_offsets_of_its_batches():
    log = PartitionLog()
    inner = [message(at, b"v") for at in range(3)]
    log.load(message(4, b"v", magic=0) + wrapper(9, inner, Codec.SNAPPY))
    log.append(batch("a", "b"), NOW)
    log.load(batch("c", base_offset=20))

    assert [(4, 4), (7, 9), (10, 11), (20, 20)] == places(log)
    assert 21 == log.end_offset == log.last_stable_offset


def test_loaded_log_finds_a_timestamp_in_a_compressed_message():
    log = PartitionLog()
    inner = [message(at, b"v", timestamp=100 + at) for at in range(3)]
    log.load(wrapper(9, inner, timestamp=102))

    assert LogPosition(8, 101, 0) == log.find_timestamp(101)
    assert LogPosition(9, 102, 0) == log.find_max_timestamp()


def test_loading_offsets_that_the_log_has_is_an_error():
    log = PartitionLog()
    log.load(message(4, b"v"))

    with pytest.raises(ValueError, match="offset 4 is before the end of the log, 5"):
        log.load(message(4, b"v"))


@pytest.mark.parametrize(
    "damaged",
    [
        message(0, b"ab")[:-1] + b"x",
        wrapper(0, []),
        wrapper(0, [wrapper(0, [message(0, b"")])]),
        message(0, b"ab", attributes=Codec.GZIP),
        message(0, b"ab", attributes=Codec.SNAPPY),
        message(0, b"ab", attributes=Codec.ZSTD),
    ],
)
def test_loading_a_damaged_message_is_an_error(damaged):
    with pytest.raises(ValueError):
        PartitionLog().load(damaged)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"junk", "the last 4 bytes are no complete batch"),
        (message(0, b"ab") + b"junk", "the last 4 bytes are no complete batch"),
        (message(0, b"ab")[:-1], "bytes are no complete batch"),
        (b"\0" * 100, "Record size 0 is less than"),
    ],
)
def test_loading_bytes_that_are_no_batches_is_an_error(data, error):
    log = PartitionLog()
    with pytest.raises(ValueError, match=error):
        log.load(data)

    assert 0 == log.end_offset
