"""The APIs that this client speaks, by the kind of request; and their versions."""

from collections.abc import Mapping
from typing import Any, Final

from sharecons.errors import UnsupportedVersionError
from sharecons.protocol.fetches import Fetch
from sharecons.protocol.values import (
    AlterGroupConfig,
    DescribeGroupConfig,
    DescribeShareGroupOffsets,
    DescribeTopics,
    FindCoordinator,
    Heartbeat,
    ListOffsets,
    ShareAcknowledge,
    ShareFetch,
)
from sharecons.wire.api import Api
from sharecons.wire.api_versions import VersionRange
from sharecons.wire.fetch import FETCH
from sharecons.wire.find_coordinator import FIND_COORDINATOR
from sharecons.wire.group_configs import ALTER_GROUP_CONFIG, DESCRIBE_GROUP_CONFIG
from sharecons.wire.list_offsets import LIST_OFFSETS
from sharecons.wire.metadata import METADATA
from sharecons.wire.share_acknowledge import SHARE_ACKNOWLEDGE
from sharecons.wire.share_fetch import RECORD_LIMIT_SINCE, SHARE_FETCH
from sharecons.wire.share_group_heartbeat import SHARE_GROUP_HEARTBEAT
from sharecons.wire.share_group_offsets import DESCRIBE_SHARE_GROUP_OFFSETS

__all__ = ["APIS", "check_record_limit", "check_share_groups", "choose_version"]

APIS: Final[Mapping[type, Api[Any, Any]]] = {
    AlterGroupConfig: ALTER_GROUP_CONFIG,
    DescribeGroupConfig: DESCRIBE_GROUP_CONFIG,
    DescribeShareGroupOffsets: DESCRIBE_SHARE_GROUP_OFFSETS,
    DescribeTopics: METADATA,
    Fetch: FETCH,
    FindCoordinator: FIND_COORDINATOR,
    Heartbeat: SHARE_GROUP_HEARTBEAT,
    ListOffsets: LIST_OFFSETS,
    ShareAcknowledge: SHARE_ACKNOWLEDGE,
    ShareFetch: SHARE_FETCH,
}

SHARE_GROUPS: Final = (SHARE_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE)

Served = Mapping[int, VersionRange]


def choose_version(api: Api[Any, Any], served: Served, broker: str) -> int:
    """Choose the highest version that both sides speak.

    Raises:
        UnsupportedVersionError: there is none; says what would serve.
    """
    theirs = served.get(api.key, VersionRange(0, -1))
    version = min(api.versions[-1], theirs.highest)
    if version < max(api.versions[0], theirs.lowest):
        raise UnsupportedVersionError(_complaint(api, theirs, broker))
    return version


def check_share_groups(served: Served, broker: str) -> None:
    """See that a broker serves share groups at all.

    Raises:
        UnsupportedVersionError: it does not.
    """
    for api in SHARE_GROUPS:
        choose_version(api, served, broker)


def check_record_limit(served: Served, broker: str) -> None:
    """See that a broker can limit a fetch to a number of records (KIP-1206).

    Raises:
        UnsupportedVersionError: it cannot.
    """
    if choose_version(SHARE_FETCH, served, broker) < RECORD_LIMIT_SINCE:
        raise UnsupportedVersionError(
            f"acquire_mode='record_limit' needs Kafka 4.2 or newer; broker {broker} "
            "serves ShareFetch only in version 1, where whole batches are acquired"
        )


def _complaint(api: Api[Any, Any], theirs: VersionRange, broker: str) -> str:
    ours = f"{api.versions[0]} to {api.versions[-1]}"
    if theirs.highest < theirs.lowest:
        what = f"broker {broker} does not serve {api.name}"
    else:
        what = (
            f"broker {broker} serves {api.name} in versions {theirs.lowest} to "
            f"{theirs.highest}, this client speaks {ours}"
        )
    if not api.since:
        return f"{what}; Kafka 4.1 or newer does"
    return (
        f"{what}: share groups need Kafka 4.1 or newer. From 4.2 on they are there; on "
        "4.1 they are a preview, to be switched on with "
        "`kafka-features.sh upgrade --feature share.version=1`"
    )
