"""The page of workers, whose health ports are read when it is opened."""

import pytest

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


async def test_without_workers_the_page_says_how_to_name_them(broker):
    async with dashboard(broker) as http:
        page = Page((await http.get("/workers")).text)

    assert "--worker http://HOST:PORT" in page.text


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a", "10.0.0.7:9931", ""])
def test_address_that_is_no_url_is_rejected(url):
    with pytest.raises(ConfigurationError, match=r"is like http://10\.0\.0\.7:9931"):
        create_app(workers=[url])
