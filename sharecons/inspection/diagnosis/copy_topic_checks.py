"""Checks of the retry topics and the dead-letter topic of a worker.

The rules are the worker's own, `sharecons.copies.topic_configs`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sharecons.copies.topic_configs import (
    CopyTopic,
    SourceTopic,
    alter_command,
    find_problems,
    replicas_of,
)
from sharecons.inspection.diagnosis.checks import Check, fail, ok, warn
from sharecons.protocol.admin.models import ConfigEntry, Topic
from sharecons.protocol.admin.results import Result
from sharecons.worker.retry_topics import STRETCH

__all__ = ["Configs", "check_copy_topic", "copy_topics", "source_topic"]

Configs = Result[Mapping[str, ConfigEntry]]


def copy_topics(
    sources: Iterable[str], retry_topics: Mapping[str, float], dead_letter: str | None
) -> list[CopyTopic]:
    """Return the topics that a worker writes to.

    Args:
        retry_topics: their delays, in seconds; 0 if they are not known.
    """
    copied = frozenset(sources)
    topics = [
        CopyTopic(name, True, copied, STRETCH * delay)
        for name, delay in retry_topics.items()
    ]
    if dead_letter is not None:
        topics.append(CopyTopic(dead_letter, False, copied))
    return topics


def source_topic(topic: Topic, configs: Configs) -> SourceTopic:
    return SourceTopic(
        topic.name, len(topic.partitions), _values(configs), replicas_of(topic)
    )


def check_copy_topic(
    copy: CopyTopic,
    described: Result[Topic],
    configs: Configs,
    sources: Sequence[SourceTopic],
) -> Iterator[Check]:
    """Check that a topic exists, and keeps the copies of records."""
    what = f"{copy.role} {copy.name}"
    if described.error is not None:
        advice = "create it with sharecons create-topics, or correct its name or ACLs"
        yield fail(what, str(described.error), advice)
        return
    if configs.error is not None:
        advice = "grant DESCRIBE_CONFIGS on it"
        yield warn(what, f"its configs cannot be read: {configs.error}", advice)
        return
    replicas = replicas_of(described.value)
    findings = find_problems(copy, _values(configs), replicas, sources)
    for finding in findings:
        report = fail if finding.is_certain else warn
        yield report(what, str(finding), alter_command(copy, [finding], "…"))
    if not findings:
        yield ok(what, "keeps the copies of records")


def _values(configs: Configs) -> dict[str, str]:
    if configs.error is not None:
        return {}
    return {key: each.value for key, each in configs.value.items() if each.value}
