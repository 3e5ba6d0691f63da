"""The measurements, one function each; `tests.bench.report` evaluates the results."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import product
from typing import Any, Final

import psutil

from tests.bench.bench import Bench
from tests.bench.large import LARGE_BATCH, case_records
from tests.bench.memory import memory_settings
from tests.bench.options import record_count

__all__ = ["MEASUREMENTS"]

SMALL_TOPIC_RECORDS: Final = 10_000  # for the time of the first record
# Enough partitions for several consumers.
SHARED_PARTITIONS: Final = 50
SHARED_MAX_BYTES: Final = 2_000_000_000
"""Values of the consumers' topic: they have read up to 500 records each when the
measurement begins."""

# librdkafka gets its partitions with the second heartbeat, after 5 s by default.
QUICK_JOIN: Final = {"share.heartbeat.interval.ms": "500"}

MEMORY_PARTITIONS: Final = 8
MEMORY_SIZES: Final = (10 << 10, 100 << 10)
MEMORY_CODECS: Final = ("none", "lz4")
MEMORY_BYTES: Final = 600_000_000  # values of a topic
# A slow handler, and a fast one that stops now and then: after a fast phase a client
# has the most records ahead. Seconds, and records between two pauses.
PAUSES: Final[Sequence[Mapping[str, Any]]] = (
    {"pause": 0.01, "pause_every": 1},
    {"pause": 0.5, "pause_every": 2000},
)
RELEASE_RATE: Final = 20.0  # records per second
LATENCY_TIMEOUT: Final = 60.0
SAMPLE_INTERVAL: Final = 1.0  # seconds between two memory samples


def throughput(bench: Bench) -> None:
    """Read a whole topic at full speed."""
    options = bench.options
    for size, codec in product(options.sizes, options.codecs):
        records = record_count(size, options)
        with bench.loaded_topic(options.partitions, records, size, codec) as topic:
            labels = {"size": size, "codec": codec}
            extra = {"stored": round(bench.stored_bytes(topic) / records)}
            for turn in bench.turns("throughput"):
                bench.read(
                    "throughput", turn, topic, records, labels=labels, extra=extra
                )


def first(bench: Bench) -> None:
    """Read a small topic: time to the first record, and memory."""
    with bench.loaded_topic(bench.options.partitions, SMALL_TOPIC_RECORDS) as topic:
        for turn in bench.turns("first"):
            bench.read("first", turn, topic, SMALL_TOPIC_RECORDS)


def latency(bench: Bench) -> None:
    """Measure the time from producer to consumer at a steady rate."""
    rounds = bench.options.latency_rounds
    for rate in bench.options.rates:
        for turn in bench.turns("latency", rounds=rounds, rehearse=True):
            _latency(bench, turn, rate)


def _latency(bench: Bench, turn: tuple[int, str], rate: int) -> None:
    """Start the producer after the consumer has joined, so that there is no backlog."""
    options = bench.options
    with bench.loaded_topic(options.partitions, 1) as topic, ExitStack() as producing:

        def produce(consumer: subprocess.Popen[str]) -> None:
            if consumer.stdout and consumer.stdout.readline():
                producing.enter_context(bench.produce_at_rate(topic, rate))

        bench.measure(
            "latency",
            turn,
            topic,
            labels={"wanted_rate": rate},
            program={
                "what": "latency",
                "warm_up": options.warm_up,
                "seconds": options.latency_seconds,
            },
            timeout=LATENCY_TIMEOUT,
            watch=produce,
        )


def redelivery(bench: Bench) -> None:
    """Measure the time from a release until one of two consumers gets the record."""
    work = {
        "what": "redelivery",
        "records": bench.options.redeliveries,
        # The backlog from before joining arrives immediately and is not measured.
        "warm_up": bench.options.warm_up,
    }
    for turn in bench.turns("redelivery", rehearse=True):
        with (
            bench.topic(bench.options.partitions) as topic,
            bench.produce_at_rate(topic, RELEASE_RATE),
        ):
            bench.measure("redelivery", turn, topic, program=work)


def partitions(bench: Bench) -> None:
    """Read the same number of records from topics with more and more partitions."""
    records = bench.options.growth_records
    for count in bench.options.partition_counts:
        with bench.loaded_topic(count, records) as topic:
            labels = {"partitions": count}
            for turn in bench.turns("partitions"):
                bench.read("partitions", turn, topic, records, labels=labels)


def consumers(bench: Bench) -> None:
    """Read the same records with more and more consumers in one process."""
    for size in bench.options.consumer_sizes:
        records = min(bench.options.growth_records, SHARED_MAX_BYTES // size)
        with bench.loaded_topic(SHARED_PARTITIONS, records, size) as topic:
            bench.rehearse(topic, records)
            for count in bench.options.consumer_counts:
                labels = {"consumers": count, "size": size}
                for turn in bench.turns("consumers"):
                    bench.read(
                        "consumers",
                        turn,
                        topic,
                        records,
                        consumers=count,
                        labels=labels,
                    )


def slow(bench: Bench) -> None:
    """Sample the memory of a slow consumer with a large backlog every second."""
    options = bench.options
    work = {
        "what": "slow",
        "pause": options.pause,
        "seconds": options.slow_seconds,
    }
    with bench.loaded_topic(options.partitions, options.records) as topic:
        for turn in bench.turns("slow"):
            if turn[0]:
                break  # one long round; there is no comparison with other clients
            samples: list[int] = []
            bench.measure(
                "slow",
                turn,
                topic,
                labels={"pause": options.pause},
                program=work,
                extra={"samples": samples},
                timeout=options.slow_seconds,
                watch=partial(_sample, samples),
            )


def large(bench: Bench) -> None:
    """Read large and compressed records, in small and in large producer batches."""
    options = bench.options
    for case in options.large_cases:
        records = case_records(case, options.large_bytes)
        with bench.loaded_topic(options.partitions, records, *case) as topic:
            extra = {
                "stored": round(bench.stored_bytes(topic) / records),
                "per_batch": round(records / bench.stored_batches(topic), 1),
            }
            bench.rehearse(topic, records)
            for turn in bench.turns("large"):
                # It decodes nothing: one ceiling per size is enough.
                if turn[1].startswith("raw") and case.codec != "none":
                    continue
                bench.read(
                    "large",
                    turn,
                    topic,
                    records,
                    labels=case._asdict(),
                    extra=extra,
                    group_config=QUICK_JOIN,
                )


def memory(bench: Bench) -> None:
    """Measure the peak memory with large records and slow handlers, in one round."""
    seconds = bench.options.memory_seconds
    for size, codec in product(MEMORY_SIZES, MEMORY_CODECS):
        records = MEMORY_BYTES // size
        with bench.loaded_topic(
            MEMORY_PARTITIONS, records, size, codec, LARGE_BATCH
        ) as topic:
            stored = round(bench.stored_bytes(topic) / records)
            extra = {"stored": stored, **memory_settings(bench.options.max_records)}
            for pauses, turn in product(PAUSES, bench.turns("memory", rounds=1)):
                bench.measure(
                    "memory",
                    turn,
                    topic,
                    labels={"size": size, "codec": codec, **pauses},
                    program={"what": "slow", "seconds": seconds, **pauses},
                    extra=extra,
                    timeout=seconds,
                )


def _sample(samples: list[int], process: subprocess.Popen[str]) -> None:
    with suppress(psutil.NoSuchProcess):
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            samples.append(watched.memory_info().rss)
            time.sleep(SAMPLE_INTERVAL)


MEASUREMENTS: Final[Mapping[str, Callable[[Bench], Any]]] = {
    "throughput": throughput,
    "first": first,
    "latency": latency,
    "redelivery": redelivery,
    "partitions": partitions,
    "consumers": consumers,
    "slow": slow,
    "large": large,
    "memory": memory,
}
