"""One command of the command line, run twice and measured in this process.

    python -m tests.limits.command FILE groups list …

Writes the figures of the second run to FILE, as JSON: it imports nothing, so that its
CPU is the command's own.
"""

import json
import sys
import time
from pathlib import Path

from sharecons.cli import main as run_command

RUNS = 2


def measured(arguments: list[str]) -> dict[str, float]:
    """Run a command; return its exit code, its seconds, and its seconds of CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    try:
        code = run_command(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    return {
        "code": code,
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
    }


def main() -> None:
    file, *arguments = sys.argv[1:]
    results = [measured(arguments) for _ in range(RUNS)]
    Path(file).write_text(json.dumps(results[-1]))


if __name__ == "__main__":
    main()
