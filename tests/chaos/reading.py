"""Reads topics to their ends, beside the faults, with librdkafka."""

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, TopicPartition

__all__ = ["LogRecord", "read_topic", "short_reason"]

PATIENCE: Final = 20.0


class LogRecord(NamedTuple):
    """A record of a log, with the number of its value; of a task, with its attempt."""

    number: int
    topic: str
    partition: int
    offset: int
    headers: Mapping[str, str]
    attempt: int = 0


def number_in(value: bytes) -> int:
    return int(value)


def task_number(value: bytes) -> int:
    """Return the number of a taskiq task."""
    return int(json.loads(value)["args"][0])


def task_attempt(value: bytes) -> int:
    """Return the number of earlier attempts of a taskiq task."""
    return int(json.loads(value)["labels"].get("_retries", 0))


def read_topic(servers: str, topic: str, *, has_tasks: bool = False) -> list[LogRecord]:
    """Return all records of a topic; none of one that does not exist.

    Args:
        has_tasks: its values are tasks of taskiq, not numbers.
    """
    number = task_number if has_tasks else number_in
    consumer: Any = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        found = consumer.list_topics(topic, timeout=PATIENCE).topics[topic]
        ends = {
            partition: _end(consumer, topic, partition)
            for partition in found.partitions
        }
        consumer.assign([TopicPartition(topic, each, 0) for each in ends])
        return [
            LogRecord(
                number(message.value()),
                topic,
                message.partition(),
                message.offset(),
                _texts(message.headers() or ()),
                task_attempt(message.value()) if has_tasks else 0,
            )
            for message in _read(consumer, ends)
        ]
    finally:
        consumer.close()


def _end(consumer: Any, topic: str, partition: int) -> int:
    where = TopicPartition(topic, partition)
    end: int = consumer.get_watermark_offsets(where, timeout=PATIENCE)[1]
    return end


def _read(consumer: Any, ends: Mapping[int, int]) -> Iterable[Any]:
    """Yield the messages before the ends; logs have no gaps at their ends."""
    left = {partition for partition, end in ends.items() if end}
    deadline = time.monotonic() + PATIENCE
    while left and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=0.5):
            if not message.error():
                if message.offset() >= ends[message.partition()] - 1:
                    left.discard(message.partition())
                yield message


def _texts(headers: Iterable[tuple[str, bytes | None]]) -> Mapping[str, str]:
    return {name: (value or b"").decode() for name, value in headers}


def short_reason(reason: str) -> str:
    """Return a dead letter's reason without what differs from record to record."""
    return re.sub(r"\d+", "N", reason.partition(":")[0])
