"""The command line of tests/soak."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.soak.pictures import draw
from tests.soak.report import save, table
from tests.soak.results import RunOptions
from tests.soak.run import run_once


def main() -> int:
    """Return 0 if no record is lost, no process has died, and limits are kept."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    directory = arguments.output or Path(tempfile.mkdtemp(prefix="sharecons-soak-"))
    directory.mkdir(parents=True, exist_ok=True)
    options = RunOptions(
        hours=arguments.hours, rate=arguments.rate, version=arguments.kafka_version
    )
    result = run_once(options, directory)
    save(result, directory / "results.json")
    lines = [*table(result), "", *map(str, draw(result, directory))]
    sys.stdout.write("\n".join([*lines, str(directory / "results.json"), ""]))
    return 0 if result.is_good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=main.__doc__,
        epilog="Ctrl-C ends a run early, with its results.",
    )
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument(
        "--rate", type=float, default=200.0, help="records/s of each of the two groups"
    )
    parser.add_argument("--kafka-version", default="4.4.0")
    parser.add_argument(
        "--output",
        type=Path,
        help="directory of journals, logs, results and pictures (default: a new one)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
