"""A process that runs taskiq's tasks with sharecons.

python -m tests.chaos.clients.taskiq JSON

It is a worker as `taskiq worker` starts it, without taskiq's own supervisor.
"""

import asyncio
import faulthandler
import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Annotated, Any, Final

from taskiq import Context, SimpleRetryMiddleware, TaskiqDepends
from taskiq.receiver import Receiver

from sharecons import AcknowledgeType
from sharecons.protocol.codes import code_name
from sharecons.taskiq import ShareGroupBroker
from sharecons.taskiq import broker as taskiq_broker
from tests.chaos.clients import Options
from tests.chaos.clients.crashing import crash
from tests.chaos.clients.plans import CRASHES, plan_of
from tests.chaos.journal import Journal

TASKS: Final = 10
"""Tasks that a process runs at a time."""

ATTEMPTS: Final = 3

ENDS: Final = ("fail", "dead letter", "reject", *CRASHES.values())

UNKNOWN: Final = "-", 0, 0, 0
"""A task does not know its record's topic, partition, offset and delivery count."""

LOST: Final = (
    "lock lost: the task can run again, except after its last delivery",
    "task not acknowledged: its lock is lost, so it can run again",
    "acknowledgement failed",
)
"""Log events of tasks whose records are not accepted."""


class Results(logging.Handler):
    """Writes the results of accepts to the journal: an instrumentation.

    A result is missing if the request was never sent.
    """

    def __init__(self, journal: Journal) -> None:
        super().__init__()
        self._journal = journal

    def observe_member(self, _: object) -> "Results":
        return self

    @contextmanager
    def settling(self, names: Any, acknowledgements: Any) -> Iterator[Any]:
        settle = SimpleNamespace(response=None)
        error = ""
        try:
            yield settle
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            self._note(names, acknowledgements, settle.response, error)

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", "") in LOST:
            at: Any = getattr(record, "fields", {})
            where = -1, at["topic"], at["partition"], at["offset"], 0
            self._journal.note_all("failed", [where], "LockLost")

    def _note(
        self, names: Any, acknowledgements: Any, response: Any, error: str
    ) -> None:
        codes = {}
        if response is not None:
            codes = {
                p.share_partition: p.acknowledge_error for p in response.partitions
            }
        for key, ranges in acknowledgements.items():
            code = (response.error if response else 0) or codes.get(key, 0)
            word = error or (code_name(code) if code else "")
            topic = names.get(key.topic_id, "-")
            lines = [
                (-1, topic, key.partition, offset, 0)
                for each in ranges
                for offset in _accepted(*each)
            ]
            self._journal.note_all("failed" if word else "accepted", lines, word)


def _accepted(first: int, last: int, kinds: bytes) -> Iterator[int]:
    for offset in range(first, last + 1):
        kind = kinds[0] if len(kinds) == 1 else kinds[offset - first]
        if kind == AcknowledgeType.ACCEPT.value:
            yield offset


def fail(plan: str) -> None:
    if plan in CRASHES.values():
        crash(plan)
    raise ValueError("fails always")


def new_broker(options: Options, journal: Journal) -> ShareGroupBroker:
    # As taskiq's supervisor, from which processes have names that they keep.
    taskiq_broker.supervised_name = lambda: options.member
    results: Any = Results(journal)
    logging.getLogger("sharecons.taskiq").addHandler(results)
    broker = ShareGroupBroker(
        options.topic,
        group_id=options.group,
        bootstrap_servers=options.servers,
        client_id=options.client_id,
        instrumentation=results,
    )
    broker.add_middlewares(
        SimpleRetryMiddleware(default_retry_count=ATTEMPTS, default_retry_label=True)
    )

    @broker.task(task_name="work")
    async def work(number: int, context: Annotated[Context, TaskiqDepends()]) -> None:
        await asyncio.sleep(options.seconds)  # real time: a task's work
        plan = plan_of(number, options.plans)
        retries = int(context.message.labels.get("_retries", 0))
        if plan in ENDS:
            if plan in CRASHES.values():
                journal.note_all("crashes", [(number, *UNKNOWN)], plan)
            try:
                fail(plan)
            except Exception:
                if retries == ATTEMPTS - 1:  # taskiq then accepts it
                    journal.note("rejected", number, *UNKNOWN)
                raise
        elif plan in ("fail once", "retry") and not retries:
            raise TimeoutError("fails once")
        journal.note("handled", number, *UNKNOWN)

    return broker


async def main(options: Options) -> None:
    journal = Journal(options.journal)
    broker = new_broker(options, journal)
    broker.is_worker_process = True
    finish = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, finish.set)
    await broker.startup()
    journal.note("started")
    try:
        receiver = Receiver(broker, run_startup=False, max_async_tasks=TASKS)
        await receiver.listen(finish)
    finally:
        await broker.shutdown()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    faulthandler.enable()  # SIGABRT prints the stacks of a hanging process
    asyncio.run(main(Options(**json.loads(sys.argv[1]))))
