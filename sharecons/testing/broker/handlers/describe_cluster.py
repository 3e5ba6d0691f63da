"""DescribeCluster 0 to 2 (KIP-700): the brokers, and the allowed operations.

Version 1 can request controllers (KIP-919), which a broker rejects. Version 2 can
include stopped brokers (KIP-1073): they are fenced.
"""

from typing import Final

from sharecons.testing.broker.cluster import Broker, Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context

__all__ = ["handle"]

BROKERS: Final = 1
CONTROLLERS: Final = 2


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    endpoint_type = field_or(request, "endpoint_type", BROKERS)
    if endpoint_type != BROKERS:
        return _endpoint_error(endpoint_type)
    include_fenced = field_or(request, "include_fenced_brokers", False)
    return {
        "endpoint_type": BROKERS,
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller,
        "brokers": [
            _broker(broker, context)
            for _, broker in sorted(cluster.brokers.items())
            if broker.running or include_fenced
        ],
        **_operations(request, cluster),
    }


def _endpoint_error(endpoint_type: int) -> Response:
    if endpoint_type == CONTROLLERS:
        return {
            "error_code": ErrorCode.mismatched_endpoint_type,
            "error_message": (
                "The request was sent to an endpoint of type BROKER, "
                "but we wanted an endpoint of type CONTROLLER"
            ),
        }
    return {
        "error_code": ErrorCode.unsupported_endpoint_type,
        "error_message": f"Unsupported endpoint type {endpoint_type}",
    }


def _broker(broker: Broker, context: Context) -> Response:
    host, port = context.address_of(broker)
    return {
        "broker_id": broker.node_id,
        "host": host,
        "port": port,
        "rack": broker.rack,
        "is_fenced": not broker.running,
    }


def _operations(request: Request, cluster: Cluster) -> Response:
    if not request.include_cluster_authorized_operations:
        return {}
    operations = cluster.authorizer.cluster_operations()
    return {"cluster_authorized_operations": operations}
