"""The dead letters that brokers write for a share group (KIP-1191), and their checks.

Rule 1: brokers report no obstacle: they archive the records without a copy. So each
obstacle that a client can find is a failure here, with the command that removes it.
Rule 2: no I/O; if something could not be read, its error is passed in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sharecons.admin.config_validation import (
    DEAD_LETTER_COPY,
    DEAD_LETTER_PREFIX,
    DEAD_LETTER_TOPIC,
    topic_name_problem,
)
from sharecons.errors import Error
from sharecons.inspection.diagnosis.checks import Check, fail, ok, warn
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.models import ConfigEntry, FeatureRange, Features, Topic
from sharecons.protocol.admin.results import Result
from sharecons.protocol.codes import Code

__all__ = [
    "DEAD_LETTER_CREATE",
    "DEAD_LETTER_ENABLE",
    "DeadLetterFacts",
    "DeadLetterSettings",
    "GroupDeadLetters",
    "check_dead_letters",
    "dead_letter_settings",
    "describe_dead_letters",
]

DEAD_LETTER_CREATE: Final = "errors.deadletterqueue.auto.create.topics.enable"
"""The brokers' config that lets them create missing dead-letter topics."""
DEAD_LETTER_ENABLE: Final = "errors.deadletterqueue.group.enable"
"""The topic's config that lets share groups write dead letters to it."""

SHARE_VERSION: Final = 2
"""The version of the feature share.version that brokers write dead letters with."""

Entries = Mapping[str, ConfigEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """The settings of a group.

    Attributes:
        topic: where dead letters are written; None for none.
        copy_records: whether they have the key and value of their records.
    """

    topic: str | None
    copy_records: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDeadLetters:
    """The settings of a group, and the records of its dead-letter topic.

    Attributes:
        count: the log end offsets less the log start offsets of the topic. It includes
            the dead letters of other groups, and records that a compaction removed.
            None if there is no topic, or if it cannot be read.
        error: why it cannot be read.
    """

    settings: DeadLetterSettings
    count: int | None = None
    error: Error | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterFacts:
    """Facts for the checks of a group with a dead-letter topic.

    Attributes:
        brokers: the configs of each broker, by node id.
        features: of each broker that returned them, by node id.
        topic: the dead-letter topic, with the operations that ACLs permit.
        topic_configs: its configs.
    """

    brokers: Mapping[int, Result[Entries]]
    features: Mapping[int, Features]
    topic: Result[Topic]
    topic_configs: Result[Entries]


def dead_letter_settings(entries: Entries) -> DeadLetterSettings | None:
    """Return the settings in a group's configs; None if the brokers have none."""
    topic = entries.get(DEAD_LETTER_TOPIC)
    if topic is None:
        return None
    copy = entries.get(DEAD_LETTER_COPY)
    return DeadLetterSettings(
        topic=topic.value or None, copy_records=copy is not None and _is_true(copy)
    )


def describe_dead_letters(dead_letters: GroupDeadLetters) -> str:
    """Return the topic and the number of its records as text."""
    settings, count = dead_letters.settings, dead_letters.count
    if settings.topic is None:
        return f"none ({DEAD_LETTER_TOPIC} is not set)"
    content = "with" if settings.copy_records else "without"
    if count is None:
        number = f"not readable: {dead_letters.error}"
    else:
        number = "1 record" if count == 1 else f"{count:,} records"
    return f"topic {settings.topic}, {content} keys and values; {number}"


def check_dead_letters(
    group: str, settings: DeadLetterSettings | None, facts: DeadLetterFacts | None
) -> Iterator[Check]:
    """Check whether the brokers can write dead letters of a group.

    `facts` is None if the group has no dead-letter topic.
    """
    what = f"dead letters of {group}"
    if settings is None:
        yield ok(what, "none: the brokers are older than Kafka 4.4")
    elif settings.topic is None or facts is None:
        yield ok(what, f"none: {DEAD_LETTER_TOPIC} is not set")
    else:
        yield from _with_topic(what, settings.topic, settings, facts)


def _with_topic(
    what: str, name: str, settings: DeadLetterSettings, facts: DeadLetterFacts
) -> Iterator[Check]:
    if (invalid := _name_problem(what, name)) is not None:
        yield invalid
        return
    yield (
        _feature_problem(what, facts.features)
        or _prefix_problem(what, name, facts.brokers)
        or _settings(what, settings)
    )
    yield from _topic(name, settings, facts)


def _settings(what: str, settings: DeadLetterSettings) -> Check:
    content = "with" if settings.copy_records else "without"
    return ok(what, f"to topic {settings.topic}, {content} keys and values")


def _feature_problem(what: str, features: Mapping[int, Features]) -> Check | None:
    for each in features.values():
        supported = each.supported.get(
            "share.version", FeatureRange(lowest=0, highest=0)
        )
        if each.share_version < SHARE_VERSION <= supported.highest:
            return fail(
                what,
                f"share.version is finalized at {each.share_version}: dead letters "
                f"need {SHARE_VERSION}",
                "kafka-features.sh --bootstrap-server … upgrade --feature "
                f"share.version={SHARE_VERSION}",
            )
    return None


def _name_problem(what: str, name: str) -> Check | None:
    problem = topic_name_problem(name)
    if problem is None:
        return None
    return fail(what, f"{DEAD_LETTER_TOPIC} {problem}", _set_topic(what, "dlq."))


def _prefix_problem(
    what: str, name: str, brokers: Mapping[int, Result[Entries]]
) -> Check | None:
    for node_id, configs in brokers.items():
        if configs.error is not None:
            return warn(
                what,
                f"cannot check the prefix of topic {name}: {configs.error}",
                "DESCRIBE_CONFIGS on the cluster shows it",
            )
        prefix = configs.value.get(DEAD_LETTER_PREFIX)
        if prefix is not None and not name.startswith(prefix.value or ""):
            return fail(
                what,
                f"topic {name} does not begin with {prefix.value}, broker {node_id}'s "
                f"{DEAD_LETTER_PREFIX}: no dead letters are written",
                _set_topic(what, prefix.value or ""),
            )
    return None


def _set_topic(what: str, prefix: str) -> str:
    group = what.removeprefix("dead letters of ")
    return f"sharecons groups configure {group} --set {DEAD_LETTER_TOPIC}={prefix}NAME"


def _topic(
    name: str, settings: DeadLetterSettings, facts: DeadLetterFacts
) -> Iterator[Check]:
    what = f"dead-letter topic {name}"
    if is_code(facts.topic.error, Code.UNKNOWN_TOPIC_OR_PARTITION):
        yield _missing(what, name, facts.brokers)
    elif facts.topic.error is not None:
        yield warn(what, str(facts.topic.error), "DESCRIBE on the topic shows it")
    else:
        topic = facts.topic.value
        yield (
            _leader_problem(what, topic)
            or _config_problem(what, name, settings, facts.topic_configs)
            or ok(what, f"{DEAD_LETTER_ENABLE} is true")
        )
        yield _rights(name, topic.authorized_operations)


def _missing(what: str, name: str, brokers: Mapping[int, Result[Entries]]) -> Check:
    create = (
        f"kafka-topics.sh --bootstrap-server … --create --topic {name} --config "
        f"{DEAD_LETTER_ENABLE}=true"
    )
    found = [each.value for each in brokers.values() if each.ok]
    if not found:
        text = "does not exist, and it is unknown whether brokers create it"
        return warn(what, text, create)
    if all(_is_true(each.get(DEAD_LETTER_CREATE)) for each in found):
        return ok(what, "does not exist yet; the first dead letter creates it")
    return fail(
        what,
        "does not exist, and brokers do not create it: no dead letters are written",
        f"{create}; or set {DEAD_LETTER_CREATE}=true on the brokers",
    )


def _leader_problem(what: str, topic: Topic) -> Check | None:
    leaderless = [n for n, each in topic.partitions.items() if each.leader is None]
    if not leaderless:
        return None
    numbers = ", ".join(str(number) for number in leaderless[:5])
    more = " …" if len(leaderless) > 5 else ""
    return fail(
        what,
        f"no leader for partition {numbers}{more}",
        "check the brokers that have its replicas",
    )


def _config_problem(
    what: str, name: str, settings: DeadLetterSettings, configs: Result[Entries]
) -> Check | None:
    if configs.error is not None:
        return warn(
            what, str(configs.error), "DESCRIBE_CONFIGS on the topic shows its configs"
        )
    alter = (
        f"kafka-configs.sh --bootstrap-server … --alter --topic {name} --add-config "
    )
    if not _is_true(configs.value.get(DEAD_LETTER_ENABLE)):
        return fail(
            what,
            f"{DEAD_LETTER_ENABLE} is not true: no dead letters are written",
            f"{alter}{DEAD_LETTER_ENABLE}=true",
        )
    policy = configs.value.get("cleanup.policy")
    if policy is None or "compact" not in (policy.value or ""):
        return None
    found = "cleanup.policy has compact, which rejects records without keys"
    keys = "; dead letters have none"
    verdict = warn if settings.copy_records else fail
    return verdict(
        what,
        found if settings.copy_records else f"{found}{keys}",
        f"{alter}cleanup.policy=delete",
    )


def _rights(name: str, allowed: frozenset[str] | None) -> Check:
    """Check that this principal can read the topic; the brokers write it without."""
    what = f"rights to dead-letter topic {name}"
    if allowed is None:
        return warn(what, "the brokers do not return them", "try to read it")
    if "READ" in allowed:
        return ok(what, "READ")
    return warn(
        what,
        "no READ: the brokers write dead letters, and this principal cannot read them",
        f"kafka-acls.sh --bootstrap-server … --add --operation READ --topic {name} "
        "--allow-principal …",
    )


def _is_true(entry: ConfigEntry | None) -> bool:
    return entry is not None and (entry.value or "").lower() == "true"
