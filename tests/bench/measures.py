"""What is measured, one function each; `tests.bench.report` makes sense of it."""

import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from itertools import product
from typing import Any, Final

import psutil

from tests.bench.bench import Bench
from tests.bench.options import records_of

__all__ = ["MEASURES"]

SMALL: Final = 10_000  # records of a small topic, for the first of them
# Several consumers have something to share then.
SHARED_PARTITIONS: Final = 50
RELEASED: Final = 20.0  # records a second that are there to be released
LATENCY_PATIENCE: Final = 60.0
SAMPLE: Final = 1.0  # seconds between two looks at the memory of a slow consumer


def throughput(bench: Bench) -> None:
    """Read a topic from end to end, as fast as can be."""
    options = bench.options
    for size, codec in product(options.sizes, options.codecs):
        records = records_of(size, options)
        with bench.loaded(options.partitions, records, size, codec) as topic:
            labels = {"size": size, "codec": codec}
            kept = {"stored": round(bench.stored(topic) / records)}
            for turn in bench.turns("throughput"):
                bench.read("throughput", turn, topic, records, labels=labels, kept=kept)


def first(bench: Bench) -> None:
    """Read a small topic: the first record, and the memory for little."""
    with bench.loaded(bench.options.partitions, SMALL) as topic:
        for turn in bench.turns("first"):
            bench.read("first", turn, topic, SMALL)


def latency(bench: Bench) -> None:
    """From the producer's hands to the consumer's, at a steady rate."""
    rounds = bench.options.latency_rounds
    for rate in bench.options.rates:
        for turn in bench.turns("latency", rounds=rounds, rehearsed=True):
            _latency(bench, turn, rate)


def _latency(bench: Bench, turn: tuple[int, str], rate: int) -> None:
    """Begin to produce when the consumer has joined: it is to find no backlog."""
    options = bench.options
    with bench.loaded(options.partitions, 1) as topic, ExitStack() as producing:

        def produce(consumer: subprocess.Popen[str]) -> None:
            if consumer.stdout and consumer.stdout.readline():
                producing.enter_context(bench.paced(topic, rate))

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
            patience=LATENCY_PATIENCE,
            watch=produce,
        )


def redelivery(bench: Bench) -> None:
    """From a record's release until one of two consumers has it again."""
    work = {
        "what": "redelivery",
        "records": bench.options.redeliveries,
        "warm_up": bench.options.warm_up,  # what came before it joined comes at once
    }
    for turn in bench.turns("redelivery", rehearsed=True):
        with (
            bench.topic(bench.options.partitions) as topic,
            bench.paced(topic, RELEASED),
        ):
            bench.measure("redelivery", turn, topic, program=work)


def partitions(bench: Bench) -> None:
    """The same number of records in more and more partitions."""
    records = bench.options.growth_records
    for count in bench.options.partition_counts:
        with bench.loaded(count, records) as topic:
            labels = {"partitions": count}
            for turn in bench.turns("partitions"):
                bench.read("partitions", turn, topic, records, labels=labels)


def consumers(bench: Bench) -> None:
    """More and more consumers in one process share the same number of records."""
    records = bench.options.growth_records
    with bench.loaded(SHARED_PARTITIONS, records) as topic:
        for count in bench.options.consumer_counts:
            labels = {"consumers": count}
            for turn in bench.turns("consumers"):
                bench.read(
                    "consumers", turn, topic, records, consumers=count, labels=labels
                )


def slow(bench: Bench) -> None:
    """A consumer with much before it that takes its time: its memory by the second."""
    options = bench.options
    work = {
        "what": "slow",
        "pause": options.pause,
        "seconds": options.slow_seconds,
    }
    with bench.loaded(options.partitions, options.records) as topic:
        for turn in bench.turns("slow"):
            if turn[0]:
                break  # one round: it is long, and compared with nobody
            samples: list[int] = []
            bench.measure(
                "slow",
                turn,
                topic,
                labels={"pause": options.pause},
                program=work,
                kept={"samples": samples},
                patience=options.slow_seconds,
                watch=partial(_sample, samples),
            )


def _sample(samples: list[int], process: subprocess.Popen[str]) -> None:
    with suppress(psutil.NoSuchProcess):
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            samples.append(watched.memory_info().rss)
            time.sleep(SAMPLE)


MEASURES: Final[Mapping[str, Callable[[Bench], Any]]] = {
    "throughput": throughput,
    "first": first,
    "latency": latency,
    "redelivery": redelivery,
    "partitions": partitions,
    "consumers": consumers,
    "slow": slow,
}
