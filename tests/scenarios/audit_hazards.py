"""Hazards of an audited history: faults of an application, beside its brokers.

Each history has some of them, chosen at random by its seed. Seeds below FIRST have
none.
"""

import asyncio
import logging
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sharecons import DeadLetter, Reject, Retry
from sharecons.testing.broker.batch_writer import Header

__all__ = [
    "FIRST",
    "BrokenError",
    "Hazards",
    "block",
    "broken_error",
    "cancel_own_task",
    "hazards_of",
    "headers_of",
    "logging_fails",
    "running_trio",
]

FIRST: Final = 100
"""The first seed whose history has hazards."""

BROKEN: Final = {2: "no init", 5: "no text", 9: "cycle", 13: "no init reject"}
BROKEN_TOO: Final = {19: "no init retry", 41: "no init dead letter", 43: "group"}
BLOCKING: Final = {15: "block", 34: "block"}
CANCELLING: Final = {21: "cancel later", 26: "cancel"}

LIBRARIES: Final = ("worker", "member", "net", "producer", "protocol")


@dataclass(frozen=True, kw_only=True)
class Hazards:
    """The hazards of one history.

    Attributes:
        pauses: the application pauses topics, for longer than a lock.
        breaks: a circuit breaker: a failure pauses the source, which is resumed later.
        blocks: handlers block the event loop, for longer than a lock.
        broken_errors: handlers raise exceptions without a text, or without arguments.
        cancels: handlers cancel their own task, immediately or later.
        failing_logs: a logging handler raises for some lines.
        failing_hooks: the middleware and the outcome callback raise for some records.
        forged: some source records have headers of dead letters and retries.
        unreadable: a deserializer raises for some records.
        hot_keys: few keys have most of the records.
        odd_topics: an operator changes a copy topic so that it loses copies, or takes
            none, and corrects it later.
        brokers: the number of brokers; leaders and coordinators move between them.
    """

    pauses: bool = False
    breaks: bool = False
    blocks: bool = False
    broken_errors: bool = False
    cancels: bool = False
    failing_logs: bool = False
    failing_hooks: bool = False
    forged: bool = False
    unreadable: bool = False
    hot_keys: bool = False
    odd_topics: bool = False
    brokers: int = 1

    @property
    def plans(self) -> Mapping[int, str]:
        """The plans of records, by their number, that no other history has."""
        plans: dict[int, str] = {}
        if self.broken_errors:
            plans |= {**BROKEN, **BROKEN_TOO}
        if self.blocks:
            plans |= BLOCKING
        if self.cancels:
            plans |= CANCELLING
        return plans

    def __str__(self) -> str:
        names = [name for name, value in vars(self).items() if value is True]
        return ", ".join([*names, f"brokers={self.brokers}"])


def hazards_of(seed: int) -> Hazards:
    if seed < FIRST:
        return Hazards()
    chance = random.Random(f"hazards {seed}")
    others = ("odd_topics", "brokers")  # chosen last
    names = [name for name in Hazards.__annotations__ if name not in others]
    chosen: dict[str, Any] = {name: chance.random() < 0.35 for name in names}
    brokers = chance.choice([1, 1, 2, 3])
    return Hazards(**chosen, brokers=brokers, odd_topics=chance.random() < 0.35)


# Exceptions.


class BrokenError(Exception):
    """An exception whose constructor does not call its base class."""

    def __init__(self, code: int) -> None:
        self.code = code


class TextlessError(BrokenError):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class BrokenReject(Reject):
    def __init__(self, code: int) -> None:
        self.code = code


class BrokenRetry(Retry):
    def __init__(self, code: int) -> None:
        self.code = code


class BrokenDeadLetter(DeadLetter):
    def __init__(self, code: int) -> None:
        self.code = code


def broken_error(plan: str) -> Exception | None:
    """Return what a handler with this plan raises; None for another plan."""
    match plan:
        case "no init":
            return BrokenError(7)
        case "no text":
            return TextlessError(7)
        case "no init reject":
            return BrokenReject(7)
        case "no init retry":
            return BrokenRetry(7)
        case "no init dead letter":
            return BrokenDeadLetter(7)
        case "group":
            return ExceptionGroup("", [TextlessError(7), BrokenError(7)])
        case "cycle":
            first, second = BrokenError(1), TextlessError(2)
            first.__cause__, second.__cause__ = second, first
            return first
        case _:
            return None


# The event loop.


def block(seconds: float) -> None:
    """Let time pass without any other task: on a virtual clock, the loop is blocked."""
    trio = running_trio()
    if trio is not None:
        trio.lowlevel.current_clock().jump(seconds)
    else:
        loop: Any = asyncio.get_running_loop()
        loop._selector.passed += seconds


def cancel_own_task(after: float | None) -> None:
    """Cancel the task that calls this, on asyncio, even if its handler has ended."""
    if running_trio() is not None:
        return
    task = asyncio.current_task()
    assert task is not None
    if after is None:
        task.cancel()
    else:
        asyncio.get_running_loop().call_later(after, task.cancel)


def running_trio() -> Any:
    """Return the module trio if its event loop runs here, else None."""
    trio: Any = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_run() else None


# Logs.


class FailingHandler(logging.Handler):
    """Raises for every third line of the client."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines = 0

    def emit(self, record: logging.LogRecord) -> None:
        self._lines += 1
        if self._lines % 3 == 0:
            raise OSError("no space left on device")


@contextmanager
def logging_fails(hazards: Hazards) -> Iterator[None]:
    """Let the application's logging handler raise, if the history has this hazard."""
    if not hazards.failing_logs:
        yield
        return
    handler = FailingHandler()
    loggers = [logging.getLogger(f"sharecons.{name}") for name in LIBRARIES]
    for each in loggers:
        each.addHandler(handler)
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(handler)


# Headers.


def headers_of(chance: random.Random, topic: str) -> list[Header]:
    """Return headers as a producer can forge them, or copy them from a dead letter."""
    own = {
        "origin.topic": topic.encode(),
        "origin.partition": b"0",
        "origin.offset": b"%d" % chance.randrange(500),
        "origin.group": b"billing",
        "origin.delivery-count": b"3",
        "origin.timestamp": b"1",
        "attempts": b"1000",
        "reason": b"forged",
        "redrives": b"%d" % chance.choice([0, 3, sys.maxsize]),
        "dead-lettered": b"7",
        "retry.due": b"%d" % chance.choice([0, 10**15]),
        "reference": b"",
    }
    kafka = {
        "topic": topic.encode(),
        "partition": b"0",
        "offset": b"1",
        "group": b"billing",
        "delivery.count": b"2",
        "message": b"forged",
    }
    headers = [(f"sharecons.{name}", value) for name, value in own.items()]
    headers += [(f"__dlq.errors.{name}", value) for name, value in kafka.items()]
    chosen = [each for each in headers if chance.random() < 0.7]
    damaged = [(name, b"\xff\xfe") for name, _ in chosen if chance.random() < 0.1]
    return [("trace", b"1"), *chosen, *damaged]
