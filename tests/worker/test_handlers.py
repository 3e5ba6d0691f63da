"""Calling handlers: one record, a batch, in threads, with what they raise."""

import asyncio
import functools
import threading
from typing import Any

import anyio
import pytest

from sharecons import Reject, Retry
from sharecons.errors import ConfigurationError
from sharecons.worker.handlers import BatchHandler, HandlerBatch, handler_call

pytestmark = pytest.mark.anyio

RECORDS: list[Any] = ["a", "b", "c"]


async def errors_of(handler: object, records: Any = RECORDS) -> list[Exception | None]:
    return list(await handler_call(handler, 3)(records))


async def test_result_of_a_handler_is_ignored() -> None:
    async def handle(record: str) -> str:
        return record

    assert [None] == await errors_of(handle, ["a"])


async def test_exception_of_a_handler_is_returned() -> None:
    error = ValueError("bad")

    async def handle(record: str) -> None:
        raise error

    assert [error] == await errors_of(handle, ["a"])


async def test_object_with_a_call_coroutine_runs_in_the_event_loop() -> None:
    class Handler:
        async def __call__(self, record: str) -> None:
            self.thread = threading.get_ident()

    handler = Handler()

    assert [None] == await errors_of(handler, ["a"])
    assert threading.get_ident() == handler.thread


async def test_plain_function_that_returns_an_awaitable_is_awaited() -> None:
    called: list[str] = []

    async def handle(prefix: str, record: str) -> None:
        await anyio.lowlevel.checkpoint()
        called.append(prefix + record)

    assert [None] == await errors_of(functools.partial(handle, "x"), ["a"])
    assert [None] == await errors_of(lambda record: handle("y", record), ["b"])
    assert ["xa", "yb"] == called


async def test_exit_of_a_handler_is_raised() -> None:
    async def handle(record: str) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await errors_of(handle, ["a"])


async def test_cancellation_from_outside_is_raised() -> None:
    async def handle(record: str) -> None:
        await anyio.sleep_forever()

    returned: list[object] = []

    async def call() -> None:
        returned.append(await errors_of(handle, ["a"]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert tasks.cancel_scope.cancelled_caught
    assert [] == returned


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_error_that_a_handler_raises_is_a_failure() -> None:
    async def handle(record: str) -> None:
        task = asyncio.ensure_future(anyio.sleep_forever())
        task.cancel()
        await task

    (error,) = await errors_of(handle, ["a"])

    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, asyncio.CancelledError)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancellation_of_the_task_is_raised() -> None:
    async def handle(record: str) -> None:
        await anyio.sleep_forever()

    task = asyncio.ensure_future(errors_of(handle, ["a"]))
    await anyio.wait_all_tasks_blocked()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_batch_is_accepted_except_for_marked_records() -> None:
    error = ValueError("bad")

    async def handle(batch: HandlerBatch[Any, Any]) -> None:
        assert ["a", "b", "c"] == list(batch)
        assert 3 == len(batch)
        assert ["b", "c"] == batch[1:]
        batch.fail(batch[1], error)

    assert [None, error, None] == await errors_of(BatchHandler(handle))


async def test_batch_handler_returns_an_outcome_for_each_record() -> None:
    later, never = Retry(after=3), Reject("old")

    async def handle(batch: HandlerBatch[Any, Any]) -> list[Exception | None]:
        batch.fail(batch[2], never)
        return [None, later, None]

    assert [None, later, never] == await errors_of(BatchHandler(handle))


async def test_exception_of_a_batch_handler_fails_unmarked_records() -> None:
    bad, lost = ValueError("bad"), ConnectionError("lost")

    async def handle(batch: HandlerBatch[Any, Any]) -> None:
        batch.fail(batch[0], bad)
        raise lost

    assert [bad, lost, lost] == await errors_of(BatchHandler(handle))


@pytest.mark.parametrize("returned", [[None], ["a", "b", "c"], 3, {"a": None}, "abc"])
async def test_other_results_of_a_batch_handler_accept_nothing(returned: Any) -> None:
    async def handle(batch: HandlerBatch[Any, Any]) -> Any:
        return returned

    errors = await errors_of(BatchHandler(handle))

    assert [TypeError] * 3 == [type(error) for error in errors]
    assert "for each of the 3 records" in str(errors[0])


async def test_batch_handler_that_is_a_plain_function_runs_in_a_thread() -> None:
    threads: list[int] = []

    def handle(batch: HandlerBatch[Any, Any]) -> None:
        threads.append(threading.get_ident())

    assert [None] * 3 == await errors_of(BatchHandler(handle))
    assert [threading.get_ident()] != threads


def test_only_records_of_a_batch_can_be_marked() -> None:
    batch: HandlerBatch[Any, Any] = HandlerBatch(RECORDS)

    with pytest.raises(ValueError, match="not a record of this batch"):
        batch.fail("z", ValueError())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: handler_call(3, 1), "handler must be a function with a record"),
        (lambda: BatchHandler("x"), "handler must be a function"),  # type: ignore[arg-type]
        (lambda: BatchHandler(print, max_records=0), "max_records must be"),
        (lambda: BatchHandler(print, max_wait=-1), "max_wait must be"),
    ],
)
def test_invalid_handlers_are_errors(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()
