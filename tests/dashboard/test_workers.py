"""The page of workers, whose health ports are read when it is opened."""

from contextlib import AsyncExitStack

import anyio
import pytest

from sharecons import TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.cli.run.health import serve_health
from sharecons.dashboard import create_app
from sharecons.errors import ConfigurationError
from sharecons.metrics.families import MetricFamily
from tests.dashboard.serving import HOSTILE, Page, dashboard

pytestmark = pytest.mark.anyio


def families():
    running = {("billing",): 7}
    outcomes = {
        ("billing", "orders", "accepted"): 1000,
        ("billing", "refunds", "accepted"): 234,
    }
    name = "sharecons_worker_records_running"
    yield MetricFamily(name, "gauge", "Running.", ("group",), running)
    name, labels = "sharecons_worker_outcomes_total", ("group", "topic", "outcome")
    yield MetricFamily(name, "counter", "Outcomes.", labels, outcomes)


async def add_group(broker, group_id):
    start = {TopicPartition("orders", 0): 0}
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        (await admin.alter_share_group_offsets(group_id, start)).check()


def health(problem=None):
    return serve_health(
        "127.0.0.1",
        0,
        live=lambda: None,
        ready=lambda: problem,
        families=families,
    )


async def test_worker_has_its_conditions_and_numbers(broker):
    async with (
        health(f"held-window: orders-0@7\n{HOSTILE}") as port,
        dashboard(broker, workers=[f"http://127.0.0.1:{port}/"]) as http,
    ):
        text = (await http.get("/workers")).text

    page = Page(text)
    assert "group billing" in page.text
    assert "not ready held-window: orders-0@7" in page.text
    assert "running 7" in page.text
    assert "accepted 1,234" in page.text
    assert "img" not in [tag for tag, _ in page.tags]


async def test_ready_worker_is_ready(broker):
    async with (
        health() as port,
        dashboard(broker, workers=[f"http://127.0.0.1:{port}"]) as http,
    ):
        page = Page((await http.get("/workers")).text)

    assert " ready " in page.text
    assert "not ready" not in page.text


async def test_worker_that_does_not_respond_hides_no_other(broker):
    async with (
        health() as port,
        dashboard(
            broker, workers=["http://127.0.0.1:1", f"http://127.0.0.1:{port}"]
        ) as http,
    ):
        page = Page((await http.get("/workers")).text)

    assert "does not respond" in page.text
    assert "running 7" in page.text


async def test_conditions_are_on_the_page_of_the_group_and_among_all_groups(broker):
    await add_group(broker, "billing")
    await add_group(broker, "annual")
    two = "process 1: held-window: orders-0@7\nprocess 2: busy-handlers: all 2 calls"
    async with (
        health(two) as port,
        dashboard(broker, workers=[f"http://127.0.0.1:{port}"]) as http,
    ):
        await http.get("/workers")
        group = Page((await http.get("/group?id=billing")).text)
        other = Page((await http.get("/group?id=annual")).text)
        overview = Page((await http.get("/")).text)

    where = f"not ready worker http://127.0.0.1:{port}:"
    for line in two.splitlines():
        assert f"{where} {line}" in group.text
    assert "0 of 1 workers ready" in group.text
    assert "/workers" in group.links
    assert "Nothing stands still" not in group.text
    assert "not ready" not in other.text
    assert "not ready workers: held-window, busy-handlers" in overview.text
    assert overview.text.index("billing") < overview.text.index("annual")


@pytest.mark.slow("workers are read once a second")
async def test_worker_that_ended_is_still_on_the_page_of_its_group(broker):
    await add_group(broker, "billing")
    async with AsyncExitStack() as worker:
        port = await worker.enter_async_context(health())
        url = f"http://127.0.0.1:{port}"
        async with dashboard(broker, workers=[url], interval=0.1) as http:
            await until_group_has(http, "1 of 1 workers ready")
            await worker.aclose()
            await until_group_has(http, f"worker {url}: does not respond")


async def until_group_has(http, text):
    """Load the page of a group with each collection, until it has a text."""
    with anyio.fail_after(10):
        while text not in Page((await http.get("/group?id=billing")).text).text:
            await http.live.wait_for_change(http.live.version)


async def test_without_workers_the_page_says_how_to_name_them(broker):
    async with dashboard(broker) as http:
        page = Page((await http.get("/workers")).text)

    assert "--worker http://HOST:PORT" in page.text


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a", "10.0.0.7:9931", ""])
def test_address_that_is_no_url_is_rejected(url):
    with pytest.raises(ConfigurationError, match=r"is like http://10\.0\.0\.7:9931"):
        create_app(workers=[url])
