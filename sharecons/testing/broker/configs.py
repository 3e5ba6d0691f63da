"""The settings of brokers, topics and groups: their values and where those are set.

A value is the first that is set of: the topic or the group itself, one broker, all
brokers, the brokers' start; else it is Kafka's default. The tables of settings are in
settings/. A topic stores its own settings; all others are stored here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import ConfigError
from sharecons.testing.broker.settings import client_metrics
from sharecons.testing.broker.settings.brokers import BROKERS, TEST_DEFAULTS
from sharecons.testing.broker.settings.changes import (
    Change,
    apply_changes,
    check_values,
)
from sharecons.testing.broker.settings.client_metrics import CLIENT_METRICS
from sharecons.testing.broker.settings.entries import ConfigSource, Entry, Synonym
from sharecons.testing.broker.settings.groups import GROUPS
from sharecons.testing.broker.settings.setting import Setting
from sharecons.testing.broker.settings.topics import TOPICS

__all__ = ["DEAD_LETTERS", "Configs"]

ALL_BROKERS: Final = ""
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
OTHER_UNITS: Final[Mapping[str, tuple[str, int]]] = {
    "log.retention.hours": ("log.retention.ms", 3_600_000),
    "log.retention.minutes": ("log.retention.ms", 60_000),
    "log.roll.hours": ("log.roll.ms", 3_600_000),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", 3_600_000),
}
GROUP_TYPES: Final = ("consumer", "share", "streams")


class Configs:
    """All settings; `settings` are those the brokers start with.

    Attributes:
        client_metrics: the settings of each subscription of client metrics, by name.
        client_metrics_version: grows with each of their changes.

    Raises:
        ValueError: a value is invalid.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        _check(settings or {})
        self._static = {**TEST_DEFAULTS, **_in_milliseconds(settings or {})}
        self._brokers: dict[str, dict[str, str]] = {}
        self._groups: dict[str, dict[str, str]] = {}
        self.client_metrics: dict[str, Mapping[str, str]] = {}
        self.client_metrics_version = 0

    def group_value(self, group_id: str, name: str) -> str:
        """Return a group's setting, such as `share.delivery.count.limit`."""
        own = self._groups.get(group_id, {})
        return own.get(name) or self._inherited_value(GROUPS[name])

    def topic_value(self, config: Mapping[str, str], name: str) -> str:
        """Return a topic's setting; `config` is what is set on the topic itself."""
        own = config.get(name)
        return self._inherited_value(TOPICS[name]) if own is None else own

    def broker_value(self, name: str, node_id: int | None = None) -> str:
        """Return a setting of all brokers or of one: `auto.create.topics.enable`."""
        for synonym in self._broker_synonyms(name, node_id):
            return synonym.value
        return BROKERS[name].default or ""

    @property
    def groups(self) -> list[str]:
        """The ids of the groups that have settings of their own."""
        return [group_id for group_id, config in self._groups.items() if config]

    @property
    def has_dead_letter_topics(self) -> bool:
        """True if any group has a dead letter topic (KIP-1191)."""
        return any(config.get(DEAD_LETTERS) for config in self._groups.values())

    def group_config(self, group_id: str) -> Mapping[str, str]:
        """Return the settings of the group itself."""
        return self._groups.get(group_id, {})

    def broker_config(self, node: str) -> Mapping[str, str]:
        """Return the settings changed at runtime, of one broker or of all ("")."""
        return self._brokers.get(node, {})

    def set_group(self, group_id: str, config: Mapping[str, str]) -> None:
        """Set some of a group's settings.

        Raises:
            ConfigError: a name or a value is invalid.
        """
        changes = [Change(name, 0, value) for name, value in config.items()]
        self.alter_group(group_id, changes)

    def check_topic(self, config: Mapping[str, str]) -> None:
        """Check the settings of a topic.

        Raises:
            ConfigError: a name or a value is invalid.
        """
        check_values(config, TOPICS, "topic")

    def alter_topic(
        self, config: Mapping[str, str], changes: Iterable[Change]
    ) -> dict[str, str]:
        """Return a topic's settings after a change; the caller stores them.

        Raises:
            ConfigError: the result is invalid.
        """
        result = apply_changes(config, changes, TOPICS)
        self.check_topic(result)
        return result

    def alter_group(
        self, group_id: str, changes: Iterable[Change], *, validate_only: bool = False
    ) -> None:
        """Change a group's settings.

        Raises:
            ConfigError: the result is invalid.
        """
        result = apply_changes(self._groups.get(group_id, {}), changes, GROUPS)
        check_values(result, GROUPS, "group")
        _check_dead_letters(result)
        self._check_bounds(result, GROUPS, ErrorCode.invalid_config)
        self._check_sessions(result)
        if not validate_only:
            self._groups[group_id] = result

    def alter_broker(
        self, node: str, changes: Iterable[Change], *, validate_only: bool = False
    ) -> None:
        """Change one broker's settings, or the settings of all ("").

        Raises:
            ConfigError: the result is invalid, or a setting cannot change at runtime.
        """
        changes = list(changes)
        known = (BROKERS.get(change.name) for change in changes)
        if fixed := [each.name for each in known if each and not each.dynamic]:
            names = ", ".join(fixed)
            message = f"Cannot update these configs dynamically: [{names}]"
            raise ConfigError(ErrorCode.invalid_request, message)
        result = apply_changes(self._brokers.get(node, {}), changes, BROKERS)
        for name, value in result.items():
            if name in BROKERS and (problem := BROKERS[name].error(value)):
                raise ConfigError(ErrorCode.invalid_request, problem)
        self._check_bounds(result, BROKERS, ErrorCode.invalid_request)
        if not validate_only:
            self._brokers[node] = result

    def client_metrics_value(self, name: str, setting: str) -> str:
        """Return a setting of a subscription of client metrics: `interval.ms`."""
        own = self.client_metrics.get(name, {})
        return own.get(setting) or CLIENT_METRICS[setting].default or ""

    def alter_client_metrics(
        self, name: str, changes: Iterable[Change], *, validate_only: bool = False
    ) -> None:
        """Change a subscription; without settings it does not exist.

        Raises:
            ConfigError: the result is invalid.
        """
        own = self.client_metrics.get(name, {})
        result = apply_changes(own, changes, {})  # Kafka appends to none of them
        client_metrics.check(result)
        if validate_only:
            return
        self.client_metrics_version += 1
        self.client_metrics.pop(name, None)
        if result:
            self.client_metrics[name] = result

    def describe_client_metrics(self, name: str) -> list[Entry]:
        own = self.client_metrics.get(name, {})
        entries = []
        for setting in CLIENT_METRICS.values():
            synonyms = []
            if setting.name in own:
                value = own[setting.name]
                synonyms.append(
                    Synonym(setting.name, value, ConfigSource.CLIENT_METRICS)
                )
            entries.append(Entry.from_setting(setting, synonyms))
        return entries

    def describe_topic(self, config: Mapping[str, str], node_id: int) -> list[Entry]:
        """Return all settings of a topic, as one of the brokers sees them."""
        return [
            self._entry(setting, config, ConfigSource.TOPIC, node_id)
            for setting in TOPICS.values()
            if self._is_shown(setting) or setting.name in config
        ]

    def describe_group(self, group_id: str, node_id: int) -> list[Entry]:
        own = self._groups.get(group_id, {})
        return [
            self._entry(setting, own, ConfigSource.GROUP, node_id)
            for setting in GROUPS.values()
            if self._is_shown(setting) or setting.name in own
        ]

    def describe_broker(self, node_id: int, fixed: Mapping[str, str]) -> list[Entry]:
        """Return all settings of a broker; only this broker has `fixed`."""
        found = [
            self._broker_entry(setting, node_id, fixed)
            for setting in BROKERS.values()
            if self._is_shown(setting)
            or any(self._broker_synonyms(setting.name, node_id))
        ]
        others = {name for at in self._broker_layers(node_id) for name in at[1]}
        others.update(self._static)
        unknown = sorted(others - BROKERS.keys())
        return found + [
            Entry.unknown(name, list(self._broker_synonyms(name, node_id)))
            for name in unknown
        ]

    def describe_all_brokers(self) -> list[Entry]:
        """Return the settings that are set for all brokers together."""
        found = []
        for name, value in self._brokers.get(ALL_BROKERS, {}).items():
            synonyms = [Synonym(name, value, ConfigSource.ALL_BROKERS)]
            setting = BROKERS.get(name)
            if setting is None:
                found.append(Entry.unknown(name, synonyms))
            else:
                found.append(Entry.from_setting(setting, synonyms))
        return found

    def _is_shown(self, setting: Setting) -> bool:
        """Return whether a setting is listed where it is not set.

        Settings of Kafka 4.4 are, if the brokers start with any of them.
        """
        return not setting.is_later or any(
            name in BROKERS and BROKERS[name].is_later for name in self._static
        )

    def _inherited_value(self, setting: Setting) -> str:
        for parent in setting.parents:
            for synonym in self._broker_synonyms(parent, None):
                return synonym.value
        return setting.default or ""

    def _broker_layers(
        self, node_id: int | None
    ) -> Iterator[tuple[ConfigSource, Mapping[str, str]]]:
        """Yield the settings of brokers by source, the highest precedence first."""
        if node_id is not None:
            yield ConfigSource.BROKER, self._brokers.get(str(node_id), {})
        yield ConfigSource.ALL_BROKERS, self._brokers.get(ALL_BROKERS, {})
        yield ConfigSource.STATIC, self._static

    def _broker_synonyms(self, name: str, node_id: int | None) -> Iterator[Synonym]:
        for source, values in self._broker_layers(node_id):
            if name in values:
                yield Synonym(name, values[name], source)

    def _entry(
        self,
        setting: Setting,
        own: Mapping[str, str],
        source: ConfigSource,
        node_id: int,
    ) -> Entry:
        synonyms = []
        if setting.name in own:
            synonyms.append(Synonym(setting.name, own[setting.name], source))
        for parent in setting.parents:
            synonyms += self._broker_synonyms(parent, node_id)
            default = BROKERS[parent].default
            if default is not None:
                synonyms.append(Synonym(parent, default, ConfigSource.DEFAULT))
        if not setting.parents and source is ConfigSource.GROUP:
            value = setting.default or ""
            synonyms.append(Synonym(setting.name, value, ConfigSource.DEFAULT))
        return Entry.from_setting(setting, synonyms)

    def _broker_entry(
        self, setting: Setting, node_id: int, fixed: Mapping[str, str]
    ) -> Entry:
        name = setting.name
        synonyms = list(self._broker_synonyms(name, node_id))
        if name in fixed:
            synonyms = [Synonym(name, fixed[name], ConfigSource.STATIC)]
        if setting.default is not None:
            synonyms.append(Synonym(name, setting.default, ConfigSource.DEFAULT))
        return Entry.from_setting(setting, synonyms, read_only=not setting.dynamic)

    def _check_bounds(
        self,
        config: Mapping[str, str],
        settings: Mapping[str, Setting],
        code: ErrorCode,
    ) -> None:
        for name, value in config.items():
            setting = settings.get(name)
            if setting is None:
                continue
            floor, ceiling = setting.min_setting, setting.max_setting
            if floor and int(value) < int(self.broker_value(floor)):
                problem = f"{name} must be greater than or equal to {floor}"
                raise ConfigError(code, problem)
            if ceiling and int(value) > int(self.broker_value(ceiling)):
                problem = f"{name} must be less than or equal to {ceiling}"
                raise ConfigError(code, problem)

    def _check_sessions(self, config: Mapping[str, str]) -> None:
        for group_type in GROUP_TYPES:
            session = f"{group_type}.session.timeout.ms"
            heartbeat = f"{group_type}.heartbeat.interval.ms"
            longest, shortest = (
                int(config.get(name) or self._inherited_value(GROUPS[name]))
                for name in (session, heartbeat)
            )
            if longest <= shortest:
                problem = f"{session} must be greater than {heartbeat}"
                raise ConfigError(ErrorCode.invalid_config, problem)


def _check(settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        if name in BROKERS and (problem := BROKERS[name].error(value)):
            raise ValueError(problem)


def _check_dead_letters(config: Mapping[str, str]) -> None:
    if config.get(DEAD_LETTERS, "").startswith("__"):
        problem = f"{DEAD_LETTERS}: DLQ topic name must not start with '__'"
        raise ConfigError(ErrorCode.invalid_config, problem)


def _in_milliseconds(settings: Mapping[str, str]) -> dict[str, str]:
    """Convert hours and minutes to milliseconds; the smaller unit has precedence."""
    result: dict[str, str] = {}
    for name, (target, factor) in OTHER_UNITS.items():
        if name in settings:
            result[target] = str(int(settings[name]) * factor)
    return {**result, **settings}
