"""Log lines of a worker: outcomes of records, and its threads."""

import json
import threading
import time
import traceback
from typing import Any

import anyio
import anyio.from_thread
import pytest

from sharecons import (
    DeadLetter,
    DeadLetterQueue,
    LockLostError,
    Record,
    Reject,
    RetryPolicy,
)
from sharecons.member.share_source import ShareSource
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, on_real_clock, process, settled, working

pytestmark = pytest.mark.anyio

DEAD = DeadLetterQueue("orders.dead")


def lines_of(caplog: pytest.LogCaptureFixture, event: str) -> list[str]:
    lines = [each.getMessage() for each in caplog.records]
    return [line for line in lines if line.startswith(event)]


@pytest.mark.parametrize(
    ("decision", "event"),
    [(DeadLetter, "record dead-lettered"), (Reject, "record rejected")],
)
async def test_decision_of_a_handler_is_logged_with_its_line_and_attempt(
    broker: MemoryBroker,
    caplog: pytest.LogCaptureFixture,
    decision: type[DeadLetter | Reject],
    event: str,
) -> None:
    broker.produce("orders", [b"bad"])

    async def refuse(record: Record[Any, Any]) -> None:
        raise decision("no such customer")

    await process(broker, refuse, 1, dead_letter=DEAD)

    (line,) = lines_of(caplog, event)
    assert "topic=orders partition=0 offset=0 " in line
    assert " attempt=1 reason='no such customer' " in line
    assert "test_worker_log.py:" in line


@pytest.mark.parametrize("decision", [DeadLetter, Reject])
async def test_reason_that_quotes_an_id_is_logged_if_the_handler_allows_it(
    broker: MemoryBroker,
    caplog: pytest.LogCaptureFixture,
    decision: type[DeadLetter | Reject],
) -> None:
    broker.produce("orders", [b"open", b"secret"], keys=[b"order-4711", b"order-4712"])

    async def refuse(record: Record[Any, Any]) -> None:
        raise decision(
            f"no customer of {record.key.decode()}", log_reason=record.value == b"open"
        )

    await process(broker, refuse, 2, dead_letter=DEAD)

    first, second = sorted(
        lines_of(caplog, "record "), key=lambda line: "offset=1" in line
    )
    assert "reason='no customer of order-4711'" in first
    assert "reason='(not logged: the text quotes a record; pass log_reason=" in second
    assert "4712" not in second


async def test_value_that_is_no_json_is_logged_without_a_line_of_this_package(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"{bad"])

    await process(broker, Handled(), 1, value_deserializer=json.loads, dead_letter=DEAD)

    (line,) = lines_of(caplog, "record dead-lettered")
    assert "reason='value not deserialized: JSONDecodeError'" in line
    assert "json/decoder.py:" in line
    assert "sharecons/" not in line.partition(" at=")[2]


async def test_acknowledgements_that_fail_together_are_counted(
    embedded: EmbeddedBroker,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    embedded.produce("orders", [b"%d" % number for number in range(30)])

    def fail(source: ShareSource, record: object, kind: object) -> None:
        raise LockLostError("the acquisition lock was lost")

    monkeypatch.setattr(ShareSource, "acknowledge", fail)
    async with working(embedded, Handled(), concurrency=30) as worker:
        await until(lambda: worker.stats.accepted == 30)
        worker.stop_now()  # stop() would wait until the records are settled

    lines = lines_of(caplog, "acknowledgement failed; the record is delivered again")
    assert 10 == len(lines)
    assert all(" topic=orders partition=0 offset=" in line for line in lines)
    (more,) = lines_of(caplog, "more acknowledgements failed")
    assert "count=20 within_seconds=60" in more


async def test_each_attempt_of_some_records_is_logged_while_all_records_fail(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(120)])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("down")

    policy = RetryPolicy(max_attempts=4, initial=0.1, maximum=0.1)
    await process(broker, fail, 120, retry=policy, dead_letter=DEAD)

    lines = lines_of(caplog, "attempt failed")
    assert [1, 2, 3, 4] == [
        attempt
        for line in lines
        for attempt in range(5)
        if " offset=0 " in line and f" attempt={attempt} " in line
    ]
    assert 100 + 10 * 4 == len(lines)
    assert 120 == len(lines_of(caplog, "record dead-lettered"))


async def test_failures_at_two_lines_do_not_hide_each_other(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(120)])

    async def fail(record: Record[Any, Any]) -> None:
        if record.value == b"119":
            raise ValueError("rare")
        raise ValueError("many")

    policy = RetryPolicy(max_attempts=2, initial=0.1, maximum=0.1)
    await process(broker, fail, 120, retry=policy, dead_letter=DEAD)

    lines = lines_of(caplog, "attempt failed")
    assert 2 == sum("rare" in line for line in lines)


async def test_handlers_that_exceed_the_grace_period_are_named(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"%d" % number for number in range(12)])

    async def hang(record: Record[Any, Any]) -> None:
        await anyio.sleep_forever()

    handled = Handled(hang)
    options = {"concurrency": 12, "shutdown_grace": 1.0}
    async with working(broker, handled, **options):
        await until(lambda: handled.running == 12)

    (line,) = lines_of(caplog, "handlers cancelled, because the worker ends")
    assert " group=billing records=12 " in line
    assert "positions=orders-0@0-11" in line


async def test_handlers_that_finish_within_the_grace_period_are_not_logged(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"slow"])
    handled = Handled(lambda record: anyio.sleep(0.5))

    async with working(broker, handled, shutdown_grace=1.0):
        await until(lambda: handled.running)

    assert settled(broker, 1)
    assert [] == lines_of(caplog, "handlers cancelled")


@pytest.mark.slow("threads have no virtual clock")
@on_real_clock
async def test_thread_that_checks_for_its_cancellation_is_not_reported_as_stuck(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"long"])
    ended = []

    def compute(record: Record[Any, Any]) -> None:
        if record.delivery_count == 1 and not ended:
            try:
                while True:
                    time.sleep(0.01)  # real time: a thread has no other clock
                    anyio.from_thread.check_cancelled()
            finally:
                ended.append(record.offset)

    async with working(broker, compute, timeout=0.1) as worker:
        await until(lambda: settled(broker, 1))
        assert 0 == worker.stats.abandoned_threads

    assert [0] == ended
    assert 1 == len(lines_of(caplog, "attempt failed"))
    assert [] == lines_of(caplog, "a cancelled handler")
    assert [] == lines_of(caplog, "thread")


@pytest.mark.slow("threads have no virtual clock")
@on_real_clock
async def test_timeout_of_a_thread_is_logged_with_the_line_where_it_hangs(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"stuck"])
    leave = threading.Event()

    def hang_in_thread(record: Record[Any, Any]) -> None:
        leave.wait(30)

    try:
        policy = RetryPolicy(max_attempts=1)
        async with working(broker, hang_in_thread, retry=policy, timeout=0.05):
            await until(lambda: settled(broker, 1))
            leave.set()
    finally:
        leave.set()

    (line,) = lines_of(caplog, "attempt failed")
    assert "error='TimeoutError: the handler took longer than its timeout " in line
    assert "test_worker_log.py:" in line
    assert ".hang_in_thread'" in line
    (rejected,) = [
        each
        for each in caplog.records
        if each.getMessage().startswith("record rejected")
    ]
    assert rejected.exc_info is not None
    assert "leave.wait(30)" in "".join(traceback.format_exception(rejected.exc_info[1]))


@on_real_clock
async def test_thread_that_outlives_the_worker_is_named(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.produce("orders", [b"stuck"])
    begun, leave = threading.Event(), threading.Event()

    def hang_in_thread(record: Record[Any, Any]) -> None:
        begun.set()
        leave.wait(30)

    try:
        async with working(broker, hang_in_thread, shutdown_grace=0.0):
            await until(begun.is_set)
    finally:
        leave.set()

    (line,) = lines_of(caplog, "threads of cancelled handlers have not ended")
    assert "threads=1 " in line
    assert "orders-0@0" in line
    assert "in test_thread_that_outlives_the_worker_is_named" in line


async def test_lost_session_is_one_line_with_the_position_of_the_first_record(
    embedded: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    embedded.produce("orders", [b"x"])
    handled = Handled(lambda record: anyio.sleep_forever())

    async with working(embedded, handled, shutdown_grace=0.0):
        await until(lambda: handled.running == 1)
        embedded.stop_broker(1)
        await until(lambda: handled.running == 0)

        (line,) = lines_of(caplog, "locks lost")
        assert "topic=orders partition=0 offset=0 " in line
        assert "records=1 running=1" in line
        assert "reason='the connection to node 1 was lost: " in line
