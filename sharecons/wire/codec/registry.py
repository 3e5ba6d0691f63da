"""Finds the API of a request, loaded when it is first asked for; and versions.

A command asks two or three questions. Loading the schemas of all would take longer
than their answers (5 ms each); a consumer has what it asks loaded beforehand, by
`apis`, for its loop is not to wait for that.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from sharecons.errors import UnsupportedVersionError
from sharecons.wire.api_versions import VersionRange
from sharecons.wire.codec.api import Api

__all__ = ["HOMES", "Served", "api_of", "choose_version"]

Served = Mapping[int, VersionRange]

HOMES: Final[Mapping[str, str]] = {
    "AlterConfigs": "alter_configs.ALTER_CONFIGS",
    "AlterConsumerGroupOffsets": "offset_commit.OFFSET_COMMIT",
    "AlterGroupConfig": "group_configs.ALTER_GROUP_CONFIG",
    "AlterShareGroupOffsets": "alter_share_group_offsets.ALTER_SHARE_GROUP_OFFSETS",
    "DeleteGroups": "delete_groups.DELETE_GROUPS",
    "DeleteShareGroupOffsets": "delete_share_group_offsets.DELETE_SHARE_GROUP_OFFSETS",
    "DescribeClassicGroups": "describe_groups.DESCRIBE_GROUPS",
    "DescribeCluster": "describe_cluster.DESCRIBE_CLUSTER",
    "DescribeConfigs": "describe_configs.DESCRIBE_CONFIGS",
    "DescribeConsumerGroups": "consumer_group_describe.CONSUMER_GROUP_DESCRIBE",
    "DescribeFeatures": "features.FEATURES",
    "DescribeGroupConfig": "group_configs.DESCRIBE_GROUP_CONFIG",
    "DescribeShareGroups": "share_group_describe.SHARE_GROUP_DESCRIBE",
    "DescribeTopics": "metadata.METADATA",
    "Fetch": "fetch.FETCH",
    "FindCoordinator": "find_coordinator.FIND_COORDINATOR",
    "FindCoordinators": "find_coordinators.FIND_COORDINATORS",
    "Heartbeat": "share_group_heartbeat.SHARE_GROUP_HEARTBEAT",
    "ListConsumerGroupOffsets": "offset_fetch.OFFSET_FETCH",
    "ListGroups": "list_groups.LIST_GROUPS",
    "ListOffsets": "list_offsets.LIST_OFFSETS",
    "ListShareGroupOffsets": (
        "describe_share_group_offsets.DESCRIBE_SHARE_GROUP_OFFSETS"
    ),
    "ReadState": "read_share_group_state.READ_SHARE_GROUP_STATE",
    "ReadStateSummary": "read_share_group_state_summary.READ_SHARE_GROUP_STATE_SUMMARY",
    "SaslAuthenticate": "sasl_authenticate.SASL_AUTHENTICATE",
    "SaslHandshake": "sasl_handshake.SASL_HANDSHAKE",
    "ShareAcknowledge": "share_acknowledge.SHARE_ACKNOWLEDGE",
    "ShareFetch": "share_fetch.SHARE_FETCH",
    "TopicMetadataRequest": "topics.TOPICS",
}
"""Where the API of each kind of request is, by the request's name."""


_loaded: Final[dict[type, Api[Any, Any]]] = {}


def api_of(request: type) -> Api[Any, Any]:
    """Give the API that a kind of request is sent by."""
    api = _loaded.get(request)
    if api is None:
        module, name = HOMES[request.__name__].split(".")
        api = getattr(import_module(f"sharecons.wire.{module}"), name)
        _loaded[request] = api
    return api


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
