"""Checks that the subscribed topics exist and can be read.

A share group delivers no records of a topic that is missing or forbidden, and returns
no error. So a query on it would succeed without having read anything. Therefore topics
are described before the member joins, every few seconds after that, and before a query
finishes.

`subscribePattern` selects topics by their names. Share groups have no patterns: each
description finds the topics that match, and the member subscribes to them by name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error
from sharecons.log import get_logger
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code
from sharecons.protocol.reported_errors import topic_error
from sharecons.spark.errors import TopicMissingError

__all__ = ["DescribedTopics", "TopicWatch", "classify_topics", "select_topics"]

RETRY_INTERVAL: Final = 0.2
"""Seconds between two requests for a topic that is missing."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTopics:
    """A broker's description of the subscribed topics.

    Attributes:
        ids: the ids of the topics that exist.
        with_leader: their partitions that have a leader.
        leaderless: their other partitions.
        missing: topics that the broker does not know.
        errors: topics that the broker cannot describe now, and why.
    """

    ids: Mapping[str, bytes]
    with_leader: frozenset[TopicPartition]
    leaderless: frozenset[TopicPartition]
    missing: frozenset[str]
    errors: Mapping[str, Error]


def classify_topics(described: Results[str, Topic]) -> DescribedTopics:
    """Return which topics exist and which are missing.

    Raises:
        AuthorizationError: the user is not allowed to read a topic. To describe a
            topic, Kafka requires DESCRIBE only, not READ.
    """
    for name, error in described.errors.items():
        if isinstance(error, AuthorizationError):
            raise topic_error(name, Code.TOPIC_AUTHORIZATION_FAILED)
    for name, topic in described.found.items():
        # None or empty means that the broker did not fill it in: at least DESCRIBE is
        # allowed.
        allowed = topic.authorized_operations
        if allowed and "READ" not in allowed:
            raise topic_error(name, Code.TOPIC_AUTHORIZATION_FAILED)
    missing = frozenset(
        name
        for name, error in described.errors.items()
        if is_code(error, Code.UNKNOWN_TOPIC_OR_PARTITION)
    )
    leaders = {
        TopicPartition(name, number): partition.leader
        for name, topic in described.found.items()
        for number, partition in topic.partitions.items()
    }
    with_leader = frozenset(
        partition for partition, leader in leaders.items() if leader is not None
    )
    return DescribedTopics(
        ids={name: topic.topic_id for name, topic in described.found.items()},
        with_leader=with_leader,
        leaderless=frozenset(leaders.keys() - with_leader),
        missing=missing,
        errors={n: e for n, e in described.errors.items() if n not in missing},
    )


def select_topics(
    described: Results[str, Topic], pattern: str, known: Iterable[str]
) -> Results[str, Topic]:
    """Return the topics whose whole names match a pattern, and the known topics.

    Topics of Kafka itself do not match. A known topic that is not described is missing.
    """
    found: dict[str, Result[Topic]] = {
        name: Result(error=broker_error("describe", f"topic {name!r}", _UNKNOWN, None))
        for name in known
    }
    for name, result in described.items():
        internal = result.ok and result.value.internal
        if name in found or (re.fullmatch(pattern, name) and not internal):
            found[name] = result
    return Results(found)


_UNKNOWN: Final = Code.UNKNOWN_TOPIC_OR_PARTITION


class TopicWatch:
    """Describes the subscribed topics, and logs when one is missing.

    Args:
        names: the topics to describe.
        pattern: describe the topics that match this regular expression instead.
        fail_if_missing: raise TopicMissingError instead.
    """

    def __init__(
        self,
        admin: ShareGroupAdmin,
        names: Sequence[str],
        pattern: str | None = None,
        *,
        fail_if_missing: bool,
    ) -> None:
        self._admin = admin
        self._names = tuple(names)
        self._pattern = pattern
        self._fail_if_missing = fail_if_missing
        self._missing: frozenset[str] = frozenset()
        self._seen: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """The topics to subscribe to, which include missing ones."""
        return self._names if self._pattern is None else tuple(sorted(self._seen))

    async def describe(self, timeout: float) -> DescribedTopics:
        """Describe the topics. Can be cancelled.

        Brokers learn of a new topic at different times, and a broker that has just
        started might know none. So topics with an error, and topics that were not
        missing before, are described again for up to `timeout` seconds.

        Raises:
            TopicMissingError: a topic is missing, and `fail_if_missing` is set.
            AuthorizationError: the user is not allowed to read a topic.
            ConnectionFailedError: no broker responds, or can describe the topics.
        """
        deadline = anyio.current_time() + timeout
        topics = await self._describe_once()
        while self._is_uncertain(topics) and anyio.current_time() < deadline:
            await anyio.sleep(RETRY_INTERVAL)
            topics = await self._describe_once()
        self._check(topics)
        return topics

    def _is_uncertain(self, topics: DescribedTopics) -> bool:
        nothing_matches = not (topics.ids or topics.missing)
        return bool(nothing_matches or topics.errors or topics.missing - self._missing)

    async def _describe_once(self) -> DescribedTopics:
        names = () if self._pattern is not None else self._names
        described = await self._admin.describe_topics(
            *names, authorized_operations=True
        )
        if self._pattern is not None:
            described = select_topics(described, self._pattern, self._seen)
        return classify_topics(described)

    def _check(self, topics: DescribedTopics) -> None:
        if self._fail_if_missing and not (topics.ids or topics.missing):
            raise TopicMissingError(
                f"no topic matches subscribePattern {self._pattern!r}; create one, or "
                "correct the pattern, or set failOnDataLoss to false to wait for one"
            )
        for error in topics.errors.values():
            raise ConnectionFailedError(str(error)) from error
        for name in sorted(topics.missing - self._missing):
            if self._fail_if_missing:
                raise TopicMissingError(
                    _missing_message(name, existed=name in self._seen)
                )
            _log.warning("topic is missing; reading the others", topic=name)
        self._missing = topics.missing
        self._seen.update(topics.ids)


def _missing_message(name: str, *, existed: bool) -> str:
    if existed:
        return (
            f"topic {name!r} was deleted while it was read; set failOnDataLoss to "
            "false to continue with the other topics, and with this one once it is "
            "created again"
        )
    return (
        f"topic {name!r} does not exist; create it, or correct subscribe, or set "
        "failOnDataLoss to false to read the other topics, and this one once it exists"
    )
