"""Entry point: start Kafka, run the measurements, write tables and pictures."""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from sharecons.testing.kafka import KafkaCluster, LaunchError
from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.bench import Bench
from tests.bench.machine import describe_machine
from tests.bench.measurements import MEASUREMENTS
from tests.bench.options import LARGE, parse_options
from tests.bench.program import (
    BROKER_JAVA_OPTIONS,
    configure_logging,
    interrupt_on_signals,
    settings_of,
)
from tests.bench.report import render
from tests.bench.results import Results

# Members receive their partitions immediately instead of after a second. This scenario
# does not measure the time of the first record, which would be most of a run.
LARGE_BROKER: Final = {"group.share.assignment.interval.ms": "0"}

log = logging.getLogger("tests.bench")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    configure_logging()
    interrupt_on_signals()
    results = Results(
        options.output,
        describe_machine(options.kafka_version),
        settings_of(options),
        add=options.add,
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
    for path in render(results.path, options.output):
        log.info("wrote %s", path)
    return status


def _run(options: argparse.Namespace, results: Results) -> None:
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="sharecons-bench-") as scratch,
        closing(CleanupProcess()) as cleanup,
        KafkaCluster(
            options.kafka_version,
            config=LARGE_BROKER if options.scenario == LARGE else {},
            java_options=BROKER_JAVA_OPTIONS,
        ) as cluster,
    ):
        cleanup.remove(Path(scratch))
        bench = Bench(options, cluster, cleanup, Path(scratch), results)
        bench.warm_up()
        for what in options.what:
            MEASUREMENTS[what](bench)
    log.info("all measurements took %.0f s", time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
