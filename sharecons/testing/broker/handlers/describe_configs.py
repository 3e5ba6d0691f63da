"""DescribeConfigs 1 to 4 (KIP-133, KIP-226, KIP-569): settings and their sources.

Resources are topics, brokers (one, or "" for settings of all), groups and subscriptions
of client metrics. Any broker describes them; only the broker itself describes its own
settings. An empty list of names, or null, requests all settings; unknown names are
ignored.
"""

from collections.abc import Sequence

from sharecons.testing.broker.addresses import format_address
from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.resources import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    check_access,
    check_topic_name,
)
from sharecons.testing.broker.settings.entries import Entry

__all__ = ["handle"]

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client "
    "library or the message was sent to an incompatible broker. See the broker logs "
    "for more details."
)


async def handle(request: Request, context: Context) -> Response:
    return {"results": [_result(each, request, context) for each in request.resources]}


def _result(resource: Request, request: Request, context: Context) -> Response:
    kind, name = resource.resource_type, resource.resource_name
    result = {"resource_type": kind, "resource_name": name}
    try:
        check_access(context.cluster, "DESCRIBE_CONFIGS", kind, name)
        entries = _entries(kind, name, context)
    except ConfigError as error:
        code, message = error.code, error.message or ""
        return {**result, "error_code": code, "error_message": message}
    wanted = resource.configuration_keys
    configs = [
        _config(entry, request, context)
        for entry in entries
        if not wanted or entry.name in wanted
    ]
    return {**result, "error_message": "", "configs": configs}


def _entries(kind: int, name: str, context: Context) -> Sequence[Entry]:
    cluster = context.cluster
    if kind == TOPIC:
        check_topic_name(name)
        topic = cluster.topics.by_name(name)
        if topic is None:
            raise ConfigError(ErrorCode.unknown_topic_or_partition, "")
        return cluster.configs.describe_topic(topic.config, context.node_id)
    if kind == BROKER:
        return _broker_entries(name, context)
    if kind == GROUP and name:
        return cluster.configs.describe_group(name, context.node_id)
    if kind == CLIENT_METRICS and name:
        return cluster.configs.describe_client_metrics(name)
    message = "Group name must not be empty" if kind == GROUP else MALFORMED
    raise ConfigError(ErrorCode.invalid_request, message)


def _broker_entries(name: str, context: Context) -> Sequence[Entry]:
    configs = context.cluster.configs
    if not name:
        return configs.describe_all_brokers()
    if not name.isdecimal():
        message = f"Broker id must be an integer, but it is: {name}"
        raise ConfigError(ErrorCode.invalid_request, message)
    if int(name) != context.node_id:
        raise ConfigError(
            ErrorCode.invalid_request,
            f"Unexpected broker id, expected {context.node_id} or empty string, "
            f"but received {name}",
        )
    return configs.describe_broker(context.node_id, _own_settings(context))


def _own_settings(context: Context) -> dict[str, str]:
    """Return the settings that differ between brokers."""
    broker = context.cluster.brokers[context.node_id]
    advertised = context.address_of(broker)
    bound = broker.bind_address or advertised
    settings = {
        "advertised.listeners": f"PLAINTEXT://{format_address(*advertised)}",
        "broker.id": str(broker.node_id),
        "listeners": f"PLAINTEXT://{format_address(*bound)}",
        "node.id": str(broker.node_id),
    }
    return settings if broker.rack is None else {**settings, "broker.rack": broker.rack}


def _config(entry: Entry, request: Request, context: Context) -> Response:
    shown = entry.synonyms if request.include_synonyms else ()
    config: Response = {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": entry.source,
        "is_sensitive": entry.sensitive,
        "synonyms": [
            {
                "name": synonym.name,
                "value": None if entry.sensitive else synonym.value,
                "source": synonym.source,
            }
            for synonym in shown
        ],
    }
    documented = context.version >= 3 and request.include_documentation
    doc = entry.doc if documented else None
    return {**config, "config_type": entry.kind, "documentation": doc}
