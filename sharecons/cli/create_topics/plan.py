"""The topics to create, and how existing ones differ from them; no I/O."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from sharecons.config.validation import check_topic_names, check_topics
from sharecons.errors import ConfigurationError
from sharecons.protocol.admin.models import NewTopic, Topic
from sharecons.worker.arguments import check_topics_differ
from sharecons.worker.copy_topics import (
    MAX_BYTES,
    RETENTION,
    CopyTopic,
    SourceTopic,
    creation_of,
)

__all__ = ["Difference", "TopicNames", "differences", "new_topic"]

CLEANUP: Final = "cleanup.policy"
NO_LIMIT: Final = -1


class TopicNames(NamedTuple):
    """The topics of a worker.

    Attributes:
        sources: the topics that it consumes.
        copies: the topics that it writes to.
    """

    sources: tuple[str, ...]
    copies: tuple[CopyTopic, ...]

    @classmethod
    def of(
        cls, sources: Sequence[str], retry_topics: Sequence[str], dead: str | None
    ) -> "TopicNames":
        """Return the checked names.

        Raises:
            ConfigurationError: a name is invalid, is given twice, or there is no topic
                to create.
        """
        names = check_topics(sources, name="--topic")
        retries = check_topics(retry_topics, name="--retry-topic")
        dead_letters = check_topic_names([] if dead is None else [dead])
        check_topics_differ(names, retries, dead_letters)
        if not retries and not dead_letters:
            raise ConfigurationError(
                "no topic to create: set --retry-topic, --dead-letter or both"
            )
        copied = frozenset(names)
        copies = [CopyTopic(name, True, copied) for name in retries]
        copies += [CopyTopic(name, False, copied) for name in dead_letters]
        return cls(names, tuple(copies))


class Difference(NamedTuple):
    """A setting of an existing topic that is not the setting of a new one.

    Attributes:
        loses_records: a worker does not start, or copies are lost with this setting.
    """

    name: str
    found: str
    wanted: str
    loses_records: bool

    def __str__(self) -> str:
        risk = " (records can be lost)" if self.loses_records else ""
        return f"{self.name}={self.found} instead of {self.wanted}{risk}"


def new_topic(
    name: str,
    sources: Sequence[SourceTopic],
    partitions: int | None,
    replication_factor: int | None,
) -> NewTopic:
    """Return the topic that a worker would create for copies of its sources' records.

    Args:
        partitions: None for the number of the sources.
        replication_factor: None for the brokers' default.
    """
    request = creation_of(name, sources, 0.0)
    if partitions is None and request.partitions > 0:
        partitions = request.partitions
    return NewTopic(
        name,
        partitions=partitions,
        replication_factor=replication_factor,
        configs=request.configs,
    )


def differences(
    wanted: NewTopic,
    found: Topic,
    configs: Mapping[str, str],
    sources: Sequence[SourceTopic],
) -> list[Difference]:
    """Return how an existing topic differs from the wanted one.

    Args:
        configs: of the existing topic; a config that is missing is not compared.
    """
    replicas = [len(each.replicas) for each in found.partitions.values()]
    numbers = [
        ("partitions", len(found.partitions), wanted.partitions),
        ("replication.factor", min(replicas, default=0), wanted.replication_factor),
    ]
    differing = [
        Difference(name, str(number), str(expected), False)
        for name, number, expected in numbers
        if expected is not None and number != expected
    ]
    for name, expected_config in wanted.configs.items():
        value, expected_value = configs.get(name), str(expected_config)
        if value is not None and value != expected_value:
            risk = _loses_records(name, value, expected_value, sources)
            differing.append(Difference(name, value, expected_value, risk))
    return differing


def _loses_records(
    name: str, found: str, wanted: str, sources: Sequence[SourceTopic]
) -> bool:
    if name == RETENTION:
        limited = int(found) != NO_LIMIT
        return limited and (int(wanted) == NO_LIMIT or int(found) < int(wanted))
    if name == MAX_BYTES:
        return any(int(found) < (each.max_bytes or 0) for each in sources)
    return name == CLEANUP and "compact" in found
