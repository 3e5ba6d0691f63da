"""Sending and running tasks with `ShareGroupBroker`, in virtual time."""

import asyncio

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from taskiq import InMemoryBroker
from taskiq.exceptions import SendTaskError
from taskiq.middlewares import SimpleRetryMiddleware, SmartRetryMiddleware

from sharecons.errors import (
    ConfigurationError,
)
from sharecons.taskiq import KEY_LABEL
from sharecons.testing import OffsetState, virtual_time
from tests.taskiq.running import (
    Tasks,
    in_flight,
    make_broker,
    receiving,
)
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> virtual_time.Backend:
    """taskiq runs on asyncio only."""
    return virtual_time.backend("asyncio")


async def test_tasks_run_once_and_their_results_are_stored(kafka) -> None:
    results = InMemoryBroker().result_backend
    broker = make_broker(kafka).with_result_backend(results)
    tasks = Tasks(broker)

    async with receiving(broker):
        sent = [await tasks.note.kiq(number) for number in range(50)]
        for number, task in enumerate(sent):
            result = await task.wait_result(timeout=15)
            assert number == result.return_value

    assert sorted(tasks.calls) == list(range(50))
    await kafka.wait_until_settled("workers")


async def test_tasks_sent_before_the_first_worker_run(kafka) -> None:
    client = make_broker(kafka)
    sending = Tasks(client)
    await client.startup()
    await sending.note.kiq(7)
    await client.shutdown()
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await until(lambda: tasks.calls == [7])


async def test_record_has_key_and_headers_of_the_task(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()

    sent = await tasks.note.kicker().with_labels(**{KEY_LABEL: "customer-1"}).kiq(1)
    await tasks.note.kiq(2)
    await broker.shutdown()

    keyed, plain = kafka.records("tasks")
    assert keyed.key == b"customer-1"
    assert plain.key is None
    assert dict(keyed.headers) == {
        "taskiq-task-id": sent.task_id.encode(),
        "taskiq-task-name": b"note",
    }
    assert broker.formatter.loads(keyed.value or b"").task_id == sent.task_id


async def test_retried_task_keeps_its_key_and_runs_until_the_limit(kafka) -> None:
    broker = make_broker(kafka).with_middlewares(
        SimpleRetryMiddleware(default_retry_count=3, default_retry_label=True)
    )
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.fail.kicker().with_labels(**{KEY_LABEL: "k"}).kiq(1)
        await until(lambda: len(tasks.calls) == 3)
        await kafka.wait_until_settled("workers")

    assert [record.key for record in kafka.records("tasks")] == [b"k"] * 3


async def test_smart_retry_waits_before_the_next_attempt(kafka) -> None:
    broker = make_broker(kafka).with_middlewares(
        SmartRetryMiddleware(
            default_retry_count=2, default_retry_label=True, default_delay=1.5
        )
    )
    tasks = Tasks(broker)
    clock = asyncio.get_running_loop().time

    async with receiving(broker):
        await tasks.fail.kiq(1)
        await until(lambda: tasks.calls == [1])
        failed_at = clock()
        # Longer than the lock: the waiting record is renewed.
        await until(lambda: in_flight(kafka) == [(OffsetState.ACQUIRED, 1)])
        await until(lambda: tasks.calls == [1, 1])
        assert clock() - failed_at >= 1.3
        await kafka.wait_until_settled("workers")


async def test_delayed_task_lets_others_run_before_it(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker, max_async_tasks=1):
        await tasks.note.kicker().with_labels(delay=1.2).kiq(1)
        await tasks.note.kicker().with_labels(delay=0.6).kiq(2)
        await tasks.note.kiq(3)
        await until(lambda: len(tasks.calls) == 3)

    assert tasks.calls == [3, 2, 1]


@pytest.mark.parametrize("delay", [-1, 901, "soon", "nan"])
async def test_invalid_delay_is_an_error_of_the_sender(kafka, delay) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()

    with pytest.raises(SendTaskError) as raised:
        await tasks.note.kicker().with_labels(delay=delay).kiq(1)
    await broker.shutdown()

    assert isinstance(raised.value.__cause__, ConfigurationError)
    assert kafka.records("tasks") == ()
