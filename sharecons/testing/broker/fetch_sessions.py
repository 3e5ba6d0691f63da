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

__all__ = ["FetchSessionError", "FetchSessions", "Fetching", "News", "Spot", "Wanted"]

Spot: TypeAlias = tuple[str | uuid.UUID | None, int]
"""A topic, by name or by id depending on the version, and a partition."""

FULL: Final = 0
FINAL: Final = -1
NO_SESSION: Final = 0
SLOTS: Final = 1000  # Kafka's max.incremental.fetch.session.cache.slots


class FetchSessionError(Exception):
    """The session does not exist, or the fetch does not belong to it."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A fetch from one partition."""

    spot: Spot
    offset: int
    max_bytes: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class News:
    """The part of a partition's response that decides whether it is sent."""

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
        """Store the status; return whether the response has to have the partition."""
        changed = (news.high_watermark, news.start_offset) != (
            self.high_watermark,
            self.start_offset,
        )
        self.start_offset = news.start_offset
        # -1, so that the partition is sent again once the error has ended.
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
    """One fetch: its partitions, and its session if it has one."""

    wanted: list[Wanted]
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
        wanted: list[Wanted],
        forgotten: Iterable[Spot],
        *,
        by_id: bool,
    ) -> Fetching:
        """Begin a fetch at the broker `owner`; `session` is an id and an epoch.

        Raises:
            FetchSessionError: the session does not exist, or the epoch is not its next.
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
        """Return the session's id, and the partitions that the response has."""
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
    """Return the partitions to send; those with records move to the end of the order.

    A response has a maximum size, which the first partitions use up.
    """
    told = set()
    for spot, each in news.items():
        remembered = session.partitions.get(spot)
        if remembered is not None and remembered.takes(each):
            told.add(spot)
            if each.has_records:
                session.partitions[spot] = session.partitions.pop(spot)
    return told
