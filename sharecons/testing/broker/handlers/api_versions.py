"""ApiVersions 0 to 4 (KIP-35, KIP-511, KIP-584): the APIs and features of this broker.

Its features are the features of Kafka 4.3 that it supports: share groups (share.version
1) and transactions of version 2 (transaction.version 2, KIP-890), but no groups of the
newer protocols (group.version, streams.version).
"""

from collections.abc import Iterator
from typing import Final

from sharecons.testing.broker.apis import APIS, TELEMETRY
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]

FEATURES: Final = {
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "transaction.version": (0, 2),
}
"""The supported levels; the highest ones are in effect."""

SOFTWARE_SINCE: Final = 3
ZERO_LEVELS_SINCE: Final = 4


async def handle(request: Request, context: Context) -> Response:
    if context.version >= SOFTWARE_SINCE and context.connection is not None:
        software = request.client_software_name, request.client_software_version
        context.connection.software = software
    return {
        "api_keys": [
            {
                "api_key": api.key,
                "min_version": api.versions[0],
                "max_version": api.versions[-1],
            }
            for api in APIS.values()
            if context.cluster.telemetry.is_enabled or api.key not in TELEMETRY
        ],
        "supported_features": list(_supported(context.version)),
        "finalized_features_epoch": 1,
        "finalized_features": [
            {
                "name": name,
                "min_version_level": highest,
                "max_version_level": highest,
            }
            for name, (_, highest) in FEATURES.items()
        ],
    }


def _supported(version: int) -> Iterator[Response]:
    """Yield the features; not those from level 0 for old clients (KAFKA-17492)."""
    for name, (lowest, highest) in FEATURES.items():
        if lowest or version >= ZERO_LEVELS_SINCE:
            yield {"name": name, "min_version": lowest, "max_version": highest}
