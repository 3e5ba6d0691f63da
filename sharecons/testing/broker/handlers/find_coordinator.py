"""FindCoordinator 0 to 6: the coordinator of a group, transaction or share partition.

One key up to version 3, several from version 4 (KIP-699). Version 6 adds share
partitions (KIP-932), with keys `group:topicId:partition`.
"""

import base64
import re
from typing import Any, Final

from sharecons.testing.broker.codec import ErrorCode, Request, Response, field_or
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.coordinators import GROUP, SHARE, TRANSACTION

__all__ = ["handle"]

SHARE_KEY: Final = re.compile(
    r"(?s:.+):(?P<topic_id>[\w-]+):[+-]?[0-9]+", flags=re.ASCII
)
OFFSETS_REPLICATION: Final = "offsets.topic.replication.factor"
NO_ADDRESS: Final = {"node_id": -1, "host": "", "port": -1}


async def handle(request: Request, context: Context) -> Response:
    key_type: int = field_or(request, "key_type", GROUP)
    if context.version >= 4:
        keys = request.coordinator_keys
        found = [{"key": key, **_coordinator(key_type, key, context)} for key in keys]
        return {"coordinators": found}
    result = _coordinator(key_type, request.key, context)
    # Only a response with a single coordinator has the error's name as its message.
    message = result["error_code"].name.upper()
    return {**result, "error_message": message}


def _coordinator(key_type: int, key: str, context: Context) -> dict[str, Any]:
    code = _key_error(key_type, key, context)
    address = NO_ADDRESS if code else _address(key_type, key, context)
    if address is None:
        code, address = ErrorCode.coordinator_not_available, NO_ADDRESS
    return {"error_code": code, "error_message": "", **address}


def _address(key_type: int, key: str, context: Context) -> dict[str, Any] | None:
    cluster = context.cluster
    if key_type == GROUP and not cluster.can_replicate(OFFSETS_REPLICATION):
        return None
    node_id = cluster.coordinators.node_for(key_type, key, cluster.running)
    broker = cluster.brokers.get(node_id)
    if broker is None:
        return None
    host, port = context.address_of(broker)
    return {"node_id": broker.node_id, "host": host, "port": port}


def _key_error(key_type: int, key: str, context: Context) -> ErrorCode:
    denies = context.cluster.authorizer.denies
    if key_type == GROUP and denies("DESCRIBE", "GROUP", key):
        return ErrorCode.group_authorization_failed
    if key_type == TRANSACTION and denies("DESCRIBE", "TRANSACTIONAL_ID", key):
        return ErrorCode.transactional_id_authorization_failed
    if key_type == SHARE:
        return _share_key_error(key, context)
    if key_type not in (GROUP, TRANSACTION):
        return ErrorCode.invalid_request
    return ErrorCode.none


def _share_key_error(key: str, context: Context) -> ErrorCode:
    if context.version < 6 or not _is_share_key(key):
        return ErrorCode.invalid_request
    if context.cluster.authorizer.denies("CLUSTER_ACTION", "CLUSTER", "kafka-cluster"):
        return ErrorCode.cluster_authorization_failed
    return ErrorCode.none


def _is_share_key(key: str) -> bool:
    """Return whether a key is a group id, a topic id in base64 and a partition."""
    match = SHARE_KEY.fullmatch(key)
    if match is None:
        return False
    try:
        topic_id = base64.urlsafe_b64decode(match["topic_id"] + "==")
    except ValueError:
        return False
    return len(topic_id) == 16
