"""Background tasks of a consumer that fail: calls and closing raise their error."""

import asyncio
import traceback

import anyio
import pytest

from sharecons.errors import BackgroundTaskError, ClosedError
from sharecons.net.io.transport import TcpNetwork
from tests.consumer.consuming import connecting, new_tasks, next_record
from tests.waiting import until

GROUP = "billing"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def broker(share_broker):
    share_broker.create_topic("orders")
    share_broker.set_group_config(GROUP, {"share.auto.offset.reset": "earliest"})
    share_broker.produce("orders", [b"%d" % i for i in range(10)])
    return share_broker


class BrokenNetwork(TcpNetwork):
    """A network that raises ZeroDivisionError once it is broken."""

    broken = False

    async def connect(self, endpoint):
        if self.broken:
            raise ZeroDivisionError("broken network")
        return await super().connect(endpoint)


def crash(broker, network):
    """Make the background tasks fail when they connect again."""
    network.broken = True
    broker.stop_broker(1)
    broker.start_broker(1)


async def read_on(consumer):
    with anyio.fail_after(20):
        async for _ in consumer:
            pass


async def crash_unseen(broker, network, consumer, caplog):
    """Wait until the background tasks have failed, without a call."""
    async with consumer:
        await next_record(consumer)
        crash(broker, network)
        await until(lambda: any(r.levelname == "ERROR" for r in caplog.records))
        yield


@pytest.mark.anyio
async def test_crash_reaches_the_loop_and_every_later_call(broker):
    network = BrokenNetwork()
    async with connecting(broker, network=network) as consumer:
        record = await next_record(consumer)
        crash(broker, network)
        with pytest.raises(BackgroundTaskError, match="broken network") as caught:
            await read_on(consumer)
        depths = set()
        for call in (consumer.poll, consumer.commit) * 5:
            with pytest.raises(BackgroundTaskError) as again:
                await call()
            assert again.value is not caught.value
            assert again.value.__cause__ is caught.value.__cause__
            depths.add(len(traceback.extract_tb(again.value.__traceback__)))
        assert max(depths) < 8, "a traceback grows from call to call"
        for plain in (consumer.unsubscribe, consumer.batches):
            with pytest.raises(BackgroundTaskError):
                plain()
        with pytest.raises(ClosedError):
            record.reject()
        before = anyio.current_time()
        await consumer.aclose()
        assert anyio.current_time() - before < 1

    # The task of the leader and the heartbeat can both have failed.
    cause = caught.value.__cause__
    causes = getattr(cause, "exceptions", [cause])
    assert {ZeroDivisionError} == {type(cause) for cause in causes}


@pytest.mark.slow("starts a process")
@pytest.mark.anyio
async def test_crash_that_no_call_has_raised_is_raised_by_closing(broker, caplog):
    network = BrokenNetwork()
    consumer = connecting(broker, network=network)

    async def live():
        async for _ in crash_unseen(broker, network, consumer, caplog):
            pass

    with pytest.raises(BackgroundTaskError, match="broken network"):
        await live()
    assert "closed" in repr(consumer)
    await consumer.aclose()


@pytest.mark.slow("starts a process")
@pytest.mark.anyio
async def test_crash_does_not_replace_an_exception_of_the_application(broker, caplog):
    network = BrokenNetwork()
    consumer = connecting(broker, network=network)
    crashing = crash_unseen(broker, network, consumer, caplog)
    await anext(crashing)
    with pytest.raises(KeyError):
        await crashing.athrow(KeyError("of the application"))
    assert "closed" in repr(consumer)


@pytest.mark.slow("starts a process")
@pytest.mark.anyio
async def test_crash_ends_a_commit_immediately(share_cluster):
    brokers = share_cluster
    brokers.create_topic("orders")
    brokers.produce("orders", [b"x"])
    brokers.move_leader("orders", 0, to=1)
    brokers.move_coordinator(GROUP, to=2)
    network = BrokenNetwork()
    async with connecting(brokers, network=network) as consumer:
        record = await next_record(consumer)
        brokers.faults.on("ShareAcknowledge", times=None).stall()
        brokers.faults.on("ShareFetch", times=None).stall()
        record.accept()
        network.broken = True
        brokers.stop_broker(2)  # the next heartbeat connects again
        with anyio.fail_after(15), pytest.raises(BackgroundTaskError):
            await consumer.commit(timeout=60)


@pytest.mark.asyncio
@pytest.mark.parametrize("first_step", [True, False])
async def test_tasks_cancelled_by_the_application_end_the_consumer(broker, first_step):
    consumer = connecting(broker)
    before = asyncio.all_tasks()
    await consumer.start()
    if first_step:
        await next_record(consumer)
    for task in new_tasks(before):
        task.cancel()
    with pytest.raises(BackgroundTaskError, match="cancelled"):
        await next_record(consumer)
    async with asyncio.timeout(1):
        await consumer.stop()
