"""IncrementalAlterConfigs 0 and 1 (KIP-339): settings changed one by one.

Each resource by itself: all of its changes are made, or none. Brokers (one, or "" for
all) take only what may change while they run. What a change touches holds from the next
request on.
"""

from collections import Counter

from sharecons.testing.broker.codec import ErrorCode, Request, Response
from sharecons.testing.broker.context import Context
from sharecons.testing.broker.resources import (
    BROKER,
    GROUP,
    TOPIC,
    check_access,
    check_topic_name,
)
from sharecons.testing.broker.settings.changes import Change, ConfigError

__all__ = ["handle"]


async def handle(request: Request, context: Context) -> Response:
    times = Counter(_key(resource) for resource in request.resources)
    responses = []
    for resource in request.resources:
        code, message = ErrorCode.none, None
        try:
            if times[_key(resource)] > 1:
                problem = "Each resource must appear at most once."
                raise ConfigError(ErrorCode.invalid_request, problem)
            _alter(resource, context, request.validate_only)
        except ConfigError as error:
            code, message = error.code, error.message
        kind, name = _key(resource)
        responses.append(
            {
                "error_code": code,
                "error_message": message,
                "resource_type": kind,
                "resource_name": name,
            }
        )
    return {"responses": responses}


def _key(resource: Request) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _alter(resource: Request, context: Context, validate_only: bool) -> None:
    kind, name = _key(resource)
    check_access(context.cluster, "ALTER_CONFIGS", kind, name)
    changes = [
        Change(each.name, each.config_operation, each.value)
        for each in resource.configs
    ]
    configs = context.cluster.configs
    if kind == TOPIC:
        _alter_topic(name, changes, context, validate_only)
    elif kind == GROUP:
        _check_named(name, "group")
        configs.alter_group(name, changes, validate_only=validate_only)
    elif kind == BROKER:
        _check_node(name, context)
        configs.alter_broker(name, changes, validate_only=validate_only)
    else:
        message = f"Unknown resource type {kind}"
        raise ConfigError(ErrorCode.invalid_request, message)


def _alter_topic(
    name: str, changes: list[Change], context: Context, validate_only: bool
) -> None:
    _check_named(name, "topic")
    check_topic_name(name)
    topic = context.cluster.topics.named(name)
    own = topic.config if topic else {}
    config = context.cluster.configs.altered_topic(own, changes)
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
