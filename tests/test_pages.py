"""The programs of the pages that no other test runs."""

import ast
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest

from sharecons import (
    DeadLetterQueue,
    RetryPolicy,
    ShareConsumer,
    ShareGroupAdmin,
    ShareWorker,
    TopicPartition,
)
from sharecons.testing import EmbeddedBroker
from tests.guides import DOCS, Guide
from tests.waiting import until

PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
DEAD = DeadLetterQueue("orders.dead")

Names = dict[str, Any]


@pytest.fixture
def cluster(share_cluster: EmbeddedBroker) -> EmbeddedBroker:
    """Brokers with records, a share group and a consumer group."""
    share_cluster.create_topic("orders", partitions=2)
    share_cluster.create_topic("orders.dead", partitions=1)
    share_cluster.produce("orders", [b"%d" % number for number in range(1200)])
    return share_cluster


async def process(record: Any) -> None:
    if int(record.value) < 18:
        raise ValueError("no such customer")


async def run_group(cluster: EmbeddedBroker, group_id: str) -> ShareWorker[Any, Any]:
    """Let a group process all records, of which 18 become dead letters."""
    worker = ShareWorker(
        "orders",
        process,
        group_id=group_id,
        bootstrap_servers=cluster.bootstrap_servers,
        retry=RetryPolicy(max_attempts=1),
        dead_letter=DEAD,
    )
    async with worker:
        await until(lambda: worker.stats.accepted == 1182)
        await until(lambda: worker.stats.dead_lettered == 18)
    return worker


@pytest.mark.parametrize("page", PAGES)
def test_every_program_of_a_page_compiles(page: str) -> None:
    """Programs can await at their top level, as in `python -m asyncio`."""
    for number, block in enumerate(Guide(page).blocks):
        compile(
            block,
            f"docs/{page}, block {number}",
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )


@pytest.mark.slow("runs groups over TCP")
@pytest.mark.anyio
async def test_programs_of_the_administration_page_run(cluster: EmbeddedBroker) -> None:
    for group_id in ("billing", "g"):
        await run_group(cluster, group_id)
    page = Guide("administration.md")
    names: Names = {"servers": cluster.bootstrap_servers}
    await page.run(0, names)
    assert ("Empty", []) == (names["group"].state, list(names["group"].members))

    async with ShareGroupAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        names["admin"] = admin
        for number, block in enumerate(page.blocks[1:], 1):
            if "create_topics" in block:
                cluster.delete_topic("orders")
            await page.run(number, names)

    assert 45_000 != names["configs"]["share.record.lock.duration.ms"].value
    assert "TOPIC_ALREADY_EXISTS" == names["results"]["orders.dead"].error.name


@pytest.mark.slow("runs a group over TCP")
@pytest.mark.anyio
async def test_program_of_the_dead_letter_page_redrives(
    cluster: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_group(cluster, "billing")
    names: Names = {"servers": cluster.bootstrap_servers}

    await Guide("dead-letters.md").run(0, names)

    assert (
        "reason='failed after 1 attempt: ValueError: no such" in capsys.readouterr().out
    )
    assert 18 == names["summary"].redriven
    assert [] == names["open_ones"]
    assert 1200 + 18 + 1 == len(cluster.records("orders"))


@pytest.mark.anyio
async def test_program_of_the_inspection_page_prints_what_is_stalled(
    cluster: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
    async with ShareConsumer(
        "orders", group_id="billing", bootstrap_servers=cluster.bootstrap_servers
    ) as consumer:
        await consumer.poll(timeout=10.0)

    await Guide("inspect.md").run(0, {"servers": cluster.bootstrap_servers})

    assert "no members" in capsys.readouterr().out


@pytest.mark.anyio
async def test_program_of_the_migration_page_moves_a_group(
    cluster: EmbeddedBroker,
) -> None:
    here = TopicPartition("orders", 0)
    names: Names = {"servers": cluster.bootstrap_servers}
    await Guide("migrate.md").run(0, names)
    async with ShareGroupAdmin(bootstrap_servers=cluster.bootstrap_servers) as admin:
        created = await admin.alter_consumer_group_offsets("orders", {here: 500})
        created.check()

        await names["move_over"]()

        moved = await admin.list_share_group_offsets("orders-shared")
        assert 500 == moved["orders-shared"].value[here].value.start_offset


@pytest.mark.slow("runs a group over TCP")
@pytest.mark.anyio
async def test_programs_of_the_metrics_page_run(
    cluster: EmbeddedBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Guide("metrics.md")
    worker = await run_group(cluster, "billing")
    names: Names = {"servers": cluster.bootstrap_servers, "worker": worker}
    names["queue"] = SimpleNamespace(qsize=lambda: 3)
    names["consumer"] = ShareConsumer("orders", group_id="billing")

    for number in range(len(page.blocks)):
        await page.run(number, names)

    printed = capsys.readouterr().out
    assert "fetch-total = 0 fetches" in printed
    assert "seconds on average" in printed


@pytest.mark.slow("imports taskiq")
@pytest.mark.anyio
async def test_program_of_the_taskiq_page_defines_a_task() -> None:
    names: Names = {"servers": "localhost:9092", "__name__": __name__}

    await Guide("taskiq.md").run(0, names)

    assert f"{__name__}:send_mail" == names["send_mail"].task_name


@pytest.mark.slow("runs a worker and a consumer over TCP")
@pytest.mark.anyio
async def test_programs_of_the_opentelemetry_page_process_records(
    cluster: EmbeddedBroker,
) -> None:
    cluster.set_group_config("billing", {"share.auto.offset.reset": "earliest"})
    page = Guide("opentelemetry.md")
    servers = cluster.bootstrap_servers
    charged: list[Any] = []

    async def charge(record: Any) -> None:
        charged.append(record)

    worker = page.program("new_worker")(charge, bootstrap_servers=servers)
    async with page.program("new_producer")(servers) as producer, worker:
        await producer.send("orders", b"tea")
        await until(lambda: worker.stats.accepted == 1201)
    async with anyio.create_task_group() as tasks:
        telemetry = page.program("telemetry")
        tasks.start_soon(page.program("consume"), servers, telemetry, charge)
        cluster.produce("orders", [b"coffee"])
        await until(lambda: charged[-1] == b"coffee")
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_program_of_the_dashboard_page_serves_it_in_another_application(
    cluster: EmbeddedBroker,
) -> None:
    names: Names = {"servers": cluster.bootstrap_servers}
    await Guide("dashboard.md").run(0, names)

    transport = httpx.ASGITransport(names["app"])
    async with httpx.AsyncClient(
        transport=transport,
        base_url="http://localhost/queues",
        headers={"Authorization": "Bearer a secret"},
    ) as http:
        response = await http.get("/")
    await names["dashboard"].state.dashboard.aclose()

    assert (200, True) == (response.status_code, "Share groups" in response.text)
