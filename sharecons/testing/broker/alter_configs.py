"""Changes of the settings of topics, groups and brokers, for two APIs.

For each resource, either all changes are made or none. Brokers (one, or "" for all)
take only settings that can change while they run. A change takes effect with the next
request.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeAlias

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
from sharecons.testing.broker.settings.changes import Change

__all__ = ["ChangesOf", "alter"]

ChangesOf: TypeAlias = Callable[[Request, Mapping[str, str]], list[Change]]
"""Returns the changes to a resource of the request, given its present settings."""


def alter(request: Request, context: Context, changes_of: ChangesOf) -> Response:
    """Change settings and return the response."""
    times = Counter(_key(resource) for resource in request.resources)
    responses = []
    for resource in request.resources:
        error_fields: Response = {}
        try:
            if times[_key(resource)] > 1:
                problem = "Each resource must appear at most once."
                raise ConfigError(ErrorCode.invalid_request, problem)
            _alter(resource, context, changes_of, request.validate_only)
        except ConfigError as error:
            error_fields = error.fields
        kind, name = _key(resource)
        responses.append({**error_fields, "resource_type": kind, "resource_name": name})
    return {"responses": responses}


def _key(resource: Request) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _alter(
    resource: Request, context: Context, changes_of: ChangesOf, validate_only: bool
) -> None:
    kind, name = _key(resource)
    check_access(context.cluster, "ALTER_CONFIGS", kind, name)
    configs = context.cluster.configs
    if kind == TOPIC:
        _alter_topic(resource, context, changes_of, validate_only)
    elif kind == GROUP:
        _check_named(name, "group")
        changes = changes_of(resource, configs.group_config(name))
        configs.alter_group(name, changes, validate_only=validate_only)
    elif kind == BROKER:
        _check_node(name, context)
        changes = changes_of(resource, configs.broker_config(name))
        configs.alter_broker(name, changes, validate_only=validate_only)
    elif kind == CLIENT_METRICS:
        _check_subscription(name)
        changes = changes_of(resource, configs.client_metrics.get(name, {}))
        configs.alter_client_metrics(name, changes, validate_only=validate_only)
    else:
        message = f"Unknown resource type {kind}"
        raise ConfigError(ErrorCode.invalid_request, message)


def _alter_topic(
    resource: Request, context: Context, changes_of: ChangesOf, validate_only: bool
) -> None:
    name = resource.resource_name
    _check_named(name, "topic")
    check_topic_name(name)
    topic = context.cluster.topics.by_name(name)
    own = topic.config if topic else {}
    config = context.cluster.configs.alter_topic(own, changes_of(resource, own))
    if topic is None:
        message = f"The topic '{name}' does not exist."
        raise ConfigError(ErrorCode.unknown_topic_or_partition, message)
    if not validate_only:
        topic.config.clear()
        topic.config.update(config)


def _check_named(name: str, what: str) -> None:
    if not name:
        message = f"Default {what} resources are not allowed."
        raise ConfigError(ErrorCode.invalid_request, message)


def _check_subscription(name: str) -> None:
    if not name:
        message = "Subscription name can't be empty"
        raise ConfigError(ErrorCode.invalid_request, message)


def _check_node(name: str, context: Context) -> None:
    if not name:
        return
    if not name.isdecimal():
        message = f"Node id must be an integer, but it is: {name}"
        raise ConfigError(ErrorCode.invalid_request, message)
    if int(name) != context.node_id:
        message = (
            f"Unexpected broker id, expected {context.node_id}, but received {name}"
        )
        raise ConfigError(ErrorCode.invalid_request, message)
