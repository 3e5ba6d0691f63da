"""FindCoordinator (10), versions 4 to 6: the same bytes in all of them."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.group.messages import FindCoordinator, FindCoordinatorResponse
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.find_coordinator import FIND_COORDINATOR
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

REQUEST = FindCoordinator(group_id="billing")
REQUEST_BYTES = """
    00                    KeyType: group, for share groups too
    02 08 'billing'       CoordinatorKeys: one
    00                    (tagged fields)
"""
RESPONSE = """
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
    assert from_hex(REQUEST_BYTES) == FIND_COORDINATOR.write(REQUEST, version)


@versions
def test_response(version):
    expected = FindCoordinatorResponse(
        error=0, message=None, node_id=1, endpoint=Endpoint("broker1", 9092)
    )

    assert expected == FIND_COORDINATOR.read(from_hex(RESPONSE), 0, version)


@versions
def test_kio_decodes_the_request(version):
    kind = schema("find_coordinator", version).FindCoordinatorRequest

    got = decode_entity(kind, FIND_COORDINATOR.write(REQUEST, version))

    assert (0, ("billing",)) == (got.key_type, got.coordinator_keys)


def response_for(version, *groups):
    v = schema("find_coordinator", version).response
    return encode_entity(
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
def test_response_encoded_by_kio_is_decoded(version):
    expected = FindCoordinatorResponse(
        error=15, message="later", node_id=-1, endpoint=Endpoint("", -1)
    )

    response = response_for(version, "billing")
    assert expected == FIND_COORDINATOR.read(response, 0, version)


@pytest.mark.parametrize("groups", [(), ("a", "b")])
def test_response_without_exactly_one_coordinator_is_rejected(groups):
    with pytest.raises(ProtocolError, match="coordinators instead of 1"):
        FIND_COORDINATOR.read(response_for(6, *groups), 0, 6)
