"""ApiVersions 0 to 4 (KIP-35, KIP-511, KIP-584): what this broker serves.

Its features say that share groups are on (share.version 1) and transactions of the
second kind (transaction.version 2), as a cluster of Kafka 4.3 has them from the start.
"""

from typing import Final

from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import Request, Response
from sharecons.testing.broker.context import Context

__all__ = ["handle"]

FEATURES: Final = {
    "group.version": 1,
    "metadata.version": 29,
    "share.version": 1,
    "transaction.version": 2,
}


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
        "supported_features": [
            {"name": name, "min_version": 0, "max_version": level}
            for name, level in FEATURES.items()
        ],
        "finalized_features_epoch": 1,
        "finalized_features": [
            {"name": name, "min_version_level": level, "max_version_level": level}
            for name, level in FEATURES.items()
        ],
    }
