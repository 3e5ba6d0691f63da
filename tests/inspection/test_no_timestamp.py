"""Records without a timestamp (Kafka's -1): their age is unknown, not 56 years."""

import json

import anyio
import pytest

from sharecons.admin import ShareGroupAdmin
from sharecons.cli import main
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Metrics
from tests.broker.log_requests import produce_batch
from tests.broker.raw_batches import batch
from tests.exporter.scraped import GROUP, scrape
from tests.scenarios.queue import Queue, take


@pytest.fixture
def queue(kafka):
    """Two records without a timestamp, and a group that holds neither."""
    queue = Queue(kafka.admin)
    produce_batch(kafka, queue.topic, batch("a", "b", timestamp=-1))

    async def release_one():
        async with queue.consumer(acknowledgement="explicit") as consumer:
            (record,) = await take(aiter(consumer), 1)
            record.release()
            await consumer.commit(timeout=10)

    anyio.run(release_one)
    return queue


@pytest.fixture
def run(kafka, capsys):
    def run(*arguments):
        assert 0 == main([*arguments, "--bootstrap-server", kafka.bootstrap_servers])
        return capsys.readouterr().out

    return run


def test_inspection_of_records_without_timestamp_has_no_age(run, queue, tmp_path):
    page = tmp_path / "group.html"
    text = run("groups", "inspect", queue.group)
    (found,) = json.loads(run("groups", "inspect", queue.group, "--json"))
    run("groups", "inspect", queue.group, "--html", str(page))

    (row,) = (line for line in text.splitlines() if line.startswith(queue.topic + " "))
    assert "unknown" in row.split()
    assert (0, None, None) == (
        found["oldest_offset"],
        found["oldest_timestamp"],
        found["oldest_age"],
    )
    assert "unknown" in page.read_text()


def test_exporter_leaves_out_the_age_of_records_without_timestamp(kafka, queue):
    metrics = Metrics()

    async def collect():
        async with ShareGroupAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            metrics.update(await Collector(admin, [queue.group]).collect())

    anyio.run(collect)
    shown = scrape(metrics)

    assert [] == shown.values(f"{GROUP}oldest_unsettled_age_seconds")
    assert [2] == shown.values(f"{GROUP}lag_records", group=queue.group)


def test_peek_shows_that_records_have_no_timestamp(run, queue):
    text = run("peek", queue.topic)
    objects = json.loads(run("peek", queue.topic, "--json"))

    assert 2 == text.count("  no timestamp  ")
    assert [None, None] == [each["timestamp"] for each in objects]
