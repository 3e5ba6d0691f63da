"""Share sessions: one for each member on each broker, bound to its connection.

KIP-932, "Share sessions": the first ShareFetch, of epoch 0, opens a session and names
its partitions. Each later request, fetch or acknowledgement, has the next epoch and can
add and remove partitions. Epoch -1 closes the session. Its acquired records are
released when it is closed or its connection ends, but not when the member opens a new
session instead (measured on Kafka 4.3.0).
"""

import uuid
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sharecons.testing.broker.codec import ErrorCode
from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.share.partitions import SharePartitionKey, SharePartitions

__all__ = [
    "CLOSE",
    "OPEN",
    "Session",
    "SessionError",
    "ShareSessions",
    "TopicPartition",
]

OPEN: Final = 0
CLOSE: Final = -1
MAX_EPOCH: Final = 2**31 - 1
MAX_SESSIONS: Final = 2000  # sessions per broker: group.share.max.share.sessions


class TopicPartition(NamedTuple):
    topic_id: uuid.UUID
    partition: int


class SessionError(RequestError):
    """The request does not match its session."""


class _Id(NamedTuple):
    node_id: int
    group_id: str
    member_id: str


@dataclass(slots=True)
class Session:
    """The partitions that one member fetches from one broker."""

    id: _Id
    connection: Hashable
    epoch: int = 1
    """The epoch of the next request."""
    partitions: dict[TopicPartition, bool] = field(default_factory=dict)
    """In fetch order; true for partitions that the next response must name."""

    def update(
        self, named: Iterable[TopicPartition], forgotten: Iterable[TopicPartition]
    ) -> None:
        for partition in named:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def advance_epoch(self) -> None:
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def rotated(self, epoch: int) -> list[TopicPartition]:
        """Return the partitions, rotated by the epoch."""
        partitions = list(self.partitions)
        start = epoch % len(partitions) if partitions and epoch >= 1 else 0
        return partitions[start:] + partitions[:start]

    def must_respond(
        self, partition: TopicPartition, *, has_error: bool, has_records: bool
    ) -> bool:
        """Return whether a response has to name a partition, and mark it as sent.

        A partition with records moves to the end of the order.
        """
        must = has_error or has_records or self.partitions.get(partition, False)
        if partition in self.partitions:
            self.partitions[partition] = has_error
            if has_records:
                self.partitions[partition] = self.partitions.pop(partition)
        return must


@dataclass(slots=True)
class _OpenedSession:
    """The last session that a connection has opened; it might have ended since."""

    id: _Id
    has_ended: bool = False


class ShareSessions:
    """The sessions of all brokers."""

    def __init__(self, partitions: SharePartitions, limit: int = MAX_SESSIONS) -> None:
        self.limit = limit
        self._partitions = partitions
        self._sessions: dict[_Id, Session] = {}
        self._opened: dict[Hashable, _OpenedSession] = {}

    def open(
        self,
        node_id: int,
        group_id: str,
        member_id: str,
        connection: Hashable,
        named: Iterable[TopicPartition],
    ) -> Session:
        """Open a session, which replaces the member's previous one.

        Raises:
            SessionError: the broker has too many sessions.
        """
        key = _Id(node_id, group_id, member_id)
        self._remove(key)
        here = sum(other.node_id == node_id for other in self._sessions)
        if here >= self.limit:
            raise SessionError(ErrorCode.share_session_limit_reached)
        session = Session(key, connection, partitions=dict.fromkeys(named, False))
        self._sessions[key] = session
        self._opened[connection] = _OpenedSession(key)
        return session

    def find(self, node_id: int, group_id: str, member_id: str) -> Session:
        """Return a member's session.

        Raises:
            SessionError: there is none.
        """
        session = self._sessions.get(_Id(node_id, group_id, member_id))
        if session is None:
            raise SessionError(ErrorCode.share_session_not_found)
        return session

    def next_request(
        self, node_id: int, group_id: str, member_id: str, epoch: int
    ) -> Session:
        """Return a member's session for a request with an epoch, and advance the epoch.

        Raises:
            SessionError: there is no session, or the epoch is not the next one.
        """
        session = self.find(node_id, group_id, member_id)
        if session.epoch != epoch:
            raise SessionError(ErrorCode.invalid_share_session_epoch)
        session.advance_epoch()
        return session

    def close(self, session: Session) -> None:
        """End a session, and release its acquired records."""
        if self._remove(session.id) is None:
            return
        for topic_id, partition in session.partitions:
            key = SharePartitionKey(session.id.group_id, topic_id, partition)
            self._partitions.release(key, session.id.node_id, session.id.member_id)

    def close_member(self, group_id: str, member_id: str) -> None:
        """End a member's sessions on all brokers, as if its connections had ended."""
        for session in list(self._sessions.values()):
            if session.id[1:] == (group_id, member_id):
                self.close(session)

    def connection_closed(self, connection: Hashable) -> None:
        """End the session of a connection, and release what was acquired on it."""
        opened = self._opened.pop(connection, None)
        if opened is None:
            return
        session = self._sessions.get(opened.id)
        if session is not None and not opened.has_ended:
            self.close(session)
        node_id, group_id, _ = opened.id
        if not any(other[:2] == (node_id, group_id) for other in self._sessions):
            self._partitions.unload_group(group_id, node_id)

    def _remove(self, key: _Id) -> Session | None:
        session = self._sessions.pop(key, None)
        if session is not None and session.connection in self._opened:
            self._opened[session.connection].has_ended = True
        return session
