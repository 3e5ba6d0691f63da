"""The promises of a worker with a dead-letter queue, on both brokers.

A record leaves the group only by success, by Reject, or with a confirmed dead letter.
tests/worker/test_worker_promises.py has the promises about logs and threads.
"""

from typing import Any

import anyio
import pytest

from sharecons import (
    BatchHandler,
    Record,
    RetryPolicy,
    RetryTopic,
    ShareGroupAdmin,
)
from sharecons._record import Headers
from sharecons.copies.dead_letter_headers import (
    Origin,
    RedriveMark,
    origin_headers,
    redrive_headers,
)
from sharecons.dead_letters import DeadLetters
from sharecons.net.io.transport import TcpNetwork
from tests.killable_network import KillableNetwork
from tests.scenarios.dead_letter_setup import LIMIT_2, Setup
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.versions import since_4_3
from tests.waiting import until
from tests.worker.working import Handled

pytestmark = [pytest.mark.anyio, ON_BOTH, since_4_3, pytest.mark.timeout(60)]

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


async def hang(record: Record[Any, Any]) -> None:
    await anyio.sleep_forever()


async def test_handler_that_hangs_is_a_dead_letter_after_its_attempts(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    setup.queue.produce([b"a"])
    handled = Handled(hang)

    async with setup.working(handled, timeout=0.3):
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert [b"a"] * 2 == handled.calls
    assert 1 == origin.delivery_count, "a timeout costs no delivery"
    assert 2 == origin.attempts
    assert (
        "failed after 2 attempts: TimeoutError: the handler took longer than its "
        "timeout of 0.3 s"
    ) == origin.reason
    assert origin.traceback is not None
    assert "sleep_forever" in origin.traceback


@pytest.mark.client_only
async def test_batch_handler_that_hangs_is_retried_and_dead_lettered(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    setup.queue.produce([b"%d" % number for number in range(5)])

    async def write(batch: Any) -> None:
        await anyio.sleep_forever()

    handler = BatchHandler(write, max_records=5, max_wait=0.1)

    async with setup.working(handler, timeout=0.3):
        await setup.wait_until_settled()

    origins = await setup.origins()
    assert [(n, 1) for n in range(5)] == [(o.offset, o.delivery_count) for o in origins]


async def test_handler_that_exceeds_max_lock_time_has_failed_attempts(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    setup.queue.produce([b"a"])
    handled = Handled(hang)

    async with setup.working(handled, max_lock_time=1.0):
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert [b"a"] * 2 == handled.calls
    assert 2 == origin.delivery_count
    assert "held for max_lock_time (1 s)" in origin.reason


async def test_stop_on_the_last_delivery_writes_a_dead_letter(admin: AnyAdmin) -> None:
    setup = Setup(admin, LIMIT_2)
    setup.queue.produce([b"a"])
    handled = Handled(hang)

    for delivery in (1, 2):
        async with setup.working(handled, shutdown_grace=0.2):
            await until(lambda count=delivery: len(handled.calls) == count)

    (origin,) = await setup.origins()
    assert 2 == origin.delivery_count
    assert "delivered for the last time: the worker stops" == origin.reason
    await setup.wait_until_settled()


@pytest.mark.client_only
async def test_cancelled_run_on_the_last_delivery_writes_a_dead_letter(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin, LIMIT_2)
    setup.queue.produce([b"a"])
    handled = Handled(hang)

    for delivery in (1, 2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(setup.worker(handled).run)
            await until(lambda count=delivery: len(handled.calls) == count)
            tasks.cancel_scope.cancel()

    assert [2] == [each.delivery_count for each in await setup.origins()]
    await setup.wait_until_settled()


async def test_error_that_stops_the_worker_on_the_last_delivery_is_a_dead_letter(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin, LIMIT_2)
    setup.queue.produce([b"a"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("bad")

    while not await setup.origins():  # a fetch in flight can return it once more
        with pytest.raises(ValueError, match="bad"):
            await setup.worker(fail, stop_on_error=True).run()

    (origin,) = await setup.origins()
    assert 2 == origin.delivery_count
    assert "delivered for the last time: its handler raised" == origin.reason
    assert "builtins.ValueError" == origin.exception
    await setup.wait_until_settled()


@pytest.mark.client_only
async def test_undeserializable_record_is_released_until_it_is_a_dead_letter(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin, LIMIT_2)
    setup.queue.produce([b"bad"])

    def refuse(value: bytes) -> Any:
        raise ValueError("not an order")

    retry = RetryPolicy(max_attempts=9)
    async with setup.working(
        Handled(),
        value_deserializer=refuse,
        on_deserialization_error="release",
        retry=retry,
    ):
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert 2 == origin.delivery_count
    assert "delivered for the last time: ValueError: not an order" == origin.reason


async def test_connection_cut_on_the_last_delivery_is_a_dead_letter(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin, LIMIT_2)
    setup.queue.produce([b"a"])
    handled = Handled(hang)
    network = KillableNetwork(admin.network or TcpNetwork())

    async with setup.working(handled, network=network) as worker:
        for delivery in (1, 2):
            await until(lambda count=delivery: len(handled.calls) == count)
            await network.close()
            await until(lambda count=delivery: worker.stats.locks_lost == count)
        await until(lambda: worker.stats.dead_lettered == 1)
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert 2 == origin.delivery_count
    assert "its lock was lost on its last delivery" == origin.reason


async def test_lock_that_ends_on_the_last_delivery_is_a_dead_letter(
    admin: AnyAdmin,
) -> None:
    config = {
        **LIMIT_2,
        "share.record.lock.duration.ms": "1000",
        "share.renew.acknowledge.enable": "false",
    }
    setup = Setup(admin, config)
    setup.queue.produce([b"a"])
    handled = Handled(hang)

    async with setup.working(handled, retry=RetryPolicy(max_attempts=9)) as worker:
        await until(lambda: worker.stats.dead_lettered == 1)
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert [b"a"] * 2 == handled.calls
    assert 2 == worker.stats.locks_lost
    assert 2 == origin.delivery_count
    assert "its lock was lost on its last delivery" == origin.reason


@pytest.mark.client_only
async def test_record_delivered_more_often_than_its_attempts_is_not_handled(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    setup.queue.produce([b"a"])
    interrupted = Handled(hang)
    for delivery in (1, 2):
        async with setup.working(interrupted, shutdown_grace=0.2):
            await until(lambda count=delivery: len(interrupted.calls) == count)
    handled = Handled()

    async with setup.working(handled):
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert [] == handled.calls
    assert "delivered 3 times without an outcome; max_attempts is 2" == origin.reason


async def test_dead_letter_that_its_topic_cannot_take_is_held(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    small = {"max.message.bytes": "100"}
    setup = Setup(admin, topics=small)
    setup.queue.produce([b"a"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("x" * 1000)

    async with setup.working(fail, retry=ONCE) as worker:
        await until(lambda: "copies of failed records not written" in caplog.text)
        await anyio.sleep(1.5)  # real time: the second attempt comes after 1 s
        assert (1, 0) == (worker.stats.held, worker.stats.released)
        worker.stop_now()

    handled = Handled()
    async with setup.working(handled):
        await until(lambda: handled.calls == [b"a"])


@pytest.mark.client_only
async def test_dead_letter_does_not_return_to_its_topic(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    """Two workers, each with the source of the other as its dead-letter topic."""
    setup, back = Setup(admin), Setup(admin)
    back.queue.topic, back.dead = setup.dead, setup.queue.topic
    setup.queue.produce([b"a"])

    async def fail(record: Record[Any, Any]) -> None:
        raise ValueError("bad")

    async with setup.working(fail, retry=ONCE) as worker:
        async with back.working(fail, retry=ONCE) as other:
            await until(lambda: "is a dead letter of topic" in caplog.text)
            other.stop_now()
        await setup.wait_until_settled()

    assert 1 == worker.stats.dead_lettered
    assert 0 == other.stats.dead_lettered
    assert 1 == len(await setup.origins())


def forged_headers(topic: str) -> tuple[Headers, Headers]:
    """Return a worker's and a broker's headers of a dead letter, by another client."""
    origin = Origin(topic, 0, 0, "other", 1, "forged", dead_lettered=9)
    fields = {"topic": topic, "partition": 0, "offset": 0, "group": "other"}
    fields |= {"delivery.count": 5, "message": "forged"}
    names = ((f"__dlq.errors.{name}", str(fields[name]).encode()) for name in fields)
    return origin_headers(origin), tuple(names)


async def fail(record: Record[Any, Any]) -> None:
    raise ValueError("bad")


@pytest.mark.client_only
async def test_record_with_forged_headers_of_a_dead_letter_is_dead_lettered(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    for headers in forged_headers(setup.dead):
        setup.queue.produce([b"a"], headers=headers)

    async with setup.working(fail, retry=ONCE):
        await setup.wait_until_settled()

    topic = setup.queue.topic
    assert [(topic, 0, 1), (topic, 1, 1)] == [
        (each.topic, each.offset, each.dead_lettered) for each in await setup.origins()
    ]


@pytest.mark.client_only
async def test_dead_letter_that_is_written_back_by_hand_is_dead_lettered_each_time(
    admin: AnyAdmin,
) -> None:
    """A tool, or a person, copies it with all headers; nine were too many once."""
    setup = Setup(admin)
    setup.queue.produce([b"a"])

    async with setup.working(fail, retry=ONCE) as worker:
        for count in range(1, 10):
            await until(lambda count=count: worker.stats.dead_lettered == count)
            letters = await setup.letters()
            setup.queue.produce([b"a"], headers=letters[-1].headers)
        await until(lambda: worker.stats.dead_lettered == 10)

    origins = await setup.origins()
    assert [(offset, 1, None) for offset in range(10)] == [
        (each.offset, each.dead_lettered, each.earlier) for each in origins
    ]


@pytest.mark.client_only
async def test_dead_letter_of_a_dead_letter_keeps_its_first_origin(
    admin: AnyAdmin,
) -> None:
    setup, second = Setup(admin), Setup(admin)
    second.queue.topic = setup.dead
    setup.queue.produce([b"a"])

    async with setup.working(fail, retry=ONCE), second.working(fail, retry=ONCE):
        await setup.wait_until_settled()
        await second.wait_until_settled()

    (origin,) = await second.origins()
    assert (setup.dead, 0, 0, 2) == (*origin[:3], origin.dead_lettered)
    assert f"{setup.queue.topic}:0:0" == origin.earlier


async def test_dead_letter_on_its_last_delivery_returns_to_its_topic(
    admin: AnyAdmin,
) -> None:
    """The broker would archive it, so it is written, and not lost."""
    setup, back = Setup(admin), Setup(admin, {"share.delivery.count.limit": "2"})
    back.queue.topic, back.dead = setup.dead, setup.queue.topic
    setup.queue.produce([b"a"])
    async with setup.working(fail, retry=ONCE):
        await setup.wait_until_settled()
    with pytest.raises(ValueError, match="bad"):
        await back.worker(fail, stop_on_error=True).run()

    async with back.working(fail, retry=ONCE):
        await back.wait_until_settled()

    (origin,) = await back.origins()
    assert (setup.dead, 2) == (origin.topic, origin.delivery_count)


@pytest.mark.client_only
async def test_dead_letter_of_a_redriven_record_names_its_first_origin(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    setup.queue.produce([b"a"])
    async with setup.working(fail, retry=ONCE) as worker:
        for count in (1, 2, 3):
            await until(lambda count=count: worker.stats.dead_lettered == count)
            if count < 3:
                async with ShareGroupAdmin(
                    bootstrap_servers=admin.bootstrap_servers, network=admin.network
                ) as client:
                    letters = DeadLetters.from_admin(client, setup.dead)
                    assert 1 == (await letters.redrive()).redriven

    topic = setup.queue.topic
    first, *later = await setup.origins()
    assert (None, 0) == (first.first_origin, first.redrives)
    written = (await setup.letters())[0].timestamp
    assert [(n, n, f"{topic}:0:0", written, None) for n in (1, 2)] == [
        (each.offset, each.redrives, each.first_origin, each.first_failed, each.earlier)
        for each in later
    ]


@pytest.mark.client_only
async def test_forged_first_origin_is_named_and_decides_nothing(
    admin: AnyAdmin,
) -> None:
    setup = Setup(admin)
    forged = Origin(setup.dead, 0, 0, "other", 1, "forged")
    mark = RedriveMark("forged", setup.dead, 0, 0)
    setup.queue.produce([b"a"], headers=redrive_headers(mark, 1, forged, 7))

    async with setup.working(fail, retry=ONCE):
        await setup.wait_until_settled()

    (origin,) = await setup.origins()
    assert (setup.queue.topic, 0) == (origin.topic, origin.offset)
    assert (1, 1, None) == (origin.redrives, origin.dead_lettered, origin.earlier)
    assert f"{setup.dead}:0:0" == origin.first_origin


async def test_record_that_waits_when_the_worker_stops_moves_once(
    admin: AnyAdmin,
) -> None:
    """A fetch in flight would return the copy, which would be copied once more."""
    setup, retry_topic = Setup(admin), admin.create_topic()
    slow = RetryPolicy(max_attempts=2, initial=60.0, maximum=60.0)
    setup.queue.produce([b"a"])

    async with setup.working(
        fail, retry=slow, retry_topics=[RetryTopic(retry_topic, 60.0)], max_wait=0.5
    ) as worker:
        await until(lambda: worker.stats.waiting == 1)
        before = worker.consumer_metrics()["fetch-total"]
        await until(lambda: worker.consumer_metrics()["fetch-total"] > before + 1)

    assert (1, 0) == (worker.stats.moved, worker.stats.released)
    setup.dead = retry_topic
    assert [0] == [copy.offset for copy in await setup.letters()]
