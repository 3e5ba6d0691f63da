"""The command line of tests/fuzz."""

import argparse
import logging
import random
import sys
from collections.abc import Iterable
from pathlib import Path

import tests.fuzz
from tests.fuzz.corpus import read_case, save_case


def main() -> int:
    options = _arguments()
    logging.basicConfig(handlers=[logging.NullHandler()])
    coverage = None
    if options.coverage:
        from tests.fuzz.report import measure

        coverage = measure()  # before the targets import what they read with
    from tests.fuzz.targets import TARGETS

    if options.list:
        _print(TARGETS)
        return 0
    if options.replay is not None:
        return _replay(options.replay)
    unknown = set(options.target) - TARGETS.keys()
    if unknown:
        sys.exit(f"no target {', '.join(sorted(unknown))}; --list has all")
    from tests.fuzz.report import escape_lines, table
    from tests.fuzz.search import search

    seed = (
        random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    )
    _print([f"seed {seed}"])
    chosen = [TARGETS[name] for name in options.target or TARGETS]
    seconds = 60 * options.minutes / len(chosen)
    reports = []
    for target in chosen:
        report = search(target, seed=seed, seconds=seconds)
        for escape in report.escapes:
            saved = save_case(escape.case, target.name)
            _print(escape_lines(target.name, escape.kind, escape.text, saved))
        reports.append(report)
        _print(list(table([report], coverage))[1:2])
    _print(table(reports, coverage))
    return 1 if any(each.escapes for each in reports) else 0


def _replay(path: Path) -> int:
    """Check one case of the corpus."""
    from tests.fuzz.search import execute
    from tests.fuzz.targets import TARGETS

    escape = execute(TARGETS[path.parent.name], read_case(path))
    _print([f"{path}: no escape"] if escape is None else [escape.text])
    return 0 if escape is None else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=tests.fuzz.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="for all targets")
    parser.add_argument(
        "--target", action="append", default=[], metavar="NAME", help="default: all"
    )
    parser.add_argument("--list", action="store_true", help="print the targets' names")
    parser.add_argument("--seed", type=int, help="default: another one for each run")
    parser.add_argument(
        "--coverage", action="store_true", help="of the modules that read; plain Python"
    )
    parser.add_argument("--replay", type=Path, metavar="FILE", help="check one case")
    return parser.parse_args()


def _print(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
