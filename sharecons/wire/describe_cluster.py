"""DescribeCluster (60): the cluster's id, its brokers and the controller.

Version 2 adds fenced brokers (KIP-1073). With KRaft, the controller in the response is
an arbitrary broker, which forwards requests to the real controller.
"""

from typing import Any, Final

from sharecons.protocol.admin.models import Broker, ClusterDescription
from sharecons.protocol.admin.requests import DescribeCluster, Reply
from sharecons.wire.codec.api import Api, Frame, read_entity, write_entity
from sharecons.wire.codec.schema_loader import none_if_negative, operations, schema

__all__ = ["DESCRIBE_CLUSTER"]

FENCED_SINCE: Final = 2


def _write(request: DescribeCluster, version: int) -> bytes:
    kind = schema("describe_cluster", version).DescribeClusterRequest
    fields = {"include_cluster_authorized_operations": request.authorized_operations}
    if version >= FENCED_SINCE:
        fields["include_fenced_brokers"] = True
    return write_entity(kind(**fields))


def _read(frame: Frame, offset: int, version: int) -> Reply[ClusterDescription]:
    kind = schema("describe_cluster", version).DescribeClusterResponse
    response = read_entity(kind, frame, offset)
    described = ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=none_if_negative(response.controller_id),
        brokers={
            broker.broker_id: _broker(broker, version) for broker in response.brokers
        },
        authorized_operations=operations(response.cluster_authorized_operations),
    )
    return Reply(int(response.error_code), response.error_message, described)


def _broker(broker: Any, version: int) -> Broker:
    return Broker(
        node_id=broker.broker_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        fenced=broker.is_fenced if version >= FENCED_SINCE else False,
    )


DESCRIBE_CLUSTER: Api[DescribeCluster, Reply[ClusterDescription]] = Api(
    key=60, name="DescribeCluster", versions=range(0, 3), write=_write, read=_read
)
