"""The topics to create, and how existing ones differ from them; no I/O."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sharecons.admin.new_topics import check_new_topics
from sharecons.config.validation import check_topic_names, check_topics
from sharecons.copies.topic_configs import (
    CopyTopic,
    SourceTopic,
    find_problems,
    replicas_of,
)
from sharecons.errors import ConfigurationError
from sharecons.protocol.admin.models import NewTopic, Topic
from sharecons.worker.arguments import check_topics_differ
from sharecons.worker.copy_topics import creation_of
from sharecons.worker.retry_topics import STRETCH

__all__ = [
    "Difference",
    "TopicNames",
    "differences",
    "differing_numbers",
    "named_topics",
    "new_topic",
]


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
        cls,
        sources: Sequence[str],
        retry_topics: Sequence[tuple[str, float]],
        dead: str | None,
    ) -> "TopicNames":
        """Return the checked names.

        Args:
            retry_topics: names, and delays in seconds; 0 if it is not known.

        Raises:
            ConfigurationError: a name is invalid, is given twice, or there is no topic
                to create.
        """
        names = check_topics(sources, name="--topic")
        retries = check_topics([name for name, _ in retry_topics], name="--retry-topic")
        dead_letters = check_topic_names([] if dead is None else [dead])
        check_topics_differ(names, retries, dead_letters)
        if not retries and not dead_letters:
            raise ConfigurationError(
                "no topic to create: set --retry-topic, --dead-letter or both"
            )
        copied = frozenset(names)
        copies = [
            CopyTopic(name, True, copied, STRETCH * delay)
            for name, delay in retry_topics
        ]
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


def named_topics(
    named: Iterable[tuple[str, int | None]],
    partitions: int | None,
    replication_factor: int | None,
) -> Sequence[NewTopic]:
    """Return the topics that the user names.

    Args:
        named: names, each with its partitions, or None for `partitions`.
        partitions, replication_factor: None for the brokers' defaults.

    Raises:
        ConfigurationError: a name is invalid or given twice.
    """
    topics = [
        NewTopic(
            name, partitions=count or partitions, replication_factor=replication_factor
        )
        for name, count in named
    ]
    return tuple(check_new_topics(topics).values())


def new_topic(
    copy: CopyTopic,
    sources: Sequence[SourceTopic],
    partitions: int | None,
    replication_factor: int | None,
) -> NewTopic:
    """Return the topic that a worker would create for copies of its sources' records.

    Args:
        partitions: None for the number of the sources.
        replication_factor: None for the number of the sources.
    """
    request = creation_of(copy, sources, 0.0)
    if partitions is None and request.partitions > 0:
        partitions = request.partitions
    return NewTopic(
        copy.name,
        partitions=partitions,
        replication_factor=replication_factor or request.replication_factor,
        configs=request.configs,
    )


def differing_numbers(wanted: NewTopic, found: Topic) -> list[Difference]:
    """Return how the partitions and replicas of an existing topic differ."""
    numbers = [
        ("partitions", len(found.partitions), wanted.partitions),
        ("replication.factor", replicas_of(found), wanted.replication_factor),
    ]
    return [
        Difference(name, str(number), str(expected), False)
        for name, number, expected in numbers
        if expected is not None and number != expected
    ]


def differences(
    copy: CopyTopic,
    wanted: NewTopic,
    found: Topic,
    configs: Mapping[str, str],
    sources: Sequence[SourceTopic],
) -> list[Difference]:
    """Return how an existing topic differs from the wanted one.

    Args:
        configs: of the existing topic; a config that is missing is not compared.
    """
    replicas = replicas_of(found)
    differing = differing_numbers(wanted, found)
    problems = find_problems(copy, configs, replicas, sources)
    risky = {each.config: each.wanted for each in problems}
    for name, expected_config in {**risky, **wanted.configs}.items():
        value, expected_value = configs.get(name), str(expected_config)
        if value is not None and (value != expected_value or name in risky):
            differing.append(Difference(name, value, expected_value, name in risky))
    return differing
