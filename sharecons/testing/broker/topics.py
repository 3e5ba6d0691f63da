"""Topics, their partitions and leaders.

There are no copies: all brokers share a partition's one log, and only the leader serves
it. A new leader lacks only what a leader keeps in memory: the locks of share groups.
"""

import re
import uuid
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sharecons.testing.broker.log.partition_log import PartitionLog

__all__ = ["INTERNAL", "NO_LEADER", "Partition", "Topic", "Topics", "topic_name_error"]

NO_LEADER: Final = -1
MAX_NAME_LENGTH: Final = 249
VALID_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")

INTERNAL: Final = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state")
)
"""Topics that hold the state of Kafka's coordinators; empty on these brokers."""


@dataclass(slots=True, kw_only=True)
class Partition:
    """A partition: its log, replicas and leader."""

    index: int
    replicas: list[int]
    """Node ids; the first is the preferred leader."""
    leader: int
    """A node id, or -1 while no broker with a replica runs."""
    leader_epoch: int = 0
    log: PartitionLog = field(default_factory=PartitionLog)

    def in_sync(self, running: Container[int]) -> list[int]:
        """Return the replicas whose brokers run; all of them are in sync."""
        return [node_id for node_id in self.replicas if node_id in running]

    def next_leader(self, running: Container[int]) -> int:
        """Return the present leader if it runs, else the first running replica."""
        living = self.in_sync(running)
        if self.leader in living:
            return self.leader
        return living[0] if living else NO_LEADER


@dataclass(slots=True, kw_only=True)
class Topic:
    name: str
    topic_id: uuid.UUID
    partitions: list[Partition]
    config: dict[str, str]
    internal: bool = False

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def add_partitions(self, replicas: Sequence[Sequence[int]]) -> list[Partition]:
        """Add a partition for each list of replicas, led by the first of them."""
        first = len(self.partitions)
        added = [
            Partition(index=index, replicas=list(nodes), leader=nodes[0])
            for index, nodes in enumerate(replicas, first)
        ]
        self.partitions += added
        return added


class Topics:
    """All topics of the cluster, by name and by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def by_name(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def get(self, name: str) -> Topic:
        """Return a topic.

        Raises:
            LookupError: it does not exist.
        """
        topic = self.by_name(name)
        if topic is None:
            raise LookupError(f"topic {name!r} does not exist")
        return topic

    def by_id(self, topic_id: uuid.UUID | None) -> Topic | None:
        return None if topic_id is None else self._by_id.get(topic_id)

    def find_collision(self, name: str) -> Topic | None:
        """Return a topic whose name collides with `name` in metrics, or None.

        Kafka replaces dots by underscores in metrics, so it allows only one of the two.
        """
        if "." not in name and "_" not in name:
            return None
        replaced = name.replace(".", "_")
        return next(
            (each for each in self if each.name.replace(".", "_") == replaced), None
        )

    def create(
        self,
        name: str,
        replicas: Sequence[Sequence[int]],
        config: Mapping[str, str] | None = None,
    ) -> Topic:
        """Create a topic with a partition for each list of replicas."""
        topic = Topic(
            name=name,
            topic_id=uuid.uuid4(),
            partitions=[],
            config=dict(config or {}),
            internal=name in INTERNAL,
        )
        topic.add_partitions(replicas)
        self._by_name[name] = self._by_id[topic.topic_id] = topic
        return topic

    def delete(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]


def topic_name_error(name: str) -> str | None:
    """Return why a topic name is invalid, or None if it is valid."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return (
            f"the length of '{name}' is longer than the max allowed length "
            f"{MAX_NAME_LENGTH}"
        )
    if not VALID_NAME.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
