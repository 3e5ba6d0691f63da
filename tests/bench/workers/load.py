"""Filling a topic."""

from collections.abc import Sequence

from confluent_kafka import Producer

__all__ = ["produce"]


def produce(bootstrap: str, topic: str, values: Sequence[bytes]) -> None:
    """Write values to the topic's partitions, and wait for all of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    if left := producer.flush(120.0):
        raise RuntimeError(f"{left} records were not acknowledged")
