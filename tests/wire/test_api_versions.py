"""ApiVersions (18), version 3, and the response in version 0."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.wire.api_versions import read_versions, write_versions_request
from sharecons.wire.codec.api import VersionRange
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

REQUEST = """
    0a 'sharecons'             ClientSoftwareName
    06 '0.1.0'                 ClientSoftwareVersion
    00                         (tagged fields)
"""
RESPONSE = """
    0000                       ErrorCode
    03                         ApiKeys: two
      0012 0000 0004 00        key, lowest, highest, tags
      004e 0001 0002 00
    00000000                   ThrottleTimeMs
    02                         (tagged fields: two)
      01 08 000000000000002a   1: FinalizedFeaturesEpoch
      02                       2: FinalizedFeatures,
        14                     20 bytes
        02                     one
          0e 'share.version'   Name
          0001 0001 00         MaxVersionLevel, MinVersionLevel, tags
"""
OLD_RESPONSE = """
    0023                       ErrorCode, unsupported version
    00000001                   ApiKeys: one
      0012 0000 0002           key, lowest, highest
"""


def test_request():
    assert from_hex(REQUEST) == write_versions_request("sharecons", "0.1.0")


def test_response():
    expected = {18: VersionRange(0, 4), 78: VersionRange(1, 2)}

    assert expected == read_versions(from_hex(RESPONSE), 0)


def test_response_in_version_0_of_an_old_broker():
    assert {18: VersionRange(0, 2)} == read_versions(from_hex(OLD_RESPONSE), 0)


def test_other_error_is_reported_by_name():
    with pytest.raises(ProtocolError, match="failed: CLUSTER_AUTHORIZATION_FAILED"):
        read_versions(from_hex("001f 00000000"), 0)


def test_unknown_error_is_reported_by_number():
    with pytest.raises(ProtocolError, match="error code 9999"):
        read_versions(from_hex("270f 00000000"), 0)


def test_tagged_fields_of_newer_brokers_are_skipped():
    response = from_hex("0000 02 0012 0000 0004 00 00000000 01 63 03 ffffff")

    assert {18: VersionRange(0, 4)} == read_versions(response, 0)


def test_kio_decodes_the_request():
    kind = schema("api_versions", 3).ApiVersionsRequest

    got = decode_entity(kind, write_versions_request("sharecons", "0.1.0"))

    assert ("sharecons", "0.1.0") == (
        got.client_software_name,
        got.client_software_version,
    )


int16 = st.integers(-(1 << 15), (1 << 15) - 1)


@given(
    served=st.dictionaries(int16, st.builds(VersionRange, int16, int16)),
    epoch=st.integers(-1, (1 << 63) - 1),
    features=st.lists(st.text(max_size=5), max_size=3),
)
def test_every_response_encoded_by_kio_is_decoded(served, epoch, features):
    v = schema("api_versions", 3).response
    entity = v.ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            v.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, (lowest, highest) in served.items()
        ),
        throttle_time=timedelta(0),
        supported_features=tuple(
            v.SupportedFeatureKey(name=name, min_version=0, max_version=1)
            for name in features
        ),
        finalized_features_epoch=epoch,
        finalized_features=tuple(
            v.FinalizedFeatureKey(name=name, max_version_level=1, min_version_level=0)
            for name in features
        ),
        zk_migration_ready=True,
    )

    assert served == read_versions(encode_entity(entity), 0)


@given(served=st.dictionaries(int16, st.builds(VersionRange, int16, int16)))
def test_every_old_response_encoded_by_kio_is_decoded(served):
    v = schema("api_versions", 0).response
    entity = v.ApiVersionsResponse(
        error_code=ErrorCode.unsupported_version,
        api_keys=tuple(
            v.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, (lowest, highest) in served.items()
        ),
    )

    assert served == read_versions(encode_entity(entity), 0)
