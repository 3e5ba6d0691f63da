"""Fetch sessions (KIP-227): what a consumer wants, remembered from fetch to fetch.

A session is opened by a full fetch, of epoch 0. Each fetch after it has the next epoch
and names only what has changed; its answer has only partitions with news: records, an
error, or an offset that has moved. A fetch of epoch -1 has no session, and ends the
one it names.
"""

import itertools
import uuid
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sharecons.testing.broker.codec import ErrorCode

__all__ = ["FetchSessionError", "FetchSessions", "Fetching", "News", "Spot", "Wanted"]

Spot: TypeAlias = tuple[str | uuid.UUID | None, int]
"""A topic, by name or by id as the version has it, and a partition."""

FULL: Final = 0
FINAL: Final = -1
NO_SESSION: Final = 0
SLOTS: Final = 1000  # Kafka's max.incremental.fetch.session.cache.slots


class FetchSessionError(Exception):
    """No fetch in this session, or not this one."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a consumer wants of one partition."""

    spot: Spot
    offset: int
    max_bytes: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class News:
    """What of a partition's answer decides whether it is sent."""

    high_watermark: int
    start_offset: int
    has_records: bool
    is_error: bool


@dataclass(slots=True)
class _Remembered:
    wanted: Wanted
    high_watermark: int = -1
    start_offset: int = -1

    def takes(self, news: News) -> bool:
        """Take what there is to tell; say whether it is worth telling."""
        changed = (news.high_watermark, news.start_offset) != (
            self.high_watermark,
            self.start_offset,
        )
        self.start_offset = news.start_offset
        # So that a partition is told of again once its error has gone.
        self.high_watermark = -1 if news.is_error else news.high_watermark
        return changed or news.has_records or news.is_error


@dataclass(slots=True)
class _Session:
    session_id: int
    owner: Hashable
    by_id: bool
    epoch: int = 1
    partitions: dict[Spot, _Remembered] = field(default_factory=dict)

    def change(self, wanted: Iterable[Wanted], forgotten: Iterable[Spot]) -> None:
        for each in wanted:
            known = self.partitions.get(each.spot)
            if known is None:
                self.partitions[each.spot] = _Remembered(each)
            else:
                known.wanted = each
        for spot in forgotten:
            self.partitions.pop(spot, None)


@dataclass(slots=True)
class Fetching:
    """One fetch: what it is about, and the session that it is part of."""

    wanted: list[Wanted]
    owner: Hashable
    by_id: bool
    opens: bool = False
    session: _Session | None = None


class FetchSessions:
    """The sessions at all brokers; a broker that stops forgets its own."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._slots = slots
        self._sessions: dict[int, _Session] = {}
        self._ids = itertools.count(1)

    def begin(
        self,
        owner: Hashable,
        session: tuple[int, int],
        wanted: list[Wanted],
        forgotten: Iterable[Spot],
        *,
        by_id: bool,
    ) -> Fetching:
        """Begin a fetch at a broker, the owner; `session` is an id and an epoch.

        Raises:
            FetchSessionError: there is no such session, or this is not its next fetch.
        """
        session_id, epoch = session
        if epoch in (FULL, FINAL):
            self._sessions.pop(session_id, None)
            return Fetching(wanted, owner, by_id, opens=epoch == FULL)
        found = self._sessions.get(session_id)
        if found is None or found.owner != owner:
            raise FetchSessionError(ErrorCode.fetch_session_id_not_found)
        if found.epoch != epoch:
            raise FetchSessionError(ErrorCode.invalid_fetch_session_epoch)
        if found.by_id != by_id:
            raise FetchSessionError(ErrorCode.fetch_session_topic_id_error)
        found.change(wanted, forgotten)
        del self._sessions[session_id]
        if not found.partitions:
            return Fetching(wanted, owner, by_id)
        self._sessions[session_id] = found  # the last in the order of use
        found.epoch = 1 if epoch == 2**31 - 1 else epoch + 1
        remembered = [each.wanted for each in found.partitions.values()]
        return Fetching(remembered, owner, by_id, session=found)

    def finish(
        self, fetching: Fetching, news: Mapping[Spot, News]
    ) -> tuple[int, set[Spot]]:
        """Give the session's id, and which partitions the answer is to have."""
        if fetching.session is not None:
            return fetching.session.session_id, _told(fetching.session, news)
        if fetching.opens:
            return self._open(fetching, news), set(news)
        return NO_SESSION, set(news)

    def owner_stopped(self, owner: Hashable) -> None:
        for session in list(self._sessions.values()):
            if session.owner == owner:
                del self._sessions[session.session_id]

    def _open(self, fetching: Fetching, news: Mapping[Spot, News]) -> int:
        if len(self._sessions) >= self._slots:
            del self._sessions[next(iter(self._sessions))]
        session = _Session(next(self._ids), fetching.owner, fetching.by_id)
        session.change(fetching.wanted, ())
        for spot, remembered in session.partitions.items():
            remembered.takes(news[spot])
        self._sessions[session.session_id] = session
        return session.session_id


def _told(session: _Session, news: Mapping[Spot, News]) -> set[Spot]:
    """Give the partitions with news; those with records go to the end of the queue.

    An answer has room for only so much, and whoever is first gets it.
    """
    told = set()
    for spot, each in news.items():
        remembered = session.partitions.get(spot)
        if remembered is not None and remembered.takes(each):
            told.add(spot)
            if each.has_records:
                session.partitions[spot] = session.partitions.pop(spot)
    return told
