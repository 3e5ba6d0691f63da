"""A supervisor in a process of its own: `python -m tests.cli.run.supervise`.

Arguments: a directory, the number of processes, what they do, the grace period in
seconds, and a directory to watch or "".
"""

import sys
from functools import partial
from pathlib import Path

import anyio

from sharecons.cli.run.supervisor import Supervisor


def main(directory: str, count: str, mode: str, grace: str, watched: str) -> int:
    def command(index: int) -> list[str]:
        module = [sys.executable, "-m", "tests.cli.run.supervised"]
        return [*module, directory, str(index), mode]

    def report(line: str, process: int | None = None, records: str = "") -> None:
        assert process is None or f"process {process} " in line
        sys.stdout.write(f"{line} {records}".rstrip() + "\n")
        sys.stdout.flush()

    changes = None
    if watched:
        from sharecons.cli.run.reload import watch_directory

        changes = partial(watch_directory, Path(watched))
    supervisor = Supervisor(
        command,
        int(count),
        grace=float(grace),
        margin=0.0,
        report=report,
        warn=report,
        fail=report,
        changes=changes,
    )
    return anyio.run(supervisor.run)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
