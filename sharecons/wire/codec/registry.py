"""Finds the API of a request, loading it on first use, and chooses its version.

A command sends two or three kinds of requests, and loading a schema takes 5 ms, so
loading all of them would take longer than the requests. A consumer loads its APIs at
import, with `consumer_apis`, so that loading does not block its event loop.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from sharecons.errors import UnsupportedVersionError
from sharecons.wire.codec.api import Api, VersionRange

__all__ = ["API_LOCATIONS", "Served", "api_of", "choose_version"]

Served = Mapping[int, VersionRange]

API_LOCATIONS: Final[Mapping[str, str]] = {
    "AlterConfigs": "alter_configs.ALTER_CONFIGS",
    "AlterConsumerGroupOffsets": "offset_commit.OFFSET_COMMIT",
    "AlterGroupConfig": "group_configs.ALTER_GROUP_CONFIG",
    "AlterShareGroupOffsets": "alter_share_group_offsets.ALTER_SHARE_GROUP_OFFSETS",
    "CreateTopics": "create_topics.CREATE_TOPICS",
    "DeleteGroups": "delete_groups.DELETE_GROUPS",
    "DeleteRecords": "delete_records.DELETE_RECORDS",
    "DeleteShareGroupOffsets": "delete_share_group_offsets.DELETE_SHARE_GROUP_OFFSETS",
    "DeleteTopics": "delete_topics.DELETE_TOPICS",
    "DescribeClassicGroups": "describe_groups.DESCRIBE_GROUPS",
    "DescribeCluster": "describe_cluster.DESCRIBE_CLUSTER",
    "DescribeConfigs": "describe_configs.DESCRIBE_CONFIGS",
    "DescribeConsumerGroups": "consumer_group_describe.CONSUMER_GROUP_DESCRIBE",
    "DescribeFeatures": "features.FEATURES",
    "DescribeGroupConfig": "group_configs.DESCRIBE_GROUP_CONFIG",
    "DescribeGroupConfigs": "group_configs.DESCRIBE_GROUP_CONFIGS",
    "DescribeShareGroups": "share_group_describe.SHARE_GROUP_DESCRIBE",
    "MetadataRequest": "metadata.METADATA",
    "Fetch": "fetch.FETCH",
    "FindCoordinator": "find_coordinator.FIND_COORDINATOR",
    "FindCoordinators": "find_coordinators.FIND_COORDINATORS",
    "GetTelemetrySubscriptions": (
        "get_telemetry_subscriptions.GET_TELEMETRY_SUBSCRIPTIONS"
    ),
    "Heartbeat": "share_group_heartbeat.SHARE_GROUP_HEARTBEAT",
    "InitProducerId": "init_producer_id.INIT_PRODUCER_ID",
    "ListConsumerGroupOffsets": "offset_fetch.OFFSET_FETCH",
    "ListGroups": "list_groups.LIST_GROUPS",
    "ListOffsets": "list_offsets.LIST_OFFSETS",
    "ListShareGroupOffsets": (
        "describe_share_group_offsets.DESCRIBE_SHARE_GROUP_OFFSETS"
    ),
    "Produce": "produce.PRODUCE",
    "PushTelemetry": "push_telemetry.PUSH_TELEMETRY",
    "ReadState": "read_share_group_state.READ_SHARE_GROUP_STATE",
    "ReadStateSummary": "read_share_group_state_summary.READ_SHARE_GROUP_STATE_SUMMARY",
    "SaslAuthenticate": "sasl_authenticate.SASL_AUTHENTICATE",
    "SaslHandshake": "sasl_handshake.SASL_HANDSHAKE",
    "ShareAcknowledge": "share_acknowledge.SHARE_ACKNOWLEDGE",
    "ShareFetch": "share_fetch.SHARE_FETCH",
    "TopicMetadataRequest": "topics.TOPICS",
}
"""The module and name of the API of each request class, by the class's name."""


_loaded: Final[dict[type, Api[Any, Any]]] = {}


def api_of(request: type) -> Api[Any, Any]:
    """Return the API of a request class."""
    api = _loaded.get(request)
    if api is None:
        module, name = API_LOCATIONS[request.__name__].split(".")
        api = getattr(import_module(f"sharecons.wire.{module}"), name)
        _loaded[request] = api
    return api


def choose_version(api: Api[Any, Any], served: Served, broker: str) -> int:
    """Return the highest version that both sides support.

    Raises:
        UnsupportedVersionError: there is none; the message names the Kafka version
            that is needed.
    """
    broker_versions = served.get(api.key, VersionRange(0, -1))
    version = min(api.versions[-1], broker_versions.highest)
    if version < max(api.versions[0], broker_versions.lowest):
        raise UnsupportedVersionError(
            _unsupported_message(api, broker_versions, broker)
        )
    return version


def _unsupported_message(
    api: Api[Any, Any], broker_versions: VersionRange, broker: str
) -> str:
    client_versions = f"{api.versions[0]} to {api.versions[-1]}"
    if broker_versions.highest < broker_versions.lowest:
        problem = f"broker {broker} does not support {api.name}"
    else:
        problem = (
            f"broker {broker} supports {api.name} versions {broker_versions.lowest} to "
            f"{broker_versions.highest}, but this client needs {client_versions}"
        )
    if not api.since:
        return f"{problem}; use Kafka 4.1 or newer"
    return (
        f"{problem}: share groups need Kafka 4.1 or newer. Since 4.2 they are enabled; "
        "on 4.1 they are a preview, enable it with "
        "`kafka-features.sh upgrade --feature share.version=1`"
    )
