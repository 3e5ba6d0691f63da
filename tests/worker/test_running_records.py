"""The records in calls, as a supervisor reads them after the end of a process."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import anyio
import pytest

from sharecons import BatchHandler, RetryPolicy, ShareWorker
from sharecons.worker.machine.item import WorkItem
from sharecons.worker.running_records import (
    MAX_ENTRIES,
    MAX_NAMED,
    RunningRecords,
    open_file,
    read_running,
)
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import on_real_clock, settled, working

RETRY = RetryPolicy(max_attempts=9, initial=0.01, maximum=0.01)


@dataclass
class Delivered:
    offset: int
    delivery_count: int = 1
    topic: str = "orders"
    partition: int = 2


def items(*records: Delivered) -> list[WorkItem]:
    return [WorkItem(record, 0) for record in records]


@pytest.fixture
def file() -> Iterator[IO[bytes]]:
    with open_file() as file:
        yield file


def records_in(file: IO[bytes], slots: int = 10) -> RunningRecords:
    return RunningRecords(file.fileno(), ["refunds", "orders"], slots)


def test_worker_that_has_not_started_has_no_records(file: IO[bytes]) -> None:
    assert read_running(file) is None
    records_in(file)
    assert read_running(file) is None


def test_record_is_named_until_its_slot_is_idle_or_ends(file: IO[bytes]) -> None:
    running = records_in(file)
    first, second = running.new_entry(), running.new_entry()
    running.write(first, items(Delivered(5)))
    running.write(first, items(Delivered(6)))
    running.write(second, items(Delivered(1 << 62, 4, "refunds", 1 << 30)))

    names = f"refunds-{1 << 30}@{1 << 62} (delivery 4), orders-2@6 (delivery 1)"
    assert names == read_running(file)
    running.clear(first)
    running.end_entry(second)
    assert read_running(file) is None


def test_records_with_the_most_deliveries_are_named_first_and_others_counted(
    file: IO[bytes],
) -> None:
    running = records_in(file)
    batch = items(*[Delivered(n, 1 + (n == 7)) for n in range(100)])
    running.write(running.new_entry(), batch)
    running.write(running.new_entry(), items(Delivered(200, 4)))

    text = read_running(file)

    assert text is not None
    assert text.startswith("orders-2@200 (delivery 4), orders-2@7 (delivery 2), ")
    assert text.endswith(" and 81 more")
    assert MAX_NAMED == text.count("@")


def test_threads_of_cancelled_calls_are_named_once(file: IO[bytes]) -> None:
    running = records_in(file)
    running.set_threads([Delivered(5), [Delivered(6), Delivered(7)]])
    running.write(running.new_entry(), items(Delivered(5)))

    names = [f"orders-2@{offset} (delivery 1)" for offset in (5, 6, 7)]
    assert ", ".join(names) == read_running(file)
    running.set_threads([])
    assert "orders-2@5 (delivery 1)" == read_running(file)


def test_entries_are_reused_and_slots_beyond_the_limit_are_not_named(
    file: IO[bytes],
) -> None:
    running = records_in(file, slots=MAX_ENTRIES + 10)
    entries = [running.new_entry() for _ in range(MAX_ENTRIES + 10)]
    for entry in entries:
        running.write(entry, items(Delivered(1)))
    for entry in entries[:MAX_ENTRIES]:
        running.end_entry(entry)

    assert MAX_ENTRIES + 1 == len(set(entries))
    assert read_running(file) is None
    assert running.new_entry() in entries[:MAX_ENTRIES]


def test_file_with_any_bytes_can_be_read(file: IO[bytes]) -> None:
    running = records_in(file)
    running.write(running.new_entry(), items(Delivered(5)))
    size = os.fstat(file.fileno()).st_size
    for data in (b"\xff" * size, b"\x00" * size, b"7\n" + b"\x01" * size, b"[" * size):
        os.pwrite(file.fileno(), data, 0)
        assert read_running(file) is None


def test_file_without_space_is_an_error() -> None:
    with open("/dev/full", "r+b", buffering=0) as full, pytest.raises(OSError):
        records_in(full)


def share(worker: ShareWorker[Any, Any], file: IO[bytes]) -> None:
    worker.running_records = RunningRecords(
        file.fileno(), worker.subscription, worker.concurrency
    )


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["coroutine function", "thread", "batch"])
@on_real_clock
async def test_worker_writes_the_records_of_each_kind_of_handler(
    broker: MemoryBroker, file: IO[bytes], kind: str
) -> None:
    seen: list[str | None] = []

    async def handle(record: Any) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append(read_running(file))

    def handle_in_thread(record: Any) -> None:
        seen.append(read_running(file))

    batches: BatchHandler[Any, Any] = BatchHandler(handle, max_wait=0.0)
    handlers = {"coroutine function": handle, "thread": handle_in_thread}
    broker.produce("orders", [b"x"])
    async with working(broker, handlers.get(kind, batches)) as worker:
        share(worker, file)
        await until(lambda: settled(broker, 1))
        assert read_running(file) is None

    assert ["orders-0@0 (delivery 1)"] == seen


@pytest.mark.anyio
@on_real_clock
async def test_record_of_a_cancelled_call_is_named_while_its_thread_goes_on(
    broker: MemoryBroker, file: IO[bytes]
) -> None:
    end = threading.Event()
    attempts: list[int] = []

    def handle(record: Any) -> None:
        attempts.append(record.offset)
        if len(attempts) == 1:
            end.wait(10.0)

    broker.produce("orders", [b"x"])
    async with working(broker, handle, timeout=0.01, retry=RETRY) as worker:
        share(worker, file)
        await until(lambda: settled(broker, 1))
        assert "orders-0@0 (delivery 1)" == read_running(file)
        end.set()
        await until(lambda: read_running(file) is None)
