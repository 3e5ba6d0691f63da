"""DescribeConfigs (32): the configs of groups, brokers and topics."""

from collections.abc import Mapping
from typing import Any, Final

from sharecons.protocol.admin.models import ConfigEntry
from sharecons.protocol.admin.requests import (
    DescribeConfigs,
    Reply,
    Resource,
    ResourceKind,
)
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["DESCRIBE_CONFIGS"]

Entries = Mapping[str, ConfigEntry]
Described = Mapping[Resource, Reply[Entries]]

_SOURCES: Final[Mapping[int, str]] = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}


def _write(request: DescribeConfigs, version: int) -> bytes:
    v = schema("describe_configs", version)
    return write_entity(
        v.DescribeConfigsRequest(
            resources=tuple(
                v.request.DescribeConfigsResource(
                    resource_type=int(kind),
                    resource_name=name,
                    configuration_keys=request.names,
                )
                for kind, name in request.resources
            ),
            include_documentation=True,
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Described:
    kind = schema("describe_configs", version).DescribeConfigsResponse
    return {
        Resource(ResourceKind(result.resource_type), result.resource_name): Reply(
            int(result.error_code),
            result.error_message,
            {
                config.name: _entry(config)
                for config in sorted(result.configs, key=lambda each: str(each.name))
            },
        )
        for result in read_entity(kind, frame, offset).results
    }


def _entry(config: Any) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_SOURCES.get(config.config_source, "UNKNOWN"),
        read_only=config.read_only,
        sensitive=config.is_sensitive,
        documentation=config.documentation,
    )


DESCRIBE_CONFIGS: Api[DescribeConfigs, Described] = Api(
    key=32, name="DescribeConfigs", versions=range(4, 5), write=_write, read=_read
)
