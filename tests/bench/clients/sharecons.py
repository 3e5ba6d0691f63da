"""sharecons with each of its read methods and on each event loop.

The loops count the records and read each value, since a client might decode values
lazily, as do the programs of the other clients. To keep the work per record minimal,
counts are local variables and the first record is read before the loop.
"""

import argparse
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from sharecons import ShareConsumer
from tests.bench.clients.common import (
    JOIN_TIMEOUT,
    JoinError,
    Limit,
    Meter,
    Tally,
    WarmUp,
    arguments,
    percentiles,
    print_result,
)

ReadLoop = Callable[[ShareConsumer, Tally, Meter], Awaitable[None]]


async def implicit(consumer: ShareConsumer, tally: Tally, meter: Meter) -> None:
    records: AsyncIterator[Any] = aiter(consumer)
    size = len((await anext(records)).value)
    meter.on_first_record()
    count, wanted = 1, tally.wanted
    try:
        async for record in records:
            size += len(record.value)
            count += 1
            if count >= wanted:
                break
    finally:
        tally.add(count, size)


async def explicit(consumer: ShareConsumer, tally: Tally, meter: Meter) -> None:
    records: AsyncIterator[Any] = aiter(consumer)
    record: Any = await anext(records)
    meter.on_first_record()
    record.accept()
    count, size, wanted = 1, len(record.value), tally.wanted
    try:
        async for record in records:
            size += len(record.value)
            record.accept()
            count += 1
            if count >= wanted:
                break
    finally:
        tally.add(count, size)


async def batches(consumer: ShareConsumer, tally: Tally, meter: Meter) -> None:
    batches_iterator: AsyncIterator[Any] = consumer.batches()
    count, size, wanted = 0, 0, tally.wanted
    try:
        async for batch in batches_iterator:
            meter.on_first_record()
            for record in batch:
                size += len(record.value)
                count += 1
            if count >= wanted:
                break
    finally:
        tally.add(count, size)


MODES: Final[Mapping[str, ReadLoop]] = {
    "implicit": implicit,
    "explicit": explicit,
    "batches": batches,
}


async def throughput(options: argparse.Namespace) -> object:
    meter, tally = Meter(), Tally(options.records)
    async with AsyncExitStack() as stack:
        made = [_consumer(options) for _ in range(options.consumers)]
        consumers = [await stack.enter_async_context(each) for each in made]
        with anyio.move_on_after(options.timeout):
            if len(consumers) == 1:
                await MODES[options.mode](consumers[0], tally, meter)
            else:
                await _read_concurrently(consumers, options.mode, tally, meter)
        return meter.report(tally)  # closing is not measured


async def latency(options: argparse.Namespace) -> object:
    ages: list[int] = []
    async with _consumer(options) as consumer:
        records: AsyncIterator[Any] = aiter(consumer)
        with anyio.move_on_after(options.timeout):
            await anext(records)
            print_result({"joined": True})
            warm = time.time_ns() + int(options.warm_up * 1e9)
            end = warm + int(options.seconds * 1e9)
            async for record in records:
                now = time.time_ns()
                if now >= end:
                    break
                if now >= warm:
                    ages.append(now - int(record.value[:19]))
    seconds = percentiles([age / 1e9 for age in ages])
    return {**seconds, "rate": len(ages) / options.seconds}


async def redelivery(options: argparse.Namespace) -> object:
    """Run two members; the first that gets a record releases it."""
    released: dict[tuple[int, int], float] = {}
    latencies: list[float] = []
    warm = WarmUp(options.warm_up)

    async def work(consumer: ShareConsumer, done: Callable[[], None]) -> None:
        async for record in consumer:
            now, where = time.perf_counter(), (record.partition, record.offset)
            if where in released:
                latencies.append(now - released[where])
            elif warm.is_over():
                released[where] = time.perf_counter()
                record.release()
                continue
            record.accept()
            if len(latencies) >= options.records:
                return done()

    async with _consumer(options) as one, _consumer(options) as other:
        with anyio.move_on_after(options.timeout):
            async with anyio.create_task_group() as tasks:
                for consumer in (one, other):
                    tasks.start_soon(work, consumer, tasks.cancel_scope.cancel)
    return {**percentiles(latencies), "records": len(latencies)}


async def slow(options: argparse.Namespace) -> object:
    """Read with implicit acknowledgement and sleep at each record, or some of them."""
    meter, tally = Meter(), Tally(options.records)
    async with _consumer(options) as consumer:
        records: AsyncIterator[Any] = aiter(consumer)
        with anyio.move_on_after(options.seconds):
            async for record in records:
                meter.on_first_record()
                tally.add(1, len(record.value))
                if tally.count % options.pause_every == 0:
                    await anyio.sleep(options.pause)
        return meter.report(tally)


class StartLine:
    """Several consumers wait here until each of them has received a record."""

    def __init__(self, consumers: int, meter: Meter) -> None:
        self._consumers = consumers
        self._meter = meter
        self._joined = 0
        self._everyone = anyio.Event()

    async def wait(self) -> None:
        """Wait for the other consumers."""
        self._meter.on_first_record()
        self._joined += 1
        if self._joined == self._consumers:
            self._everyone.set()
        await self._everyone.wait()

    async def give_up_late(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` after JOIN_TIMEOUT if consumers still wait."""
        with anyio.move_on_after(JOIN_TIMEOUT):
            await self._everyone.wait()
        if not self._everyone.is_set():
            cancel()

    def check(self) -> None:
        """Raise JoinError if consumers still wait."""
        if not self._everyone.is_set():
            raise JoinError(self._joined, self._consumers)


async def _read_concurrently(
    consumers: list[ShareConsumer], mode: str, tally: Tally, meter: Meter
) -> None:
    """Read with all consumers, with implicit acknowledgement."""
    count = size = 0  # of all consumers
    limit = Limit(tally.wanted, meter, lambda: tasks.cancel_scope.cancel())
    start_line = StartLine(len(consumers), meter)

    async def read_records(consumer: ShareConsumer) -> None:
        nonlocal count, size
        records: AsyncIterator[Any] = aiter(consumer)
        size += len((await anext(records)).value)
        count += 1
        await start_line.wait()
        async for record in records:
            size += len(record.value)
            count += 1
            if count >= limit.count:
                limit.reached(count, size)

    async def read_batches(consumer: ShareConsumer) -> None:
        nonlocal count, size
        waits = True
        batches_iterator: AsyncIterator[Any] = consumer.batches()
        async for batch in batches_iterator:
            for record in batch:
                size += len(record.value)
            count += len(batch)
            if waits:
                await start_line.wait()
                waits = False
            if count >= limit.count:
                limit.reached(count, size)

    read = {"implicit": read_records, "batches": read_batches}[mode]
    tasks: TaskGroup
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start_line.give_up_late, tasks.cancel_scope.cancel)
            for consumer in consumers:
                tasks.start_soon(read, consumer)
    finally:
        tally.add(count, size)
    start_line.check()


def _consumer(options: argparse.Namespace) -> ShareConsumer:
    is_explicit = options.mode == "explicit" or options.what == "redelivery"
    return ShareConsumer(
        options.topic,
        group_id=options.group,
        bootstrap_servers=options.bootstrap,
        max_records=options.max_records,
        acknowledgement="explicit" if is_explicit else "implicit",
        values=options.values,
    )


def main() -> None:
    options = arguments(modes=tuple(MODES))
    workloads: Mapping[str, Callable[..., Awaitable[object]]] = {
        "throughput": throughput,
        "latency": latency,
        "redelivery": redelivery,
        "slow": slow,
    }
    backend = "trio" if options.loop == "trio" else "asyncio"
    extra = {"use_uvloop": True} if options.loop == "uvloop" else {}
    work = partial(workloads[options.what], options)
    print_result(anyio.run(work, backend=backend, backend_options=extra))


if __name__ == "__main__":
    main()
