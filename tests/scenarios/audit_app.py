"""The application of the processes' audit: records that kill the process they are in.

`sharecons run` imports it. Each line of the log is `begin`, `end` or `reject`, the
process id and the number of the record; a killed process loses none.
"""

import ctypes
import os
import random
import signal
import threading
from collections.abc import Callable
from typing import Any, Final

from anyio.lowlevel import checkpoint

from sharecons import BatchHandler, DeadLetter, Reject, RetryPolicy, ShareWorker

CYCLE: Final = 60
PLANS: Final[dict[int, str]] = {
    5: "fail once",
    11: "fail always",
    17: "reject",
    23: "dead letter",
    41: "crash",
}
"""By the number modulo CYCLE."""

CRASHES: Final[tuple[Callable[[], object], ...]] = (
    lambda: os._exit(3),
    lambda: os.kill(os.getpid(), signal.SIGKILL),
    lambda: ctypes.string_at(0),
)

LOG: Final = os.open(
    os.environ.get("APP_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND
)
SEED: Final = int(os.environ.get("AUDIT_SEED", "0"))
failed: set[int] = set()


def make_worker() -> ShareWorker[Any, Any]:
    chance = random.Random(f"processes {SEED}")
    handler: Any = chance.choice([handle, handle_in_thread, BatchHandler(handle_all)])
    return ShareWorker(
        "orders",
        handler,
        group_id="billing",
        bootstrap_servers=os.environ["APP_SERVERS"],
        concurrency=chance.choice([1, 4, 20]),
        retry=RetryPolicy(max_attempts=3, initial=0.05, maximum=0.1),
        dead_letter="orders.dead",
        shutdown_grace=2.0,
    )


async def handle(record: Any) -> None:
    number = int(record.value)
    note("begin", number)
    await checkpoint()
    finish(number)


def handle_in_thread(record: Any) -> None:
    assert threading.current_thread() is not threading.main_thread()
    number = int(record.value)
    note("begin", number)
    finish(number)


async def handle_all(batch: Any) -> None:
    for record in batch:
        try:
            await handle(record)
        except Exception as error:
            batch.fail(record, error)


def finish(number: int) -> None:
    match PLANS.get(number % CYCLE):
        case "crash":
            CRASHES[SEED % len(CRASHES)]()
        case "fail once" if number not in failed:
            failed.add(number)
            raise ValueError("fails once")
        case "fail always":
            raise ValueError("fails always")
        case "reject":
            note("reject", number)
            raise Reject("planned")
        case "dead letter":
            raise DeadLetter("planned")
        case _:
            note("end", number)


def note(what: str, number: int) -> None:
    os.write(LOG, f"{what} {os.getpid()} {number}\n".encode())
