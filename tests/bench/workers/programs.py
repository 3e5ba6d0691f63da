"""One client: `python -m tests.bench.workers.programs NAME ...` prints its figures.

Each calls a handler for every record of a topic. Time and CPU are measured from the
start of the handler at a fifth of the records to the end of the last one, so that
joining the group and the first fetches do not count.
"""

import argparse
import asyncio
import json
import sys
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["TASK", "client_parser", "run_sharecons"]

TASK = "handle"


class Meter:
    """Measures handlers; `done` is set after the last one."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.done = asyncio.Event()
        self._seconds = options.handler_seconds
        self._records = options.records
        self._first = options.records // 5
        self._begun = self._ended = 0
        self._start = self._cpu = 0.0

    async def handle(self) -> None:
        self._begun += 1
        if self._begun == self._first:
            self._start, self._cpu = time.perf_counter(), time.process_time()
        if self._seconds:
            await asyncio.sleep(self._seconds)
        self._ended += 1
        if self._ended == self._records:
            self._print()
            self.done.set()

    def _print(self) -> None:
        seconds = time.perf_counter() - self._start
        count = self._records - self._first
        figures = {
            "records_per_second": count / seconds,
            "cpu_us_per_record": (time.process_time() - self._cpu) / count * 1e6,
        }
        sys.stdout.write(f"{json.dumps(figures)}\n")
        sys.stdout.flush()


async def run_sharecons(options: argparse.Namespace, **extra: Any) -> None:
    from sharecons import ShareWorker

    meter = Meter(options)

    async def handle(record: Any) -> None:
        await meter.handle()

    worker = ShareWorker(
        options.topic,
        handle,
        group_id=f"workers-{uuid.uuid4()}",
        bootstrap_servers=options.bootstrap,
        auto_offset_reset="earliest",
        concurrency=options.concurrency,
        **extra,
    )
    running = asyncio.ensure_future(worker.run())
    await meter.done.wait()
    worker.stop()
    await running


async def run_faststream(options: argparse.Namespace) -> None:
    from faststream.kafka import KafkaBroker

    meter = Meter(options)
    broker = KafkaBroker(options.bootstrap, logger=None)

    async def handle(message: bytes) -> None:
        await meter.handle()

    subscribe: Any = broker.subscriber(
        options.topic,
        group_id=f"workers-{uuid.uuid4()}",
        auto_offset_reset="earliest",
        max_workers=options.concurrency,
    )
    subscribe(handle)
    async with broker:
        await broker.start()
        await meter.done.wait()


async def run_taskiq(options: argparse.Namespace) -> None:
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from taskiq.receiver import Receiver
    from taskiq_aio_kafka import AioKafkaBroker

    meter = Meter(options)

    async def handle() -> None:
        await meter.handle()

    broker = AioKafkaBroker(options.bootstrap, kafka_topic=options.topic)
    broker.configure_consumer(
        group_id=f"workers-{uuid.uuid4()}",
        auto_offset_reset="earliest",
        # Its default is one of kafka-python, which this aiokafka does not accept.
        partition_assignment_strategy=(RoundRobinPartitionAssignor,),
    )
    broker.register_task(handle, task_name=TASK)
    broker.is_worker_process = True
    await broker.startup()
    finish = asyncio.Event()
    receiver = Receiver(
        broker,
        run_startup=False,
        max_async_tasks=options.concurrency,
        max_prefetch=options.concurrency,
    )
    listening = asyncio.ensure_future(receiver.listen(finish))
    await meter.done.wait()
    finish.set()
    await listening
    await broker.shutdown()


CLIENTS: dict[str, Callable[[argparse.Namespace], Coroutine[Any, Any, None]]] = {
    "sharecons": run_sharecons,
    "faststream": run_faststream,
    "taskiq": run_taskiq,
}


def client_parser() -> argparse.ArgumentParser:
    """Return a parser of what every client needs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=100)
    parser.add_argument("--handler-seconds", type=float, default=0.0)
    return parser


def main() -> None:
    parser = client_parser()
    parser.add_argument("client", choices=CLIENTS)
    options = parser.parse_args()
    asyncio.run(CLIENTS[options.client](options))


if __name__ == "__main__":
    main()
