"""Helpers for tests of fetching: ranges of topics, and rows of Arrow batches."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from sharecons.spark.fetching import read_ranges
from sharecons.spark.ledger import AcquiredRange
from sharecons.testing import EmbeddedBroker

__all__ = ["Logs", "embedded", "offsets", "threads_left_by"]


class Logs(NamedTuple):
    """The logs of a broker, or of several."""

    bootstrap_servers: str

    def acquired(
        self, topic: str, first: int, last: int, partition: int = 0, count: int = 1
    ) -> AcquiredRange:
        return AcquiredRange(topic, self.topic_id(topic), partition, first, last, count)

    def topic_id(self, topic: str) -> bytes:
        admin = self._admin()
        described = admin.describe_topics(TopicCollection([topic]))[topic].result(10)
        bits = described.topic_id
        return b"".join(
            (part & (1 << 64) - 1).to_bytes(8, "big")
            for part in (
                bits.get_most_significant_bits(),
                bits.get_least_significant_bits(),
            )
        )

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        ends = [TopicPartition(topic, partition, offset)]
        admin = self._admin()
        for deleted in admin.delete_records(ends).values():
            deleted.result(10)

    def batches(self, ranges: Iterable[AcquiredRange], **options: Any) -> Iterator[Any]:
        servers = self.bootstrap_servers
        return read_ranges(list(ranges), bootstrap_servers=servers, **options)

    def rows(self, *ranges: AcquiredRange, **options: Any) -> list[dict[str, Any]]:
        return [
            row
            for batch in self.batches(ranges, **options)
            for row in batch.to_pylist()
        ]

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap_servers})


def offsets(rows: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return partition and offset of each row."""
    return [(row["partition"], row["offset"]) for row in rows]


@contextmanager
def embedded(**options: Any) -> Iterator[tuple[EmbeddedBroker, Logs]]:
    with EmbeddedBroker(**options) as broker:
        yield broker, Logs(broker.bootstrap_servers)


def threads_left_by(action: Callable[[], Any]) -> list[str]:
    """Return the names of threads that an action has left running."""
    before = set(threading.enumerate())
    action()
    return [t.name for t in threading.enumerate() if t not in before and t.is_alive()]
