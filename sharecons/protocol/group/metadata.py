"""Partition leaders, broker endpoints and topic names.

Theory of operation
-------------------
The coordinator assigns partitions by topic id. Names, leaders and endpoints come from
Metadata, requested by subscribed name and by assigned id without a known leader. An
assignment is kept even if metadata is missing: the coordinator sends it only once, so
a dropped partition would never be fetched.

Leaders return newer leaders in their responses (CurrentLeader, NodeEndpoints). A hint
with a newer epoch replaces the known leader and saves a Metadata request. Without a
hint the partition has no leader until the next Metadata response.

While a topic or a leader is missing, Metadata is requested again after a backoff;
otherwise every REFRESH_INTERVAL seconds.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sharecons._record import TopicPartition
from sharecons.errors import Error
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.group.messages import (
    MetadataRequest,
    MetadataResponse,
    TopicDescription,
)
from sharecons.protocol.partitions import (
    Endpoint,
    PartitionLeader,
    SharePartition,
    TopicId,
)

__all__ = ["Metadata", "TopicError"]

NO_LEADER: Final = -1

REFRESH_INTERVAL: Final = 300.0  # metadata.max.age.ms
MIN_HINT_INTERVAL: Final = 1.0
"""Seconds before a partition follows another hint: during an election each of two
brokers can return the other as leader."""

RECOVERY_TIME: Final = 5.0
"""Seconds without a failure after which the backoff is reset."""

MAX_RETRY_DELAY: Final = 1.0
"""Maximum delay while a topic or leader is missing, so that a consumer started before
its topic exists begins within about a second of its creation. Also the delay after a
topic's last partition was taken from the member."""

MAX_FORMER_NAMES: Final = 100
"""Names kept of topics without description and assignment: records can be held."""


class TopicError(NamedTuple):
    """The new error code of a subscribed topic; NONE if the error has ended."""

    topic: str
    code: int


class Metadata:
    """The state machine for metadata; see `sharecons.protocol` for its contract.

    Attributes:
        brokers: the endpoints of the cluster's brokers, by node id.
        cluster_id: the cluster's; None before the first response.
        topic_names: topic names by id.
        topic_codes: the error codes of the subscribed topics, by name.
        topic_errors: changes of topics' error codes; the caller empties it.
        has_new_topics: a missing subscribed topic has appeared; the caller resets it.
        requested_at: when the latest metadata of the subscription was requested.
    """

    def __init__(self, spread: float = 1.0) -> None:
        self.brokers: dict[int, Endpoint] = {}
        self.cluster_id: str | None = None
        self.topic_names: dict[TopicId, str] = {}
        self.topic_errors: list[TopicError] = []
        self.has_new_topics = False
        self.finished = False
        self.requested_at = -math.inf
        self._last_request_at = -math.inf
        self._leaders: dict[SharePartition, PartitionLeader] = {}
        self._subscribed: tuple[str, ...] = ()
        self._assigned: frozenset[SharePartition] = frozenset()
        self.topic_codes: dict[str, int] = {}
        self._due = math.inf
        self._stale = False
        self._next_by_id = False
        self._failed_at = -math.inf
        self._hint_followed_at: dict[SharePartition, float] = {}
        self._backoff = Backoff(spread, limit=MAX_RETRY_DELAY)

    # Calls of the driver.

    def set_subscription(self, topics: tuple[str, ...], now: float) -> None:
        self._subscribed = topics
        self.topic_codes = {}
        self._backoff.reset()
        self._stale = bool(topics)
        self._due = now if topics else math.inf

    def set_assignment(self, partitions: frozenset[SharePartition], now: float) -> None:
        """Set the assigned partitions; leaders that are not known are requested.

        A topic without assigned partitions could be deleted: metadata is requested too.
        """
        lost = {p.topic_id for p in self._assigned} - {p.topic_id for p in partitions}
        self._assigned = partitions
        if self._partitions_without_leader():
            self._due = min(self._due, now)
        elif lost and self._subscribed:
            self._due = min(self._due, now + MAX_RETRY_DELAY)

    def mark_stale(self, now: float) -> None:
        """Request metadata again, as a request based on it has failed."""
        self._failed_at = now
        if not self._stale and self._is_needed():
            self._stale = True
            self._due = min(self._due, now + self._backoff.next_delay())

    def update_endpoints(self, endpoints: Mapping[int, Endpoint]) -> None:
        self.brokers.update(endpoints)

    def on_leader_moved(
        self, share_partition: SharePartition, leader: PartitionLeader, now: float
    ) -> None:
        """Handle a broker's error that it is not the leader, with an optional hint."""
        known = self._leaders.get(share_partition)
        newer = known is None or leader.leader_epoch > known.leader_epoch
        # Node 0 at epoch 0 is a valid hint; -1 means none.
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

    # Queries.

    def leaders(self) -> dict[int, frozenset[SharePartition]]:
        """Return the partitions to fetch by leader node, without those not known."""
        led: dict[int, set[SharePartition]] = {}
        for share_partition in self._assigned:
            if not self._is_fetched(share_partition.topic_id):
                continue
            leader = self._leaders.get(share_partition)
            if leader is not None and leader.leader_id in self.brokers:
                led.setdefault(leader.leader_id, set()).add(share_partition)
        return {node_id: frozenset(partitions) for node_id, partitions in led.items()}

    def has_moved(self, share_partition: SharePartition, node_id: int) -> bool:
        """Return whether another node is known to lead a partition."""
        leader = self._leaders.get(share_partition)
        return leader is not None and leader.leader_id not in (NO_LEADER, node_id)

    def _is_fetched(self, topic_id: TopicId) -> bool:
        """Return whether a topic is subscribed, or not known yet.

        The assignment contains other topics until the coordinator replaces it.
        """
        name = self.topic_names.get(topic_id)
        return name is None or name in self._subscribed

    def leaderless(self) -> dict[str, int]:
        """Return by topic how many assigned partitions have no known leader.

        Topics without a name are left out: their metadata has not arrived yet.
        """
        counts: dict[str, int] = {}
        for topic_id, _ in self._partitions_without_leader():
            if (name := self.topic_names.get(topic_id)) is not None:
                counts[name] = counts.get(name, 0) + 1
        return counts

    def name_partitions(
        self, partitions: Iterable[SharePartition]
    ) -> frozenset[TopicPartition]:
        """Return the partitions whose topic names are known, with these names."""
        names = self.topic_names
        return frozenset(
            TopicPartition(name, partition)
            for topic_id, partition in partitions
            if (name := names.get(topic_id)) is not None
        )

    def unauthorized_topics(self) -> frozenset[str]:
        """Return the subscribed topics that the member is not allowed to describe."""
        return self._topics_with(Code.TOPIC_AUTHORIZATION_FAILED)

    def missing_topics(self) -> frozenset[str]:
        """Return the subscribed topics that do not exist."""
        return self._topics_with(Code.UNKNOWN_TOPIC_OR_PARTITION)

    def _topics_with(self, code: int) -> frozenset[str]:
        # A copy, as other threads call this too.
        codes = tuple(self.topic_codes.items())
        return frozenset(name for name, each in codes if each == code)

    # The machine's contract.

    def next_deadline(self, now: float) -> float:
        return math.inf if self.finished else self._due

    def next_request(self, now: float) -> MetadataRequest | None:
        if self.finished or now < self._due:
            return None
        # One request takes names or ids, not both, so they alternate.
        unnamed = {
            p.topic_id for p in self._partitions_without_leader()
        } - self.topic_names.keys()
        if unnamed and self._next_by_id:
            return MetadataRequest(names=(), ids=tuple(sorted(unnamed)))
        # A failure from here on is newer than the response to this request.
        self._stale = False
        self._last_request_at = now
        return MetadataRequest(names=self._subscribed, ids=())

    def on_response(
        self, request: MetadataRequest, response: MetadataResponse, now: float
    ) -> None:
        self._next_by_id = not self._next_by_id
        if request.names:
            self.requested_at = self._last_request_at
        self.cluster_id = response.cluster_id
        if response.brokers:
            self.brokers = dict(response.brokers)
        for topic in response.topics:
            self._handle_topic(topic)
        if request.names:
            self._forget_former_topics(topic.topic_id for topic in response.topics)
        if (
            self._partitions_without_leader()
            or any(code != Code.NONE for code in self.topic_codes.values())
            or self._stale
        ):
            self._schedule(now + self._backoff.next_delay())
        else:
            # If metadata keeps naming a broker that is not the leader, the backoff
            # keeps growing.
            if now - self._failed_at > RECOVERY_TIME:
                self._backoff.reset()
            self._schedule(now + REFRESH_INTERVAL)

    def on_error(self, request: MetadataRequest, error: Error, now: float) -> None:
        self._schedule(now + self._backoff.next_delay())

    def _schedule(self, when: float) -> None:
        self._due = when if self._is_needed() else math.inf

    # Responses.

    def _handle_topic(self, topic: TopicDescription) -> None:
        if topic.name is not None and topic.name in self._subscribed:
            self._set_topic_code(topic.name, topic.error)
        if topic.topic_id is None or topic.name is None:
            return
        self.topic_names[topic.topic_id] = topic.name
        for partition, leader in topic.leaders.items():
            share_partition = SharePartition(topic.topic_id, partition)
            known = self._leaders.get(share_partition)
            # Metadata can be older than a hint.
            if known is None or leader.leader_epoch >= known.leader_epoch:
                self._leaders[share_partition] = leader

    def _forget_former_topics(self, described: Iterable[TopicId | None]) -> None:
        """Forget former topics: each time that one is created again it has a new id."""
        present = {*described, *(each.topic_id for each in self._assigned)}
        for former in [each for each in self._leaders if each.topic_id not in present]:
            del self._leaders[former]
            self._hint_followed_at.pop(former, None)
        names = [each for each in self.topic_names if each not in present]
        for topic_id in names[:-MAX_FORMER_NAMES]:
            del self.topic_names[topic_id]

    def _set_topic_code(self, name: str, code: int) -> None:
        before = self.topic_codes.get(name, Code.NONE)
        self.topic_codes[name] = code
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
