"""The conditions of a worker: its problems in words."""

import threading
from typing import Any

import anyio
import pytest

from sharecons import Condition, HealthPolicy, Record, RetryPolicy
from sharecons.errors import ConfigurationError
from sharecons.testing import EmbeddedBroker
from sharecons.worker.loop_watch import LoopWatch
from sharecons.worker.missing_topics import MissingTopicsWatch
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.routes import route, working_routes
from tests.worker.working import (
    Handled,
    new_worker,
    on_real_clock,
    settled,
    working,
)

pytestmark = pytest.mark.anyio

ONCE = RetryPolicy(max_attempts=1)


def names(conditions: tuple[Condition, ...]) -> list[str]:
    return [condition.name for condition in conditions]


def text_of(conditions: tuple[Condition, ...]) -> str:
    """Return the text of the only condition."""
    (condition,) = conditions
    return condition.text


async def accept(record: Record[Any, Any]) -> None:
    await anyio.lowlevel.checkpoint()


def lines_about_calls(
    caplog: pytest.LogCaptureFixture,
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return level, event and fields of each."""
    found = [each for each in caplog.records if "calls of a handler" in each.message]
    return [(each.levelname, each.event, each.fields) for each in found]  # type: ignore[attr-defined]


# Its life.


async def test_worker_says_why_it_is_not_ready_from_its_start_to_its_end(
    embedded: EmbeddedBroker,
) -> None:
    worker = new_worker(embedded, "orders", accept)
    text = "the worker was not started; call run(), or use `async with`"
    assert (Condition("starting", text),) == worker.not_ready
    slow_start = embedded.faults.on("ApiVersions", times=1).stall(1.0)
    heartbeats = embedded.faults.on("ShareGroupHeartbeat", times=None).stall()
    with slow_start, heartbeats:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await anyio.sleep(0.5)
            text = (
                f"connecting to {embedded.bootstrap_servers}, to join group 'billing'"
            )
            assert (Condition("starting", text),) == worker.not_ready
            await anyio.sleep(1.5)
            text = "joining group 'billing': no heartbeat is accepted yet"
            assert (Condition("starting", text),) == worker.conditions
            assert () == worker.not_live
            worker.stop()
            assert ["stopping"] == names(worker.not_ready)
            assert () == worker.not_live
    assert (Condition("ended", "the worker has ended"),) == worker.not_ready
    assert () == worker.not_live


async def test_worker_is_ready_once_it_has_joined(broker: MemoryBroker) -> None:
    async with working(broker, accept) as worker:
        await worker.assigned()

        assert () == worker.conditions
        assert () == worker.not_ready


async def test_worker_without_its_broker_names_it_and_is_live(
    embedded: EmbeddedBroker,
) -> None:
    async with working(embedded, accept, within=300.0) as worker:
        await worker.assigned()
        embedded.stop_broker(1)
        await until(lambda: bool(worker.not_ready), within=60.0, pause=0.5)
        await anyio.sleep(10.0)

        assert ["disconnected"] == names(worker.not_ready)
        (condition,) = worker.not_ready
        assert "; check that the brokers run" in condition.text
        text = text_of(worker.not_ready)
        assert text.startswith("not consuming in group 'billing': unreachable")
        assert embedded.bootstrap_servers in text
        assert () == worker.not_live
        embedded.start_broker(1)
        await until(lambda: not worker.not_ready, within=60.0, pause=0.5)


async def test_member_without_partitions_is_a_condition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The brokers cannot create the topic of the groups' state."""
    settings = {"share.coordinator.state.topic.replication.factor": 3}
    async with EmbeddedBroker(settings=settings, listen=False) as broker:
        broker.create_topic("orders")
        async with new_worker(broker, "orders", accept) as worker:
            await until(lambda: not worker.not_ready, within=60.0, pause=0.5)
            await anyio.sleep(12.0)
            unassigned, not_live = worker.not_ready, worker.not_live

    assert (["unassigned"], ()) == (names(unassigned), not_live)
    assert text_of(unassigned).startswith(
        "no partitions assigned, waiting (topics orders): the brokers have not created "
        "the topic __share_group_state; "
    )
    assert any("no partitions assigned" in each.message for each in caplog.records)


async def test_missing_topic_is_a_condition_until_it_exists(
    embedded: EmbeddedBroker,
) -> None:
    policy = HealthPolicy(topics_missing_after=20.0)
    async with working(embedded, accept, within=300.0, health=policy) as worker:
        await worker.assigned()
        embedded.delete_topic("orders")
        await until(lambda: bool(worker.missing_topics), within=60.0, pause=0.5)
        await anyio.sleep(18.0)
        assert () == worker.not_ready
        await anyio.sleep(4.0)
        missing = worker.not_ready
        embedded.create_topic("orders")
        await until(lambda: not worker.not_ready, within=60.0, pause=0.5)

    assert ["missing-topics"] == names(missing)
    assert text_of(missing) == (
        "subscribed topics do not exist for 20 s: 'orders'; create them, or correct "
        "the subscription"
    )


def test_topic_that_appears_for_a_moment_is_missing_anew() -> None:
    missing = {"orders"}
    watch = MissingTopicsWatch(lambda: missing, 30.0)
    watch.look(100.0)
    missing = set()
    watch.look(129.0)
    missing = {"orders"}
    watch.look(129.5)

    assert watch.problem(131.0) is None
    assert "'orders'" in str(watch.problem(159.5))


# Handlers that do not end.


async def test_stuck_handler_fails_liveness_until_it_ends(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"quick", b"stuck", b"stuck"])
    leave = anyio.Event()

    async def charge(record: Record[Any, Any]) -> None:
        if record.value == b"stuck":
            await leave.wait()

    policy = HealthPolicy(stuck_after=60.0)
    async with working(
        broker, charge, within=300.0, health=policy, max_wait=5.0
    ) as worker:
        await until(lambda: worker.stats.running == 2)
        await anyio.sleep(55.0)
        assert () == worker.conditions
        await anyio.sleep(10.0)
        stuck = worker.not_live
        assert worker.not_ready == stuck
        leave.set()
        await anyio.sleep(2.0)
        assert () == worker.conditions

    assert ["stuck-handler"] == names(stuck)
    text = text_of(stuck)
    assert ".charge has run for 6" in text
    assert ", more than stuck_after=60, with orders-0@" in text
    assert text.endswith("; 1 more are stuck; give what it waits for a timeout")


async def test_handler_that_ignores_its_timeout_is_stuck(
    broker: MemoryBroker,
) -> None:
    """The worker has cancelled it, and its record can be settled."""
    broker.produce("orders", [b"stuck"])
    leave = anyio.Event()
    begun = anyio.Event()

    async def ignore_cancellation(record: Record[Any, Any]) -> None:
        begun.set()
        with anyio.CancelScope(shield=True):
            await leave.wait()

    policy = HealthPolicy(stuck_after=50.0)
    async with working(
        broker,
        ignore_cancellation,
        within=300.0,
        health=policy,
        max_wait=5.0,
        timeout=10.0,
        max_lock_time=30.0,
        retry=ONCE,
    ) as worker:
        await begun.wait()
        await anyio.sleep(48.0)
        assert () == worker.not_live
        await anyio.sleep(5.0)
        assert 0 == worker.stats.running, "max_lock_time has settled the record"
        assert "ignore_cancellation has run for 5" in text_of(worker.not_live)
        leave.set()


@pytest.mark.slow("threads have no virtual clock")
@on_real_clock
async def test_thread_that_goes_on_after_its_timeout_is_stuck(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"stuck"])
    leave = threading.Event()

    def hang(record: Record[Any, Any]) -> None:
        leave.wait(30)

    policy = HealthPolicy(stuck_after=0.2)
    options = {"timeout": 0.05, "retry": ONCE, "health": policy}
    try:
        async with working(broker, hang, **options) as worker:
            await until(lambda: settled(broker, 1))
            await until(lambda: bool(worker.not_live))
            text = text_of(worker.not_live)
            leave.set()
            await until(lambda: not worker.not_live)
    finally:
        leave.set()

    assert ".hang has run for " in text
    assert text.endswith(
        "with <Record orders-0@0 delivery_count=1>, in a thread that was cancelled; "
        "give what it waits for a timeout"
    )


async def test_worker_whose_handlers_all_hang_is_not_ready_once_a_lock_has_ended(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    broker.produce("orders", [b"hang"] * 3)
    leave = anyio.Event()

    async def hang(record: Record[Any, Any]) -> None:
        await leave.wait()

    async with working(
        broker, hang, within=600.0, max_wait=5.0, concurrency=2
    ) as worker:
        await until(lambda: worker.stats.running == 2)
        await anyio.sleep(28.0)
        assert () == worker.conditions
        await anyio.sleep(4.0)
        busy, live = worker.not_ready, worker.not_live
        await anyio.sleep(28.0)
        lines = lines_about_calls(caplog)
        leave.set()
        await until(lambda: not worker.not_ready, pause=0.5)
        await until(lambda: len(lines_about_calls(caplog)) == 2, pause=5, within=300)

    assert ["busy-handlers"] == names(busy)
    assert () == live
    text = text_of(busy)
    assert text.startswith("all 2 calls have run for longer than a lock lasts (30 s), ")
    assert ".hang for 3" in text
    assert " s, with orders-0@" in text
    assert "; no further record is processed" in text
    (begins,) = lines
    assert ("WARNING", "calls of a handler do not end") == begins[:2]
    reason = "all 2 calls have run for longer than a lock lasts (30 s); no further "
    assert begins[2]["reason"].startswith(reason)
    assert begins[2]["record"].startswith("orders-0@")
    level, event, fields = lines_about_calls(caplog)[1]
    assert ("INFO", "calls of a handler end again") == (level, event)
    assert 25 < fields["seconds"] < 35


async def test_calls_that_all_take_longer_than_a_lock_have_lines_ever_more_rarely(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    broker.produce("orders", [b"long"] * 30)

    async def take_long(record: Record[Any, Any]) -> None:
        await anyio.sleep(45.0)

    async with working(
        broker, take_long, within=2000.0, max_wait=5.0, concurrency=1
    ) as worker:
        await until(lambda: worker.stats.accepted == 20, pause=5, within=1500)
        worker.stop_now()

    assert ["WARNING"] * 4 == [level for level, _, _ in lines_about_calls(caplog)]


async def test_key_whose_record_hangs_before_all_others_is_a_condition(
    broker: MemoryBroker,
) -> None:
    broker.produce("orders", [b"hang"] * 20, keys=[b"hot"] * 20)
    handled = Handled(lambda record: anyio.sleep_forever())

    async with working(
        broker, handled, within=300.0, max_wait=5.0, key_order=True
    ) as worker:
        await until(lambda: worker.stats.held == 20)
        await anyio.sleep(32.0)
        busy = worker.not_ready
        worker.stop_now()

    assert ["busy-handlers"] == names(busy)
    assert "the only call has run for longer than a lock lasts" in text_of(busy)
    assert "all other 19 records that it holds wait behind these" in text_of(busy)


async def test_handler_whose_calls_all_hang_beside_another_is_a_condition(
    broker: MemoryBroker,
) -> None:
    broker.create_topic("mails")
    broker.produce("orders", [b"hang"])
    leave = anyio.Event()

    async def hang(record: Record[Any, Any]) -> None:
        await leave.wait()

    routes = {"orders": route(hang, concurrency=1), "mails": route(accept)}
    async with working_routes(broker, routes, within=300.0, max_wait=5.0) as worker:
        await until(lambda: worker.stats.running == 1)
        await anyio.sleep(32.0)
        busy = worker.not_ready
        leave.set()

    assert ["busy-handlers"] == names(busy)
    assert text_of(busy).startswith("the only call has run for longer than a lock ")


@pytest.mark.slow("five minutes of virtual time")
@pytest.mark.parametrize(
    "options", [{"concurrency": 1, "health": HealthPolicy(stuck_after=600.0)}, {}]
)
async def test_long_handlers_are_no_condition_below_their_limit(
    broker: MemoryBroker, options: dict[str, Any]
) -> None:
    broker.produce("orders", [b"long"])
    handled = Handled(lambda record: anyio.sleep(310.0))

    async with working(broker, handled, within=900.0, **options) as worker:
        await until(lambda: handled.running == 1)
        await anyio.sleep(300.0)
        assert () == worker.conditions


# A window that is held up.


@pytest.mark.parametrize("liveness", [("blocked-loop",), ("held-window",)])
async def test_record_that_holds_up_a_full_window_is_a_condition_until_it_is_settled(
    broker: MemoryBroker, liveness: tuple[str, ...]
) -> None:
    broker.set_group_config("billing", {"share.partition.max.record.locks": 100})
    broker.produce("orders", [b"%d" % number for number in range(300)])
    policy = HealthPolicy(window_held_after=30.0, liveness=liveness)
    leave = anyio.Event()

    async def wait_for_first(record: Record[Any, Any]) -> None:
        if record.offset == 0:
            await leave.wait()

    async with working(
        broker, wait_for_first, within=300.0, health=policy, max_wait=5.0
    ) as worker:
        await until(lambda: worker.stats.accepted >= 99, within=60.0, pause=0.5)
        await anyio.sleep(25.0)
        assert () == worker.not_ready
        await anyio.sleep(8.0)
        held = worker.not_ready
        not_live = worker.not_live
        accepted = worker.stats.accepted
        leave.set()
        await until(lambda: settled(broker, 300), within=60.0, pause=0.5)
        await anyio.sleep(2.0)
        assert () == worker.not_ready

    assert accepted < 200, "the window was full"
    assert ["held-window"] == names(held)
    text = text_of(held)
    assert "no member receives further records of orders-0 for 3" in text
    assert ": orders-0@0, which this worker has held for 3" in text
    assert (held if liveness == ("held-window",) else ()) == not_live


# The event loop.


def test_loop_without_a_turn_is_blocked_until_it_runs_again() -> None:
    now = 100.0
    watch = LoopWatch(lambda: now)
    assert 0.0 == watch.seconds, "it has not begun"
    watch.beat()
    now = 106.0
    assert 6.0 == watch.seconds
    watch.beat()
    assert 0.0 == watch.seconds
    now = 200.0
    watch.end()
    assert 0.0 == watch.seconds


def test_line_of_a_loop_is_where_its_thread_is_now() -> None:
    watch, is_reached, leave = LoopWatch(), threading.Event(), threading.Event()

    def block() -> None:
        watch.beat()
        is_reached.set()
        leave.wait(10)

    thread = threading.Thread(target=block)
    thread.start()
    is_reached.wait(10)
    line = watch.line()
    leave.set()
    thread.join()

    assert line is not None
    assert "test_conditions.py:" in line
    assert line.endswith(".block")


def test_loop_has_no_line_in_its_own_thread() -> None:
    watch = LoopWatch()
    watch.beat()

    assert watch.line() is None


async def test_blocked_event_loop_is_a_condition_while_a_worker_runs(
    broker: MemoryBroker,
) -> None:
    now = 0.0
    async with working(broker, accept, health=HealthPolicy()) as worker:
        worker._conditions.loop = LoopWatch(lambda: now)
        worker._conditions.loop.beat()
        await worker.assigned()
        now = 4.9
        assert () == worker.not_live
        now = 6.0
        blocked = worker.not_live

    assert ["blocked-loop"] == names(blocked)
    assert "the event loop has been blocked for 6 s" in text_of(blocked)
    assert ["ended"] == names(worker.conditions)


# The policy.


async def test_ignored_conditions_do_not_fail_the_readiness(
    embedded: EmbeddedBroker,
) -> None:
    policy = HealthPolicy(ignored=("disconnected",))
    async with working(embedded, accept, within=300.0, health=policy) as worker:
        await worker.assigned()
        embedded.stop_broker(1)
        await until(lambda: bool(worker.conditions), within=60.0, pause=0.5)

        assert ["disconnected"] == names(worker.conditions)
        assert () == worker.not_ready
        embedded.start_broker(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stuck_after": 0}, "stuck_after must be between"),
        ({"window_held_after": "60"}, "window_held_after must be a number"),
        ({"loop_blocked_after": 0.1}, "loop_blocked_after must be between"),
        ({"topics_missing_after": -1}, "topics_missing_after must be between"),
        ({"liveness": "stuck-handler"}, "pass a tuple"),
        ({"liveness": ["stuck"]}, "'stuck', which is no condition; the conditions"),
        ({"ignored": ["stuck"]}, "ignored has 'stuck', which is no condition"),
        ({"liveness": ["stopping"]}, "a restart does not end it"),
    ],
)
def test_invalid_policy_is_an_error_that_says_what_is_valid(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        HealthPolicy(**arguments)


def test_condition_as_text_begins_with_its_name() -> None:
    assert "stopping: now" == str(Condition("stopping", "now"))
