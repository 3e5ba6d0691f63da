"""The benchmark of Spark's sources, from Kafka's start to the page."""

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
from tests.bench.command import BROKER, heed_signals, log_with_time, settings
from tests.bench.results import Results
from tests.bench.spark.jars import source_jars
from tests.bench.spark.machine import described
from tests.bench.spark.options import Turn, order, parsed
from tests.bench.spark.report import NAME, rendered
from tests.bench.spark.session import session
from tests.bench.spark.sides import Sides
from tests.bench.spark.topics import loaded_topic

log = logging.getLogger("tests.bench.spark")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    log_with_time()
    # It tells of every interrupt, with a traceback.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    heed_signals()
    results = Results(
        options.output,
        described(options.kafka_version),
        settings(options, "jars"),
        add=options.add,
        name=NAME,
    )
    status = 0
    try:
        _run(options, results)
    except KeyboardInterrupt:
        log.info("interrupted: what was measured until now is kept")
        status = 130
    except LaunchError as error:
        log.error("%s", error)
        return 1
    except Exception:
        log.exception("what was measured until now is kept")
        status = 1
    if results.path.exists():
        sys.stdout.write(rendered(options.output))
    return status


def _run(options: argparse.Namespace, results: Results) -> None:
    begun = time.monotonic()
    jars = options.jars or ",".join(map(str, source_jars()))
    with (
        tempfile.TemporaryDirectory(prefix="sharecons-bench-") as directory,
        closing(CleanupProcess()) as guard,
        KafkaCluster(options.kafka_version, java_options=BROKER) as cluster,
    ):
        scratch = Path(directory)
        guard.remove(scratch)
        topics = _topics(options, cluster.bootstrap_servers, guard)
        with session(options.master, jars, scratch) as spark:
            sides = Sides(spark, cluster.bootstrap_servers, scratch, options.batch)
            for size, topic in topics.items():
                sides.take(topic, options.records)
                _measure(sides, size, options, results)
    log.info("all measured in %.0f s", time.monotonic() - begun)


def _topics(
    options: argparse.Namespace, servers: str, guard: CleanupProcess
) -> dict[int, str]:
    """Load all before Spark starts, which is set up for its workers, not for this."""
    topics = {}
    for size in options.sizes:
        log.info("loading %s records of %s bytes", f"{options.records:,}", f"{size:,}")
        topics[size] = loaded_topic(
            servers,
            guard,
            partitions=options.partitions,
            records=options.records,
            size=size,
        )
    return topics


def _measure(
    sides: Sides, size: int, options: argparse.Namespace, results: Results
) -> None:
    log.info("warming up, with values of %s bytes", f"{size:,}")
    for turn in order(0):
        sides.measure(turn, counted=True)
    for round_ in range(options.rounds):
        for turn in order(round_):
            kept = {"size": size, "round": round_, "wanted": options.records}
            results.keep({**_about(turn), **kept, **_measured(sides, turn, size)})


def _about(turn: Turn) -> dict[str, str]:
    return {"what": turn.what, "sink": turn.sink, "client": turn.client}


def _measured(sides: Sides, turn: Turn, size: int) -> dict[str, Any]:
    load = round(os.getloadavg()[0], 2)  # what the machine was busy with before
    try:
        result = sides.measure(turn)
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
