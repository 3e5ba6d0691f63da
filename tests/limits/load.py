"""Producers: a paced load over all partitions, and one record for each."""

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Producer

__all__ = ["Load", "write_each"]

TICK: Final = 0.02
FLUSH: Final = 60.0
VALUE: Final = b"v" * 100

Place = tuple[str, int]
"""A topic and the number of a partition."""


class Load:
    """Writes records to partitions in turn, in a thread, at a steady rate.

    Args:
        rate: records per second.
    """

    def __init__(self, bootstrap: str, places: Sequence[Place], rate: float) -> None:
        self.written = 0
        self._producer = _producer(bootstrap)
        self._places = itertools.cycle(places)
        self._rate = rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(FLUSH)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stopping.wait(TICK):
            due = int((time.monotonic() - began) * self._rate)
            while self.written < due:
                topic, partition = next(self._places)
                self._producer.produce(topic, VALUE, partition=partition)
                self.written += 1
            self._producer.poll(0)


def write_each(
    bootstrap: str,
    places: Sequence[Place],
    headers: Sequence[tuple[str, bytes]] = (),
) -> None:
    """Write one record to each partition."""
    producer = _producer(bootstrap)
    for topic, partition in places:
        producer.produce(topic, VALUE, partition=partition, headers=list(headers))
        producer.poll(0)
    producer.flush(FLUSH)


def _producer(bootstrap: str) -> Any:
    return Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
