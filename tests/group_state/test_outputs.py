"""All outputs of one group, compared with files: metrics, text, JSON, SVG and HTML.

`python -m pytest tests/group_state/test_outputs.py` with SHARECONS_WRITE_EXPECTED=1
writes the files.
"""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from sharecons._record import TopicPartition
from sharecons.cli import inspect_json
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Level, Metrics
from sharecons.inspection import inspect_group
from sharecons.inspection.picture import GroupPicture
from sharecons.inspection.picture_files import html_page, svg_picture
from tests.group_state.stored import with_batches

pytestmark = [pytest.mark.anyio, pytest.mark.slow("one broker of its own")]

EXPECTED = Path(__file__).parent / "expected"
AT = 1_795_000_000.0
WRITTEN = 1_700_000_000_000
TOPIC, GROUP = "outputs-topic", "outputs-group"
STATES = (
    (10, 14, 2, 1),  # acknowledged
    (15, 16, 4, 5),  # archived at the delivery limit
    (17, 17, 3, 2),  # archiving
    (18, 19, 0, 4),  # available, with one delivery left
    (20, 20, 99, 1),  # of a newer broker
    (25, 30, 2, 1),
)


@pytest.fixture
def faults(embedded_kafka):
    faults = embedded_kafka.cluster.broker.faults
    yield faults
    faults.clear()


@pytest.fixture
def kafka(embedded_kafka):
    return embedded_kafka


@pytest.fixture
async def outputs(kafka, admin, faults):
    """Return the outputs by file name, with fixed times."""
    kafka.admin.create_topic(2, TOPIC)
    producer = kafka.admin.producer()
    for partition, count in ((0, 40), (1, 3)):
        for _ in range(count):
            producer.produce(TOPIC, b"x", partition=partition, timestamp=WRITTEN)
    producer.flush()
    starts = {TopicPartition(TOPIC, 0): 8, TopicPartition(TOPIC, 1): 3}
    (await admin.alter_share_group_offsets(GROUP, starts)).check()
    with faults.on("ReadShareGroupState", times=None).respond(with_batches(*STATES)):
        snapshot = await Collector(admin, [GROUP]).collect()
        inspection = await inspect_group(admin, GROUP)
    yield {
        "partitions.prom": _scrape(snapshot, Level.PARTITION),
        "topics.prom": _scrape(snapshot, Level.TOPIC),
        **_pictures(_at_fixed_time(inspection)),
    }
    kafka.admin.delete_topic(TOPIC)


def _scrape(snapshot, level):
    metrics = Metrics(level)
    metrics.update(replace(snapshot, at=AT, duration=0.5))
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry).decode()


def _at_fixed_time(inspection):
    findings = {
        key: tuple(
            replace(one, text=re.sub(r"\d+ d( \d+ h)? old", "N d old", one.text))
            for one in each
        )
        for key, each in inspection.findings.items()
    }
    return replace(inspection, at=AT, findings=findings)


def _pictures(inspection):
    return {
        "inspection.json": json.dumps(inspect_json.objects(inspection), indent=1),
        "inspection.txt": _text(inspection, offsets=False),
        "offsets.txt": _text(inspection, offsets=True),
        "picture.svg": svg_picture(inspection),
        "page.html": html_page(inspection),
    }


def _text(inspection, *, offsets):
    text = io.StringIO()
    console = Console(file=text, width=150, color_system=None, highlight=False)
    console.print(GroupPicture(group=inspection, offsets=offsets))
    return "\n".join(line.rstrip() for line in text.getvalue().split("\n"))


async def test_outputs_are_the_files(outputs):
    for name, text in outputs.items():
        path = EXPECTED / name
        if os.environ.get("SHARECONS_WRITE_EXPECTED"):
            path.write_text(text)
        assert path.read_text() == text, name
