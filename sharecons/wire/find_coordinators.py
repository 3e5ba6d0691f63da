"""FindCoordinator (10) for several keys: of groups or of share partitions' state.

`find_coordinator` is for a consumer, with one group. It is separate because consumers
do not import the admin client's requests.
"""

from collections.abc import Mapping

from sharecons.protocol.admin.models import Broker
from sharecons.protocol.admin.requests import FindCoordinators, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import schema

__all__ = ["FIND_COORDINATORS"]

Found = Mapping[str, Reply[Broker]]


def _write(request: FindCoordinators, version: int) -> bytes:
    kind = schema("find_coordinator", version).FindCoordinatorRequest
    return write_entity(kind(key_type=int(request.kind), coordinator_keys=request.keys))


def _read(frame: Frame, offset: int, version: int) -> Found:
    kind = schema("find_coordinator", version).FindCoordinatorResponse
    return {
        found.key: Reply(
            int(found.error_code),
            found.error_message,
            Broker(node_id=found.node_id, host=found.host, port=found.port),
        )
        for found in read_entity(kind, frame, offset).coordinators
    }


FIND_COORDINATORS: Api[FindCoordinators, Found] = Api(
    key=10, name="FindCoordinator", versions=range(4, 7), write=_write, read=_read
)
