"""The command line of tests/limits."""

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from sharecons.testing.kafka.cleanup import CleanupProcess
from tests.bench.program import configure_logging, interrupt_on_signals
from tests.limits.figures import Figure
from tests.limits.large_group import run_large_group
from tests.limits.report import document, faults, read, save, table
from tests.limits.run import run_scene
from tests.limits.scenes import AXES, scenes

LARGE_GROUP: Final = "members, of which one is real"

log = logging.getLogger("tests.limits")


def main() -> int:
    options = _arguments()
    configure_logging()
    interrupt_on_signals()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "results.json"
    results = read(file) if file.exists() else {}
    with closing(CleanupProcess()) as cleanup:
        for axis, size, figures in _measured(options, cleanup):
            results.setdefault(axis, {})[size] = figures
            save(results, file)
            tables = "\n".join(document(results))
            (options.output / "limits.md").write_text(f"{tables}\n")
            log.info("%s", "\n".join(["", *table(axis, results[axis])]))
    found = list(faults(results))
    log.info("%s", "\n".join(["faults:", *found]) if found else "no faults")
    return 1 if found else 0


def _measured(
    options: argparse.Namespace, cleanup: CleanupProcess
) -> Iterator[tuple[str, int, list[Figure]]]:
    for scene in scenes(options.axes, options.sizes):
        log.info("%s", scene)
        figures = run_scene(
            scene, cleanup, options.output, with_tools=not options.no_tools
        )
        yield scene.axis, scene.size, figures
    for size in options.groups:
        log.info("a group of %d members", size)
        yield LARGE_GROUP, size, run_large_group(size, cleanup)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.limits", description=__doc__)
    add = parser.add_argument
    add(
        "--axes",
        type=lambda text: [name for name in text.split(",") if name],
        default=list(AXES),
        help=f"of {', '.join(f'{name} ({size})' for name, size in AXES.items())}; "
        "empty for none (default: all)",
    )
    add(
        "--sizes",
        type=lambda text: sorted(map(float, text.split(","))),
        default=[0.1, 0.3, 1.0],
        help="fractions of the largest size of each axis (default: 0.1,0.3,1)",
    )
    add(
        "--groups",
        type=lambda text: [int(size) for size in text.split(",") if size],
        default=[100, 1000],
        help="sizes of groups with one real member; empty for none (default: 100,1000)",
    )
    add("--no-tools", action="store_true", help="measure members only")
    add(
        "--output",
        type=Path,
        default=Path(tempfile.gettempdir()) / "sharecons-limits",
        help="directory of results.json, to which a run adds, and limits.md (default: "
        "%(default)s)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
