"""Producer that fills a topic: `python -m tests.bench.load_topic --help`.

It spreads the records evenly over the partitions. It runs in its own process, so that
its memory is not counted for the benchmark.
"""

import argparse
from typing import Any, Final

from confluent_kafka import Producer

from tests.bench.record_values import message_blocks

# Consecutive records for one partition: more than a producer batch holds, and few
# enough that each of 500 partitions gets several blocks.
BLOCK_SIZE: Final = 200
MAX_QUEUED: Final = 100_000  # messages in the producer's queue
TIMEOUT: Final = 120.0  # seconds to flush


def main() -> None:
    options = _arguments()
    errors: list[object] = []
    producer = Producer(_settings(options))
    different = message_blocks(options.size, options.records, BLOCK_SIZE)
    for number in range(-(-options.records // BLOCK_SIZE)):
        while len(producer) > MAX_QUEUED:
            producer.poll(0.005)
        messages = different[number % len(different)]
        messages = messages[: options.records - number * BLOCK_SIZE]
        queued = producer.produce_batch(
            options.topic,
            messages,
            partition=number % options.partitions,
            on_delivery=lambda error, _: errors.append(error),
        )
        if queued != len(messages):
            raise RuntimeError(
                f"the producer queued {queued} of {len(messages)} records"
            )
    if left := producer.flush(TIMEOUT):
        raise RuntimeError(f"{left} records were not acknowledged")
    if errors:
        raise RuntimeError(
            f"{len(errors)} records were not delivered; first error: {errors[0]}"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--bootstrap", required=True)
    add("--topic", required=True)
    add("--partitions", type=int, required=True, help="partitions of the topic")
    add("--records", type=int, required=True)
    add("--size", type=int, required=True, help="bytes per value")
    add("--codec", default="none")
    add("--batch-size", type=int, default=16384, help="bytes; Java's default")
    add("--linger", type=float, default=0.005, help="seconds; Java's default")
    return parser.parse_args()


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "bootstrap.servers": options.bootstrap,
        "batch.size": options.batch_size,
        "linger.ms": options.linger * 1000,
        "compression.type": options.codec,
        "queue.buffering.max.messages": 2 * MAX_QUEUED,
        "queue.buffering.max.kbytes": 2 << 20,
        "delivery.report.only.error": True,
    }


if __name__ == "__main__":
    main()
