"""Topics that a worker writes copies of records to: retry topics and dead letters.

Decides whether they are usable, and with which settings missing ones are created. The
requests are in `start_checks`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sharecons.config.validation import INT32_MAX
from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    Error,
)
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.requests import CreateTopic
from sharecons.protocol.admin.results import Result
from sharecons.protocol.codes import Code
from sharecons.worker.routes import Routes

__all__ = [
    "MAX_BYTES",
    "RETENTION",
    "CopyTopic",
    "SourceTopic",
    "copy_topics_of",
    "create_command",
    "creation_of",
    "is_missing",
    "missing_error",
    "rights_error",
    "size_error",
]

MAX_BYTES: Final = "max.message.bytes"
RETENTION: Final = "retention.ms"
CLEANUP: Final = "cleanup.policy"

HEADERS: Final = 16 << 10
"""Bytes by which copies can be larger than their sources; the reason takes up to 8 KB
of them, as UTF-8."""

DEFAULT: Final = -1
"""The brokers' default number of partitions, in a CreateTopics request."""


class CopyTopic(NamedTuple):
    """A topic that the worker writes to; it reads retry topics as well.

    Attributes:
        sources: the topics of the handlers whose records are copied to it.
    """

    name: str
    is_retry: bool
    sources: frozenset[str]

    @property
    def role(self) -> str:
        return "retry topic" if self.is_retry else "dead-letter topic"


class SourceTopic(NamedTuple):
    """A topic that the worker consumes; `configs` is empty if it cannot be read."""

    name: str
    partitions: int
    configs: Mapping[str, str]

    @property
    def max_bytes(self) -> int | None:
        value = self.configs.get(MAX_BYTES)
        return None if value is None else int(value)


def copy_topics_of(routes: Routes) -> list[CopyTopic]:
    """Return the retry topics, and then the dead-letter topics, of all handlers."""
    topics: dict[tuple[bool, str], CopyTopic] = {}
    for route in routes.routes:
        used = [(True, name) for name in sorted(route.settings.retry_topics.names)]
        if route.dead_letter is not None:
            used.append((False, route.dead_letter.topic))
        sources = frozenset(routes.topics_of(route))
        for is_retry, name in used:
            other = topics.get((is_retry, name))
            shared = sources if other is None else sources | other.sources
            topics[is_retry, name] = CopyTopic(name, is_retry, shared)
    return sorted(topics.values(), key=lambda topic: (not topic.is_retry, topic.name))


def is_missing(described: Result[Topic]) -> bool:
    return is_code(described.error, Code.UNKNOWN_TOPIC_OR_PARTITION)


def rights_error(topic: CopyTopic, described: Result[Topic]) -> Error | None:
    """Return the error if this client is not allowed to use a topic, or None."""
    needed = ("READ", "WRITE") if topic.is_retry else ("WRITE",)
    if is_code(described.error, Code.TOPIC_AUTHORIZATION_FAILED):
        missing: Sequence[str] = ("DESCRIBE", *needed)
    elif described.error is None:
        allowed = described.value.authorized_operations
        if allowed is None:
            return None
        missing = [right for right in needed if right not in allowed]
    else:
        return None
    if not missing:
        return None
    code = Code.TOPIC_AUTHORIZATION_FAILED
    return AuthorizationError(
        f"the {topic.role} {topic.name!r} cannot be used: {code.name}; grant "
        f"{' and '.join(missing)} on it to this client, and create it if it does not "
        "exist",
        code=code,
        name=code.name,
    )


def missing_error(topics: Sequence[tuple[CopyTopic, str]]) -> BrokerError:
    """Return the error for topics that do not exist, each with its command."""
    names = " and ".join(f"the {topic.role} {topic.name!r}" for topic, _ in topics)
    verb, noun = ("does", "it") if len(topics) == 1 else ("do", "them")
    commands = "; ".join(command for _, command in topics)
    code = Code.UNKNOWN_TOPIC_OR_PARTITION
    return BrokerError(
        f"{names} {verb} not exist; let the worker create {noun} "
        "(create_topics=True, or sharecons run --create-topics), or run: "
        f"{commands}",
        code=code,
        name=code.name,
    )


def size_error(
    topic: CopyTopic, max_bytes: int, sources: Iterable[SourceTopic], servers: str
) -> ConfigurationError | None:
    """Return the error if a topic takes smaller records than a source, or None."""
    for source in sources:
        if source.max_bytes is not None and max_bytes < source.max_bytes:
            return ConfigurationError(
                f"the {topic.role} {topic.name!r} has {MAX_BYTES}={max_bytes}, less "
                f"than the {source.max_bytes} of {source.name!r}, so that it does not "
                f"take copies of its largest records; run: kafka-configs.sh "
                f"--bootstrap-server {servers} --alter --topic {topic.name} "
                f"--add-config {MAX_BYTES}={_with_headers(source.max_bytes)}"
            )
    return None


def creation_of(
    name: str, sources: Sequence[SourceTopic], timeout: float
) -> CreateTopic:
    """Return the request that creates a topic for copies of records of its sources.

    It has the partitions and the retention of its sources, the larger value of each,
    and takes records that are larger by the headers of a copy. Without sources these
    are the brokers' defaults. Copies of one key are different records, so they are
    never compacted.
    """
    configs = {CLEANUP: "delete"}
    retentions = [int(each.configs.get(RETENTION, 0)) for each in sources]
    if any(retentions):
        # -1 is without limit.
        configs[RETENTION] = str(-1 if -1 in retentions else max(retentions))
    sizes = [each.max_bytes for each in sources if each.max_bytes is not None]
    if sizes:
        configs[MAX_BYTES] = str(_with_headers(max(sizes)))
    partitions = max((each.partitions for each in sources), default=DEFAULT)
    return CreateTopic(name, partitions, configs, timeout)


def create_command(request: CreateTopic, servers: str) -> str:
    """Return the command that sends the same request."""
    parts = [
        f"kafka-topics.sh --bootstrap-server {servers} --create --topic {request.name}"
    ]
    if request.partitions != DEFAULT:
        parts.append(f"--partitions {request.partitions}")
    parts += [f"--config {name}={value}" for name, value in request.configs.items()]
    return " ".join(parts)


def _with_headers(max_bytes: int) -> int:
    return min(max_bytes + HEADERS, INT32_MAX)
