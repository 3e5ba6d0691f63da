"""ShareGroupBroker under taskiq's receiver, on the embedded broker."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from taskiq import Context, InMemoryBroker, TaskiqDepends, TaskiqEvents
from taskiq.acks import AcknowledgeType
from taskiq.exceptions import SendTaskError
from taskiq.middlewares import SimpleRetryMiddleware, SmartRetryMiddleware

from sharecons.errors import (
    BrokerError,
    ConfigurationError,
    ConnectionFailedError,
    ConsumerStateError,
    RequestTimedOutError,
    WrongThreadError,
)
from sharecons.taskiq import KEY_LABEL, ShareGroupBroker
from sharecons.testing import EmbeddedBroker, OffsetState
from sharecons.testing.pytest_plugin import SETTINGS
from tests.taskiq.running import receiving, until

pytestmark = pytest.mark.anyio

LOCK_MS = 1000
CONTEXT: Any = TaskiqDepends()


@pytest.fixture
async def kafka() -> AsyncIterator[EmbeddedBroker]:
    settings = {**SETTINGS, "group.share.min.record.lock.duration.ms": str(LOCK_MS)}
    async with EmbeddedBroker(settings=settings) as kafka:
        kafka.create_topic("tasks", partitions=1)
        kafka.set_group_config(
            "workers", {"share.record.lock.duration.ms": str(LOCK_MS)}
        )
        yield kafka


def make_broker(kafka: EmbeddedBroker, **options: Any) -> ShareGroupBroker:
    return ShareGroupBroker(
        "tasks",
        group_id="workers",
        bootstrap_servers=kafka.bootstrap_servers,
        **options,
    )


def in_flight(kafka: EmbeddedBroker) -> list[tuple[OffsetState, int]]:
    """Return state and delivery count of the offsets that are not settled."""
    partition = kafka.group("workers").partition("tasks")
    return [(each.state, each.delivery_count) for each in partition.in_flight]


def acquired(kafka: EmbeddedBroker) -> int:
    states = Counter(state for state, _ in in_flight(kafka))
    return states[OffsetState.ACQUIRED]


class Tasks:
    """The tasks of a broker, and the calls of them."""

    def __init__(self, broker: ShareGroupBroker) -> None:
        self.calls: list[int] = []
        self.ended: list[int] = []
        self.go = asyncio.Event()

        @broker.task(task_name="note")
        async def note(number: int) -> int:
            self.calls.append(number)
            return number

        @broker.task(task_name="work")
        async def work(number: int, seconds: float = 0.0) -> None:
            self.calls.append(number)
            await asyncio.sleep(seconds)
            self.ended.append(number)

        @broker.task(task_name="block")
        async def block(number: int) -> None:
            self.calls.append(number)
            await self.go.wait()
            self.ended.append(number)

        @broker.task(task_name="tick")
        async def tick(number: int) -> None:
            # All tasks that run end at one time, ten times a second.
            await asyncio.sleep(0.1 - asyncio.get_running_loop().time() % 0.1)
            self.ended.append(number)

        @broker.task(task_name="fail")
        async def fail(number: int) -> None:
            self.calls.append(number)
            raise ValueError(f"task {number}")

        self.note, self.work, self.block = note, work, block
        self.tick, self.fail = tick, fail


# Tasks.


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


# Acknowledgements.


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


async def test_task_may_acknowledge_after_it_has_returned(kafka) -> None:
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


# Locks.


async def test_long_tasks_run_once_beside_quick_ones(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.work.kiq(0, 4 * LOCK_MS / 1000)
        await until(lambda: tasks.calls == [0])
        for number in range(1, 30):
            await tasks.work.kiq(number)
        await until(lambda: len(tasks.ended) == 30)
        await kafka.wait_until_settled("workers")

    assert tasks.ended[-1] == 0
    assert sorted(tasks.calls) == list(range(30))


@pytest.mark.parametrize("max_records", [1, 8])
async def test_records_that_wait_for_the_receiver_are_renewed(
    kafka, max_records
) -> None:
    broker = make_broker(kafka, max_records=max_records)
    tasks = Tasks(broker)
    await broker.startup()
    for number in range(12):
        await tasks.work.kiq(number, 0.6)
    await broker.shutdown()
    counts: list[int] = []

    async with receiving(broker, max_async_tasks=1, max_prefetch=2):
        while len(tasks.ended) < 12:
            await asyncio.sleep(0.05)
            if kafka.group("workers").members:
                counts += [count for _, count in in_flight(kafka)]
        await kafka.wait_until_settled("workers")

    assert sorted(tasks.calls) == list(range(12))
    assert set(counts) <= {0, 1}, "no delivery is used up by waiting"


async def test_no_more_is_held_than_the_receiver_takes(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()
    for number in range(40):
        await tasks.block.kiq(number)
    await broker.shutdown()

    async with receiving(broker, max_async_tasks=5, max_prefetch=3):
        await until(lambda: len(tasks.calls) == 5)
        await until(lambda: acquired(kafka) == 8)
        await asyncio.sleep(2 * LOCK_MS / 1000)
        assert acquired(kafka) == 8
        tasks.go.set()
        await until(lambda: len(tasks.ended) == 40)


async def test_records_of_several_kafka_brokers_are_renewed_while_they_wait() -> None:
    settings = {**SETTINGS, "group.share.min.record.lock.duration.ms": str(LOCK_MS)}
    async with EmbeddedBroker(brokers=3, settings=settings) as kafka:
        kafka.create_topic("tasks", partitions=6)
        lock = {"share.record.lock.duration.ms": str(LOCK_MS)}
        kafka.set_group_config("workers", lock)
        broker = make_broker(kafka)
        tasks = Tasks(broker)
        await broker.startup()
        for number in range(30):
            # A key for each task spreads them over the partitions.
            kicker = tasks.block.kicker().with_labels(**{KEY_LABEL: str(number)})
            await kicker.kiq(number)
        await broker.shutdown()

        async with receiving(broker, max_async_tasks=1):
            await until(lambda: len(tasks.calls) == 1)
            await asyncio.sleep(3 * LOCK_MS / 1000)
            in_flight = [
                each
                for partition in kafka.group("workers").partitions
                for each in partition.in_flight
            ]
            assert len(tasks.calls) == 1
            delivered = [each for each in in_flight if each.delivery_count]
            assert 1 <= len(delivered) <= 3
            assert {each.state for each in delivered} == {OffsetState.ACQUIRED}
            assert {each.delivery_count for each in delivered} == {1}
            tasks.go.set()
            await until(lambda: len(tasks.ended) == 30)
            await kafka.wait_until_settled("workers")

    assert sorted(tasks.calls) == list(range(30))


async def test_batches_are_fetched_up_to_the_room_of_the_receiver(kafka) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)
    await broker.startup()
    await asyncio.gather(*(tasks.tick.kiq(number) for number in range(150)))
    await broker.shutdown()
    most_held = 0

    async with receiving(broker, max_async_tasks=15, max_prefetch=5):
        source = broker._source
        assert source is not None
        while len(tasks.ended) < 150:
            await asyncio.sleep(0)
            most_held = max(most_held, len(source._tasks.held))
        fetches = [each for each in kafka.requests if each.api == "ShareFetch"]

    assert 15 < most_held <= 20
    assert len(fetches) < 100


async def test_task_longer_than_max_lease_loses_its_lock(kafka, caplog) -> None:
    broker = make_broker(kafka, max_lease=1.0)
    tasks = Tasks(broker)

    async with receiving(broker, max_async_tasks=2):
        await tasks.block.kiq(1)
        await until(lambda: tasks.calls == [1, 1])
        assert "lock lost: the task can run again" in caplog.text
        tasks.go.set()
        await kafka.wait_until_settled("workers")

    assert "task not acknowledged: its lock is lost" in caplog.text


async def test_lock_lost_with_the_connection_makes_ack_a_logged_no_op(
    kafka, caplog
) -> None:
    broker = make_broker(kafka)
    tasks = Tasks(broker)

    async with receiving(broker):
        await tasks.block.kiq(1)
        await until(lambda: tasks.calls == [1])
        kafka.stop_broker(1)
        await until(lambda: "lock lost" in caplog.text)
        kafka.start_broker(1)
        await until(lambda: tasks.calls == [1, 1])
        tasks.go.set()
        await kafka.wait_until_settled("workers")

    assert tasks.ended == [1, 1]
    assert "task not acknowledged: its lock is lost" in caplog.text


# Starting and stopping.


async def test_stop_releases_what_did_not_run_and_awaits_what_runs(kafka) -> None:
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


async def test_event_handlers_may_send_tasks_when_starting_and_stopping(kafka) -> None:
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

    # Far more than are written at a time.
    async with asyncio.timeout(5):
        sent = [tasks.note.kiq(number) for number in range(300)]
        errors = await asyncio.gather(*sent, return_exceptions=True)
    kafka.start_broker(1)
    await broker.shutdown()

    causes = {type(error.__cause__) for error in errors if error is not None}
    assert causes == {RequestTimedOutError}
    assert len(errors) == 300


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


async def test_worker_without_kafka_fails_to_start() -> None:
    broker = ShareGroupBroker(
        "tasks",
        group_id="workers",
        bootstrap_servers="localhost:1",
        connect_timeout=0.3,
    )
    broker.is_worker_process = True

    with pytest.raises(ConnectionFailedError):
        await broker.startup()


async def test_second_receiver_is_rejected(kafka) -> None:
    broker = make_broker(kafka)
    Tasks(broker)

    async with receiving(broker):
        await until(lambda: broker._source is not None and broker._source._taking)
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
        {"max_lease": -1},
        {"max_delay": float("nan")},
        {"delivery_timeout": 0},
        {"auto_offset_reset": "first"},
        {"client_rack": ""},
    ],
)
def test_invalid_argument_is_rejected(options: dict[str, Any]) -> None:
    topic = options.pop("topic", "tasks")
    with pytest.raises(ConfigurationError):
        ShareGroupBroker(topic, **{"group_id": "workers", **options})
