"""Helpers of the comparisons: filling a topic, and running one client at a time."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final

from confluent_kafka import Producer

__all__ = ["produce", "run_child", "spread"]

TIMEOUT: Final = 300.0  # seconds of a run


def produce(bootstrap: str, topic: str, values: Sequence[bytes]) -> None:
    """Write values to the topic's partitions, and wait for all of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    if left := producer.flush(120.0):
        raise RuntimeError(f"{left} records were not acknowledged")


def run_child(module: str, *words: object, **options: object) -> dict[str, float]:
    """Run a module of this package; return the figures that it prints as JSON."""
    command = [sys.executable, "-m", f"tests.bench.workers.{module}", *map(str, words)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def spread(
    values: Sequence[float], show: Callable[[float], str] = "{:.2f}".format
) -> str:
    """Return the median, with minimum and maximum in brackets."""
    middle, low, high = map(show, (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"
