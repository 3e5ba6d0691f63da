"""Producer at a steady rate: `python -m tests.bench.paced_producer --help`.

Each value begins with the time at which it was passed to the producer.
"""

import argparse
import random
import time
from typing import Final

from confluent_kafka import Producer

from tests.bench.record_values import json_value, timestamped

INTERVAL: Final = 0.001  # seconds between two sends, at least
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
    padding = json_value(random.Random(SEED), options.size)
    begun, sent = time.perf_counter(), 0
    end = begun + options.seconds
    while (now := time.perf_counter()) < end:
        due = int((now - begun) * options.rate)
        for _ in range(due - sent):
            _send(producer, options.topic, timestamped(padding, time.time_ns()))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(max(INTERVAL, (sent + 1) / options.rate - (now - begun)))
    producer.flush()


def _send(producer: Producer, topic: str, content: bytes) -> None:
    while True:
        try:
            return producer.produce(topic, content)
        except BufferError:  # the broker is slower than the rate; latency shows it
            producer.poll(INTERVAL)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--bootstrap", required=True)
    add("--topic", required=True)
    add("--rate", type=float, required=True, help="records per second")
    add("--size", type=int, default=100, help="bytes per value")
    add("--seconds", type=float, default=120.0, help="maximum duration")
    return parser.parse_args()


if __name__ == "__main__":
    main()
