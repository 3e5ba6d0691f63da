"""Producer that fills a topic: `python -m tests.bench.load_topic --help`.

It spreads the records evenly over the partitions. It runs in its own process, so that
its memory is not counted for the benchmark.
"""

import argparse
from typing import Any, Final

from confluent_kafka import Producer

from tests.bench.record_values import block_size, message_blocks

MAX_QUEUED: Final = 100_000  # messages in the producer's queue
MAX_QUEUED_BYTES: Final = 256 << 20
MAX_MESSAGE: Final = 1_048_588  # bytes of a batch; the broker's message.max.bytes
TIMEOUT: Final = 120.0  # seconds to flush


def main() -> None:
    options = _arguments()
    errors: list[object] = []
    producer = Producer(_settings(options))
    block = block_size(options.size)
    different = message_blocks(options.size, options.records, block)
    max_queued = min(MAX_QUEUED, MAX_QUEUED_BYTES // options.size)
    for number in range(-(-options.records // block)):
        while len(producer) > max_queued:
            producer.poll(0.005)
        messages = different[number % len(different)]
        messages = messages[: options.records - number * block]
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
        "message.max.bytes": MAX_MESSAGE,
        "queue.buffering.max.messages": 2 * MAX_QUEUED,
        "queue.buffering.max.kbytes": 2 << 20,
        "delivery.report.only.error": True,
    }


if __name__ == "__main__":
    main()
