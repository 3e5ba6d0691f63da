"""The partition of a key; Kafka's own tests have the same Java hashes."""

from collections import Counter

import pytest

from sharecons.protocol.produce.partitioner import murmur2, partition_of_key


@pytest.mark.parametrize(
    ("data", "java"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_equals_the_java_producers_hash(data: bytes, java: int) -> None:
    assert java % (1 << 32) == murmur2(data)


def test_keys_are_spread_evenly_over_all_partitions() -> None:
    counts = Counter(partition_of_key(b"%d" % number, 7) for number in range(7000))

    assert set(range(7)) == set(counts)
    assert min(counts.values()) > 800
