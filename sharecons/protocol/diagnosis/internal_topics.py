"""Checks of the topics in which coordinators store the state of groups.

Brokers create them for the first group. If the replication factor exceeds the number of
brokers they cannot, and report that in their logs only: members wait for partitions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.protocol.admin.models import ConfigEntry, Topic
from sharecons.protocol.admin.results import Outcome
from sharecons.protocol.diagnosis.checks import Check, fail, ok, warn

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
        replication_factor, min_isr: the brokers' configs for its creation.
        purpose: what needs it.
    """

    name: str
    check: str
    replication_factor: str
    min_isr: str
    purpose: str

    @property
    def configs(self) -> tuple[str, str]:
        """The names of its configs."""
        return self.replication_factor, self.min_isr


STATE_TOPIC: Final = InternalTopic(
    name="__share_group_state",
    check="state topic",
    replication_factor="share.coordinator.state.topic.replication.factor",
    min_isr="share.coordinator.state.topic.min.isr",
    purpose="no share group gets partitions",
)
OFFSETS_TOPIC: Final = InternalTopic(
    name="__consumer_offsets",
    check="offsets topic",
    replication_factor="offsets.topic.replication.factor",
    min_isr="min.insync.replicas",
    purpose="no group has a coordinator",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopicFacts:
    """What was read about an internal topic.

    Attributes:
        described: the topic; an error if it does not exist.
        topic_configs: its configs.
        brokers: how many brokers run.
        broker_configs: the configs of each broker, by node id.
    """

    described: Outcome[Topic]
    topic_configs: Outcome[Entries]
    brokers: int
    broker_configs: Mapping[int, Outcome[Entries]]


def check_internal_topic(topic: InternalTopic, facts: InternalTopicFacts) -> Check:
    """Check that a topic can be written, or that the brokers can create it."""
    if facts.described.ok:
        return _check_existing(topic, facts.described.value, facts)
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
        min_isr = _number(configs, topic.min_isr)
        if copies is not None and copies > count:
            return fail(
                topic.check,
                f"{topic.name} does not exist, and broker {node_id} cannot create it: "
                f"{topic.replication_factor} is {copies}, with {brokers}; "
                f"{topic.purpose}",
                f"set {topic.replication_factor} to at most {count} and "
                f"{topic.min_isr} to at most that in the properties of every broker, "
                "and restart them",
            )
        if None not in (copies, min_isr) and (min_isr or 0) > (copies or 0):
            return fail(
                topic.check,
                f"{topic.name} does not exist, and could not be written: "
                f"{topic.min_isr} of broker {node_id} is {min_isr}, and "
                f"{topic.replication_factor} {copies}; {topic.purpose}",
                f"set {topic.min_isr} to at most {copies} in the properties of every "
                "broker, and restart them",
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
    unwritable = sum(len(each.in_sync) < min_isr for each in partitions)
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


def _number(configs: Outcome[Entries], name: str) -> int | None:
    """Return a config as a number; None if it is unknown."""
    entry = configs.value.get(name) if configs.ok else None
    return None if entry is None or not entry.value else int(entry.value)
