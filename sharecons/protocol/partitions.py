"""Partitions, their leaders, and the addresses of brokers."""

from base64 import urlsafe_b64encode
from typing import NamedTuple

__all__ = ["Endpoint", "PartitionLeader", "SharePartition", "TopicId"]

TopicId = bytes
"""A topic's id as sixteen bytes. It is looked up for each partition of each response,
and hashing or sorting UUIDs takes ten times as long."""


class Endpoint(NamedTuple):
    """The host and port of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return (
            f"[{self.host}]:{self.port}"
            if ":" in self.host
            else f"{self.host}:{self.port}"
        )


class SharePartition(NamedTuple):
    """A partition, by topic id: a topic that is created again has another id."""

    topic_id: TopicId
    partition: int

    def __str__(self) -> str:
        # As in Kafka's logs.
        return f"{urlsafe_b64encode(self.topic_id).decode()[:22]}-{self.partition}"


class PartitionLeader(NamedTuple):
    """A partition's leader and its epoch; a `leader_id` of -1 means no leader."""

    leader_id: int
    leader_epoch: int
