"""Fills a topic, evenly over its partitions: `python -m tests.bench.loading --help`.

A process of its own, so that the memory it takes is nobody else's.
"""

import argparse
from typing import Any, Final

from confluent_kafka import Producer

from tests.bench.values import blocks

# Of the same partition in a row: more than a batch of any size, and few enough that
# 500 partitions get several of them.
BLOCK: Final = 200
QUEUED: Final = 100_000  # messages that may wait in the producer
PATIENCE: Final = 120.0  # seconds for the last of them


def main() -> None:
    options = _arguments()
    refused: list[object] = []
    producer = Producer(_settings(options))
    different = blocks(options.size, options.records, BLOCK)
    for number in range(-(-options.records // BLOCK)):
        while len(producer) > QUEUED:
            producer.poll(0.005)
        messages = different[number % len(different)]
        messages = messages[: options.records - number * BLOCK]
        queued = producer.produce_batch(
            options.topic,
            messages,
            partition=number % options.partitions,
            on_delivery=lambda error, _: refused.append(error),
        )
        if queued != len(messages):
            raise RuntimeError(f"the producer took {queued} of {len(messages)}")
    if left := producer.flush(PATIENCE):
        raise RuntimeError(f"{left} records were not acknowledged")
    if refused:
        raise RuntimeError(f"{len(refused)} records were refused: {refused[0]}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--bootstrap", required=True)
    add("--topic", required=True)
    add("--partitions", type=int, required=True, help="that the topic has")
    add("--records", type=int, required=True)
    add("--size", type=int, required=True, help="of each value, in bytes")
    add("--codec", default="none")
    add("--batch-size", type=int, default=16384, help="as Java's producer")
    add("--linger", type=float, default=0.005, help="seconds; as Java's producer")
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "bootstrap.servers": options.bootstrap,
        "batch.size": options.batch_size,
        "linger.ms": options.linger * 1000,
        "compression.type": options.codec,
        "queue.buffering.max.messages": 2 * QUEUED,
        "queue.buffering.max.kbytes": 2 << 20,
        "delivery.report.only.error": True,
    }


if __name__ == "__main__":
    main()
