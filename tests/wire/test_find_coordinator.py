"""FindCoordinator (10), versions 4 to 6: the same bytes in all of them."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.messages import (
    Endpoint,
    FindCoordinator,
    FindCoordinatorResponse,
)
from sharecons.wire.find_coordinator import FIND_COORDINATOR
from tests.wire.oracle import read, schema, spelt, written

REQUEST = FindCoordinator(group_id="billing")
REQUEST_BYTES = """
    00                    KeyType: group, for share groups too
    02 08 'billing'       CoordinatorKeys: one
    00                    (tagged fields)
"""
ANSWER = """
    00000000              ThrottleTimeMs
    02                    Coordinators: one
      08 'billing'        Key
      00000001            NodeId
      08 'broker1'        Host
      00002384            Port, 9092
      0000                ErrorCode
      00                  ErrorMessage: null
      00                  (tagged fields)
    00                    (tagged fields)
"""

versions = pytest.mark.parametrize("version", [4, 5, 6])


@versions
def test_request(version):
    assert spelt(REQUEST_BYTES) == FIND_COORDINATOR.write(REQUEST, version)


@versions
def test_answer(version):
    expected = FindCoordinatorResponse(
        error=0, message=None, node_id=1, endpoint=Endpoint("broker1", 9092)
    )

    assert expected == FIND_COORDINATOR.read(spelt(ANSWER), 0, version)


@versions
def test_kio_reads_the_request_as_it_was_meant(version):
    kind = schema("find_coordinator", version).FindCoordinatorRequest

    got = read(kind, FIND_COORDINATOR.write(REQUEST, version))

    assert (0, ("billing",)) == (got.key_type, got.coordinator_keys)


def answer_about(version, *groups):
    v = schema("find_coordinator", version).response
    return written(
        v.FindCoordinatorResponse(
            throttle_time=timedelta(0),
            coordinators=tuple(
                v.Coordinator(
                    key=group,
                    node_id=-1,
                    host="",
                    port=-1,
                    error_code=ErrorCode.coordinator_not_available,
                    error_message="later",
                )
                for group in groups
            ),
        )
    )


@versions
def test_answer_that_kio_writes_is_read_as_it_was_meant(version):
    expected = FindCoordinatorResponse(
        error=15, message="later", node_id=-1, endpoint=Endpoint("", -1)
    )

    answer = answer_about(version, "billing")
    assert expected == FIND_COORDINATOR.read(answer, 0, version)


@pytest.mark.parametrize("groups", [(), ("a", "b")])
def test_answer_about_none_or_several_is_no_answer(groups):
    with pytest.raises(ProtocolError, match="coordinators instead of 1"):
        FIND_COORDINATOR.read(answer_about(6, *groups), 0, 6)


def test_error_code_that_nobody_knows_stays_a_number():
    answer = spelt(ANSWER.replace(" 0000  ", " 270f  "))

    assert 9999 == FIND_COORDINATOR.read(answer, 0, 6).error
