"""The numbers in a dead-letter topic."""

import time
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition

__all__ = ["DeadLetters"]

PARTITIONS: Final = 2
TIMEOUT: Final = 20.0


class DeadLetters:
    """Reads a topic from its start, outside of all groups, with librdkafka.

    Attributes:
        numbers: all that were read; a caller can remove some.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.numbers: set[int] = set()
        self._topic = topic
        self._next = dict.fromkeys(range(PARTITIONS), 0)
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": False,
                "log_level": 0,
            }
        )

    def read(self) -> set[int]:
        """Read to the present end, for at most 20 s; return `numbers`."""
        ends = {p: self._end(p) for p in range(PARTITIONS)}
        self._consumer.assign(
            [TopicPartition(self._topic, p, at) for p, at in self._next.items()]
        )
        deadline = time.monotonic() + TIMEOUT
        while any(self._next[p] < end for p, end in ends.items()):
            if time.monotonic() > deadline:
                break
            message = self._consumer.poll(1.0)
            if message is not None and not message.error():
                self.numbers.add(int(message.value()))
                self._next[message.partition()] = message.offset() + 1
        self._consumer.unassign()
        return self.numbers

    def _end(self, partition: int) -> int:
        where = TopicPartition(self._topic, partition)
        return int(self._consumer.get_watermark_offsets(where, timeout=TIMEOUT)[1])

    def close(self) -> None:
        self._consumer.close()
