"""The cluster: its brokers, their features and API versions, and their configs."""

from collections.abc import Mapping

from sharecons.admin.client_executor import ClientExecutor
from sharecons.protocol.admin.broker_errors import broker_error
from sharecons.protocol.admin.models import (
    ClusterDescription,
    ConfigEntry,
    Features,
)
from sharecons.protocol.admin.requests import (
    DescribeCluster,
    DescribeConfigs,
    DescribeFeatures,
    Reply,
    Resource,
    ResourceKind,
)
from sharecons.protocol.codes import Code

__all__ = ["describe_broker_configs", "describe_cluster", "describe_features"]


async def describe_cluster(
    executor: ClientExecutor, authorized_operations: bool
) -> ClusterDescription:
    request = DescribeCluster(authorized_operations=authorized_operations)
    reply: Reply[ClusterDescription] = await executor.send_to_any(request)
    if reply.code != Code.NONE or reply.value is None:
        raise broker_error("describe", "the cluster", reply.code, reply.message)
    return reply.value


async def describe_features(executor: ClientExecutor, node_id: int | None) -> Features:
    async def send(broker_id: int) -> Reply[Features]:
        reply: Reply[Features] = await executor.send(broker_id, DescribeFeatures())
        return reply

    if node_id is None:
        node_id = await _any_node(executor)
    results = await executor.of_brokers([node_id], "read the features of", send)
    if node_id not in results:
        raise _unknown_broker_error(node_id)
    return results[node_id].value


async def describe_broker_configs(
    executor: ClientExecutor, names: tuple[str, ...], node_id: int | None
) -> Mapping[str, ConfigEntry]:
    if node_id is None:
        node_id = await _any_node(executor)
    resource = Resource(ResourceKind.BROKER, str(node_id))
    request = DescribeConfigs(resources=(resource,), names=names or None)

    async def send(broker_id: int) -> Reply[Mapping[str, ConfigEntry]]:
        response = await executor.send(broker_id, request)
        reply: Reply[Mapping[str, ConfigEntry]] = response[resource]
        return reply

    results = await executor.of_brokers([node_id], "read the configs of", send)
    if node_id not in results:
        raise _unknown_broker_error(node_id)
    return results[node_id].value


async def _any_node(executor: ClientExecutor) -> int:
    response = await executor.brokers.request_topics((), executor.deadline)
    return min(response.brokers)


def _unknown_broker_error(node_id: int) -> Exception:
    code = Code.BROKER_NOT_AVAILABLE
    return broker_error(
        "describe", f"broker {node_id}", code, "the cluster has no broker with this id"
    )
