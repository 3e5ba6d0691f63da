"""A paced producer of numbers, and when brokers have confirmed each of them."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

__all__ = ["PacedProducer", "key_of", "number_value", "task_value"]

TICK: Final = 0.05
FLUSH: Final = 90.0


def key_of(number: int) -> bytes | None:
    """Return the key of a record: two of three have one of 50."""
    return b"k%d" % (number % 50) if number % 3 else None


def number_value(number: int) -> bytes:
    return b"%d" % number


def task_value(number: int) -> bytes:
    """Return the message of a taskiq task "work", as taskiq writes it by default."""
    task = {
        "task_id": f"task-{number}",
        "task_name": "work",
        "labels": {},
        "args": [number],
        "kwargs": {},
    }
    return json.dumps(task).encode()


class PacedProducer:
    """Writes consecutive numbers to one topic in a thread, some with keys.

    The producer is librdkafka's, idempotent, with acks=all: the records that a client
    can lose do not depend on sharecons.

    Args:
        value: returns the value of a number's record.

    Attributes:
        confirmed: when each number was confirmed, by CLOCK_MONOTONIC.
        written: when each number was passed to the producer.
        unconfirmed: how many were not: they can be in the topic, and are not counted.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        rate: float,
        value: Callable[[int], bytes] = number_value,
    ) -> None:
        self.confirmed: dict[int, float] = {}
        self.written: dict[int, float] = {}
        self.unconfirmed = 0
        self._servers = servers
        self._topic = topic
        self._rate = rate
        self._value = value
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()
        self._producer = self._connect()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until all records are confirmed or have failed."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(FLUSH)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Write nothing during the block, and nothing of before after it.

        Afterwards another producer writes: the topic can be another one.
        """
        with self._lock:
            self._producer.flush(FLUSH)
            self._producer.purge()
            self._producer.flush(FLUSH)
            yield
            self._producer = self._connect()

    def _connect(self) -> Any:
        return Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                "topic.metadata.refresh.interval.ms": 5_000,
                "log_level": 0,
            }
        )

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._stopping.wait(TICK):
            due = int((time.monotonic() - began) * self._rate)
            with self._lock:
                with suppress(KafkaException):  # the topic is denied: it is tried again
                    while number < due:
                        self._write(number)
                        number += 1
                self._producer.poll(0)

    def _write(self, number: int) -> None:
        def delivered(error: object, _: object) -> None:
            if error is None:
                self.confirmed[number] = time.monotonic()
            else:
                self.unconfirmed += 1

        self.written[number] = time.monotonic()
        self._producer.produce(
            self._topic,
            value=self._value(number),
            key=key_of(number),
            on_delivery=delivered,
        )
