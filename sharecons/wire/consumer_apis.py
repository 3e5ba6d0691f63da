"""The APIs of a consumer, loaded with this module; checks that a broker has them."""

from collections.abc import Mapping
from typing import Any, Final

from sharecons.errors import UnsupportedVersionError
from sharecons.protocol.group.config_messages import (
    AlterGroupConfig,
    DescribeGroupConfig,
    DescribeGroupConfigs,
)
from sharecons.protocol.group.messages import (
    FindCoordinator,
    Heartbeat,
    MetadataRequest,
)
from sharecons.protocol.sasl.authentication import SaslAuthenticate, SaslHandshake
from sharecons.protocol.share_messages import ShareAcknowledge, ShareFetch
from sharecons.wire.codec.api import Api
from sharecons.wire.codec.registry import Served, choose_version
from sharecons.wire.find_coordinator import FIND_COORDINATOR
from sharecons.wire.group_configs import (
    ALTER_GROUP_CONFIG,
    DESCRIBE_GROUP_CONFIG,
    DESCRIBE_GROUP_CONFIGS,
)
from sharecons.wire.metadata import METADATA
from sharecons.wire.sasl_authenticate import SASL_AUTHENTICATE
from sharecons.wire.sasl_handshake import SASL_HANDSHAKE
from sharecons.wire.share_acknowledge import SHARE_ACKNOWLEDGE
from sharecons.wire.share_fetch import RECORD_LIMIT_SINCE, SHARE_FETCH
from sharecons.wire.share_group_heartbeat import SHARE_GROUP_HEARTBEAT

__all__ = [
    "APIS",
    "check_record_limit",
    "check_share_groups",
    "choose_version",
    "serves_telemetry",
]

APIS: Final[Mapping[type, Api[Any, Any]]] = {
    AlterGroupConfig: ALTER_GROUP_CONFIG,
    DescribeGroupConfig: DESCRIBE_GROUP_CONFIG,
    DescribeGroupConfigs: DESCRIBE_GROUP_CONFIGS,
    MetadataRequest: METADATA,
    FindCoordinator: FIND_COORDINATOR,
    Heartbeat: SHARE_GROUP_HEARTBEAT,
    SaslAuthenticate: SASL_AUTHENTICATE,
    SaslHandshake: SASL_HANDSHAKE,
    ShareAcknowledge: SHARE_ACKNOWLEDGE,
    ShareFetch: SHARE_FETCH,
}

GET_TELEMETRY_SUBSCRIPTIONS: Final = 71
"""Not its API, which is loaded only if a broker has it."""

SHARE_GROUPS: Final = (SHARE_GROUP_HEARTBEAT, SHARE_FETCH, SHARE_ACKNOWLEDGE)


def check_share_groups(served: Served, broker: str) -> None:
    """Check that a broker supports share groups.

    Raises:
        UnsupportedVersionError: it does not.
    """
    for api in SHARE_GROUPS:
        choose_version(api, served, broker)


def check_record_limit(served: Served, broker: str) -> None:
    """Check that a broker can limit a fetch to a number of records (KIP-1206).

    Raises:
        UnsupportedVersionError: it cannot.
    """
    if choose_version(SHARE_FETCH, served, broker) < RECORD_LIMIT_SINCE:
        raise UnsupportedVersionError(
            f"acquire_mode='record_limit' needs Kafka 4.2 or newer; broker {broker} "
            "supports ShareFetch only in version 1, which acquires whole batches"
        )


def serves_telemetry(served: Served) -> bool:
    """Return whether a broker collects the metrics of clients (KIP-714)."""
    return GET_TELEMETRY_SUBSCRIPTIONS in served
