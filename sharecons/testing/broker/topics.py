"""Topics, their partitions, and who leads them.

Replicas are a fiction: all brokers share a partition's one log, and only its leader
serves it. So a leader that moves takes nothing with it but what a leader keeps in
memory (the locks of share groups).
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sharecons.testing.broker.log.partition_log import PartitionLog

__all__ = ["Partition", "Topic", "Topics"]


@dataclass(slots=True, kw_only=True)
class Partition:
    """One partition: its log, and its place in the cluster."""

    index: int
    replicas: list[int]
    """Node ids; the first is the preferred leader."""
    leader: int
    """A node id, or -1 while no replica's broker runs."""
    leader_epoch: int = 0
    log: PartitionLog = field(default_factory=PartitionLog)


@dataclass(slots=True, kw_only=True)
class Topic:
    name: str
    topic_id: uuid.UUID
    partitions: list[Partition]
    config: dict[str, str]
    internal: bool = False

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class Topics:
    """All topics of the cluster, by name and by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[uuid.UUID, Topic] = {}

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def named(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def with_id(self, topic_id: uuid.UUID | None) -> Topic | None:
        return None if topic_id is None else self._by_id.get(topic_id)

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
            partitions=[
                Partition(index=index, replicas=list(nodes), leader=nodes[0])
                for index, nodes in enumerate(replicas)
            ],
            config=dict(config or {}),
        )
        self._by_name[name] = self._by_id[topic.topic_id] = topic
        return topic

    def delete(self, topic: Topic) -> None:
        del self._by_name[topic.name], self._by_id[topic.topic_id]
