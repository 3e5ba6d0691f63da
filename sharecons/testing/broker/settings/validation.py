"""Settings that a test passes by name: unknown names raise errors with suggestions.

In the protocol, brokers store unknown names, as Kafka does.
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.settings.brokers import BROKERS, PER_BROKER
from sharecons.testing.broker.settings.groups import GROUPS
from sharecons.testing.broker.settings.topics import TOPICS

__all__ = ["SettingError", "broker_settings", "group_settings", "topic_settings"]

AUTHORIZER_SETTINGS: Final = ("allow.everyone.if.no.acl.found", "super.users")
"""Names that a broker passes on to its authorizer."""

ADDRESS_SETTINGS: Final = frozenset(name for name, *_ in PER_BROKER)
RESOURCES: Final[Mapping[str, tuple[Collection[str], str]]] = {
    "broker": (BROKERS, "EmbeddedBroker(settings=…)"),
    "topic": (TOPICS, "create_topic(…, config=…)"),
    "group": (GROUPS, "set_group_config(…)"),
}


class SettingError(RequestError, ValueError):
    """An unknown setting, or an invalid value."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.invalid_config, message)


def broker_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the settings of brokers as text.

    Raises:
        SettingError: a broker setting is unknown or cannot be set.
    """
    if own := sorted(ADDRESS_SETTINGS & set(settings)):
        raise SettingError(
            f"{own[0]} cannot be set: node ids count from 1, and the arguments host, "
            "port and advertise set the addresses"
        )
    return _checked_settings(settings, "broker", AUTHORIZER_SETTINGS)


def topic_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the settings of a topic as text; raise as `broker_settings` does."""
    return _checked_settings(settings, "topic")


def group_settings(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the settings of a group as text; raise as `broker_settings` does."""
    return _checked_settings(settings, "group")


def _checked_settings(
    settings: Mapping[str, object], kind: str, others: Iterable[str] = ()
) -> dict[str, str]:
    known, _ = RESOURCES[kind]
    if not isinstance(settings, Mapping):
        raise TypeError(f"{kind} settings must map names to values, not {settings!r}")
    for name in settings:
        if name not in known and name not in others:
            raise SettingError(_unknown_message(name, kind))
    return {name: _to_text(value) for name, value in settings.items()}


def _unknown_message(name: str, kind: str) -> str:
    message = f"the embedded broker has no {kind} setting {name!r}"
    for other, (known, where) in RESOURCES.items():
        if other != kind and name in known:
            return f"{message}: it is a {other} setting, for {where}"
    close = get_close_matches(name, RESOURCES[kind][0], n=3)
    return f"{message}; did you mean {' or '.join(close)}?" if close else message


def _to_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
