"""Starting and stopping `ShareGroupBroker`, and its errors, in virtual time."""

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from taskiq import TaskiqEvents
from taskiq.exceptions import SendTaskError

from sharecons.errors import (
    BrokerError,
    ConfigurationError,
    ConnectionFailedError,
    ConsumerStateError,
    RequestTimedOutError,
    WrongThreadError,
)
from sharecons.taskiq import ShareGroupBroker
from sharecons.taskiq.settings import NO_OPTIONS, BrokerSettings
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


async def test_stop_waits_for_running_tasks_and_releases_the_others(kafka) -> None:
    broker = make_broker(kafka, max_records=4)
    tasks = Tasks(broker)
    await broker.startup()
    await tasks.block.kiq(0)
    await tasks.note.kicker().with_labels(delay=60).kiq(1)
    for number in range(2, 6):
        await tasks.block.kiq(number)
    await broker.shutdown()

    async with receiving(broker, max_async_tasks=1):
        await until(lambda: len(tasks.calls) == 1)
        asyncio.get_running_loop().call_later(1.0, tasks.go.set)

    assert tasks.ended == [0]
    assert Counter(in_flight(kafka))[OffsetState.ACQUIRED, 1] == 0
    partition = kafka.group("workers").partition("tasks")
    assert partition.start_offset == 1
    assert kafka.group("workers").members == ()


async def test_stop_while_tasks_run_releases_them(kafka, caplog) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker, wait_tasks_timeout=0.2):
        await tasks.block.kiq(1)
        await until(lambda: tasks.calls == [1])

    assert in_flight(kafka) == [(OffsetState.AVAILABLE, 1)]
    tasks.go.set()
    await until(lambda: tasks.ended == [1])
    await until(lambda: "task not acknowledged" in caplog.text)


async def test_client_starts_no_consumer_and_can_start_again(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    for number in range(2):
        await broker.startup()
        await tasks.note.kiq(number)
        await broker.shutdown()
        await broker.shutdown()

    assert len(kafka.records("tasks")) == 2
    with pytest.raises(LookupError):
        kafka.group("workers")
    with pytest.raises(SendTaskError) as raised:
        await tasks.note.kiq(2)
    assert isinstance(raised.value.__cause__, ConsumerStateError)


async def test_event_handlers_send_tasks_when_starting_and_stopping(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    @broker.on_event(TaskiqEvents.WORKER_STARTUP, TaskiqEvents.WORKER_SHUTDOWN)
    async def send(_: object) -> None:
        await tasks.note.kiq(1)

    async with receiving(broker):
        await until(lambda: tasks.calls == [1])

    assert len(kafka.records("tasks")) == 2


async def test_sending_without_kafka_fails_after_the_delivery_timeout(kafka) -> None:
    broker = make_broker(kafka, delivery_timeout=0.5)
    tasks = Tasks(broker)
    await broker.startup()
    await tasks.note.kiq(0)
    kafka.stop_broker(1)

    # More than the broker writes at a time.
    async with asyncio.timeout(5):
        sent = [tasks.note.kiq(number) for number in range(300)]
        errors = await asyncio.gather(*sent, return_exceptions=True)
    kafka.start_broker(1)
    await broker.shutdown()

    causes = {type(error.__cause__) for error in errors if error is not None}
    assert causes == {RequestTimedOutError}
    assert len(errors) == 300


async def test_sending_without_kafka_raises_the_reason(kafka) -> None:
    broker = make_broker(kafka, delivery_timeout=3.0)
    tasks = Tasks(broker)
    await broker.startup()
    kafka.stop_broker(1)
    with pytest.raises(SendTaskError) as stopped:
        await tasks.note.kiq(1)
    kafka.start_broker(1)
    kafka.delete_topic("tasks")
    with pytest.raises(SendTaskError) as deleted:
        await tasks.note.kiq(1)
    await broker.shutdown()

    assert isinstance(stopped.value.__cause__, RequestTimedOutError)
    assert "not written; last error" in str(stopped.value.__cause__)
    assert isinstance(deleted.value.__cause__, BrokerError)
    assert "topic 'tasks' does not exist" in str(deleted.value.__cause__)


async def test_cancelled_send_lets_others_send(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()
    with kafka.faults.on("Produce").stall():
        sends = [asyncio.create_task(tasks.note.kiq(n)) for n in range(100)]
        await asyncio.sleep(0.2)
        for send in sends:
            send.cancel()
        ended = await asyncio.gather(*sends, return_exceptions=True)
    assert {type(each) for each in ended} == {asyncio.CancelledError}

    async with asyncio.timeout(20):
        await asyncio.gather(*(tasks.note.kiq(n) for n in range(100)))
    await broker.shutdown()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # a thread needs real time
async def test_send_from_another_event_loop_is_rejected(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()

    with pytest.raises(SendTaskError) as raised:
        await asyncio.to_thread(lambda: asyncio.run(tasks.note.kiq(1)))
    await broker.shutdown()

    assert isinstance(raised.value.__cause__, WrongThreadError)


async def test_cancelled_receiver_releases_its_tasks(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    broker.is_worker_process = True
    await broker.startup()
    listening = broker.listen()
    for number in range(3):
        await tasks.note.kiq(number)
    taken = await anext(listening)
    waiting = asyncio.create_task(anext(listening))
    await waiting
    blocked = asyncio.create_task(anext(listening))
    blocked.cancel()
    await asyncio.gather(blocked, return_exceptions=True)
    del taken, waiting
    await broker.shutdown()

    states = in_flight(kafka)
    assert {state for state, _ in states} == {OffsetState.AVAILABLE}
    assert len(states) in (2, 3)


async def test_failed_startup_leaves_nothing_running(kafka) -> None:
    broker = make_broker(kafka)
    broker.is_worker_process = True

    @broker.on_event(TaskiqEvents.WORKER_STARTUP)
    async def refuse(_: object) -> None:
        raise ZeroDivisionError

    before = asyncio.all_tasks()
    with pytest.raises(ZeroDivisionError):
        await broker.startup()

    assert asyncio.all_tasks() == before


async def test_worker_without_kafka_fails_to_start(kafka) -> None:
    broker = make_broker(kafka, connect_timeout=0.3)
    kafka.stop_broker(1)
    broker.is_worker_process = True

    with pytest.raises(ConnectionFailedError):
        await broker.startup()


async def test_second_receiver_is_rejected(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.note.kiq(1)
        await until(lambda: tasks.calls == [1])
        with pytest.raises(ConsumerStateError, match="another receiver"):
            await anext(broker.listen())


async def test_error_that_ends_the_consumer_ends_the_receiver(kafka) -> None:
    broker = make_broker(kafka)
    Tasks(broker)
    broker.is_worker_process = True
    await broker.startup()
    listening = broker.listen()
    kafka.faults.on("ShareGroupHeartbeat").refuse("INVALID_REQUEST")

    with pytest.raises(BrokerError):
        async with asyncio.timeout(10):
            await anext(listening)
    await broker.shutdown()


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "no/topic"},
        {"group_id": ""},
        {"bootstrap_servers": "nowhere"},
        {"max_records": 0},
        {"max_lock_time": -1},
        {"max_delay": float("nan")},
        {"delivery_timeout": 0},
        {"auto_offset_reset": "first"},
        {"client_rack": ""},
        {"enable_metrics_push": 1},
        {"max_wait": -1},
        {"max_dely": 1},
    ],
)
def test_invalid_argument_is_rejected(options: dict[str, Any]) -> None:
    topic = options.pop("topic", "tasks")
    with pytest.raises(ConfigurationError):
        ShareGroupBroker(topic, **{"group_id": "workers", **options})


@pytest.mark.parametrize("name", NO_OPTIONS)
def test_option_of_a_member_without_a_use_is_rejected_with_the_reason(
    name: str,
) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(NO_OPTIONS[name])):
        ShareGroupBroker("tasks", group_id="workers", **{name: "x"})


def test_options_of_a_member_are_options_of_the_broker() -> None:
    settings = BrokerSettings.of({"max_wait": 2.0, "request_timeout": 3.0})

    member = settings.new_member("workers")

    assert (2.0, 3.0) == (member.fetch.max_wait, member.request_timeout)
    assert (1, True) == (member.fetch.max_records, member.fetch.record_limit)
