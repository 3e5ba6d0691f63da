"""The command line of tests/chaos."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.chaos.clocks import find_library
from tests.chaos.faults import Faults
from tests.chaos.histories import ROTATION, history_of
from tests.chaos.report import save, summary, table
from tests.chaos.run import CLIENTS, RunOptions, run_once


def main() -> int:
    options = _arguments()
    library = find_library()
    if library is None:
        _print(iter(["no libfaketime (apt-get install faketime): no clock jumps"]))
    results = []
    for seed in options.seeds:
        directory = options.output / f"seed-{seed}"
        directory.mkdir(parents=True, exist_ok=True)
        history = history_of(seed, options.kind)
        if options.kafka_version:
            history = replace(history, version=options.kafka_version)
        run = RunOptions(
            seed=seed,
            seconds=options.seconds,
            history=history,
            rate=options.rate,
            peers=options.peers,
            is_secure=options.secure or seed % 4 == 3,
            library=library,
            only=options.faults,
        )
        result = run_once(run, directory)
        save(result, directory / "result.json")
        _print(table(result))
        results.append(result)
    _print(summary(results))
    return 0 if all(result.is_good for result in results) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=range(1, 4), help="1,5 or 1-50")
    parser.add_argument("--seconds", type=float, default=180.0, help="of each run")
    parser.add_argument("--kind", choices=ROTATION, help="by default of the seed")
    parser.add_argument("--rate", type=float, default=150.0, help="records/s, client")
    parser.add_argument(
        "--peers",
        type=lambda text: [name for name in text.split(",") if name],
        default=CLIENTS[1:],
        help=f"of {', '.join(CLIENTS[1:])}; empty for none (default: all)",
    )
    parser.add_argument(
        "--kafka-version",
        help="default: 4.4.0; one run in five begins with the upgrade of 4.3.0",
    )
    parser.add_argument(
        "--secure",
        action="store_true",
        help="TLS and SCRAM in each run whose kind has it (default: one seed in four)",
    )
    parser.add_argument(
        "--faults",
        type=_faults,
        default=(),
        help="kinds of faults, separated by commas (default: all)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(tempfile.gettempdir()) / "sharecons-chaos",
        help="directory of journals, logs and results (default: %(default)s)",
    )
    return parser.parse_args()


def _seeds(text: str) -> list[int]:
    first, _, last = text.partition("-")
    if last:
        return list(range(int(first), int(last) + 1))
    return [int(number) for number in text.split(",")]


def _faults(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(Faults.WAYS):
        raise argparse.ArgumentTypeError(f"not a fault: {', '.join(unknown)}")
    return names


def _print(lines: Iterator[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
