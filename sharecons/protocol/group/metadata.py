"""Where partitions are led from, and what topics are called.

Rule 1: which broker is asked for a partition is decided here.
Rule 2: this file does not know what is asked.

Theory of operation
-------------------
The coordinator assigns partitions by topic id. Names, leaders and the brokers'
endpoints come from Metadata, asked by the subscribed names and by assigned ids
that we cannot place: an assignment is never dropped for want of metadata, since
the coordinator will not tell it twice (M24 of the peers' tests: a partition would
be stranded for good).

Leaders' own answers name newer leaders (CurrentLeader, NodeEndpoints); such a
hint is believed when its epoch is newer than what we know, and spares a Metadata
round trip. Without one, the partition has no leader until Metadata says so.

While something is missing (a topic, a leader), it is asked for again after a
backoff; otherwise every REFRESH seconds.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sharecons.errors import Error
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.messages import (
    Endpoint,
    MetadataRequest,
    MetadataResponse,
    PartitionLeader,
    SharePartition,
    TopicDescription,
    TopicId,
)

__all__ = ["Metadata", "TopicError"]

NO_LEADER: Final = -1

REFRESH_INTERVAL: Final = 300.0  # metadata.max.age.ms
MIN_HINT_INTERVAL: Final = 1.0
"""No second hint is followed so soon after one: brokers in the midst of an election
may point at each other."""

RECOVERY_TIME: Final = 5.0
"""So long without trouble, and the next trouble is a new one."""

MAX_RETRY_DELAY: Final = 1.0
"""Longest pause while a topic or leader is missing, so that a consumer started
before its topic begins within about a second of the topic's creation."""


class TopicError(NamedTuple):
    """Metadata has an error for a subscribed topic, or none any more (NONE)."""

    topic: str
    code: int


class Metadata:
    """The machine that keeps metadata; its contract is the package's.

    Attributes:
        brokers: the endpoints of the cluster's brokers, by node id.
        names: the topics' names by id.
        troubles: changes of topics' errors; taken by the shell.
        appeared: a subscribed topic is there that was missing; taken by the shell.
        described_at: when the metadata of the subscribed topics was asked for.
    """

    def __init__(self, spread: float = 1.0) -> None:
        self.brokers: dict[int, Endpoint] = {}
        self.topic_names: dict[TopicId, str] = {}
        self.topic_errors: list[TopicError] = []
        self.has_new_topics = False
        self.finished = False
        self.requested_at = -math.inf
        self._last_request_at = -math.inf
        self._leaders: dict[SharePartition, PartitionLeader] = {}
        self._subscribed: tuple[str, ...] = ()
        self._assigned: frozenset[SharePartition] = frozenset()
        self._codes: dict[str, int] = {}
        self._due = math.inf
        self._stale = False
        self._next_by_id = False
        self._failed_at = -math.inf
        self._hint_followed_at: dict[SharePartition, float] = {}
        self._backoff = Backoff(spread, limit=MAX_RETRY_DELAY)

    # What the shell tells.

    def set_subscription(self, topics: tuple[str, ...], now: float) -> None:
        self._subscribed = topics
        self._codes = {}
        self._backoff.reset()
        self._stale = bool(topics)
        self._due = now if topics else math.inf

    def set_assignment(self, partitions: frozenset[SharePartition], now: float) -> None:
        """These are ours; those without a known leader are asked for."""
        self._assigned = partitions
        if self._partitions_without_leader():
            self._due = min(self._due, now)

    def mark_stale(self, now: float) -> None:
        """Something that relied on the metadata went wrong."""
        self._failed_at = now
        if not self._stale and self._is_needed():
            self._stale = True
            self._due = min(self._due, now + self._backoff.next_delay())

    def update_endpoints(self, endpoints: Mapping[int, Endpoint]) -> None:
        self.brokers.update(endpoints)

    def on_leader_moved(
        self, share_partition: SharePartition, leader: PartitionLeader, now: float
    ) -> None:
        """A broker said that it leads this no more, and perhaps who does."""
        known = self._leaders.get(share_partition)
        newer = known is None or leader.leader_epoch > known.leader_epoch
        # A hint of node 0 at epoch 0 is a good one; -1 is none.
        usable = leader.leader_id >= 0 and leader.leader_id in self.brokers and newer
        if (
            usable
            and now - self._hint_followed_at.get(share_partition, -math.inf)
            > MIN_HINT_INTERVAL
        ):
            self._hint_followed_at[share_partition] = now
            self._leaders[share_partition] = leader
            return
        if known is not None and not (leader.leader_id >= 0 and not newer):
            self._leaders[share_partition] = PartitionLeader(
                NO_LEADER, known.leader_epoch
            )
        self.mark_stale(now)

    def close(self) -> None:
        self.finished = True

    # What others ask.

    def leaders(self) -> dict[int, frozenset[SharePartition]]:
        """The assigned partitions by the node that leads them, as far as known."""
        led: dict[int, set[SharePartition]] = {}
        for share_partition in self._assigned:
            leader = self._leaders.get(share_partition)
            if leader is not None and leader.leader_id in self.brokers:
                led.setdefault(leader.leader_id, set()).add(share_partition)
        return {node_id: frozenset(partitions) for node_id, partitions in led.items()}

    def unauthorized_topics(self) -> frozenset[str]:
        """The subscribed topics whose metadata may not be read."""
        code = Code.TOPIC_AUTHORIZATION_FAILED
        return frozenset(name for name in self._codes if self._codes[name] == code)

    # The machine's contract.

    def next_deadline(self, now: float) -> float:
        return math.inf if self.finished else self._due

    def next_request(self, now: float) -> MetadataRequest | None:
        if self.finished or now < self._due:
            return None
        # A broker answers for names or for ids, not for both: take turns.
        unnamed = {
            p.topic_id for p in self._partitions_without_leader()
        } - self.topic_names.keys()
        if unnamed and self._next_by_id:
            return MetadataRequest(names=(), ids=tuple(sorted(unnamed)))
        # What goes wrong from here on, the answer to this may not know of.
        self._stale = False
        self._last_request_at = now
        return MetadataRequest(names=self._subscribed, ids=())

    def on_response(
        self, request: MetadataRequest, response: MetadataResponse, now: float
    ) -> None:
        self._next_by_id = not self._next_by_id
        if request.names:
            self.requested_at = self._last_request_at
        if response.brokers:
            self.brokers = dict(response.brokers)
        for topic in response.topics:
            self._handle_topic(topic)
        if (
            self._partitions_without_leader()
            or self._topics_with_errors()
            or self._stale
        ):
            self._schedule(now + self._backoff.next_delay())
        else:
            # Metadata that goes on naming a leader which denies it is not believed
            # at the speed of a round trip.
            if now - self._failed_at > RECOVERY_TIME:
                self._backoff.reset()
            self._schedule(now + REFRESH_INTERVAL)

    def on_error(self, request: MetadataRequest, error: Error, now: float) -> None:
        self._schedule(now + self._backoff.next_delay())

    def _schedule(self, when: float) -> None:
        self._due = when if self._is_needed() else math.inf

    # What the answers mean.

    def _handle_topic(self, topic: TopicDescription) -> None:
        if topic.name is not None and topic.name in self._subscribed:
            self._set_topic_code(topic.name, topic.error)
        if topic.topic_id is None or topic.name is None:
            return
        self.topic_names[topic.topic_id] = topic.name
        for partition, leader in topic.leaders.items():
            share_partition = SharePartition(topic.topic_id, partition)
            known = self._leaders.get(share_partition)
            # Brokers' metadata may lag behind a hint that we had.
            if known is None or leader.leader_epoch >= known.leader_epoch:
                self._leaders[share_partition] = leader

    def _set_topic_code(self, name: str, code: int) -> None:
        before = self._codes.get(name, Code.NONE)
        self._codes[name] = code
        if code != before:
            self.topic_errors.append(TopicError(name, code))
            self.has_new_topics |= code == Code.NONE

    def _is_needed(self) -> bool:
        return bool(self._subscribed or self._assigned)

    def _partitions_without_leader(self) -> list[SharePartition]:
        return [p for p in self._assigned if not self._has_leader(p)]

    def _has_leader(self, share_partition: SharePartition) -> bool:
        leader = self._leaders.get(share_partition)
        return leader is not None and leader.leader_id in self.brokers

    def _topics_with_errors(self) -> Iterable[str]:
        return [name for name, code in self._codes.items() if code != Code.NONE]
