"""Requests that describe and alter settings."""

__all__ = [
    "APPEND",
    "BROKER",
    "DELETE",
    "GROUP",
    "SET",
    "SUBTRACT",
    "TOPIC",
    "alter",
    "describe",
    "invalid",
    "put",
    "shown",
]

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter(broker, kind, name, *changes, validate_only=False, version=1):
    (response,) = broker.request(
        "incremental_alter_configs",
        version,
        resources=[
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {"name": key, "config_operation": operation, "value": value}
                    for key, operation, value in changes
                ],
            }
        ],
        validate_only=validate_only,
    ).responses
    assert (kind, name) == (response.resource_type, response.resource_name)
    return response.error_code and (response.error_code.name, response.error_message)


def put(broker, kind, name, **values):
    changes = [(key.replace("_", "."), SET, value) for key, value in values.items()]
    assert not alter(broker, kind, name, *changes)
    broker.sleep(0.3)


def describe(broker, kind, name, *names, version=4, **options):
    (result,) = broker.request(
        "describe_configs",
        version,
        resources=[
            {
                "resource_type": kind,
                "resource_name": name,
                "configuration_keys": list(names) or None,
            }
        ],
        include_synonyms=True,
        **options,
    ).results
    return result


def shown(broker, kind, name, *names, **options):
    """Return the settings: name, value, and the sources of the value."""
    result = describe(broker, kind, name, *names, **options)
    assert not result.error_code
    return {
        each.name: (
            each.value,
            [(at.name, at.value, at.source) for at in each.synonyms],
        )
        for each in result.configs
    }


def invalid(value, name, reason):
    return f"Invalid value {value} for configuration {name}: {reason}"
