"""Topics that a worker writes copies of records to: retry topics and dead letters.

Decides whether they are usable, and with which settings missing ones are created. The
requests are in `start_checks`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sharecons.copies.topic_configs import (
    CLEANUP,
    MAX_BYTES,
    MIN_REPLICAS,
    NO_LIMIT,
    RETENTION,
    RETENTION_BYTES,
    ConfigProblem,
    CopyTopic,
    SourceTopic,
    problems_text,
    retention_of,
    with_headers,
)
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
from sharecons.worker.routes import Route, Routes

__all__ = [
    "copy_topics_of",
    "create_command",
    "creation_of",
    "is_missing",
    "missing_error",
    "problem_error",
    "rights_error",
]

DEFAULT: Final = -1
"""The brokers' default number of partitions, in a CreateTopics request."""


def copy_topics_of(routes: Routes) -> list[CopyTopic]:
    """Return the retry topics, and then the dead-letter topics, of all handlers."""
    topics: dict[tuple[bool, str], CopyTopic] = {}
    for route in routes.routes:
        sources = frozenset(routes.topics_of(route))
        for topic in _topics_of(route, sources):
            other = topics.get((topic.is_retry, topic.name), topic)
            topics[topic.is_retry, topic.name] = topic._replace(
                sources=sources | other.sources,
                longest_wait=max(topic.longest_wait, other.longest_wait),
            )
    return sorted(topics.values(), key=lambda topic: (not topic.is_retry, topic.name))


def _topics_of(route: Route, sources: frozenset[str]) -> Iterator[CopyTopic]:
    for name, wait in route.settings.retry_topics.longest_waits().items():
        yield CopyTopic(name, True, sources, wait + (route.settings.timeout or 0.0))
    if route.settings.dead_letter is not None:
        yield CopyTopic(route.settings.dead_letter, False, sources)


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


def problem_error(
    problems: Mapping[CopyTopic, Sequence[ConfigProblem]], servers: str
) -> ConfigurationError | None:
    """Return the error for topics that lose copies for certain, or None."""
    texts = []
    for topic, found in problems.items():
        certain = [each for each in found if each.is_certain]
        if certain:
            texts.append(problems_text(topic, certain, servers))
    return ConfigurationError("; ".join(texts)) if texts else None


def creation_of(
    topic: CopyTopic, sources: Sequence[SourceTopic], timeout: float
) -> CreateTopic:
    """Return the request that creates a topic for copies of records of its sources.

    It has the partitions, the replicas and the retention of its sources, the larger
    value of each, and takes records that are larger by the headers of a copy. A retry
    topic keeps copies until they are tried. Without sources these are the brokers'
    defaults. Copies of one key are different records, so they are never compacted.
    """
    configs = {CLEANUP: "delete"}
    retention = retention_of(topic, sources)
    if retention is not None:
        configs[RETENTION] = str(retention)
    sizes = [each.max_bytes for each in sources if each.max_bytes is not None]
    if sizes:
        configs[MAX_BYTES] = str(with_headers(max(sizes)))
    configs[RETENTION_BYTES] = str(NO_LIMIT)
    replicas = max((each.replicas or 0 for each in sources), default=0)
    in_sync = [each.number(MIN_REPLICAS) or 0 for each in sources]
    if replicas and any(in_sync):
        configs[MIN_REPLICAS] = str(min(replicas, max(in_sync)))
    partitions = max((each.partitions for each in sources), default=DEFAULT)
    return CreateTopic(topic.name, partitions, configs, timeout, replicas or None)


def create_command(request: CreateTopic, servers: str) -> str:
    """Return the command that sends the same request."""
    parts = [
        f"kafka-topics.sh --bootstrap-server {servers} --create --topic {request.name}"
    ]
    if request.partitions != DEFAULT:
        parts.append(f"--partitions {request.partitions}")
    parts += [f"--config {name}={value}" for name, value in request.configs.items()]
    if request.replication_factor is not None:
        parts.append(f"--replication-factor {request.replication_factor}")
    return " ".join(parts)
