"""`sharecons run`: runs the handlers of a share group, in one process or in several.

Read in this order: `arguments` (options), `target` (imports the handler), `build`
(makes the worker), `process` (runs it), then:

- `supervisor`: starts, restarts and stops several processes.
- `restarts`: when a process that ended is started again.
- `lifeline`: how processes notice that their supervisor has died, and report to it.
- `report`, `process_reports`: reports of processes, and their sums.
- `reload`: watches the working directory for changed modules.
- `processes`: the supervisor of this command.
- `health`: `/livez`, `/readyz` and `/metrics`.
- `progress`: progress of a worker, as a line.
- `logs`: the format of log lines.
- `handler_exits`: the exit code after SystemExit in a handler.
- `start_signals`: ends the process at a signal during the import.
- `sharecons.worker.running_records`: the records in calls when a process dies.
- `exit_deadline`: ends a process that does not end by itself.
"""

import argparse
from typing import Final

from sharecons.cli.extras import is_missing
from sharecons.cli.option_values import Subparsers

__all__ = ["add_parser", "run"]

EPILOG: Final = (
    "The first SIGTERM or Ctrl-C stops fetching, lets handlers finish within the grace "
    "period, and leaves the group; the exit code is then 0. A second one stops "
    "immediately."
)


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run the handlers of a share group",
        description="Run a handler for each record of a share group until SIGTERM or "
        "Ctrl-C, with retries and dead letters.",
        epilog=EPILOG,
        prepare=_add_arguments,
    )
    parser.set_defaults(run=run)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from sharecons.cli.run.arguments import add_arguments

    add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Run one process, or supervise several; return the exit code."""
    import sys

    from sharecons.cli.exit_codes import ExitCode, write_errors
    from sharecons.cli.run.arguments import PROGRAM

    is_supervisor = options.process is None and (
        options.processes > 1 or options.reload
    )
    if is_supervisor and sys.platform == "win32":
        write_errors(PROGRAM, ["--processes and --reload need Linux or macOS"])
        return ExitCode.USAGE
    if options.health_port is not None and is_missing(
        f"{PROGRAM} --health-port", "exporter", "prometheus_client"
    ):
        return ExitCode.USAGE
    if options.reload and is_missing(f"{PROGRAM} --reload", "reload", "watchfiles"):
        return ExitCode.USAGE
    if is_supervisor:
        from sharecons.cli.run.processes import supervise

        return supervise(options)
    from sharecons.cli.run.process import run_process

    return run_process(options)
