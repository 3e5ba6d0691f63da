"""Write tables and pictures of stored results."""

import argparse
import logging
import sys
from pathlib import Path

from tests.bench.report import render


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.report")
    parser.add_argument("results", type=Path, help="path of results.json")
    parser.add_argument("directory", type=Path, help="output directory")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    for path in render(options.results, options.directory):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
