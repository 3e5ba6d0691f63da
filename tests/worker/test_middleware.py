"""Middleware around a handler, and the outcomes that it sees; without a broker."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from sharecons import (
    Attempt,
    BatchAttempt,
    BatchHandler,
    DeadLetter,
    HandlerBatch,
    Reject,
    Retry,
    RetryPolicy,
)
from sharecons.worker.failure_texts import FailureTexts
from sharecons.worker.handlers import handler_call
from sharecons.worker.machine.actions import OutcomeDecided
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.middleware_chain import MiddlewareCall, MiddlewareChain
from sharecons.worker.outcomes import (
    Accepted,
    DeadLettered,
    RecordOutcome,
    Rejected,
    RetryAfter,
)
from tests.worker.machine.simulated_worker import SimulatedWorker
from tests.worker.working import Handled, on_real_clock

pytestmark = pytest.mark.anyio

ERROR = ValueError("bad")
OTHER = LookupError("other")
POLICY = RetryPolicy(max_attempts=3, initial=10.0, jitter=0.0)
JITTER = RetryPolicy(max_attempts=3, initial=10.0, jitter=1.0)


class Attempted:
    """A call of a handler within middleware, and the outcomes of its records."""

    def __init__(
        self,
        handler: Any,
        *middleware: Any,
        records: int = 1,
        timeout: float | None = None,
        retry: RetryPolicy = POLICY,
        unreadable: int = 0,
        **settings: Any,
    ) -> None:
        self.worker = worker = SimulatedWorker(
            HandlerSettings(retry=retry, max_records=records, **settings)
        )
        self.items = [worker.deliver(offset) for offset in range(records)]
        worker.start_calls()
        self.work = worker.assigned[0]
        assert worker.begin(self.work)
        errors = [(item, ERROR) for item in self.items[:unreadable]]
        worker.machine.on_not_deserialized(self.work, errors, worker.now)
        chances = itertools.cycle([0.25, 0.75, 0.5])
        chain = MiddlewareChain(
            middleware,
            worker.machine.decisions,
            FailureTexts(),
            lambda: worker.now,
            chance=lambda: next(chances),
        )
        self.call: MiddlewareCall = chain.begin(
            handler_call(handler, timeout), self.work
        )

    async def outcomes(self) -> list[RecordOutcome]:
        errors = await self.call()
        actions = self.worker.machine.on_results(
            self.work, errors, self.worker.now, 0.5, self.call.chances
        )
        return [each.outcome for each in actions if isinstance(each, OutcomeDecided)]


async def outcome_of(handler: Any, *middleware: Any, **options: Any) -> RecordOutcome:
    (outcome,) = await Attempted(handler, *middleware, **options).outcomes()
    return outcome


def retried(error: Exception, seconds: float = 10.0) -> RetryAfter:
    return RetryAfter(seconds, 2, error)


def error_of(outcome: RecordOutcome) -> Exception:
    assert isinstance(outcome, RetryAfter | Rejected | DeadLettered)
    assert outcome.error is not None
    return outcome.error


async def succeed(record: Any) -> None:
    await anyio.lowlevel.checkpoint()


async def fail(record: Any) -> None:
    await anyio.lowlevel.checkpoint()
    raise ERROR


async def hang(record: Any) -> None:
    await anyio.sleep_forever()


async def pass_on(attempt: Any, call_next: Any) -> None:
    await call_next()


async def commit(attempt: Any, call_next: Any) -> None:
    """Fail after success."""
    await call_next()
    raise OTHER


async def linger(attempt: Any, call_next: Any) -> None:
    """Do not end after success."""
    await call_next()
    await anyio.sleep_forever()


async def hide(attempt: Any, call_next: Any) -> None:
    """Catch everything."""
    with contextlib.suppress(BaseException):
        await call_next()


class Recording:
    """Middleware that records what it sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def __call__(self, attempt: Any, call_next: Any) -> None:
        self.seen.append([each.outcome for each in attempt.attempts])
        try:
            await call_next()
        except BaseException as error:
            self.seen.append(error)
            raise
        finally:
            self.seen.append([each.outcome for each in attempt.attempts])


# Order and arguments.


async def test_first_middleware_is_the_outermost() -> None:
    steps: list[str] = []

    def named(name: str) -> Any:
        async def middleware(attempt: Any, call_next: Any) -> None:
            steps.append(f"{name} begins")
            await call_next()
            steps.append(f"{name} ends")

        return middleware

    async def handle(record: Any) -> None:
        steps.append("handler")

    assert Accepted() == await outcome_of(handle, named("first"), named("second"))
    assert [
        "first begins",
        "second begins",
        "handler",
        "second ends",
        "first ends",
    ] == steps


async def test_middleware_of_one_record_sees_record_number_and_handler() -> None:
    attempts: list[Attempt[Any, Any]] = []

    async def note(attempt: Attempt[Any, Any], call_next: Any) -> None:
        attempts.append(attempt)
        await call_next()

    attempted = Attempted(succeed, note)
    await attempted.outcomes()

    (attempt,) = attempts
    item = attempted.items[0]
    assert isinstance(attempt, Attempt)
    assert (item.argument, 1, "succeed") == (
        attempt.record,
        attempt.number,
        attempt.handler,
    )
    assert ((item.argument,), (attempt,)) == (attempt.records, attempt.attempts)
    assert "<Attempt 1 of succeed: orders-0 delivery 1, outcome Accepted()>" == repr(
        attempt
    )


async def test_middleware_of_a_batch_sees_each_attempt() -> None:
    attempts: list[BatchAttempt[Any, Any]] = []

    async def note(attempt: BatchAttempt[Any, Any], call_next: Any) -> None:
        attempts.append(attempt)
        await call_next()

    two = Attempted(BatchHandler(succeed), note, records=2)
    one = Attempted(BatchHandler(succeed, max_records=1), note, records=1)
    await two.outcomes()
    await one.outcomes()

    assert [BatchAttempt, BatchAttempt] == [type(each) for each in attempts]
    assert tuple(item.argument for item in two.items) == attempts[0].records
    assert [1, 1] == [each.number for each in attempts[0].attempts]
    assert 1 == len(attempts[1].attempts)
    assert "<BatchAttempt of succeed: 2 records>" == repr(attempts[0])


async def test_context_variable_reaches_the_handler_and_nothing_after_it() -> None:
    trace: ContextVar[str] = ContextVar("trace")
    seen: list[str | None] = []

    async def set_trace(attempt: Any, call_next: Any) -> None:
        token = trace.set("span")
        await call_next()
        trace.reset(token)

    async def handle(record: Any) -> None:
        seen.append(trace.get())

    assert Accepted() == await outcome_of(handle, set_trace, pass_on)
    assert (["span"], None) == (seen, trace.get(None))


@on_real_clock
async def test_context_variable_reaches_a_plain_handler_in_its_thread() -> None:
    trace: ContextVar[str] = ContextVar("trace")
    seen: list[str] = []

    async def set_trace(attempt: Any, call_next: Any) -> None:
        trace.set("span")
        await call_next()

    def handle(record: Any) -> None:
        seen.append(trace.get())

    assert Accepted() == await outcome_of(handle, set_trace)
    assert ["span"] == seen


@on_real_clock
async def test_exception_of_a_plain_handler_reaches_middleware() -> None:
    recording = Recording()

    def handle(record: Any) -> None:
        raise ERROR

    assert retried(ERROR) == await outcome_of(handle, recording)
    assert [[None], ERROR, [retried(ERROR)]] == recording.seen


# Exceptions.


async def test_exception_of_the_handler_reaches_every_middleware() -> None:
    outer, inner = Recording(), Recording()

    assert retried(ERROR) == await outcome_of(fail, outer, inner)
    assert [[None], ERROR, [retried(ERROR)]] == outer.seen == inner.seen


async def test_caught_exception_is_no_success() -> None:
    outer = Recording()

    assert retried(ERROR) == await outcome_of(fail, outer, hide)
    assert ERROR is outer.seen[1], "an outer transaction must roll back"


async def test_caught_decision_of_the_handler_is_kept() -> None:
    async def handle(record: Any) -> None:
        raise Reject("old")

    assert Rejected("old") == await outcome_of(handle, hide)


async def test_exception_after_success_fails_the_attempt() -> None:
    outer = Recording()

    async def commit(attempt: Any, call_next: Any) -> None:
        await call_next()
        assert Accepted() == attempt.outcome
        raise OTHER

    assert retried(OTHER) == await outcome_of(succeed, outer, commit)
    assert [[None], OTHER, [retried(OTHER)]] == outer.seen


async def test_exception_instead_of_the_handlers_counts() -> None:
    async def translate(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        except ValueError as error:
            raise DeadLetter("cannot be read") from error

    outer = Recording()
    outcome = await outcome_of(fail, outer, translate)

    assert Rejected("cannot be read") == outcome == outer.seen[2][0]


async def test_exception_in_a_task_group_counts_as_the_handlers() -> None:
    async def in_group(attempt: Any, call_next: Any) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call_next)

    outer = Recording()
    assert retried(ERROR) == await outcome_of(fail, outer, in_group)
    assert ERROR is outer.seen[1]


@pytest.mark.parametrize(
    ("decision", "outcome"),
    [
        (Retry(after=7.0), RetryAfter(7.0, 2)),
        (Reject("old"), Rejected("old")),
        (DeadLetter("bad"), DeadLettered("bad", cause="decision")),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_decision_before_call_next_counts_without_the_handler(
    decision: Exception, outcome: RecordOutcome
) -> None:
    handled = Handled()

    async def decide(attempt: Any, call_next: Any) -> None:
        raise decision

    decided = await outcome_of(handled, decide, dead_letter="orders.dead")
    if isinstance(decided, RetryAfter):
        decided = decided._replace(error=None)

    assert (outcome, []) == (decided, handled.calls)


async def test_exception_of_middleware_stops_the_worker_with_stop_on_error() -> None:
    attempted = Attempted(succeed, commit, stop_on_error=True)
    await attempted.outcomes()

    assert 1 == attempted.worker.machine.counts.failed


async def test_falsy_exception_is_a_failure() -> None:
    class FalsyError(Exception):
        def __bool__(self) -> bool:
            return False

    error = FalsyError()

    async def handle(record: Any) -> None:
        raise error

    assert retried(error) == await outcome_of(handle, pass_on, hide)


# Misuse of call_next.


async def test_middleware_without_call_next_fails_the_attempt() -> None:
    handled = Handled()

    async def forget(attempt: Any, call_next: Any) -> None:
        pass

    error = error_of(await outcome_of(handled, pass_on, forget))

    assert [] == handled.calls
    assert "forget has ended without `await call_next()`" in str(error)
    assert "raise Retry, Reject or DeadLetter" in str(error)


async def test_middleware_that_returns_call_next_unawaited_fails_the_attempt() -> None:
    async def forget(attempt: Any, call_next: Any) -> Any:
        return call_next()

    error = error_of(await outcome_of(succeed, forget))

    assert "without `await call_next()`" in str(error)


async def test_second_call_next_is_an_error_and_runs_nothing() -> None:
    handled = Handled()

    async def twice(attempt: Any, call_next: Any) -> None:
        await call_next()
        await call_next()

    error = error_of(await outcome_of(handled, twice))

    assert 1 == len(handled.calls)
    assert "call_next() was called twice" in str(error)


async def test_second_call_next_after_a_failure_runs_nothing() -> None:
    handled = Handled(fail)

    async def again(attempt: Any, call_next: Any) -> None:
        for _ in range(3):
            with contextlib.suppress(ValueError, RuntimeError):
                await call_next()

    assert retried(ERROR) == await outcome_of(handled, again)
    assert 1 == len(handled.calls)


async def test_call_next_after_the_middleware_has_ended_runs_nothing() -> None:
    kept: list[Any] = []
    handled = Handled()

    async def keep(attempt: Any, call_next: Any) -> None:
        kept.append(call_next)
        raise Retry(after=1.0)

    await outcome_of(handled, keep)
    with pytest.raises(RuntimeError, match="after its middleware had ended"):
        await kept[0]()

    assert [] == handled.calls


async def test_middleware_that_ends_before_call_next_fails_after_the_handler() -> None:
    steps: list[str] = []

    async def handle(record: Any) -> None:
        steps.append("begins")
        await anyio.sleep(5.0)
        steps.append("ends")

    async with anyio.create_task_group() as tasks:

        async def start(attempt: Any, call_next: Any) -> None:
            tasks.start_soon(call_next)
            await anyio.sleep(1.0)

        error = error_of(await outcome_of(handle, start))
        assert ["begins", "ends"] == steps, "another attempt can start now"

    assert "start has ended before call_next()" in str(error)


# Outcomes.


async def test_previewed_outcome_is_carried_out() -> None:
    recording = Recording()

    outcome = await outcome_of(fail, recording, pass_on, retry=JITTER)

    assert retried(ERROR, 5.0) == outcome, "the chance is 0.25"
    assert [outcome] == recording.seen[2]


async def test_previewed_outcome_has_the_same_chance_after_another_error() -> None:
    outer = Recording()

    async def translate(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        except ValueError:
            assert retried(ERROR, 5.0) == attempt.outcome
            raise OTHER from None

    outcome = await outcome_of(fail, outer, translate, retry=JITTER)

    assert retried(OTHER, 5.0) == outcome
    assert [outcome] == outer.seen[2]


async def test_outcome_changes_if_the_worker_stops_meanwhile() -> None:
    async def stop(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        finally:
            assert retried(ERROR) == attempt.outcome
            attempted.worker.machine.stop()

    attempted = Attempted(fail, stop)
    (outcome,) = await attempted.outcomes()

    assert "Released" == type(outcome).__name__, "no record waits in a stopping worker"


async def test_release_on_the_last_delivery_is_seen_as_a_dead_letter() -> None:
    recording = Recording()
    attempted = Attempted(fail, recording, dead_letter="orders.dead")
    attempted.items[0].record.delivery_count = 5
    attempted.worker.machine.stop()

    (outcome,) = await attempted.outcomes()

    assert isinstance(outcome, DeadLettered)
    assert [outcome] == recording.seen[2]


# Batches.


async def fail_second(batch: HandlerBatch[Any, Any]) -> None:
    batch.fail(batch[1], ERROR)


async def test_marked_records_of_a_batch_fail_and_call_next_returns() -> None:
    recording = Recording()

    handler = BatchHandler(fail_second)
    outcomes = await Attempted(handler, recording, records=3).outcomes()

    assert [Accepted(), retried(ERROR), Accepted()] == outcomes
    assert [[None] * 3, outcomes] == recording.seen


async def test_returned_errors_of_a_batch_are_seen() -> None:
    recording = Recording()

    async def handle(batch: HandlerBatch[Any, Any]) -> list[Exception | None]:
        return [None, ERROR]

    outcomes = await Attempted(BatchHandler(handle), recording, records=2).outcomes()

    assert [Accepted(), retried(ERROR)] == outcomes == recording.seen[1]


async def test_exception_after_success_fails_the_records_that_had_succeeded() -> None:
    handler = BatchHandler(fail_second)
    outcomes = await Attempted(handler, commit, records=3, retry=JITTER).outcomes()

    assert [OTHER, ERROR, OTHER] == [error_of(each) for each in outcomes]
    assert [5.0, 15.0, 10.0] == [
        each.seconds for each in outcomes if isinstance(each, RetryAfter)
    ]


async def test_batch_handler_that_returns_something_else_raises_in_call_next() -> None:
    recording = Recording()

    async def handle(batch: HandlerBatch[Any, Any]) -> Any:
        return 5

    outcomes = await Attempted(BatchHandler(handle), recording, records=2).outcomes()

    assert isinstance(recording.seen[1], TypeError)
    assert [recording.seen[1]] * 2 == [error_of(each) for each in outcomes]


# Timeouts.


async def test_timeout_in_the_handler_is_seen_as_an_outcome() -> None:
    recording = Recording()

    outcome = await outcome_of(hang, recording, timeout=2.0)

    assert isinstance(error_of(outcome), TimeoutError)
    ((seen,),) = recording.seen[2:]
    assert isinstance(error_of(seen), TimeoutError)


async def test_timeout_ends_in_middleware() -> None:
    outer = Recording()

    outcome = await outcome_of(succeed, outer, linger, timeout=2.0)

    assert "longer than its timeout of 2 s" in str(error_of(outcome))
    assert isinstance(error_of(outer.seen[2][0]), TimeoutError)


async def test_decision_after_the_timeout_counts() -> None:
    async def decide(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        finally:
            raise Reject("too slow")

    assert Rejected("too slow") == await outcome_of(hang, decide, timeout=2.0)


async def test_timeout_of_a_middleware_fails_the_attempt() -> None:
    outer = Recording()

    async def limit(attempt: Any, call_next: Any) -> None:
        with anyio.fail_after(1.0):
            await call_next()

    outcome = await outcome_of(hang, outer, limit)

    assert isinstance(error_of(outcome), TimeoutError)
    assert [outcome] == outer.seen[2]


async def test_handler_that_a_middleware_cancels_has_failed() -> None:
    outer = Recording()

    async def limit(attempt: Any, call_next: Any) -> None:
        with anyio.move_on_after(1.0):
            await call_next()

    error = error_of(await outcome_of(hang, outer, limit))

    assert "handler was cancelled, and the middleware" in str(error)
    assert error is outer.seen[1]


@on_real_clock
async def test_timeout_of_a_plain_handler_cancels_its_middleware() -> None:
    recording, has_ended = Recording(), threading.Event()

    def wait(record: Any) -> None:
        has_ended.wait(5.0)

    outcome = await outcome_of(wait, recording, timeout=0.02)
    has_ended.set()

    assert isinstance(error_of(outcome), TimeoutError)
    assert isinstance(recording.seen[1], anyio.get_cancelled_exc_class())


# Cancellation.


@contextlib.asynccontextmanager
async def cancelled_after(seconds: float) -> AsyncIterator[anyio.CancelScope]:
    with anyio.move_on_after(seconds) as scope:
        yield scope
    assert scope.cancelled_caught, "the call was not cancelled"


async def test_cancelled_call_cancels_handler_and_middleware() -> None:
    recording = Recording()

    async with cancelled_after(1.0):
        await outcome_of(hang, recording)

    assert isinstance(recording.seen[1], anyio.get_cancelled_exc_class())
    assert [None] == recording.seen[2]


async def test_cancelled_middleware_has_no_outcome() -> None:
    outer = Recording()

    async with cancelled_after(1.0):
        await outcome_of(succeed, outer, linger)

    assert [None] == outer.seen[2], "it would be processed again"


@pytest.mark.parametrize("raised", [OTHER, Reject("old")], ids=["error", "decision"])
async def test_exception_during_a_cancel_does_not_hide_it(raised: Exception) -> None:
    async def clean_up(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        finally:
            raise raised

    async with cancelled_after(1.0):
        await outcome_of(hang, pass_on, clean_up)


async def test_exception_of_a_cancelled_commit_does_not_hide_the_cancel() -> None:
    async def commit(attempt: Any, call_next: Any) -> None:
        await call_next()
        try:
            await anyio.sleep_forever()
        finally:
            raise OTHER

    async with cancelled_after(1.0):
        await outcome_of(succeed, commit)


async def test_middleware_that_catches_a_cancel_does_not_hide_it() -> None:
    outer = Recording()
    async with cancelled_after(1.0):
        await outcome_of(hang, outer, hide)

    assert isinstance(outer.seen[1], anyio.get_cancelled_exc_class())


async def test_middleware_that_catches_a_cancel_within_a_timeout_fails() -> None:
    outcome = await outcome_of(hang, hide, timeout=2.0)

    assert isinstance(error_of(outcome), TimeoutError)


async def test_failed_task_of_a_cancelled_middleware_does_not_hide_the_cancel() -> None:
    async def fail_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OTHER

    async def in_group(attempt: Any, call_next: Any) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail_when_cancelled)
            await call_next()

    async with cancelled_after(1.0):
        await outcome_of(hang, pass_on, in_group)


async def test_call_in_another_task_ends_before_its_cancelled_middleware() -> None:
    """Otherwise the record could be delivered again while its handler runs."""
    steps: list[str] = []

    async def handle(record: Any) -> None:
        await anyio.sleep(5.0)
        steps.append("handler ends")

    async with anyio.create_task_group() as tasks:

        async def start(attempt: Any, call_next: Any) -> None:
            tasks.start_soon(call_next)
            await anyio.sleep_forever()

        async with cancelled_after(1.0):
            await outcome_of(handle, start)
        assert ["handler ends"] == steps


async def test_exit_of_the_program_is_not_hidden() -> None:
    async def leave(record: Any) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await outcome_of(leave, hide)


async def test_result_of_a_handler_that_ends_during_a_cancel_is_kept() -> None:
    async def finish(record: Any) -> None:
        with contextlib.suppress(anyio.get_cancelled_exc_class()):
            await anyio.sleep_forever()

    outcomes: list[RecordOutcome] = []
    with anyio.move_on_after(1.0):
        outcomes.append(await outcome_of(finish, pass_on))

    assert [Accepted()] == outcomes, "as without middleware"


async def test_lock_lost_is_the_outcome_of_a_cancelled_call() -> None:
    recording = Recording()
    attempted = Attempted(hang, recording)

    async with cancelled_after(1.0):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempted.outcomes)
            await anyio.sleep(0.5)
            for action in attempted.worker.machine.on_locks_lost(attempted.items, ""):
                if isinstance(action, OutcomeDecided):
                    attempted.call.set_outcome(action.item, action.outcome)

    assert ["LockLost"] == [type(each).__name__ for each in recording.seen[2]]


# Tasks of asyncio that are cancelled by their own code.

ON_ASYNCIO = [pytest.param("asyncio", id="asyncio")]
in_asyncio = pytest.mark.parametrize("anyio_backend", ON_ASYNCIO)


async def cancel_itself(record: Any) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@in_asyncio
async def test_handler_that_cancels_its_own_task_has_failed() -> None:
    rolled_back: list[str] = []

    async def transaction(attempt: Any, call_next: Any) -> None:
        try:
            await call_next()
        except BaseException:
            await asyncio.sleep(0)
            rolled_back.append("rolled back")
            raise

    error = error_of(await outcome_of(cancel_itself, transaction))

    assert "the handler cancelled its own task" == str(error)
    assert ["rolled back"] == rolled_back


@in_asyncio
async def test_middleware_that_hides_a_self_cancelled_handler_leaves_no_cancel() -> (
    None
):
    error = error_of(await outcome_of(cancel_itself, hide))

    assert "handler was cancelled, and the middleware" in str(error)
    task = asyncio.current_task()
    assert task is not None
    assert 0 == task.cancelling(), "a later handler would be cancelled"


@in_asyncio
async def test_timeouts_of_asyncio_work_in_middleware() -> None:
    async def limit(attempt: Any, call_next: Any) -> None:
        async with asyncio.timeout(0.01):
            await call_next()

    outcome = await outcome_of(hang, pass_on, limit)

    assert isinstance(error_of(outcome), TimeoutError)
    assert "TimeoutError" == type(error_of(outcome)).__name__


@in_asyncio
async def test_wait_for_works_in_middleware() -> None:
    async def limit(attempt: Any, call_next: Any) -> None:
        await asyncio.wait_for(call_next(), 0.01)

    outcome = await outcome_of(hang, limit)

    assert isinstance(error_of(outcome), TimeoutError)


@pytest.mark.parametrize("records", [2, 3])
async def test_lost_lock_of_an_unreadable_record_is_no_outcome_of_its_batch(
    records: int,
) -> None:
    """Its dead letter is still being written; it has left the call before."""
    attempts: list[Any] = []

    async def keep(attempt: Any, call_next: Any) -> None:
        attempts.extend(attempt.attempts)
        await call_next()

    handler = BatchHandler(hang, max_records=records)
    attempted = Attempted(
        handler, keep, records=records, unreadable=1, dead_letter="dead"
    )

    async with cancelled_after(1.0):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempted.outcomes)
            await anyio.sleep(0.5)
            first = attempted.items[:1]
            for action in attempted.worker.machine.on_locks_lost(first, ""):
                if isinstance(action, OutcomeDecided):
                    attempted.call.set_outcome(action.item, action.outcome)

            assert [None] * (records - 1) == [each.outcome for each in attempts]
