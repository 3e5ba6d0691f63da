"""DescribeShareGroupOffsets (90): version 1 has the lag, version 0 has not."""

from datetime import timedelta
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.values import (
    DescribeShareGroupOffsets,
    ShareGroupOffsets,
    SharePartition,
    SharePartitionOffset,
)
from sharecons.wire.share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS as API
from tests.wire.oracle import schema, spelt, written

TOPIC = UUID("00112233-4455-6677-8899-aabbccddeeff")

REQUEST = """
    02 08 'billing'       Groups: one
      00                  Topics: null, all of them
      00                  (tagged fields)
    00                    (tagged fields)
"""
ANSWER = """
    00000000              ThrottleTimeMs
    02 08 'billing'       Groups: one
      02 07 'orders'      Topics: one
        00112233445566778899aabbccddeeff  TopicId
        02 00000003       Partitions: one
          0000000000000100  StartOffset
          00000002        LeaderEpoch
          {lag}
          0000            ErrorCode
          00              ErrorMessage: null
          00              (tagged fields)
        00                (tagged fields)
      0000                ErrorCode
      00                  ErrorMessage: null
      00                  (tagged fields)
    00                    (tagged fields)
"""

versions = pytest.mark.parametrize("version", [0, 1])


@versions
def test_request(version):
    request = DescribeShareGroupOffsets(group_id="billing")

    assert spelt(REQUEST) == API.write(request, version)


@pytest.mark.parametrize(
    ("version", "written_lag", "lag"), [(0, "", -1), (1, "0000000000000011", 17)]
)
def test_answer(version, written_lag, lag):
    place = SharePartition(TOPIC.bytes, 3)
    expected = ShareGroupOffsets(
        error=0,
        message=None,
        partitions=(SharePartitionOffset("orders", place, 256, lag),),
    )

    answer = spelt(ANSWER.format(lag=written_lag))
    assert expected == API.read(answer, 0, version)


def answer_about(*groups, code=ErrorCode.none):
    v = schema("describe_share_group_offsets", 1).response
    partition = v.DescribeShareGroupOffsetsResponsePartition(
        partition_index=0, start_offset=5, leader_epoch=0, error_code=code
    )
    topic = v.DescribeShareGroupOffsetsResponseTopic(
        topic_name="orders", topic_id=TOPIC, partitions=(partition,)
    )
    return written(
        v.DescribeShareGroupOffsetsResponse(
            throttle_time=timedelta(0),
            groups=tuple(
                v.DescribeShareGroupOffsetsResponseGroup(
                    group_id=group, topics=(topic,), error_code=ErrorCode.none
                )
                for group in groups
            ),
        )
    )


def test_partition_of_which_nothing_is_known_is_left_out():
    code = ErrorCode.unknown_topic_or_partition

    assert API.read(answer_about("billing", code=code), 0, 1).partitions == ()


@pytest.mark.parametrize("groups", [(), ("a", "b")])
def test_answer_about_none_or_several_is_no_answer(groups):
    with pytest.raises(ProtocolError, match="one group"):
        API.read(answer_about(*groups), 0, 1)
