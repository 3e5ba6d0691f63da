"""The subscribed topics: whether they are there, and may be read.

The group gives nothing of a topic that is missing or forbidden, and no error either: a
query of it would succeed with nothing read. So topics are described before the member
joins, every few seconds while it is one, and before a query counts as done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from sharecons._record import TopicPartition
from sharecons.admin.client import ShareGroupAdmin
from sharecons.errors import AuthorizationError, ConnectionFailedError, Error
from sharecons.log import get_logger
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.admin.models import Topic
from sharecons.protocol.admin.results import Results
from sharecons.protocol.codes import Code
from sharecons.protocol.reported_errors import topic_error
from sharecons.spark.errors import TopicMissingError

__all__ = ["TopicWatch", "Topics", "sort_topics"]

PAUSE: Final = 0.2
"""Between two questions for a topic that no broker knows."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """What one broker tells of the subscribed topics.

    Attributes:
        ids: of the topics that are there.
        led: their partitions that have a leader.
        leaderless: those that have none just now.
        missing: topics that the broker does not know.
        unclear: topics that it cannot describe just now, and why.
    """

    ids: Mapping[str, bytes]
    led: frozenset[TopicPartition]
    leaderless: frozenset[TopicPartition]
    missing: frozenset[str]
    unclear: Mapping[str, Error]


def sort_topics(described: Results[str, Topic]) -> Topics:
    """Return which topics are there, and which are missing.

    Raises:
        AuthorizationError: a topic may not be read. Kafka describes a topic to those
            that may do so, whether they may read it or not.
    """
    for name, error in described.errors.items():
        if isinstance(error, AuthorizationError):
            raise topic_error(name, Code.TOPIC_AUTHORIZATION_FAILED)
    for name, topic in described.found.items():
        # None, or nothing at all, is no answer: who describes it may describe it.
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
    led = frozenset(place for place, leader in leaders.items() if leader is not None)
    return Topics(
        ids={name: topic.topic_id for name, topic in described.found.items()},
        led=led,
        leaderless=frozenset(leaders.keys() - led),
        missing=missing,
        unclear={n: e for n, e in described.errors.items() if n not in missing},
    )


class TopicWatch:
    """Describes the subscribed topics, again and again."""

    def __init__(
        self, admin: ShareGroupAdmin, names: Sequence[str], *, fail_if_missing: bool
    ) -> None:
        self._admin = admin
        self._names = tuple(names)
        self._fail_if_missing = fail_if_missing
        self._missing: frozenset[str] = frozenset()
        self._seen: set[str] = set()

    async def look(self, patience: float) -> Topics:
        """Describe the topics.

        A broker learns of a new topic a moment after others, and one that has just
        started may know none: what is unclear, or was not missing before, is asked for
        again for up to `patience` seconds. Cancelling this changes nothing.

        Raises:
            TopicMissingError: a topic is missing, and that is to be an error; without
                that, it is a warning when it begins.
            AuthorizationError: a topic may not be read.
            ConnectionFailedError: no broker can be asked, or tells.
        """
        ends_at = anyio.current_time() + patience
        topics = await self._describe()
        while self._is_doubtful(topics) and anyio.current_time() < ends_at:
            await anyio.sleep(PAUSE)
            topics = await self._describe()
        self._judge(topics)
        return topics

    def _is_doubtful(self, topics: Topics) -> bool:
        return bool(topics.unclear or topics.missing - self._missing)

    async def _describe(self) -> Topics:
        return sort_topics(
            await self._admin.describe_topics(*self._names, authorized_operations=True)
        )

    def _judge(self, topics: Topics) -> None:
        for error in topics.unclear.values():
            raise ConnectionFailedError(str(error)) from error
        for name in sorted(topics.missing - self._missing):
            if self._fail_if_missing:
                raise TopicMissingError(_missing(name, was_there=name in self._seen))
            _log.warning("topic is missing; the others are read", topic=name)
        self._missing = topics.missing
        self._seen.update(topics.ids)


def _missing(name: str, *, was_there: bool) -> str:
    if was_there:
        return (
            f"topic {name!r} was deleted while it was read; with failOnDataLoss false "
            "the other topics are read on, and this one if it is created again"
        )
    return (
        f"topic {name!r} does not exist; create it, or correct subscribe; with "
        "failOnDataLoss false the other topics are read, and this one once it exists"
    )
