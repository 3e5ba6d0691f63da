"""Produces at a steady pace until it is ended: `python -m tests.bench.paced --help`.

Each value begins with the time at which it was given to the producer.
"""

import argparse
import random
import time
from typing import Final

from confluent_kafka import Producer

from tests.bench.values import stamped, value

BEAT: Final = 0.001  # seconds: what is due by then goes together, at a high rate
SEED: Final = 1


def main() -> None:
    options = _arguments()
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap,
            "linger.ms": 0,
            "delivery.report.only.error": True,
        }
    )
    filling = value(random.Random(SEED), options.size)
    begun, sent = time.perf_counter(), 0
    end = begun + options.seconds
    while (now := time.perf_counter()) < end:
        due = int((now - begun) * options.rate)
        for _ in range(due - sent):
            _send(producer, options.topic, stamped(filling, time.time_ns()))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(max(BEAT, (sent + 1) / options.rate - (now - begun)))
    producer.flush()


def _send(producer: Producer, topic: str, content: bytes) -> None:
    while True:
        try:
            return producer.produce(topic, content)
        except BufferError:  # the broker is too slow for this pace, which will show
            producer.poll(BEAT)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--bootstrap", required=True)
    add("--topic", required=True)
    add("--rate", type=float, required=True, help="records a second")
    add("--size", type=int, default=100, help="of each value, in bytes")
    add("--seconds", type=float, default=120.0, help="at most so long")
    return parser.parse_args()


if __name__ == "__main__":
    main()
