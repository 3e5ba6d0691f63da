"""Changes of single settings, as in IncrementalAlterConfigs (KIP-339)."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.settings.setting import Kind, Setting, split_list

__all__ = ["Change", "Operation", "apply_changes", "check_values"]


class Operation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Change:
    name: str
    operation: int
    value: str | None = None


def apply_changes(
    config: Mapping[str, str],
    changes: Iterable[Change],
    settings: Mapping[str, Setting],
) -> dict[str, str]:
    """Return the settings after the changes; the values are not validated.

    Raises:
        ConfigError: the changes are malformed.
    """
    changes = list(changes)
    _check_format(changes)
    result = dict(config)
    for change in changes:
        match change.operation:
            case Operation.SET:
                result[change.name] = (change.value or "").strip()
            case Operation.DELETE:
                result.pop(change.name, None)
            case Operation.APPEND | Operation.SUBTRACT:
                result[change.name] = _edit_list(result, change, settings)
            case _:
                raise ConfigError(ErrorCode.unknown_server_error, None)
    return result


def check_values(
    config: Mapping[str, str], settings: Mapping[str, Setting], resource: str
) -> None:
    """Validate each value on its own; `resource` is "topic" or "group".

    Raises:
        ConfigError: a setting is unknown, or a value is invalid.
    """
    for name, value in config.items():
        setting = settings.get(name)
        if setting is None:
            message: str | None = f"Unknown {resource} config name: {name}"
        else:
            message = setting.error(value)
        if message:
            raise ConfigError(ErrorCode.invalid_config, message)


def _check_format(changes: list[Change]) -> None:
    names = [change.name for change in changes]
    if len(names) != len(set(names)):
        raise ConfigError(
            ErrorCode.invalid_request, "Error due to duplicate config keys"
        )
    empty = [
        change.name
        for change in changes
        if change.value is None and change.operation != Operation.DELETE
    ]
    if empty:
        message = f"Null value not supported for : {', '.join(empty)}"
        raise ConfigError(ErrorCode.invalid_request, message)


def _edit_list(
    config: Mapping[str, str], change: Change, settings: Mapping[str, Setting]
) -> str:
    """Add to a list or remove from it; an unset list starts from its default."""
    setting = settings.get(change.name)
    operation = Operation(change.operation)
    if setting is None or setting.kind is not Kind.LIST:
        raise ConfigError(
            ErrorCode.invalid_config,
            f"Can't {operation.name} to key {change.name} because its type is not "
            "LIST.",
        )
    before = split_list(config.get(change.name, setting.default or ""))
    given = split_list(change.value or "")
    if operation is Operation.SUBTRACT:
        return ",".join(each for each in before if each not in given)
    return ",".join([*before, *(each for each in given if each not in before)])
