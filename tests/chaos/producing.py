"""A paced producer of numbers, and when brokers have confirmed each of them."""

import threading
import time
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

__all__ = ["PacedProducer"]

TICK: Final = 0.05
FLUSH: Final = 90.0


class PacedProducer:
    """Writes consecutive numbers to one topic in a thread, some with keys.

    The producer is librdkafka's, idempotent, with acks=all: the records that a client
    can lose do not depend on sharecons.

    Attributes:
        confirmed: when each number was confirmed, by CLOCK_MONOTONIC.
        unconfirmed: how many were not: they can be in the topic, and are not counted.
    """

    def __init__(self, servers: str, topic: str, rate: float) -> None:
        self.confirmed: dict[int, float] = {}
        self.unconfirmed = 0
        self._topic = topic
        self._rate = rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._producer: Any = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 120_000,
                "topic.metadata.refresh.interval.ms": 5_000,
                "log_level": 0,
            }
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until all records are confirmed or have failed."""
        self._stopping.set()
        self._thread.join()
        self._producer.flush(FLUSH)

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._stopping.wait(TICK):
            due = int((time.monotonic() - began) * self._rate)
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

        self._producer.produce(
            self._topic,
            value=b"%d" % number,
            key=b"k%d" % (number % 50) if number % 3 else None,
            on_delivery=delivered,
        )
