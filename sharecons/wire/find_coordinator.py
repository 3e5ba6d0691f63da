"""FindCoordinator (10): finds a group's coordinator.

The key type is GROUP for share groups too. Type SHARE is for the share coordinators,
which store the state of share partitions and receive no heartbeats (KIP-932).
"""

from importlib import import_module

from sharecons.errors import ProtocolError
from sharecons.protocol.group.messages import FindCoordinator, FindCoordinatorResponse
from sharecons.protocol.partitions import Endpoint
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity

__all__ = ["FIND_COORDINATOR"]

GROUP = 0
VERSIONS = range(4, 7)

_SCHEMAS = {
    version: import_module(f"kio.schema.find_coordinator.v{version}")
    for version in VERSIONS
}


def _write(request: FindCoordinator, version: int) -> bytes:
    kind = _SCHEMAS[version].FindCoordinatorRequest
    return write_entity(kind(key_type=GROUP, coordinator_keys=(request.group_id,)))


def _read(frame: Frame, offset: int, version: int) -> FindCoordinatorResponse:
    kind = _SCHEMAS[version].FindCoordinatorResponse
    response = read_entity(kind, frame, offset)
    if len(response.coordinators) != 1:
        raise ProtocolError(
            "invalid FindCoordinator response: it contains "
            f"{len(response.coordinators)} coordinators instead of 1"
        )
    found = response.coordinators[0]
    return FindCoordinatorResponse(
        error=int(found.error_code),
        message=found.error_message,
        node_id=found.node_id,
        endpoint=Endpoint(found.host, found.port),
    )


FIND_COORDINATOR: Api[FindCoordinator, FindCoordinatorResponse] = Api(
    key=10, name="FindCoordinator", versions=VERSIONS, write=_write, read=_read
)
