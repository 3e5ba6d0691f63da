"""When `ShareGroupBroker` accepts or releases a task's record, in virtual time."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from taskiq import Context, InMemoryBroker, TaskiqDepends
from taskiq.acks import AcknowledgeType

from sharecons.testing import OffsetState, virtual_time
from tests.hostile import NoAttributes, NoText, nested_groups, no_name
from tests.taskiq.running import (
    LOCK_MS,
    Tasks,
    in_flight,
    make_broker,
    receiving,
)
from tests.waiting import until

pytestmark = pytest.mark.anyio

CONTEXT: Any = TaskiqDepends()


@pytest.fixture
def anyio_backend() -> virtual_time.Backend:
    """taskiq runs on asyncio only."""
    return virtual_time.backend("asyncio")


@pytest.mark.parametrize("by_label", [False, True])
async def test_task_acknowledged_when_received_is_settled_while_it_runs(
    kafka, by_label
) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    labels = {"ack_type": "when_received"} if by_label else {}
    ack = None if by_label else AcknowledgeType.WHEN_RECEIVED

    async with receiving(broker, ack_type=ack):
        await tasks.block.kicker().with_labels(**labels).kiq(1)
        await until(lambda: tasks.calls == [1])
        await kafka.wait_until_settled("workers")
        assert tasks.ended == []
        tasks.go.set()


@pytest.mark.parametrize(
    "ack", [AcknowledgeType.WHEN_EXECUTED, AcknowledgeType.WHEN_SAVED]
)
async def test_task_is_held_until_it_is_executed_or_saved(kafka, ack) -> None:
    saved = asyncio.Event()

    class SlowResults(type(InMemoryBroker().result_backend)):  # type: ignore[misc]
        async def set_result(self, task_id: str, result: Any) -> None:
            await saved.wait()

    broker = make_broker(kafka).with_result_backend(SlowResults())
    tasks = Tasks(broker)

    async with receiving(broker, ack_type=ack):
        await tasks.block.kiq(1)
        await until(lambda: tasks.calls == [1])
        assert in_flight(kafka) == [(OffsetState.ACQUIRED, 1)]
        tasks.go.set()
        await until(lambda: tasks.ended == [1])
        if ack is AcknowledgeType.WHEN_EXECUTED:
            await kafka.wait_until_settled("workers")
        else:
            await asyncio.sleep(0.3)
            assert in_flight(kafka) == [(OffsetState.ACQUIRED, 1)]
        saved.set()
        await kafka.wait_until_settled("workers")


async def test_task_that_acknowledges_by_itself_is_delivered_until_it_does(
    kafka,
) -> None:
    broker = make_broker(kafka)
    calls: list[int] = []

    @broker.task(task_name="manual")
    async def manual(context: Context = CONTEXT) -> None:
        calls.append(1)
        if len(calls) == 2:
            await context.ack()

    async with receiving(broker, ack_type=AcknowledgeType.MANUAL):
        await manual.kiq()
        await kafka.wait_until_settled("workers")

    assert len(calls) == 2


async def test_task_that_acknowledges_after_it_has_returned_is_settled(kafka) -> None:
    broker = make_broker(kafka)
    contexts: list[Context] = []

    @broker.task(task_name="later")
    async def later(context: Context = CONTEXT) -> None:
        contexts.append(context)

    async with receiving(broker, ack_type=AcknowledgeType.MANUAL):
        await later.kiq()
        await until(lambda: len(contexts) == 1)
        await asyncio.sleep(0.2 * LOCK_MS / 1000)
        await contexts[0].ack()
        await kafka.wait_until_settled("workers")

    assert len(contexts) == 1


async def test_failed_task_is_acknowledged_as_taskiq_does(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.fail.kiq(1)
        await kafka.wait_until_settled("workers")

    assert tasks.calls == [1]


async def test_message_that_taskiq_cannot_parse_and_empty_record_are_settled(
    kafka, caplog
) -> None:
    kafka.produce("tasks", [b"not a task", None])
    broker = make_broker(kafka)

    async with receiving(broker):
        await kafka.wait_until_settled("workers")

    assert "Cannot parse message" in caplog.text
    assert "record rejected: it has no value" in caplog.text


@pytest.mark.parametrize("make", [NoAttributes, no_name, nested_groups, NoText])
async def test_task_with_a_hostile_exception_is_settled_and_others_run(
    kafka, make
) -> None:
    kafka.set_group_config("workers", {"share.delivery.count.limit": "2"})
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    @broker.task(task_name="bad")
    async def bad() -> None:
        raise make()

    async with receiving(broker):
        await bad.kiq()
        await tasks.note.kiq(7)
        await kafka.wait_until_settled("workers")

    assert tasks.calls == [7]


async def test_message_that_the_receiver_fails_on_is_released_until_the_delivery_limit(
    kafka, caplog
) -> None:
    kafka.set_group_config("workers", {"share.delivery.count.limit": "2"})
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        # taskiq's receiver raises in the task, and acknowledges nothing.
        await tasks.note.kicker().with_labels(ack_type="never").kiq(1)
        await kafka.wait_until_settled("workers")

    assert tasks.calls == []
    assert "taskiq's receiver failed" in caplog.text
    assert "Invalid ack_type label 'never'" in caplog.text
