"""Make tables and pictures anew of results that are there."""

import argparse
import logging
import sys
from pathlib import Path

from tests.bench.report import rendered


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.report")
    parser.add_argument("results", type=Path, help="a file results.json")
    parser.add_argument("directory", type=Path, help="where to write")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    for path in rendered(options.results, options.directory):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
