"""Entry point: start Kafka and Spark, run the benchmark, write the page."""

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sharecons.testing.kafka import KafkaCluster, LaunchError
from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.program import (
    BROKER_JAVA_OPTIONS,
    configure_logging,
    interrupt_on_signals,
    settings_of,
)
from tests.bench.results import Results
from tests.bench.spark.jars import source_jars
from tests.bench.spark.machine import describe_machine
from tests.bench.spark.options import Turn, order, parse_options
from tests.bench.spark.report import NAME, render
from tests.bench.spark.session import session
from tests.bench.spark.sources import SourceBenchmark
from tests.bench.spark.topics import loaded_topic

log = logging.getLogger("tests.bench.spark")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    configure_logging()
    # py4j logs a traceback at every interrupt.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    interrupt_on_signals()
    results = Results(
        options.output,
        describe_machine(options.kafka_version),
        settings_of(options, "jars"),
        add=options.add,
        name=NAME,
    )
    status = 0
    try:
        _run(options, results)
    except KeyboardInterrupt:
        log.info("interrupted; measurements taken so far are in %s", results.path)
        status = 130
    except LaunchError as error:
        log.error("%s", error)
        return 1
    except Exception:
        log.exception("failed; measurements taken so far are in %s", results.path)
        status = 1
    if results.path.exists():
        sys.stdout.write(render(options.output))
    return status


def _run(options: argparse.Namespace, results: Results) -> None:
    start = time.monotonic()
    jars = options.jars or ",".join(map(str, source_jars()))
    with (
        tempfile.TemporaryDirectory(prefix="sharecons-bench-") as directory,
        closing(CleanupProcess()) as cleanup,
        KafkaCluster(
            options.kafka_version, java_options=BROKER_JAVA_OPTIONS
        ) as cluster,
    ):
        scratch = Path(directory)
        cleanup.remove(scratch)
        topics = _topics(options, cluster.bootstrap_servers, cleanup)
        with session(options.master, jars, scratch) as spark:
            benchmark = SourceBenchmark(
                spark,
                cluster.bootstrap_servers,
                scratch,
                options.batch,
                options.record_locks,
            )
            for size, topic in topics.items():
                benchmark.fill_ledger(topic, options.records)
                _measure(benchmark, size, options, results)
    log.info("all measurements took %.0f s", time.monotonic() - start)


def _topics(
    options: argparse.Namespace, servers: str, cleanup: CleanupProcess
) -> dict[int, str]:
    """Load all topics before Spark starts: its environment is for its workers."""
    topics = {}
    for size in options.sizes:
        log.info("loading %s records of %s bytes", f"{options.records:,}", f"{size:,}")
        topics[size] = loaded_topic(
            servers,
            cleanup,
            partitions=options.partitions,
            records=options.records,
            size=size,
        )
    return topics


def _measure(
    benchmark: SourceBenchmark, size: int, options: argparse.Namespace, results: Results
) -> None:
    log.info("warming up, with values of %s bytes", f"{size:,}")
    for turn in order(0):
        benchmark.measure(turn, count_rows=True)
    for round_ in range(options.rounds):
        for turn in order(round_):
            extra = {"size": size, "round": round_, "wanted": options.records}
            results.append(
                {**_labels(turn), **extra, **_measure_turn(benchmark, turn, size)}
            )


def _labels(turn: Turn) -> dict[str, str]:
    return {"what": turn.what, "sink": turn.sink, "client": turn.client}


def _measure_turn(benchmark: SourceBenchmark, turn: Turn, size: int) -> dict[str, Any]:
    load = round(os.getloadavg()[0], 2)  # load before the run
    try:
        result = benchmark.measure(turn)
    except Exception as error:
        lines = str(error).strip().splitlines()
        reason = lines[0] if lines else repr(error)
        log.error("%s, %s bytes: FAILED: %s", turn, f"{size:,}", reason)
        return {"load": load, "error": reason}
    speed = result["records"] / result["seconds"]
    log.info("%s, %s bytes: %s rows/s", turn, f"{size:,}", f"{speed:,.0f}")
    return {"load": load, **result}


if __name__ == "__main__":
    sys.exit(main())
