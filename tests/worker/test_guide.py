"""The programs and the figures of docs/worker*.md."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from sharecons import (
    DeadLetter,
    DeadLetterQueue,
    Record,
    RetryPolicy,
    ShareWorker,
)
from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing import EmbeddedBroker
from sharecons.worker.machine.window import DEFAULT_WINDOW, USABLE
from sharecons.worker.outcomes import Rejected, RetryAfter
from tests.guides import Guide
from tests.waiting import until
from tests.worker.memory import MemoryBroker
from tests.worker.working import Handled, on_real_clock, process, settled, working

GUIDE = Guide(
    "worker.md",
    "worker-middleware.md",
    "worker-retries.md",
    "worker-concurrency.md",
    "worker-running.md",
)


class Reply:
    """The response of a fictitious HTTP server."""

    retry_after = 0.1

    def __init__(self, status: int) -> None:
        self.status = status

    def check(self) -> None:
        if self.status >= 500:
            raise ConnectionError(f"status {self.status}")


def test_every_program_compiles() -> None:
    assert GUIDE.compile() == 14


@on_real_clock
@pytest.mark.slow("connects by TCP, and leaves")
@pytest.mark.anyio
async def test_quick_start_charges_every_record(share_broker: EmbeddedBroker) -> None:
    for topic in ("orders", "orders.dead"):
        share_broker.create_topic(topic, partitions=1)
    share_broker.produce("orders", [b"1", b"2", b"3"])
    charged: list[bytes] = []

    async def charge_customer(value: bytes) -> None:
        charged.append(value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            GUIDE.program("main", charge_customer=charge_customer),
            share_broker.bootstrap_servers,
        )
        await until(lambda: settled(share_broker, 3))
        tasks.cancel_scope.cancel()

    assert [b"1", b"2", b"3"] == sorted(charged)


@on_real_clock
@pytest.mark.anyio
async def test_plain_function_is_a_handler(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"1", b"2"])
    uploaded: list[bytes] = []
    resize = GUIDE.program(
        "resize", download=lambda value: value, upload=uploaded.append
    )

    await process(broker, resize, 2)

    assert [b"1", b"2"] == sorted(uploaded)


@pytest.mark.anyio
async def test_batch_handler_writes_valid_records(broker: MemoryBroker) -> None:
    broker.produce("orders", [b"1", b"invalid", b"3"])
    inserted: Counter[bytes] = Counter()

    async def insert(values: list[bytes]) -> None:
        inserted.update(values)

    handler = GUIDE.program(
        "handler", is_valid=lambda value: value != b"invalid", insert=insert
    )
    async with working(broker, handler) as worker:
        await until(lambda: settled(broker, 3))
        assert (2, 1, 3) == (
            worker.stats.accepted,
            worker.stats.rejected,
            worker.stats.failed,
        )

    assert {b"1": 1, b"3": 1} == inserted


@pytest.mark.anyio
async def test_handler_decides_by_the_status(broker: MemoryBroker) -> None:
    replies = {
        b"fine": [200],
        b"slow down": [429, 200],
        b"gone": [410],
        b"bad": [400],
        b"broken": [503, 503, 200],
    }
    broker.produce("orders", list(replies))

    async def post(value: bytes) -> Reply:
        return Reply(replies[value].pop(0))

    notify = GUIDE.program("notify", post=post)
    queue = DeadLetterQueue("orders.dead")
    async with working(broker, notify, dead_letter=queue) as worker:
        await until(lambda: settled(broker, 5))
        stats = worker.stats

    (letter,) = broker.records("orders.dead")
    origin = read_origin(letter.headers)
    assert origin is not None
    assert (b"bad", "invalid request") == (letter.value, origin.reason)
    assert (3, 1, 1, 3, 2) == (
        stats.accepted,
        stats.rejected,
        stats.dead_lettered,
        stats.retried,
        stats.failed,
    )


@pytest.mark.parametrize(
    ("error", "delay"),
    [(TimeoutError(), 1.0), (ConnectionResetError(), 5.0), (UnicodeError(), None)],
)
def test_policy_depends_on_the_exception(error: Exception, delay: float | None) -> None:
    policy: RetryPolicy = GUIDE.program("policy")

    outcome = policy.decide(error, attempt=1, chance=0.5, has_dead_letter_queue=False)

    if delay is None:
        assert isinstance(outcome, Rejected)
    else:
        assert RetryAfter(delay, 2, error) == outcome


@pytest.mark.anyio
async def test_handlers_of_topics_have_their_own_deserializers(
    embedded: EmbeddedBroker,
) -> None:
    embedded.create_topic("refunds")
    embedded.produce("orders", [b'{"customer": "ada"}', b"no JSON"])
    embedded.produce("refunds", [b"7"])
    calls: list[Any] = []

    async def called(what: Any) -> None:
        calls.append(what)

    new_worker = GUIDE.program(
        "new_billing_worker", charge_customer=called, refund_customer=called
    )
    worker = new_worker(
        bootstrap_servers=embedded.bootstrap_servers, network=embedded.network
    )
    async with worker:
        await until(lambda: worker.stats.accepted == 2)
        await until(lambda: worker.stats.dead_lettered == 1)

    assert {"ada", 7} == {*calls}


@pytest.mark.anyio
async def test_decorated_functions_are_handlers(embedded: EmbeddedBroker) -> None:
    for topic in ("welcome", "goodbye", "opened", "mail.dead"):
        embedded.create_topic(topic)
    embedded.produce("welcome", [b'{"address": "ada"}'])
    embedded.produce("goodbye", [b'{"address": "bob"}'])
    embedded.produce("opened", [b"1", b"2"])
    sent: list[tuple[str, str]] = []
    counts: list[int] = []

    async def send_mail(address: str, topic: str) -> None:
        sent.append((address, topic))

    async def count_opened(count: int) -> None:
        counts.append(count)

    new_worker = GUIDE.program(
        "new_mail_worker",
        ShareWorker=ShareWorker,
        json=json,
        send_mail=send_mail,
        count_opened=count_opened,
    )
    worker = new_worker(
        bootstrap_servers=embedded.bootstrap_servers, network=embedded.network
    )
    async with worker:
        await until(lambda: worker.stats.accepted == 4)

    assert [("ada", "welcome"), ("bob", "goodbye")] == sorted(sent)
    assert 2 == sum(counts)


@pytest.mark.anyio
async def test_worker_runs_beside_a_server(embedded: EmbeddedBroker) -> None:
    embedded.produce("orders", [b"1"])
    worker = ShareWorker(
        "orders",
        Handled(),
        group_id="billing",
        bootstrap_servers=embedded.bootstrap_servers,
        network=embedded.network,
    )

    class Server:
        async def serve(self) -> None:
            assert worker.assignment
            await until(lambda: worker.stats.accepted == 1)

    await GUIDE.program("serve")(worker, Server())

    assert not worker.connected


@pytest.mark.anyio
async def test_worker_consumes_its_retry_topics(embedded: EmbeddedBroker) -> None:
    topics = ["orders", "orders.retry.10s", "orders.retry.60s"]
    for topic in topics[1:]:
        embedded.create_topic(topic)
    for topic in topics:
        embedded.produce(topic, [b"1"])
    received_from: list[str] = []

    async def handle(record: Record[Any, Any]) -> None:
        received_from.append(record.topic)

    new_worker = GUIDE.program(
        "new_worker", ShareWorker=ShareWorker, RetryPolicy=RetryPolicy
    )
    worker = new_worker(
        handle, bootstrap_servers=embedded.bootstrap_servers, network=embedded.network
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        await until(lambda: len(received_from) == 3)
        worker.stop()

    assert topics == sorted(received_from)


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as database:
        yield database


@pytest.mark.anyio
async def test_record_is_saved_once(
    broker: MemoryBroker, database: sqlite3.Connection
) -> None:
    broker.produce("orders", [b"1", b"2"])
    database.execute(
        "CREATE TABLE charges (topic, partition, source_offset, value, "
        "PRIMARY KEY (topic, partition, source_offset))"
    )
    save_once = GUIDE.program("save_once")
    calls = 0

    async def handle(record: Record[Any, Any]) -> None:
        nonlocal calls
        calls += 1
        save_once(database, worker, record)
        if calls == 1:
            raise TimeoutError("after the work")

    async with working(broker, handle) as worker:
        await until(lambda: settled(broker, 2))

    assert 3 == calls
    assert [("orders", 0, 0, b"1"), ("orders", 0, 1, b"2")] == database.execute(
        "SELECT * FROM charges ORDER BY source_offset"
    ).fetchall()


@pytest.mark.anyio
async def test_failed_handler_rolls_its_transaction_back(
    broker: MemoryBroker,
) -> None:
    steps: list[str] = []

    class Connection:
        @asynccontextmanager
        async def transaction(self) -> AsyncIterator[None]:
            try:
                yield
            except TimeoutError:
                steps.append("roll back")
                raise
            steps.append("commit")

    class Pool:
        @asynccontextmanager
        async def connection(self) -> AsyncIterator[Connection]:
            yield Connection()

    transactions = GUIDE.program("Transactions")
    current = transactions.__call__.__globals__["current_connection"]
    connections: list[Any] = []

    async def fail_once(record: Record[Any, Any]) -> None:
        connections.append(current.get())
        if len(connections) == 1:
            raise TimeoutError("slow")

    broker.produce("orders", [b"a"])
    await process(broker, fail_once, 1, middleware=[transactions(Pool())])

    assert ["roll back", "commit"] == steps
    assert [Connection, Connection] == [type(each) for each in connections]


@pytest.mark.anyio
async def test_outcomes_are_counted(broker: MemoryBroker) -> None:
    counts: Counter[Any] = Counter()
    reported: list[Exception] = []
    seconds: list[float] = []

    class Outcomes:
        def labels(self, *labels: str) -> Any:
            return SimpleNamespace(inc=lambda: counts.update([labels]))

    count_outcome = GUIDE.program(
        "count_outcome",
        OUTCOMES=Outcomes(),
        SECONDS=SimpleNamespace(observe=seconds.append),
        sentry_sdk=SimpleNamespace(capture_exception=reported.append),
    )
    error = TimeoutError("slow")

    async def fail_once(record: Record[Any, Any]) -> None:
        if not counts:
            raise error

    broker.produce("orders", [b"a"])
    await process(broker, fail_once, 1, on_outcome=count_outcome)

    assert {("orders", "RetryAfter"): 1, ("orders", "Accepted"): 1} == counts
    assert ([error], 2) == (reported, len(seconds))


@on_real_clock
@pytest.mark.slow("connects by TCP, and leaves")
@pytest.mark.anyio
async def test_test_of_a_worker_passes(share_broker: EmbeddedBroker) -> None:
    test = GUIDE.program(
        "test_order_that_cannot_be_charged_is_a_dead_letter",
        anyio=anyio,
        DeadLetter=DeadLetter,
        DeadLetterQueue=DeadLetterQueue,
        ShareWorker=ShareWorker,
    )

    with anyio.fail_after(20):
        await test(share_broker)


def test_table_of_the_window_is_what_the_worker_allows() -> None:
    rows = re.findall(r"^\| ([\d,]+) \| ([\d,.]+) s \|$", GUIDE.text, re.MULTILINE)
    numbers = [[float(cell.replace(",", "")) for cell in row] for row in rows]

    assert 9 == len(numbers)
    assert [rate * wait for rate, wait in numbers] == [USABLE * DEFAULT_WINDOW] * 9


def test_worker_with_a_health_policy_has_it() -> None:
    new_worker = GUIDE.program("new_healthy_worker", ShareWorker=ShareWorker)

    worker = new_worker(Handled(), bootstrap_servers="b:1")

    assert ["starting"] == [condition.name for condition in worker.not_ready]
    assert () == worker.not_live
