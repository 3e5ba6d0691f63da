"""Tasks for `taskiq worker tests.scenarios.taskiq_program:broker`, in its own process.

The environment has BOOTSTRAP, TOPIC, GROUP and LOG. Each line of the log: `start` or
`end`, and the number of the task. Lines are written immediately, so that a killed
process loses none.
"""

import asyncio
import os

from taskiq import SimpleRetryMiddleware

from sharecons.taskiq import ShareGroupBroker

broker = ShareGroupBroker(
    os.environ["TOPIC"],
    group_id=os.environ["GROUP"],
    bootstrap_servers=os.environ["BOOTSTRAP"],
).with_middlewares(SimpleRetryMiddleware(default_retry_count=3))

_log = os.open(os.environ["LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def note(what: str, number: int) -> None:
    os.write(_log, f"{what} {number}\n".encode())


@broker.task(task_name="work")
async def work(number: int, seconds: float) -> None:
    note("start", number)
    await asyncio.sleep(seconds)  # real time: a task's work
    note("end", number)


@broker.task(task_name="fail", retry_on_error=True)
async def fail(number: int) -> None:
    note("start", number)
    raise ValueError(f"task {number}")


@broker.task(task_name="crash")
async def crash(number: int) -> None:
    note("start", number)
    os._exit(1)
