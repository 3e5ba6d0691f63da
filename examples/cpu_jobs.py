"""Factor numbers: CPU jobs in a plain function, with steps between which it can stop.

    cd examples
    sharecons run cpu_jobs:factor --topic numbers --group factoring --processes 4 \\
        --concurrency 1 --grace 10 --dead-letter numbers.dead --create-topics

A plain function runs in a thread, so its lock is renewed while it computes. Python
computes in one thread at a time: use a process per core. At SIGTERM each job has 10 s
to finish. After that `check_cancelled` raises at the job's next step, and the group
delivers the number again.
"""

import logging
import math

import anyio.from_thread

from sharecons import DeadLetter, Record

log = logging.getLogger(__name__)

STEP = 100_000
"""Divisors that are tried in a step, which takes about 5 ms."""


def factor(record: Record) -> None:
    """Log a number and its prime factors."""
    rest = number = parse(record.value)
    factors: list[int] = []
    divisor = 2
    while rest > 1:
        divisor = smallest_divisor(rest, divisor)
        factors.append(divisor)
        rest //= divisor
    log.info("%d = %s", number, " * ".join(map(str, factors)))


def smallest_divisor(number: int, start: int) -> int:
    """Return the smallest divisor of a number that has none below `start`."""
    last = math.isqrt(number)
    for first in range(start, last + 1, STEP):
        # Raises if this job is cancelled: its time or its grace period is over, or its
        # lock is lost. Do not catch this.
        anyio.from_thread.check_cancelled()
        for divisor in range(first, min(first + STEP, last + 1)):
            if number % divisor == 0:
                return divisor
    return number


def parse(value: bytes | None) -> int:
    number = int(value or b"")  # a ValueError is tried again, and is then a dead letter
    if number < 2:
        raise DeadLetter(f"{number} has no prime factors")
    return number
