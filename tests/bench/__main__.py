"""The benchmark, from Kafka's start to tables and pictures."""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sharecons.testing.kafka import KafkaCluster, LaunchError
from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.bench import Bench
from tests.bench.command import BROKER, heed_signals, log_with_time, settings
from tests.bench.machine import described
from tests.bench.measures import MEASURES
from tests.bench.options import parsed
from tests.bench.report import rendered
from tests.bench.results import Results

log = logging.getLogger("tests.bench")


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    log_with_time()
    heed_signals()
    results = Results(
        options.output,
        described(options.kafka_version),
        settings(options),
        add=options.add,
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
    for path in rendered(results.path, options.output):
        log.info("written: %s", path)
    return status


def _run(options: argparse.Namespace, results: Results) -> None:
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="sharecons-bench-") as scratch,
        closing(CleanupProcess()) as guard,
        KafkaCluster(options.kafka_version, java_options=BROKER) as cluster,
    ):
        guard.remove(Path(scratch))
        bench = Bench(options, cluster, guard, Path(scratch), results)
        bench.warm_up()
        for what in options.what:
            MEASURES[what](bench)
    log.info("all measured in %.0f s", time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main())
