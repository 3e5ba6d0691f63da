"""Settings of a topic with which it loses the copies of records, or takes none.

One table of rules, for the start of a worker and of a Spark query, for
`sharecons create-topics` and for `sharecons preflight`. A config that cannot be
read is not checked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from sharecons.config.validation import INT32_MAX, whole_number
from sharecons.protocol.admin.models import Topic

__all__ = [
    "CLEANUP",
    "CONFIGS",
    "MAX_BYTES",
    "MIN_REPLICAS",
    "NO_LIMIT",
    "RETENTION",
    "RETENTION_BYTES",
    "ConfigProblem",
    "CopyTopic",
    "SourceTopic",
    "alter_command",
    "find_problems",
    "min_retention",
    "problems_text",
    "replicas_of",
    "retention_of",
    "with_headers",
]

CLEANUP: Final = "cleanup.policy"
RETENTION: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
MAX_BYTES: Final = "max.message.bytes"
MIN_REPLICAS: Final = "min.insync.replicas"
TIMESTAMP_TYPE: Final = "message.timestamp.type"
TIMESTAMP_BEFORE: Final = "message.timestamp.before.max.ms"
TIMESTAMP_AFTER: Final = "message.timestamp.after.max.ms"
CONFIGS: Final = (
    CLEANUP,
    RETENTION,
    RETENTION_BYTES,
    MAX_BYTES,
    MIN_REPLICAS,
    TIMESTAMP_TYPE,
    TIMESTAMP_BEFORE,
    TIMESTAMP_AFTER,
)

NO_LIMIT: Final = -1

HEADERS: Final = 16 << 10
"""Bytes by which copies can be larger than their sources; the reason takes up to 8 KB
of them, as UTF-8."""

MARGIN: Final = 60.0
"""Seconds in a retry topic after a record is due: to start a handler, or a worker.
Clocks of workers and brokers can differ by them: a copy's timestamp is the worker's
time of its write, unless the topic has LogAppendTime, and retention counts from it."""

MIN_WRITE: Final = 1000
"""Milliseconds that a write can take while everything works. Kafka 4.4 refuses each
copy with a `message.timestamp.before.max.ms` of 0, and some with 1."""

TIMESTAMP_DEFAULTS: Final = {
    TIMESTAMP_BEFORE: "9223372036854775807",
    TIMESTAMP_AFTER: "3600000",
}


class CopyTopic(NamedTuple):
    """A topic that the worker writes to; it reads retry topics as well.

    Attributes:
        sources: the topics of the handlers whose records are copied to it.
        longest_wait: seconds from the copy to the end of its next attempt, at most; 0
            if it is not known, and for dead letters.
    """

    name: str
    is_retry: bool
    sources: frozenset[str]
    longest_wait: float = 0.0

    @property
    def role(self) -> str:
        return "retry topic" if self.is_retry else "dead-letter topic"

    def sources_in(self, topics: Iterable["SourceTopic"]) -> list["SourceTopic"]:
        """Return the topics whose records are copied to this one."""
        return [each for each in topics if each.name in self.sources]


class SourceTopic(NamedTuple):
    """A topic that the worker consumes; `configs` is empty if it cannot be read.

    Attributes:
        replicas: of each partition; None if it is not known.
    """

    name: str
    partitions: int
    configs: Mapping[str, str]
    replicas: int | None = None

    def number(self, config: str) -> int | None:
        return whole_number(self.configs.get(config))

    @property
    def max_bytes(self) -> int | None:
        return self.number(MAX_BYTES)


class ConfigProblem(NamedTuple):
    """A setting with which copies are lost.

    Attributes:
        wanted: a value with which they are not.
        why: the consequence, as the end of a sentence.
        is_certain: copies are lost, or never written, while everything works. Otherwise
            it depends: on how long the worker stands still, or how many copies wait.
    """

    config: str
    found: str
    wanted: str
    why: str
    is_certain: bool = True

    def __str__(self) -> str:
        return f"{self.config}={self.found}, {self.why}"


class _Facts(NamedTuple):
    topic: CopyTopic
    configs: Mapping[str, str]
    replicas: int
    sources: Sequence[SourceTopic]

    def number(self, config: str) -> int | None:
        return whole_number(self.configs.get(config))


def find_problems(
    topic: CopyTopic,
    configs: Mapping[str, str],
    replicas: int,
    sources: Iterable[SourceTopic],
) -> list[ConfigProblem]:
    """Return the settings of an existing topic with which copies are lost.

    Args:
        configs: of CONFIGS, those the client is allowed to read.
        replicas: of the partition that has the fewest; 0 if it is not known.
        sources: the topics that the worker consumes.
    """
    facts = _Facts(topic, configs, replicas, topic.sources_in(sources))
    found = (rule(facts) for rule in _RULES)
    return [problem for problem in found if problem is not None]


def replicas_of(topic: Topic) -> int:
    """Return the number of replicas of the partition that has the fewest."""
    return min((len(each.replicas) for each in topic.partitions.values()), default=0)


def min_retention(topic: CopyTopic) -> int:
    """Return the milliseconds for which a retry topic must keep a copy."""
    return round((topic.longest_wait + MARGIN) * 1000) if topic.is_retry else 0


def retention_of(topic: CopyTopic, sources: Iterable[SourceTopic]) -> int | None:
    """Return the retention of a new topic; None if no source has a known one."""
    known = [each.number(RETENTION) for each in sources]
    retentions = [each for each in known if each is not None]
    if not retentions:
        return None
    if NO_LIMIT in retentions:
        return NO_LIMIT
    return max(*retentions, min_retention(topic))


def with_headers(max_bytes: int) -> int:
    """Return the `max.message.bytes` of a topic for copies of records of this size."""
    return min(max_bytes + HEADERS, INT32_MAX)


def problems_text(
    topic: CopyTopic, problems: Sequence[ConfigProblem], servers: str
) -> str:
    """Return the settings of a topic, and the command that corrects them."""
    return (
        f"the {topic.role} {topic.name!r} has {'; and '.join(map(str, problems))}; "
        f"run: {alter_command(topic, problems, servers)}"
    )


def alter_command(
    topic: CopyTopic, problems: Iterable[ConfigProblem], servers: str
) -> str:
    configs = ",".join(f"{each.config}={each.wanted}" for each in problems)
    return (
        f"kafka-configs.sh --bootstrap-server {servers} --alter --topic {topic.name} "
        f"--add-config {configs}"
    )


# The rules.


def _compaction(facts: _Facts) -> ConfigProblem | None:
    value = facts.configs.get(CLEANUP, "")
    if "compact" not in value:
        return None
    why = "which removes copies whose keys are equal, and takes none without a key"
    return ConfigProblem(CLEANUP, value, "delete", why)


def _retention(facts: _Facts) -> ConfigProblem | None:
    value = facts.number(RETENTION)
    if value is None or value == NO_LIMIT:
        return None
    needed = min_retention(facts.topic)
    wanted = str(retention_of(facts.topic, facts.sources) or needed)
    if value < needed:
        why = f"which removes copies before they are tried: they need {needed}"
        return ConfigProblem(RETENTION, str(value), wanted, why)
    for source in facts.sources:
        kept = source.number(RETENTION)
        if kept is not None and (kept == NO_LIMIT or value < kept):
            why = f"less than the {kept} of {source.name!r}"
            if kept == NO_LIMIT:
                why = f"but {source.name!r} has no limit"
            return ConfigProblem(RETENTION, str(value), wanted, why, is_certain=False)
    return None


def _retention_bytes(facts: _Facts) -> ConfigProblem | None:
    value = facts.number(RETENTION_BYTES)
    if value is None or value == NO_LIMIT or not facts.topic.is_retry:
        return None
    kept = [each.number(RETENTION_BYTES) for each in facts.sources]
    is_certain = any(
        each is not None and (each == NO_LIMIT or value < each) for each in kept
    )
    why = "which can remove copies before they are tried"
    return ConfigProblem(RETENTION_BYTES, str(value), str(NO_LIMIT), why, is_certain)


def _size(facts: _Facts) -> ConfigProblem | None:
    value = facts.number(MAX_BYTES)
    for source in facts.sources:
        largest = source.max_bytes
        if value is not None and largest is not None and value < largest:
            why = (
                f"less than the {largest} of {source.name!r}, so that it does not take "
                "copies of its largest records"
            )
            return ConfigProblem(MAX_BYTES, str(value), str(with_headers(largest)), why)
    return None


def _replicas(facts: _Facts) -> ConfigProblem | None:
    value = facts.number(MIN_REPLICAS)
    if value is None or not 0 < facts.replicas < value:
        return None
    why = (
        f"more than its {facts.replicas} replicas, so that no copy is ever confirmed "
        "(or give it more replicas)"
    )
    return ConfigProblem(MIN_REPLICAS, str(value), str(facts.replicas), why)


def _timestamps(facts: _Facts, config: str) -> ConfigProblem | None:
    value = facts.number(config)
    is_set_by_broker = facts.configs.get(TIMESTAMP_TYPE) == "LogAppendTime"
    if value is None or is_set_by_broker or value >= 1000 * MARGIN:
        return None
    why = "which refuses copies if clocks differ, or writes take longer"
    is_certain = config == TIMESTAMP_BEFORE and value < MIN_WRITE
    return ConfigProblem(
        config, str(value), TIMESTAMP_DEFAULTS[config], why, is_certain
    )


_RULES: Final[Sequence[Callable[[_Facts], ConfigProblem | None]]] = (
    _compaction,
    _retention,
    _retention_bytes,
    _size,
    _replicas,
    partial(_timestamps, config=TIMESTAMP_BEFORE),
    partial(_timestamps, config=TIMESTAMP_AFTER),
)
