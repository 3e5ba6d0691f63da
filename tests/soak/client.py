"""A process that consumes with sharecons, and measures itself.

python -m tests.soak.client JSON
"""

import faulthandler
import json
import sys
from pathlib import Path
from typing import Any, Final

import anyio

from sharecons import Record
from tests.chaos.clients import Options
from tests.chaos.clients.plans import plan_of
from tests.chaos.clients.sharecons import KINDS, Program, number_of
from tests.soak.sample import take_sample, write_sample

__all__ = ["is_plain", "samples_path"]

SLOW: Final = 35.0
"""Seconds: longer than a lock, so that the worker renews it. At 200 records/s, 1,200
records of its partition come meanwhile, of the 2,000 that a group can lock."""

SLOW_EVERY: Final = 2000
SLOW_NUMBER: Final = 1999
"""The number, modulo SLOW_EVERY, whose handler is slow in a worker; it succeeds."""


class SoakProgram(Program):
    """A program whose handler is slow with some records."""

    async def handle(self, record: Record[Any, Any]) -> None:
        if _is_slow(number_of(record)):
            await anyio.sleep(SLOW)  # real time: longer than a lock
        await super().handle(record)


def is_plain(number: int) -> bool:
    """Return whether a handler succeeds immediately, so that a latency says something.

    The others are retried, rejected or slow as planned.
    """
    return plan_of(number) == "succeed" and not _is_slow(number)


def _is_slow(number: int) -> bool:
    return number % SLOW_EVERY == SLOW_NUMBER


def samples_path(journal: Path) -> Path:
    """Return the file of the samples of a process, beside its journal."""
    return journal.with_name(journal.name.replace("journal", "samples"))


async def main(options: Options) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_measure, options)
        await KINDS[options.kind](SoakProgram(options))
        tasks.cancel_scope.cancel()


async def _measure(options: Options) -> None:
    path = samples_path(Path(options.journal))
    while True:
        write_sample(take_sample(), path)
        await anyio.sleep(options.interval)  # real time: the samples are paced


if __name__ == "__main__":
    faulthandler.enable()  # SIGABRT prints the stacks of a hanging process
    anyio.run(main, Options(**json.loads(sys.argv[1])))
