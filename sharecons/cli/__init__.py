"""The command line: one module for each command.

Each has `add_parser(subparsers)` and `run(options) -> int`, the exit code, and loads
what it needs when it runs: help is to come at once.
"""

import argparse
from collections.abc import Sequence

from sharecons.cli import broker, demo
from sharecons.version import VERSION

__all__ = ["main"]

COMMANDS = (broker, demo)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="sharecons", description="Kafka share groups (KIP-932) from Python."
    )
    parser.add_argument("--version", action="version", version=f"sharecons {VERSION}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code
