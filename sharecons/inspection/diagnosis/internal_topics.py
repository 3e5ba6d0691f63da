"""Checks of the topics in which coordinators store the state of groups.

Brokers create them for the first group. If the replication factor exceeds the number of
brokers they cannot, and report that in their logs only: members wait for partitions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.config.validation import whole_number
from sharecons.errors import AuthorizationError
from sharecons.inspection.diagnosis.checks import Check, fail, ok, warn
from sharecons.protocol.admin.models import ConfigEntry, Topic
from sharecons.protocol.admin.results import Result

__all__ = [
    "OFFSETS_TOPIC",
    "STATE_TOPIC",
    "InternalTopic",
    "InternalTopicFacts",
    "check_internal_topic",
]

Entries = Mapping[str, ConfigEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic:
    """A topic that brokers create.

    Attributes:
        check: the name of its check.
        replication_factor: the brokers' config for its creation.
        purpose: its users, for messages.
    """

    name: str
    check: str
    replication_factor: str
    purpose: str


STATE_TOPIC: Final = InternalTopic(
    name="__share_group_state",
    check="state topic",
    replication_factor="share.coordinator.state.topic.replication.factor",
    purpose="no share group gets partitions",
)
OFFSETS_TOPIC: Final = InternalTopic(
    name="__consumer_offsets",
    check="offsets topic",
    replication_factor="offsets.topic.replication.factor",
    purpose="no group has a coordinator",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicFacts:
    """The facts about an internal topic, as they were read.

    Attributes:
        described: the topic; an error if it does not exist.
        topic_configs: its configs.
        brokers: how many brokers run.
        broker_configs: the configs of each broker, by node id.
    """

    described: Result[Topic]
    topic_configs: Result[Entries]
    brokers: int
    broker_configs: Mapping[int, Result[Entries]]


def check_internal_topic(topic: InternalTopic, facts: InternalTopicFacts) -> Check:
    """Check that a topic can be written, or that the brokers can create it."""
    if facts.described.ok:
        return _check_existing(topic, facts.described.value, facts)
    if isinstance(facts.described.error, AuthorizationError):
        return warn(
            topic.check,
            f"whether {topic.name} exists is unknown: {facts.described.error}",
            "grant DESCRIBE on the topic, and check again; brokers create it for the "
            "first group",
        )
    problem = _creation_problem(topic, facts)
    if problem is not None:
        return problem
    advice = "it is created for the first group"
    unread = [each.error for each in facts.broker_configs.values() if each.error]
    if unread:
        advice += f", if {topic.replication_factor} is at most {facts.brokers}; "
        advice += f"it is not readable: {unread[0]}"
    return warn(topic.check, str(facts.described.error), advice)


def _creation_problem(topic: InternalTopic, facts: InternalTopicFacts) -> Check | None:
    count = facts.brokers
    brokers = "1 broker" if count == 1 else f"{count} brokers"
    for node_id, configs in facts.broker_configs.items():
        copies = _number(configs, topic.replication_factor)
        if copies is not None and copies > count:
            return fail(
                topic.check,
                f"{topic.name} does not exist, and broker {node_id} cannot create it: "
                f"{topic.replication_factor} is {copies}, with {brokers}; "
                f"{topic.purpose}",
                f"set {topic.replication_factor} to at most {count} in the properties "
                "of every broker, and restart them",
            )
    return None


def _check_existing(
    internal: InternalTopic, topic: Topic, facts: InternalTopicFacts
) -> Check:
    partitions = topic.partitions.values()
    count = len(partitions)
    leaderless = sum(each.leader is None for each in partitions)
    if leaderless:
        return fail(
            internal.check,
            f"{topic.name}: no leader for {leaderless} of its partitions",
            "the state of some groups cannot be read or written; check the brokers",
        )
    min_isr = _number(facts.topic_configs, "min.insync.replicas") or 1
    # A topic of fewer replicas than min.insync.replicas is written to all of them
    # (measured on Kafka 4.4.0).
    unwritable = sum(
        len(each.in_sync) < min(min_isr, len(each.replicas)) for each in partitions
    )
    if unwritable:
        return fail(
            internal.check,
            f"{topic.name}: {unwritable} of {count} partitions have fewer in-sync "
            f"replicas than min.insync.replicas, which is {min_isr}: the state of some "
            "groups cannot be written",
            "start the brokers that are down, or lower min.insync.replicas of the "
            "topic",
        )
    behind = sum(len(each.in_sync) < len(each.replicas) for each in partitions)
    if behind:
        return warn(
            internal.check,
            f"{topic.name}: {behind} of {count} partitions lack replicas",
            "check for brokers that are down or behind",
        )
    replicas = min((len(each.replicas) for each in partitions), default=0)
    if replicas < 2:
        return warn(
            internal.check,
            f"{topic.name} has one replica: with that broker groups lose their state",
            f"{internal.replication_factor}=3"
            if facts.brokers > 1
            else "fine for tests only",
        )
    return ok(internal.check, f"{count} partitions, {replicas} replicas")


def _number(configs: Result[Entries], name: str) -> int | None:
    """Return a config as a number; None if it is unknown."""
    entry = configs.value.get(name) if configs.ok else None
    return None if entry is None else whole_number(entry.value)
