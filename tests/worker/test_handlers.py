"""Calling handlers: one record, a batch, in threads, with what they raise."""

import asyncio
import concurrent.futures
import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from sharecons import Reject, Retry
from sharecons.error_text import traceback_of
from sharecons.errors import ConfigurationError
from sharecons.worker.handlers import BatchHandler, HandlerBatch, handler_call

pytestmark = pytest.mark.anyio

RECORDS: list[Any] = ["a", "b", "c"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """A real clock: some handlers run in threads."""
    return request.param


async def errors_of(handler: object, records: Any = RECORDS) -> list[Exception | None]:
    return list(await handler_call(handler)(records))


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
async def test_handler_that_cancels_its_own_task_has_failed() -> None:
    async def handle(record: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.get_loop().call_soon(task.cancel)  # a time limit of its own
        await anyio.sleep_forever()

    async with anyio.create_task_group():
        (error,) = await errors_of(handle, ["a"])
        await anyio.lowlevel.checkpoint()

    assert isinstance(error, RuntimeError)
    assert "the handler cancelled its own task" == str(error)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_end_of_the_event_loop_is_no_failure_of_a_handler() -> None:
    """asyncio.run cancels all tasks: the worker's task and the tasks of its slots."""
    returned: list[object] = []

    async def handle(record: str) -> None:
        await anyio.sleep_forever()

    async def call() -> None:
        returned.append(await errors_of(handle, ["a"]))

    async def work() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)

    before = asyncio.all_tasks()
    work_task = asyncio.ensure_future(work())
    await anyio.wait_all_tasks_blocked()
    for task in asyncio.all_tasks() - before:
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await work_task
    assert [] == returned


async def test_handler_that_exceeds_its_timeout_has_failed() -> None:
    async def handle(record: str) -> None:
        await anyio.sleep_forever()

    (error,) = await handler_call(handle, 0.01)(["a"])

    assert isinstance(error, TimeoutError)
    assert "the handler took longer than its timeout of 0.01 s" == str(error)
    assert "sleep_forever" in traceback_of(error), "where it waited"


async def test_handler_that_swallows_its_cancellation_has_failed() -> None:
    async def handle(record: str) -> None:
        with contextlib.suppress(BaseException):
            await anyio.sleep_forever()

    (error,) = await handler_call(handle, 0.01)(["a"])

    assert isinstance(error, TimeoutError)


async def test_decision_after_the_timeout_counts() -> None:
    async def handle(record: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise Reject("too slow")

    (error,) = await handler_call(handle, 0.01)(["a"])

    assert isinstance(error, Reject)


async def test_decision_of_a_task_group_after_the_timeout_counts() -> None:
    async def handle(record: str) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ExceptionGroup("tasks", [Reject("too slow")])

    (error,) = await handler_call(handle, 0.01)(["a"])

    assert isinstance(error, ExceptionGroup)


async def test_generator_whose_end_raises_has_failed() -> None:
    def generate_badly() -> Any:
        try:
            yield
        finally:
            raise ValueError("not closed")

    async def handle(record: str) -> object:
        generator = generate_badly()
        next(generator)
        return generator

    (error,) = await errors_of(handle, ["a"])

    assert isinstance(error, TypeError)


async def test_unmarked_records_of_a_batch_fail_by_its_timeout() -> None:
    bad = ValueError("bad")

    async def handle(batch: HandlerBatch[Any, Any]) -> None:
        batch.fail(batch[1], bad)
        await anyio.sleep_forever()

    first, second, third = await handler_call(BatchHandler(handle), 0.01)(RECORDS)

    assert second is bad
    assert isinstance(first, TimeoutError)
    assert first is third


async def test_thread_that_exceeds_its_timeout_is_abandoned_until_it_ends() -> None:
    leave, left = threading.Event(), anyio.Event()
    cancelled: list[bool] = []

    def hang(record: str) -> None:
        leave.wait(30)
        try:
            anyio.from_thread.check_cancelled()
        except BaseException:
            cancelled.append(True)
            raise

    call = handler_call(hang, 0.05)
    assert call.threads is not None
    call.threads.on_changed = lambda thread: (
        None if thread in call.threads.abandoned else left.set()
    )

    (error,) = await call(["a"])
    assert isinstance(error, TimeoutError)
    (thread,) = call.threads.abandoned
    line = thread.line()
    assert line is not None
    assert "test_handlers.py:" in line  # not the line of `threading` that waits
    assert line.endswith(".hang")
    leave.set()
    with anyio.fail_after(10):
        await left.wait()

    assert [True] == cancelled
    assert not call.threads.abandoned


async def test_thread_that_ends_in_time_is_not_abandoned() -> None:
    call = handler_call(lambda record: None, 5.0)

    assert [None] == await call(["a"])
    assert call.threads is not None
    assert not call.threads.abandoned


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


async def test_falsy_exception_of_a_marked_record_is_not_accepted() -> None:
    class Empty(Exception):
        def __len__(self) -> int:
            return 0

    error = Empty()

    async def handle(batch: HandlerBatch[Any, Any]) -> list[Exception | None]:
        batch.fail(batch[0], error)
        return [None, error, None]

    assert [error, error, None] == await errors_of(BatchHandler(handle))


def test_mark_that_is_no_exception_is_rejected() -> None:
    batch: HandlerBatch[Any, Any] = HandlerBatch(RECORDS)

    with pytest.raises(TypeError, match="batch.fail takes an exception"):
        batch.fail(batch[0], "bad")  # type: ignore[arg-type]


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


async def generate(record: object) -> Any:
    yield record


def generate_plainly(record: object) -> Any:
    yield record


class Generating:
    def __call__(self, record: object) -> Any:
        yield record


@pytest.mark.parametrize(
    "handler",
    [
        generate,
        generate_plainly,
        Generating(),
        functools.partial(generate),
        functools.partial(functools.partial(generate_plainly)),
        functools.partial(Generating()),
        Generating().__call__,
    ],
)
def test_handler_whose_call_would_run_nothing_is_rejected(handler: Any) -> None:
    for make in (handler_call, BatchHandler):
        with pytest.raises(ConfigurationError, match="contains `yield`"):
            make(handler)


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        (lambda: None, "too many positional arguments"),
        (lambda record, database: None, "missing a required argument: 'database'"),
        (lambda *, record: None, "too many positional arguments"),
        (functools.partial(print, sep=""), None),
        (functools.partial(lambda a, b: None, 1), None),
        (lambda *records: None, None),
        (lambda record, retries=3: None, None),
    ],
)
def test_handler_is_checked_for_one_argument(handler: Any, problem: Any) -> None:
    if problem is None:
        handler_call(handler)
        return
    with pytest.raises(ConfigurationError, match="cannot be called with one record"):
        handler_call(handler)


async def never_awaited() -> None:
    raise AssertionError("it is never awaited")


def failed_future() -> "concurrent.futures.Future[None]":
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_exception(ValueError("bad"))
    return future


@pytest.mark.parametrize(
    ("new", "name"),
    [
        (concurrent.futures.Future, "Future"),
        (failed_future, "Future"),
        (lambda: [never_awaited(), never_awaited()], "list of coroutines"),
        (lambda: [None, never_awaited()], "list of coroutines"),
        (lambda: (never_awaited(),), "tuple of coroutines"),
        (lambda: {concurrent.futures.Future()}, "set of Futures"),
        (lambda: [generate_plainly("a")], "list of generators"),
        (lambda: generate("a"), "async_generator"),
        (lambda: generate_plainly("a"), "generator"),
        (lambda: (each for each in ["a"]), "generator"),
        (lambda: map(len, ["a"]), "map"),
        (lambda: filter(len, ["a"]), "filter"),
        (lambda: zip(["a"], map(len, ["a"]), strict=True), "zip"),
        (lambda: itertools.starmap(len, [("a",)]), "starmap"),
    ],
)
async def test_handler_that_returns_what_has_not_run_has_failed(
    new: Callable[[], object], name: str
) -> None:
    async def handle(record: str) -> object:
        return new()

    for each in (handle, lambda record: new()):
        (error,) = await errors_of(each, ["a"])
        assert isinstance(error, TypeError)
        assert f"the handler returned a {name} instead of" in str(error)


async def test_handler_that_returns_a_coroutine_has_failed() -> None:
    async def handle(record: str) -> object:
        return never_awaited()  # `await` is missing

    (error,) = await errors_of(handle, ["a"])

    assert isinstance(error, TypeError)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kind", ["Task", "Future"])
async def test_handler_that_returns_tasks_or_futures_has_failed(kind: str) -> None:
    loop = asyncio.get_running_loop()

    def new() -> "asyncio.Future[bool]":
        return (
            loop.create_future() if kind == "Future" else loop.create_task(cancelled())
        )

    async def cancelled() -> bool:
        await anyio.sleep_forever()
        return True

    futures: list[asyncio.Future[bool]] = []

    async def handle(record: str) -> object:
        futures.append(new())
        return futures if record == "list" else futures[-1]

    for record in ("one", "list"):
        (error,) = await errors_of(handle, [record])
        assert isinstance(error, TypeError)
        assert kind in str(error)
    for future in futures:
        future.cancel()


class Row:
    def __iter__(self) -> Iterator[object]:
        raise AssertionError("results are not iterated over")


class Cursor(Row):
    def __next__(self) -> object:
        raise AssertionError("results are not iterated over")


@pytest.mark.parametrize(
    "returned",
    [
        None,
        "ok",
        b"",
        0,
        True,
        1.5,
        {"a": 1},
        [1, "a", None],
        (Row(),),
        {1},
        Row(),
        Cursor(),
    ],
)
async def test_other_results_of_a_handler_are_ignored(returned: object) -> None:
    async def handle(record: str) -> object:
        return returned

    assert [None] == await errors_of(handle, ["a"])


async def test_finished_futures_are_ignored() -> None:
    future: concurrent.futures.Future[int] = concurrent.futures.Future()
    future.set_result(1)

    assert [None] == await errors_of(lambda record: future, ["a"])
    assert [None] == await errors_of(lambda record: [future], ["a"])


@pytest.mark.parametrize("returned", [Retry(1.0), Reject("old"), Reject, OSError("x")])
async def test_handler_that_returns_an_exception_has_failed(returned: Any) -> None:
    async def handle(record: Any) -> object:
        return returned  # `raise` was meant

    batch: Any = handle
    for handler in (handle, lambda record: returned, BatchHandler(batch)):
        (error,) = await errors_of(handler, ["a"])
        assert isinstance(error, TypeError)
        assert "instead of raising it" in str(error)


def test_only_records_of_a_batch_can_be_marked() -> None:
    batch: HandlerBatch[Any, Any] = HandlerBatch(RECORDS)

    with pytest.raises(ValueError, match="not a record of this batch"):
        batch.fail("z", ValueError())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: handler_call(3), "handler must be a function with a record"),
        (lambda: BatchHandler("x"), "handler must be a function"),  # type: ignore[arg-type]
        (lambda: handler_call("x"), "handler must be a function with a record"),
        (lambda: handler_call(Generating), "is a class: pass an instance of it"),
        (lambda: BatchHandler(Generating), "is a class: pass an instance of it"),
        (lambda: BatchHandler(print, max_records=0), "max_records must be"),
        (lambda: BatchHandler(print, max_records="5"), "max_records must be a whole"),  # type: ignore[arg-type]
        (lambda: BatchHandler(print, max_wait=None), "max_wait must be a number"),  # type: ignore[arg-type]
        (lambda: BatchHandler(print, max_wait=-1), "max_wait must be"),
    ],
)
def test_invalid_handlers_are_errors(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


async def test_failed_task_of_a_cancelled_handler_does_not_end_the_worker() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("bad")

    async def handle(record: str) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail_when_cancelled)
            await anyio.sleep_forever()

    errors: list[Exception | None] = []
    with anyio.move_on_after(0.01) as scope:
        errors += await errors_of(handle, ["a"])

    assert scope.cancelled_caught or isinstance(errors[0], ExceptionGroup)


def test_failing_each_record_of_a_large_batch_takes_linear_time() -> None:
    compared = 0

    class Counting(list[Any]):
        def __iter__(self) -> Any:
            nonlocal compared
            for each in super().__iter__():
                compared += 1
                yield each

    records = Counting(object() for _ in range(20_000))
    batch: HandlerBatch[Any, Any] = HandlerBatch(records)
    error = ValueError("bad")
    for index in range(len(records)):
        batch.fail(records[index], error)

    assert [error] * 20_000 == batch.errors()
    assert compared <= 20_000
