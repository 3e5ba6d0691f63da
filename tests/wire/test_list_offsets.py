"""ListOffsets (2), versions 6 to 9: the same bytes in all of them."""

import pytest

from sharecons.protocol.values import ListOffsets, OffsetListed, OffsetsListed
from sharecons.wire.list_offsets import LIST_OFFSETS
from tests.wire.oracle import read, schema, spelt

LATEST = ListOffsets(which="latest", partitions={"orders": (3,)})
REQUEST = """
    ffffffff              ReplicaId: a consumer
    00                    IsolationLevel: read uncommitted
    02 07 'orders'        Topics: one
      02 00000003         Partitions: one
        ffffffff          CurrentLeaderEpoch: unknown
        ffffffffffffffff  Timestamp: latest
        00                (tagged fields)
      00                  (tagged fields)
    00                    (tagged fields)
"""
ANSWER = """
    00000000              ThrottleTimeMs
    02 07 'orders'        Topics: one
      03 00000003         Partitions: two
        0000              ErrorCode
        ffffffffffffffff  Timestamp
        0000000000000100  Offset
        00000002          LeaderEpoch
        00                (tagged fields)
      00000004            Partition
        0006              ErrorCode: not the leader
        ffffffffffffffff  Timestamp
        ffffffffffffffff  Offset
        ffffffff          LeaderEpoch
        00                (tagged fields)
      00                  (tagged fields)
    00                    (tagged fields)
"""

versions = pytest.mark.parametrize("version", [6, 7, 8, 9])


@versions
def test_request(version):
    assert spelt(REQUEST) == LIST_OFFSETS.write(LATEST, version)


@versions
def test_kio_reads_the_earliest_as_it_was_meant(version):
    kind = schema("list_offsets", version).ListOffsetsRequest
    request = ListOffsets(which="earliest", partitions={"a": (0, 1), "b": (2,)})

    got = read(kind, LIST_OFFSETS.write(request, version))

    asked = {
        topic.name: [(p.partition_index, p.timestamp) for p in topic.partitions]
        for topic in got.topics
    }
    assert {"a": [(0, -2), (1, -2)], "b": [(2, -2)]} == asked


@versions
def test_answer(version):
    expected = OffsetsListed(
        partitions=(OffsetListed("orders", 3, 0, 256), OffsetListed("orders", 4, 6, -1))
    )

    assert expected == LIST_OFFSETS.read(spelt(ANSWER), 0, version)
