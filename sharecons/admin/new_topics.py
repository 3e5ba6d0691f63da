"""Validation of the topics that `ShareGroupAdmin.create_topics` creates."""

from collections.abc import Iterable
from typing import Final

from sharecons.config import validation
from sharecons.errors import ConfigurationError
from sharecons.protocol.admin.models import NewTopic

__all__ = ["check_new_topics"]

MAX_REPLICATION: Final = 0x7FFF


def check_new_topics(topics: Iterable[NewTopic]) -> dict[str, NewTopic]:
    """Return the topics by name.

    Raises:
        ConfigurationError: one is invalid, or two have the same name.
    """
    found: dict[str, NewTopic] = {}
    for topic in topics:
        _check(topic)
        if topic.name in found:
            raise ConfigurationError(f"topics contain {topic.name!r} twice")
        found[topic.name] = topic
    return found


def _check(topic: NewTopic) -> None:
    if not isinstance(topic, NewTopic):
        raise ConfigurationError(f"topics must be NewTopic, not {topic!r}")
    validation.check_topic("name", topic.name)
    if topic.partitions is not None:
        validation.check_count("partitions", topic.partitions, 1)
    if topic.replication_factor is not None:
        factor = topic.replication_factor
        validation.check_count("replication_factor", factor, 1, MAX_REPLICATION)
    validation.check_mapping("configs", topic.configs)
    for name, value in topic.configs.items():
        validation.check_string("config name", name)
        if not isinstance(value, str | int):
            raise ConfigurationError(
                f"config {name!r} must be a str, an int or a bool, not {value!r}"
            )
        validation.check_string(f"config {name!r}", str(value))
