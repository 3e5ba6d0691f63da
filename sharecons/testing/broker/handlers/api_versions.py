"""ApiVersions 0 to 4 (KIP-35, KIP-511, KIP-584): what this broker serves.

Its features are those of Kafka 4.3 as far as they are served: share groups are on
(share.version 1), transactions are of the second kind (transaction.version 2, KIP-890);
groups of the newer protocols (group.version, streams.version) are not there.
"""

from collections.abc import Iterator
from typing import Final

from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]

FEATURES: Final = {
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "transaction.version": (0, 2),
}
"""The levels that are supported; the highest are what holds."""

LEVEL_ZERO_FROM: Final = 4


async def handle(request: Request, context: Context) -> Response:
    return {
        "api_keys": [
            {
                "api_key": api.key,
                "min_version": api.versions[0],
                "max_version": api.versions[-1],
            }
            for api in APIS.values()
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
    """Leave out what begins at 0 for older clients: they trip over it (KAFKA-17492)."""
    for name, (lowest, highest) in FEATURES.items():
        if lowest or version >= LEVEL_ZERO_FROM:
            yield {"name": name, "min_version": lowest, "max_version": highest}
