"""Incremental fetch sessions (KIP-227): a consumer's partitions, kept between fetches.

A full fetch, of epoch 0, opens a session. Each later fetch has the next epoch and names
only changed partitions; its response has only partitions with records, an error or a
changed offset. A fetch of epoch -1 has no session, and ends the one it names.
"""

import itertools
import uuid
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError

__all__ = [
    "FetchContext",
    "FetchPartition",
    "FetchSessionError",
    "FetchSessions",
    "PartitionStatus",
    "TopicPartition",
]

TopicPartition: TypeAlias = tuple[str | uuid.UUID | None, int]
"""A topic, by name or by id depending on the version, and a partition."""

FULL: Final = 0
FINAL: Final = -1
NO_SESSION: Final = 0
SLOTS: Final = 1000  # Kafka's max.incremental.fetch.session.cache.slots


class FetchSessionError(RequestError):
    """The session does not exist, or the fetch does not belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPartition:
    """A fetch from one partition."""

    topic_partition: TopicPartition
    offset: int
    max_bytes: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """The part of a partition's response that decides whether it is sent."""

    high_watermark: int
    start_offset: int
    has_records: bool
    is_error: bool


@dataclass(slots=True)
class _CachedPartition:
    request: FetchPartition
    high_watermark: int = -1
    start_offset: int = -1

    def update(self, status: PartitionStatus) -> bool:
        """Store the status; return whether the response has to have the partition."""
        changed = (status.high_watermark, status.start_offset) != (
            self.high_watermark,
            self.start_offset,
        )
        self.start_offset = status.start_offset
        # -1, so that the partition is sent again once the error has ended.
        self.high_watermark = -1 if status.is_error else status.high_watermark
        return changed or status.has_records or status.is_error


@dataclass(slots=True)
class _Session:
    session_id: int
    owner: Hashable
    by_id: bool
    epoch: int = 1
    partitions: dict[TopicPartition, _CachedPartition] = field(default_factory=dict)

    def update(
        self, partitions: Iterable[FetchPartition], forgotten: Iterable[TopicPartition]
    ) -> None:
        for each in partitions:
            known = self.partitions.get(each.topic_partition)
            if known is None:
                self.partitions[each.topic_partition] = _CachedPartition(each)
            else:
                known.request = each
        for key in forgotten:
            self.partitions.pop(key, None)


@dataclass(slots=True)
class FetchContext:
    """One fetch: its partitions, and its session if it has one."""

    partitions: list[FetchPartition]
    owner: Hashable
    by_id: bool
    opens: bool = False
    session: _Session | None = None


class FetchSessions:
    """The sessions of all brokers; a broker that stops loses its own."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = slots
        self._sessions: dict[int, _Session] = {}
        self._ids = itertools.count(1)

    def begin(
        self,
        owner: Hashable,
        session: tuple[int, int],
        partitions: list[FetchPartition],
        forgotten: Iterable[TopicPartition],
        *,
        by_id: bool,
    ) -> FetchContext:
        """Begin a fetch at the broker `owner`; `session` is an id and an epoch.

        Raises:
            FetchSessionError: the session does not exist, or the epoch is not its next.
        """
        session_id, epoch = session
        if epoch in (FULL, FINAL):
            self._sessions.pop(session_id, None)
            return FetchContext(partitions, owner, by_id, opens=epoch == FULL)
        found = self._sessions.get(session_id)
        if found is None or found.owner != owner:
            raise FetchSessionError(ErrorCode.fetch_session_id_not_found)
        if found.epoch != epoch:
            raise FetchSessionError(ErrorCode.invalid_fetch_session_epoch)
        if found.by_id != by_id:
            raise FetchSessionError(ErrorCode.fetch_session_topic_id_error)
        found.update(partitions, forgotten)
        del self._sessions[session_id]
        if not found.partitions:
            return FetchContext(partitions, owner, by_id)
        self._sessions[session_id] = found  # the last in the order of use
        found.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        cached = [each.request for each in found.partitions.values()]
        return FetchContext(cached, owner, by_id, session=found)

    def finish(
        self, fetch: FetchContext, statuses: Mapping[TopicPartition, PartitionStatus]
    ) -> tuple[int, set[TopicPartition]]:
        """Return the session's id, and the partitions that the response has."""
        if fetch.session is not None:
            return fetch.session.session_id, _partitions_to_send(
                fetch.session, statuses
            )
        if fetch.opens:
            return self._open(fetch, statuses), set(statuses)
        return NO_SESSION, set(statuses)

    def owner_stopped(self, owner: Hashable) -> None:
        for session in list(self._sessions.values()):
            if session.owner == owner:
                del self._sessions[session.session_id]

    def _open(
        self, fetch: FetchContext, statuses: Mapping[TopicPartition, PartitionStatus]
    ) -> int:
        if len(self._sessions) >= self._slots:
            del self._sessions[next(iter(self._sessions))]
        session = _Session(next(self._ids), fetch.owner, fetch.by_id)
        session.update(fetch.partitions, ())
        for key, cached in session.partitions.items():
            cached.update(statuses[key])
        self._sessions[session.session_id] = session
        return session.session_id


def _partitions_to_send(
    session: _Session, statuses: Mapping[TopicPartition, PartitionStatus]
) -> set[TopicPartition]:
    """Return the partitions to send; those with records move to the end of the order.

    A response has a maximum size, which the first partitions use up.
    """
    changed = set()
    for key, each in statuses.items():
        cached = session.partitions.get(key)
        if cached is not None and cached.update(each):
            changed.add(key)
            if each.has_records:
                session.partitions[key] = session.partitions.pop(key)
    return changed
