"""The programs of docs/consumer.md and docs/consumer-running.md."""

import io
import json
from functools import partial

import anyio
import pytest
from fastapi import FastAPI

from sharecons import ShareConsumer
from sharecons.errors import DeserializationError
from tests.guides import Guide
from tests.waiting import until

GUIDE = Guide("consumer.md", "consumer-running.md")


class Application:
    """The functions that the guide's programs call."""

    def __init__(self, *, stays=True):
        self.values = []
        self.stays = stays
        self.done = anyio.Event()

    async def charge(self, value):
        self.values.append(value)
        if len(self.values) == 3:
            self.done.set()
            if self.stays:
                await anyio.sleep_forever()

    async def handle(self, record):
        await self.charge(record.value)
        return True

    async def store(self, values):
        for value in values:
            await self.charge(value)

    def is_valid(self, value):
        return value != b"invalid"

    async def consume(self, consumer):
        async for record in consumer:
            await self.charge(record.value)

    def program(self, name):
        """Return the guide's function of this name."""
        return GUIDE.program(
            name,
            ShareConsumer=ShareConsumer,
            DeserializationError=DeserializationError,
            anyio=anyio,
            json=json,
            consume=self.consume,
            charge=self.charge,
            handle=self.handle,
            store=self.store,
            is_valid=self.is_valid,
        )


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def servers(share_broker):
    share_broker.create_topic("orders")
    share_broker.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
    share_broker.produce("orders", [b"1", b"2", b"3"])
    return share_broker.bootstrap_servers


def consuming(servers, **options):
    return ShareConsumer(
        "orders", group_id="billing", bootstrap_servers=servers, **options
    )


def test_every_program_compiles():
    assert GUIDE.compile() == 12


@pytest.mark.anyio
async def test_first_program_runs(servers):
    application = Application()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(application.program("run"), servers)
        with anyio.fail_after(20):
            await application.done.wait()
        tasks.cancel_scope.cancel()

    assert application.values == [b"1", b"2", b"3"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("store_batches", {}, [b"1", b"2", b"3"]),
        ("handle_all", {"acknowledgement": "explicit"}, [b"1", b"2", b"3"]),
        ("run_workers", {}, [b"1", b"2", b"3"]),
        ("read_json", {"value_deserializer": json.loads}, [1, 2, 3]),
    ],
)
async def test_loop_reads_every_record(servers, name, options, expected):
    application = Application()

    async with consuming(servers, **options) as consumer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(application.program(name), consumer)
            with anyio.fail_after(20):
                await application.done.wait()
            tasks.cancel_scope.cancel()

    assert sorted(application.values) == expected


@pytest.mark.anyio
async def test_record_written_after_the_assignment_is_received(share_broker, servers):
    program = Application().program("first_new_order")

    async with consuming(servers, auto_offset_reset="latest") as consumer:
        record = await program(consumer, share_broker)

    assert record.value == b"new"


@pytest.mark.anyio
async def test_records_that_are_no_json_are_rejected(share_broker, servers):
    share_broker.produce("orders", [b"{", b"4"])
    application = Application()

    async with consuming(servers, value_deserializer=json.loads) as consumer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(application.program("read_json"), consumer)
            with anyio.fail_after(20):
                await application.done.wait()
            tasks.cancel_scope.cancel()

    assert application.values == [1, 2, 3]


@pytest.mark.anyio
async def test_poll_and_commit_return_results(servers):
    application, results = Application(stays=False), []

    async with consuming(servers, acknowledgement="explicit") as consumer:
        with anyio.fail_after(20):
            while not application.done.is_set():
                results += await application.program("poll_once")(consumer)

    assert application.values == [b"1", b"2", b"3"]
    assert [result.error for result in results] == [None] * len(results)
    assert sum(r.last_offset - r.first_offset + 1 for r in results) == 3


@pytest.mark.anyio
async def test_long_work_renews_the_lock(servers):
    application, deadlines = Application(), []

    async def step(record):
        deadlines.append(record.lock_deadline)

    async with consuming(servers, acknowledgement="explicit") as consumer:
        with anyio.fail_after(20):
            (record, *_) = await consumer.poll(timeout=10, max_records=1)
            await application.program("work_long")(record, [step] * 3)
            assert [r.error for r in await consumer.commit()] == [None]

    assert len(deadlines) == 3


@pytest.mark.anyio
async def test_values_that_are_views_are_saved(share_broker, servers):
    share_broker.create_topic("images")
    share_broker.set_group_config("archive", {"share.auto.offset.reset": "earliest"})
    share_broker.produce("images", [b"one", b"two"])
    file = io.BytesIO()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Application().program("save"), servers, file)
        await until(lambda: len(file.getvalue()) == 6)
        tasks.cancel_scope.cancel()

    assert file.getvalue() == b"onetwo"


@pytest.mark.anyio
async def test_consumer_from_a_file_reads_records(servers, tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(f"bootstrap.servers={servers}\ngroup.id=billing\n")

    async with Application().program("from_file")(path) as consumer:
        records = aiter(consumer)
        with anyio.fail_after(20):
            values = [(await anext(records)).value for _ in range(3)]

    assert values == [1, 2, 3]


@pytest.mark.anyio
async def test_consumer_runs_in_the_lifespan_of_an_app(servers):
    application = Application()
    lifespan = GUIDE.program(
        "lifespan",
        ShareConsumer=partial(ShareConsumer, bootstrap_servers=servers),
        anyio=anyio,
        consume=application.consume,
    )

    async with lifespan(FastAPI()):
        with anyio.fail_after(20):
            await application.done.wait()

    assert application.values == [b"1", b"2", b"3"]
