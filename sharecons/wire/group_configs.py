"""DescribeConfigs (32) and IncrementalAlterConfigs (44) for configs of one group."""

from importlib import import_module
from typing import Any

from sharecons.errors import ProtocolError
from sharecons.protocol.group.config_messages import (
    AlterGroupConfig,
    AlterGroupConfigResponse,
    DescribeGroupConfig,
    DescribeGroupConfigResponse,
    DescribeGroupConfigs,
    DescribeGroupConfigsResponse,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity

__all__ = ["ALTER_GROUP_CONFIG", "DESCRIBE_GROUP_CONFIG", "DESCRIBE_GROUP_CONFIGS"]

GROUP = 32
"""ConfigResource.Type.GROUP"""

SET = 0
"""AlterConfigOp.OpType.SET"""

DYNAMIC_GROUP_CONFIG = 8
"""DescribeConfigsResponse.ConfigSource"""

_describe: Any = import_module("kio.schema.describe_configs.v4")
_alter: Any = import_module("kio.schema.incremental_alter_configs.v1")


def _describe_request(group_id: str, names: tuple[str, ...]) -> bytes:
    resource = _describe.request.DescribeConfigsResource(
        resource_type=GROUP, resource_name=group_id, configuration_keys=names
    )
    return write_entity(_describe.DescribeConfigsRequest(resources=(resource,)))


def _write_describe(request: DescribeGroupConfig, version: int) -> bytes:
    return _describe_request(request.group_id, (request.name,))


def _write_describe_all(request: DescribeGroupConfigs, version: int) -> bytes:
    return _describe_request(request.group_id, request.names)


def _read_describe(
    frame: Frame, offset: int, version: int
) -> DescribeGroupConfigResponse:
    response = read_entity(_describe.DescribeConfigsResponse, frame, offset)
    result = _only(response.results)
    config = result.configs[0] if result.configs else None
    return DescribeGroupConfigResponse(
        error=int(result.error_code),
        message=result.error_message,
        value=None if config is None else config.value,
        is_set=config is not None and config.config_source == DYNAMIC_GROUP_CONFIG,
    )


def _read_describe_all(
    frame: Frame, offset: int, version: int
) -> DescribeGroupConfigsResponse:
    response = read_entity(_describe.DescribeConfigsResponse, frame, offset)
    result = _only(response.results)
    return DescribeGroupConfigsResponse(
        error=int(result.error_code),
        message=result.error_message,
        values={config.name: config.value for config in result.configs},
    )


def _write_alter(request: AlterGroupConfig, version: int) -> bytes:
    config = _alter.request.AlterableConfig(
        name=request.name, config_operation=SET, value=request.value
    )
    resource = _alter.request.AlterConfigsResource(
        resource_type=GROUP, resource_name=request.group_id, configs=(config,)
    )
    return write_entity(
        _alter.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=False
        )
    )


def _read_alter(frame: Frame, offset: int, version: int) -> AlterGroupConfigResponse:
    response = read_entity(_alter.IncrementalAlterConfigsResponse, frame, offset)
    result = _only(response.responses)
    return AlterGroupConfigResponse(
        error=int(result.error_code), message=result.error_message
    )


def _only(results: tuple[Any, ...]) -> Any:
    if len(results) != 1:
        raise ProtocolError(
            f"invalid response: it contains {len(results)} groups instead of 1"
        )
    return results[0]


DESCRIBE_GROUP_CONFIG: Api[DescribeGroupConfig, DescribeGroupConfigResponse] = Api(
    key=32,
    name="DescribeConfigs",
    versions=range(4, 5),
    write=_write_describe,
    read=_read_describe,
)
DESCRIBE_GROUP_CONFIGS: Api[DescribeGroupConfigs, DescribeGroupConfigsResponse] = Api(
    key=32,
    name="DescribeConfigs",
    versions=range(4, 5),
    write=_write_describe_all,
    read=_read_describe_all,
)
ALTER_GROUP_CONFIG: Api[AlterGroupConfig, AlterGroupConfigResponse] = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=range(1, 2),
    write=_write_alter,
    read=_read_alter,
)
