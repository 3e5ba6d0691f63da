"""The log lines of a consumer during problems of ten minutes."""

import logging
import math
import re

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker
from tests.net.embedded import SlowNetwork, no_leader, refuse
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow("the requests of a consumer in ten minutes"),
]

MINUTES = 10
FEW_MINUTES = 4
"""Neither is a minute in which a problem is logged again: 1, 3, 7, 15."""
SOON = 5.0
"""Seconds within which a problem is logged."""

ALL_APIS = [
    "ApiVersions",
    "Metadata",
    "FindCoordinator",
    "ShareGroupHeartbeat",
    "ShareFetch",
    "ShareAcknowledge",
]


class Lines(logging.Handler):
    """The lines of a member, with the times at which they were logged."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        text = f"{record.levelname} {record.getMessage()}"
        self.lines.append((anyio.current_time(), text))

    def since(self, begin):
        return [(at - begin, line) for at, line in self.lines if at >= begin]


@pytest.fixture
def lines():
    """The INFO, WARNING and ERROR lines of all loggers of the package."""
    logger = logging.getLogger("sharecons")
    handler = Lines()
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.fixture
def brokers():
    return 1


several_brokers = pytest.mark.parametrize("brokers", [1, 3])


@pytest.fixture
async def broker(brokers):
    settings = {"group.share.heartbeat.interval.ms": "1000"}
    async with EmbeddedBroker(
        brokers=brokers, settings=settings, listen=False
    ) as broker:
        broker.create_topic("orders", partitions=3)
        broker.move_coordinator("billing", to=1)
        for partition in range(3):
            broker.move_leader("orders", partition, to=1)
        yield broker


async def read(consumer):
    async for _ in consumer:
        pass


async def lines_of(broker, lines, begin, end, minutes=MINUTES):
    """Return the lines of a problem, and of the two minutes after it."""
    consumer = ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=SlowNetwork(broker),
        auto_offset_reset="earliest",
    )
    async with consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(read, consumer)
        await until(lambda: len(consumer.assignment) == 3)
        await anyio.sleep(20.3)
        started = anyio.current_time()
        begin()
        await anyio.sleep(60 * minutes)
        during = lines.since(started)
        ended = anyio.current_time()
        end()
        await anyio.sleep(120)
        after = lines.since(ended)
        tasks.cancel_scope.cancel()
    return during, after


async def lines_of_fault(broker, lines, start):
    """Return the lines of a fault, which `start` begins, and of the time after it."""
    faults = []
    return await lines_of(
        broker,
        lines,
        lambda: faults.append(start()),
        lambda: faults.pop().undo(),
        FEW_MINUTES,
    )


def check_problem(during, after, minutes=MINUTES):
    """Check that one problem was logged: early, after 1, 3, 7 minutes, at its end."""
    begins, *repeats = during
    assert begins[0] < SOON
    assert begins[1].startswith("WARNING")
    assert len(repeats) in (expected := int(math.log2(minutes + 1)), expected - 1)
    assert repeats
    for number, ((at, line), (before, _)) in enumerate(
        zip(repeats, during, strict=False)
    ):
        assert at - before > 60 * 2**number - 1
        assert re.search(r"still .* seconds=\d+", line)
    ((at, line),) = [each for each in after if "assigned" not in each[1]]
    assert line.startswith("INFO")
    seconds = re.search(r"seconds=([\d.]+)", line)
    assert float(seconds[1]) == pytest.approx(60 * minutes, abs=SOON + 10)


@several_brokers
async def test_broker_that_refuses_connections_is_logged_when_it_begins_and_ends(
    broker, lines
):
    during, after = await lines_of(
        broker,
        lines,
        lambda: [broker.stop_broker(node) for node in tuple(broker.brokers)],
        lambda: [broker.start_broker(node) for node in tuple(broker.brokers)],
    )

    brokers = {re.search(r"broker=(\S+)", line)[1] for _, line in during}
    for each in brokers:
        check_problem(
            [line for line in during if f"broker={each} " in line[1]],
            [line for line in after if f"broker={each} " in line[1]],
        )
    assert len(during) <= len(broker.brokers) * (MINUTES + 1)


@several_brokers
@pytest.mark.parametrize(
    "apis",
    [ALL_APIS, ["ShareFetch"], ["ShareGroupHeartbeat"]],
    ids=["all", "ShareFetch", "ShareGroupHeartbeat"],
)
async def test_broker_that_does_not_respond_is_logged_when_it_begins_and_ends(
    broker, lines, apis
):
    faults = []

    def begin():
        for api in apis:
            fault = broker.faults.on(api, node=1, times=None)
            faults.append(fault.stall())

    def end():
        for fault in faults:
            fault.undo()

    check_problem(*await lines_of(broker, lines, begin, end))


@pytest.mark.parametrize("api", ["ShareFetch", "ShareGroupHeartbeat"])
async def test_broker_that_cuts_each_request_is_logged_when_it_begins_and_ends(
    broker, lines, api
):
    during, after = await lines_of_fault(
        broker, lines, lambda: broker.faults.on(api, node=1, times=None).cut()
    )
    check_problem(during, after, FEW_MINUTES)


@pytest.mark.parametrize(
    "code",
    [
        "NOT_COORDINATOR",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
    ],
)
async def test_coordinator_that_rejects_heartbeats_is_logged_when_it_begins_and_ends(
    broker, lines, code
):
    heartbeats = broker.faults.on("ShareGroupHeartbeat", times=None)
    during, after = await lines_of_fault(broker, lines, lambda: heartbeats.refuse(code))
    check_problem(during, after, FEW_MINUTES)
    assert f"reason={code}" in during[0][1]


@pytest.mark.parametrize(
    ("api", "code", "advice"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", "offsets.topic.replication"),
        ("FindCoordinator", "UNKNOWN_SERVER_ERROR", "log of the group coordinator"),
        ("ShareGroupHeartbeat", "UNKNOWN_SERVER_ERROR", "log of the group coordinator"),
        ("ShareGroupHeartbeat", "REQUEST_TIMED_OUT", "log of the group coordinator"),
        ("ShareFetch", "SHARE_SESSION_LIMIT_REACHED", "group.share.max.share.sessions"),
        ("ShareFetch", "SHARE_SESSION_NOT_FOUND", "group.share.max.share.sessions"),
        ("ShareFetch", "INVALID_SHARE_SESSION_EPOCH", "log of that broker"),
        ("ShareFetch", "UNKNOWN_SERVER_ERROR", "log of that broker"),
        ("ShareFetch", "REQUEST_TIMED_OUT", "log of that broker"),
        ("ShareFetch", 9999, "log of that broker"),
    ],
)
async def test_code_that_lasts_is_logged_when_it_begins_and_ends_with_advice(
    broker, lines, api, code, advice
):
    def start():
        if api == "FindCoordinator":  # requested after a lost connection only
            broker.faults.on("ShareGroupHeartbeat").cut()
        return refuse(broker.faults.on(api, times=None), code)

    during, after = await lines_of_fault(broker, lines, start)
    during = [line for line in during if "broker=" not in line[1]]
    check_problem(during, [line for line in after if "again" in line[1]], FEW_MINUTES)
    assert ("error code 9999" if code == 9999 else code) in during[0][1]
    assert advice in during[0][1]
    assert advice not in after[0][1]


@pytest.mark.parametrize("code", ["UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"])
async def test_member_that_is_removed_after_each_join_is_logged_when_it_begins_and_ends(
    broker, lines, code
):
    def start():
        heartbeats = broker.faults.on(
            "ShareGroupHeartbeat",
            times=None,
            where=lambda request, _: request.member_epoch > 0,
        )
        return heartbeats.refuse(code)

    during, after = await lines_of_fault(broker, lines, start)
    during = [line for line in during if "assigned" not in line[1]]
    check_problem(during, after, FEW_MINUTES)
    assert f"reason={code}" in during[0][1]


@pytest.mark.parametrize(
    "code",
    [
        "UNKNOWN_SERVER_ERROR",
        "KAFKA_STORAGE_ERROR",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_LEADER_OR_FOLLOWER",
    ],
)
async def test_partitions_that_fail_together_are_logged_when_it_begins_and_ends(
    broker, lines, code
):
    fetches = broker.faults.on("ShareFetch", times=None)
    during, after = await lines_of_fault(
        broker, lines, lambda: fetches.refuse_partitions(code, leader=no_leader)
    )
    check_problem(during, after, FEW_MINUTES)
    assert f"reason={code}" in during[0][1]
    assert "partitions='orders-0, orders-1, orders-2'" in during[-1][1]


async def test_partition_that_fails_now_and_then_is_not_logged(broker, lines):
    async def fail(count):
        for _ in range(count):
            broker.faults.on("ShareFetch").refuse_partitions("KAFKA_STORAGE_ERROR")
            await anyio.sleep(8)

    async with anyio.create_task_group() as tasks:
        during, after = await lines_of(
            broker, lines, lambda: tasks.start_soon(fail, 5), lambda: None, 1
        )
    assert not during
    assert not after


async def test_partitions_with_stale_metadata_are_logged_when_it_begins_and_ends(
    broker, lines
):
    fetches = broker.faults.on("ShareFetch", times=None)
    during, after = await lines_of_fault(
        broker, lines, lambda: fetches.refuse_partitions("UNKNOWN_TOPIC_OR_PARTITION")
    )
    check_problem(during, after, FEW_MINUTES)


async def test_deleted_topic_is_logged_when_it_begins_and_ends(broker, lines):
    during, after = await lines_of(
        broker,
        lines,
        lambda: broker.delete_topic("orders"),
        lambda: broker.create_topic("orders", partitions=3),
        minutes=FEW_MINUTES,
    )
    during = [line for line in during if "assigned" not in line[1]]
    check_problem(during, after, FEW_MINUTES)
    assert "waiting for topic" in during[0][1]


async def test_lost_connection_that_is_opened_again_is_one_line(broker, lines):
    def cut_once():
        broker.faults.on("ShareFetch", node=1).cut()

    during, after = await lines_of(broker, lines, cut_once, lambda: None, minutes=1)
    ((at, line),) = during
    assert at < SOON
    assert "INFO connected again" in line
    assert re.search(r"reason=.* seconds=\d", line)
    assert not after
