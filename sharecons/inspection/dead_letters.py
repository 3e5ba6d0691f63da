"""Reads a share group's dead-letter settings, and counts its dead letters."""

from collections.abc import Iterable, Mapping

from sharecons._record import TopicPartition
from sharecons.admin import ConfigEntry, Features, Result, ShareGroupAdmin, Topic
from sharecons.admin.config_validation import DEAD_LETTER_PREFIX
from sharecons.admin.log_bounds import log_bounds
from sharecons.errors import Error
from sharecons.group_state.gather import gather, outcome_of, read_each
from sharecons.inspection.diagnosis.dead_letter_checks import (
    DEAD_LETTER_CREATE,
    DeadLetterFacts,
    GroupDeadLetters,
    dead_letter_settings,
)

__all__ = ["count_dead_letters", "read_broker_configs", "read_dead_letter_facts"]

Entries = Mapping[str, ConfigEntry]


async def read_broker_configs(
    admin: ShareGroupAdmin,
    node_ids: Iterable[int],
    names: Iterable[str] = (DEAD_LETTER_PREFIX, DEAD_LETTER_CREATE),
) -> dict[int, Result[Entries]]:
    """Read configs of each broker, by default for dead letters: brokers can differ."""
    wanted = tuple(names)
    return await read_each(
        sorted(node_ids),
        lambda node: admin.describe_broker_configs(*wanted, node_id=node),
    )


async def read_dead_letter_facts(
    admin: ShareGroupAdmin,
    topic: str,
    *,
    brokers: Mapping[int, Result[Entries]],
    features: Mapping[int, Features],
) -> DeadLetterFacts:
    """Read a dead-letter topic; errors are in the result."""
    described, configs = await gather(
        admin.describe_topics(topic, authorized_operations=True),
        admin.describe_topic_configs(topic),
    )
    return DeadLetterFacts(
        brokers=brokers,
        features=features,
        topic=outcome_of(described, topic),
        topic_configs=outcome_of(configs, topic),
    )


async def count_dead_letters(
    admin: ShareGroupAdmin, configs: Entries
) -> GroupDeadLetters | None:
    """Count a group's dead letters; None if its brokers are older than Kafka 4.4."""
    settings = dead_letter_settings(configs)
    if settings is None or settings.topic is None:
        return None if settings is None else GroupDeadLetters(settings=settings)
    try:
        described = await admin.describe_topics(settings.topic)
        count = await _count(admin, described[settings.topic].value)
    except Error as error:
        return GroupDeadLetters(settings=settings, error=error)
    return GroupDeadLetters(settings=settings, count=count)


async def _count(admin: ShareGroupAdmin, topic: Topic) -> int:
    keys = [TopicPartition(topic.name, number) for number in topic.partitions]
    found = (await log_bounds(admin, keys)).check().found
    return sum(end - start for start, end in found.values())
