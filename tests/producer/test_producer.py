"""`Producer` on the embedded broker, in virtual time: sending, closing, cancelling."""

import anyio
import pytest

from sharecons import Error, Producer, ProducerRecord, RecordPosition
from sharecons.errors import (
    AuthorizationError,
    BackgroundTaskError,
    ClosedError,
    ConfigurationError,
    ConnectionFailedError,
    ConsumerStateError,
    RequestTimedOutError,
)
from tests.waiting import until

pytestmark = pytest.mark.anyio


def new_producer(broker, **options) -> Producer:
    return Producer(
        bootstrap_servers=broker.bootstrap_servers, network=broker.network, **options
    )


def values(broker) -> list[bytes | None]:
    return sorted(record.value for record in broker.records("orders"))


async def test_send_returns_the_position_of_the_record(broker) -> None:
    async with new_producer(broker) as producer:
        first = await producer.send("orders", b"a", partition=2, headers=[("n", b"1")])
        second = await producer.send("orders", b"b", partition=2, timestamp=7)

    assert RecordPosition("orders", 2, 0) == first
    assert RecordPosition("orders", 2, 1) == second
    a, b = broker.records("orders")
    assert (("n", b"1"),) == tuple(a.headers)
    assert 7 == b.timestamp


async def test_send_many_returns_each_outcome_in_order(broker) -> None:
    broker.create_topic("small", config={"max.message.bytes": "1000"})
    records = [
        ProducerRecord("orders", b"a", partition=0),
        ProducerRecord("small", b"x" * 5000),
        ProducerRecord("orders", b"b", partition=9),
        ProducerRecord("small", b"y"),
        ProducerRecord("orders", b"c", partition=0),
    ]

    async with new_producer(broker) as producer:
        outcomes = await producer.send_many(iter(records))
        nothing = await producer.send_many([])

    codes = [getattr(outcome, "name", None) for outcome in outcomes]
    assert [
        None,
        "MESSAGE_TOO_LARGE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        None,
        None,
    ] == codes
    assert [("orders", 0, 0), ("orders", 0, 1)] == [outcomes[0], outcomes[4]]
    assert [] == nothing


async def test_invalid_record_among_many_sends_none(broker) -> None:
    records = [ProducerRecord("orders", b"a"), ProducerRecord("orders", "b")]  # type: ignore[arg-type]

    async with new_producer(broker) as producer:
        with pytest.raises(ConfigurationError, match="value must be bytes"):
            await producer.send_many(records)
        with pytest.raises(ConfigurationError, match="records must be ProducerRecord"):
            await producer.send_many([b"a"])  # type: ignore[list-item]
        for wrong in (records[0], 7):
            with pytest.raises(ConfigurationError, match="must be a sequence of"):
                await producer.send_many(wrong)  # type: ignore[arg-type]

    assert [] == values(broker)


async def test_record_above_the_buffer_is_rejected(broker) -> None:
    async with new_producer(broker, max_buffered_bytes=1000) as producer:
        with pytest.raises(ConfigurationError, match=r"has 2032 bytes, more than max_"):
            await producer.send("orders", b"x" * 2000)


async def test_topic_that_is_not_allowed_is_an_authorization_error(broker) -> None:
    broker.faults.on("Produce", times=None).refuse("TOPIC_AUTHORIZATION_FAILED")

    async with new_producer(broker) as producer:
        with pytest.raises(AuthorizationError, match="'orders'.*grant WRITE on it"):
            await producer.send("orders", b"a")


async def test_topic_that_appears_later_is_written(broker) -> None:
    async with new_producer(broker) as producer, anyio.create_task_group() as tasks:
        tasks.start_soon(producer.send, "later", b"a")
        await anyio.sleep(5)
        broker.create_topic("later")

    assert [b"a"] == [record.value for record in broker.records("later")]


async def test_request_timeout_limits_one_response(broker) -> None:
    broker.faults.on("Produce", times=1).stall()

    async with new_producer(broker, request_timeout=2.0) as producer:
        started = anyio.current_time()
        await producer.send("orders", b"a")

    assert 2.0 <= anyio.current_time() - started < 3.0


async def test_request_timeout_can_exceed_ten_seconds(broker) -> None:
    stalled = broker.faults.on("Produce", times=1).stall()

    async with new_producer(
        broker, request_timeout=25.0, delivery_timeout=60.0
    ) as producer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(producer.send, "orders", b"a")
            await anyio.sleep(20)
            stalled.undo()
            with anyio.fail_after(1):
                while not values(broker):
                    await anyio.sleep(0.1)

    assert [b"a"] == values(broker)


# Cancelling.


async def test_cancelled_send_that_waits_for_space_writes_nothing(broker) -> None:
    stalled = broker.faults.on("Produce", times=None).stall()
    async with new_producer(broker, max_buffered_bytes=100) as producer:
        async with anyio.create_task_group() as tasks:
            for value in (b"a" * 60, b"b" * 60):
                tasks.start_soon(producer.send, "orders", value)
            await anyio.sleep(0.1)
            with anyio.move_on_after(0.1):
                await producer.send("orders", b"cancelled")
            stalled.undo()

    assert [b"a" * 60, b"b" * 60] == values(broker)


async def test_cancelled_send_that_was_added_is_written(broker) -> None:
    stalled = broker.faults.on("Produce", times=None).stall()
    async with new_producer(broker) as producer:
        with anyio.move_on_after(0.1) as scope:
            await producer.send("orders", b"a")
        stalled.undo()

    assert scope.cancelled_caught
    assert [b"a"] == values(broker)


# Closing.


async def test_close_waits_for_records_of_other_tasks(broker) -> None:
    stalled = broker.faults.on("Produce", times=None).stall()
    async with anyio.create_task_group() as tasks:
        async with new_producer(broker, max_buffered_bytes=100) as producer:
            for number in range(10):
                tasks.start_soon(producer.send, "orders", b"%d" % number)
            await anyio.sleep(0.1)
            tasks.start_soon(after, 3.0, stalled.undo)

    assert [b"%d" % number for number in range(10)] == values(broker)


async def after(seconds: float, call) -> None:
    await anyio.sleep(seconds)
    call()


@pytest.mark.parametrize("hangs", [False, True])
async def test_close_that_times_out_ends_waiting_sends(broker, hangs) -> None:
    if not hangs:
        broker.faults.on("Produce", times=None).stall()
    producer = new_producer(broker)
    outcomes: list[RecordPosition | Error] = []

    async def send_many() -> None:
        outcomes.extend(await producer.send_many([ProducerRecord("orders", b"a")] * 3))

    async with anyio.create_task_group() as tasks:
        async with producer:
            if hangs:
                broker.faults.hang()
            tasks.start_soon(send_many)
            await anyio.sleep(0.1)
            started = anyio.current_time()
            await producer.aclose(timeout=2.0)
            took = anyio.current_time() - started

    assert [ClosedError] * 3 == [type(outcome) for outcome in outcomes]
    assert "might have been written" in str(outcomes[0])
    assert 2.0 == pytest.approx(took, abs=0.1)


async def test_cancelled_close_ends_immediately(broker) -> None:
    broker.faults.on("Produce", times=None).stall()
    producer = new_producer(broker)
    started = anyio.current_time()

    with anyio.move_on_after(1.0):
        async with producer:
            await producer.send("orders", b"a")

    assert anyio.current_time() - started < 1.2
    assert "closed" in repr(producer)


async def test_calls_after_the_close_raise_closed_error(broker) -> None:
    async with new_producer(broker) as producer:
        pass
    await producer.aclose()

    with pytest.raises(ClosedError, match="the producer is closed"):
        await producer.send("orders", b"a")
    with pytest.raises(ConsumerStateError, match="create another Producer"):
        async with producer:
            pass


async def test_producer_that_is_not_started_says_so(broker) -> None:
    producer = new_producer(broker)

    with pytest.raises(ConsumerStateError, match="is not started"):
        await producer.send("orders", b"a")
    await producer.aclose()
    with pytest.raises(ConsumerStateError, match="the producer is closed"):
        await producer.__aenter__()


async def test_close_during_the_start_ends_it(broker) -> None:
    broker.faults.on("Metadata", times=None).stall()
    producer = new_producer(broker)
    errors: list[Error] = []

    async def start() -> None:
        try:
            await producer.__aenter__()
        except ClosedError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        await anyio.sleep(0.1)
        await producer.aclose()

    assert 1 == len(errors)


async def test_start_that_failed_can_be_repeated(broker) -> None:
    producer = new_producer(broker, connect_timeout=1.0)
    refused = broker.faults.on("Metadata", times=None).stall()
    with pytest.raises(ConnectionFailedError, match="no response within 1 s"):
        await producer.__aenter__()
    refused.undo()

    async with producer:
        await producer.send("orders", b"a")

    assert [b"a"] == values(broker)


async def test_failed_background_task_is_raised_by_calls(broker) -> None:
    broker.faults.on("Produce", times=None).stall()
    async with new_producer(broker) as producer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail_soon, producer)
            waiting = await caught(producer.send("orders", b"a"))
        later = await caught(producer.send("orders", b"b"))

    for error in (waiting, later):
        assert isinstance(error, BackgroundTaskError)
        assert isinstance(error.__cause__, ZeroDivisionError)
    assert "might have been written" in str(waiting)


async def fail_soon(producer: Producer) -> None:
    """Let the state machine raise an exception that is a bug."""
    await anyio.sleep(0.1)
    idempotent = producer._running
    assert idempotent is not None
    idempotent._machine.next_requests = lambda now: 1 // 0  # type: ignore[assignment]
    idempotent._wakeup.set()


async def caught(call) -> Error:
    try:
        await call
    except Error as error:
        return error
    raise AssertionError("no error")


async def test_unreachable_brokers_end_a_send_at_its_timeout(broker) -> None:
    async with new_producer(broker, delivery_timeout=3.0) as producer:
        await producer.send("orders", b"a", partition=0)
        broker.stop_broker(1)
        started = anyio.current_time()

        with pytest.raises(RequestTimedOutError, match="not confirmed in time"):
            await producer.send("orders", b"b", partition=0)
        took = anyio.current_time() - started

    assert 3.0 <= took < 7.0


async def test_many_tasks_share_batches(broker) -> None:
    async with new_producer(broker, compression="zstd") as producer:
        await producer.send("orders", b"first")
        broker.forget_requests()
        async with anyio.create_task_group() as tasks:
            for number in range(500):
                tasks.start_soon(producer.send, "orders", b"%d" % number)
        await until(lambda: len(values(broker)) == 501)

    assert sum(request.api == "Produce" for request in broker.requests) <= 3
