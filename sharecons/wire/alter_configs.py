"""IncrementalAlterConfigs (44): sets configs, or resets them to their defaults."""

from typing import Final

from sharecons.errors import ProtocolError
from sharecons.protocol.admin.requests import AlterConfigs, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["ALTER_CONFIGS"]

SET: Final = 0
DELETE: Final = 1


def _write(request: AlterConfigs, version: int) -> bytes:
    v = schema("incremental_alter_configs", version)
    configs = tuple(
        v.request.AlterableConfig(
            name=name, config_operation=DELETE if value is None else SET, value=value
        )
        for name, value in request.configs.items()
    )
    resource = v.request.AlterConfigsResource(
        resource_type=int(request.resource.kind),
        resource_name=request.resource.name,
        configs=configs,
    )
    return write_entity(
        v.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=request.validate_only
        )
    )


def _read(frame: Frame, offset: int, version: int) -> Reply[None]:
    kind = schema("incremental_alter_configs", version).IncrementalAlterConfigsResponse
    responses = read_entity(kind, frame, offset).responses
    if len(responses) != 1:
        raise ProtocolError(
            "invalid IncrementalAlterConfigs response: it contains "
            f"{len(responses)} resources instead of 1"
        )
    return Reply(int(responses[0].error_code), responses[0].error_message, None)


ALTER_CONFIGS: Api[AlterConfigs, Reply[None]] = Api(
    key=44,
    name="IncrementalAlterConfigs",
    versions=range(1, 2),
    write=_write,
    read=_read,
)
