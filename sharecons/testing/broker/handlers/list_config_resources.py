"""ListConfigResources 0 and 1 (KIP-1142): the resources that can have settings.

Groups are listed only if they have settings of their own. Version 0 requests client
metrics subscriptions.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sharecons.testing.broker.acls import CLUSTER_NAME
from sharecons.testing.broker.cluster import Cluster
from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.resources import BROKER, CLIENT_METRICS, GROUP, TOPIC

__all__ = ["handle"]

BROKER_LOGGER: Final = 8


async def handle(request: Request, context: Context) -> Response:
    cluster = context.cluster
    if cluster.authorizer.denies("DESCRIBE_CONFIGS", "CLUSTER", CLUSTER_NAME):
        return {"error_code": ErrorCode.cluster_authorization_failed}
    resources = _resources(cluster)
    wanted = field_or(request, "resource_types", (CLIENT_METRICS,)) or resources.keys()
    if not resources.keys() >= set(wanted):
        return {"error_code": ErrorCode.unsupported_version}
    return {
        "config_resources": [
            {"resource_type": kind, "resource_name": name}
            for kind in resources
            if kind in wanted
            for name in resources[kind]
        ]
    }


def _resources(cluster: Cluster) -> Mapping[int, Iterable[str]]:
    running = [str(node_id) for node_id in sorted(cluster.running)]
    return {
        CLIENT_METRICS: list(cluster.configs.client_metrics),
        BROKER: running,
        BROKER_LOGGER: running,
        TOPIC: [topic.name for topic in cluster.topics],
        GROUP: cluster.configs.groups,
    }
