"""DescribeConfigs (32) version 4, IncrementalAlterConfigs (44) version 1."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from sharecons.errors import ProtocolError
from sharecons.protocol.group.config_messages import (
    AlterGroupConfig,
    AlterGroupConfigResponse,
    DescribeGroupConfig,
    DescribeGroupConfigResponse,
)
from sharecons.wire.group_configs import ALTER_GROUP_CONFIG, DESCRIBE_GROUP_CONFIG
from tests.wire.oracle import decode_entity, encode_entity, from_hex, schema

DESCRIBE = DescribeGroupConfig(group_id="billing", name="share.auto.offset.reset")
DESCRIBE_BYTES = """
    02                                Resources: one
      20                              ResourceType: 32, group
      08 'billing'                    ResourceName
      02                              ConfigurationKeys: one
        18 'share.auto.offset.reset'
      00                              (tagged fields)
    00 00                             synonyms, documentation: no
    00                                (tagged fields)
"""
DESCRIBE_RESPONSE = """
    00000000                          ThrottleTimeMs
    02                                Results: one
      0000                            ErrorCode
      01                              ErrorMessage: empty
      20                              ResourceType
      08 'billing'                    ResourceName
      02                              Configs: one
        18 'share.auto.offset.reset'  Name
        09 'earliest'                 Value
        00 08 00                      ReadOnly, ConfigSource, IsSensitive
        01                            Synonyms: none
        02                            ConfigType
        00                            Documentation: null
        00                            (tagged fields)
      00                              (tagged fields)
    00                                (tagged fields)
"""

ALTER = AlterGroupConfig(
    group_id="billing", name="share.auto.offset.reset", value="earliest"
)
ALTER_BYTES = """
    02                                Resources: one
      20                              ResourceType: 32, group
      08 'billing'                    ResourceName
      02                              Configs: one
        18 'share.auto.offset.reset'  Name
        00                            ConfigOperation: set
        09 'earliest'                 Value
        00                            (tagged fields)
      00                              (tagged fields)
    00                                ValidateOnly: no
    00                                (tagged fields)
"""
ALTER_RESPONSE = """
    00000000                          ThrottleTimeMs
    02                                Responses: one
      001e                            ErrorCode, group authorization failed
      03 'no'                         ErrorMessage
      20                              ResourceType
      08 'billing'                    ResourceName
      00                              (tagged fields)
    00                                (tagged fields)
"""


def test_describe_request():
    assert from_hex(DESCRIBE_BYTES) == DESCRIBE_GROUP_CONFIG.write(DESCRIBE, 4)


def test_alter_request():
    assert from_hex(ALTER_BYTES) == ALTER_GROUP_CONFIG.write(ALTER, 1)


def test_describe_response_with_a_value():
    expected = DescribeGroupConfigResponse(
        error=0, message="", value="earliest", is_set=True
    )

    assert expected == DESCRIBE_GROUP_CONFIG.read(from_hex(DESCRIBE_RESPONSE), 0, 4)


def test_alter_response():
    expected = AlterGroupConfigResponse(error=30, message="no")

    assert expected == ALTER_GROUP_CONFIG.read(from_hex(ALTER_RESPONSE), 0, 1)


def test_kio_decodes_the_requests():
    describe = schema("describe_configs", 4)
    alter = schema("incremental_alter_configs", 1)

    described = decode_entity(
        describe.DescribeConfigsRequest, DESCRIBE_GROUP_CONFIG.write(DESCRIBE, 4)
    )
    altered = decode_entity(
        alter.IncrementalAlterConfigsRequest, ALTER_GROUP_CONFIG.write(ALTER, 1)
    )

    resource = describe.request.DescribeConfigsResource(
        resource_type=32,
        resource_name="billing",
        configuration_keys=("share.auto.offset.reset",),
    )
    assert (resource,) == described.resources
    config = alter.request.AlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = alter.request.AlterConfigsResource(
        resource_type=32, resource_name="billing", configs=(config,)
    )
    assert (resource,) == altered.resources


def described_by_kio(*values, results=1):
    v = schema("describe_configs", 4).response
    configs = tuple(
        v.DescribeConfigsResourceResult(
            name="n",
            value=value,
            read_only=False,
            is_sensitive=False,
            synonyms=(),
            documentation=None,
        )
        for value in values
    )
    result = v.DescribeConfigsResult(
        error_code=ErrorCode.none,
        error_message=None,
        resource_type=32,
        resource_name="billing",
        configs=configs,
    )
    return encode_entity(
        v.DescribeConfigsResponse(
            throttle_time=timedelta(0), results=(result,) * results
        )
    )


@pytest.mark.parametrize(
    ("values", "expected"), [((), None), ((None,), None), (("5",), "5")]
)
def test_response_encoded_by_kio_is_decoded(values, expected):
    got = DESCRIBE_GROUP_CONFIG.read(described_by_kio(*values), 0, 4)

    assert DescribeGroupConfigResponse(error=0, message=None, value=expected) == got


@pytest.mark.parametrize("results", [0, 2])
def test_response_without_exactly_one_group_is_rejected(results):
    with pytest.raises(ProtocolError, match="groups instead of 1"):
        DESCRIBE_GROUP_CONFIG.read(described_by_kio("5", results=results), 0, 4)
