"""Delivery states of Kafka 4.4 (ARCHIVING) and of newer brokers, in every command."""

import json

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.admin import DeliveryState
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Metrics
from sharecons.testing import EmbeddedBroker
from sharecons.testing.broker.handlers import read_share_group_state
from tests.cli.run_cli import run_cli
from tests.exporter.scraped import GROUP as PREFIX
from tests.exporter.scraped import scrape

GROUP = "billing"
ORDERS = TopicPartition("orders", 0)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = DeliveryState
NEWER = 99
BATCHES = (
    (0, 2, AVAILABLE, 2),
    (3, 9, ACKNOWLEDGED, 1),
    (10, 13, ARCHIVING, 5),
    (14, 15, ARCHIVED, 5),
    (16, 16, NEWER, 3),
)
COUNTS = {
    "available_or_locked": 3,
    "acknowledged": 7,
    "archiving": 4,
    "archived": 2,
    "unknown": 1,
    "above": 3,
}


def with_batches(*batches):
    """Return a handler of ReadShareGroupState that responds with these batches."""
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    state = [dict(zip(names, map(int, batch), strict=True)) for batch in batches]

    async def respond(request, context):
        response = await read_share_group_state.handle(request, context)
        for result in response["results"]:
            for partition in result["partitions"]:
                partition["state_batches"] = state
        return response

    return respond


@pytest.fixture
def broker():
    with EmbeddedBroker(topics={"orders": 1}) as broker:
        broker.produce("orders", [b"x"] * 20)
        anyio.run(set_start_offset, broker.bootstrap_servers)
        broker.faults.on("ReadShareGroupState", times=None).respond(
            with_batches(*BATCHES)
        )
        yield broker


async def set_start_offset(servers):
    async with ShareGroupAdmin(bootstrap_servers=servers) as admin:
        (await admin.alter_share_group_offsets(GROUP, {ORDERS: 0})).check()


@pytest.fixture
def run(broker):
    def run(*args):
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        result = run_cli(*args, *servers)
        assert 0 == result.code, result.err
        return result

    return run


def test_admin_reads_every_state(broker):
    async def read():
        async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
            return (await admin.read_state(GROUP, [ORDERS]))[ORDERS].value

    batches = anyio.run(read).batches

    assert [state for _, _, state, _ in BATCHES] == [each.state for each in batches]
    assert [True] * 4 + [False] == [each.state.is_known for each in batches]
    assert ["ARCHIVING", "UNKNOWN_99"] == [batches[2].state.name, batches[4].state.name]


def test_inspect_counts_every_state(run):
    (row,) = json.loads(run("groups", "inspect", GROUP, "--json").out)

    assert COUNTS == {name: row[name] for name in COUNTS}
    assert 20 == sum(COUNTS.values())


def test_inspect_table_has_every_offset(run):
    lines = run("groups", "inspect", GROUP).out.splitlines()
    (heading,) = (line for line in lines if line.startswith("TOPIC"))
    (row,) = (line for line in lines if line.startswith("orders "))
    cells = dict(zip(heading.split(), row.split(), strict=False))

    columns = ("ACKED", "ARCHIVING", "ARCH", "UNKNOWN", "OPEN", "ABOVE")
    assert [7, 4, 2, 1, 3, 3] == [int(cells[name]) for name in columns]


def test_inspect_table_without_rare_states_has_no_columns_for_them(broker, run):
    broker.faults.clear()
    fault = broker.faults.on("ReadShareGroupState", times=None)
    fault.respond(with_batches(*BATCHES[:2]))

    lines = run("groups", "inspect", GROUP).out.splitlines()

    (heading,) = (line for line in lines if line.startswith("TOPIC"))
    assert set() == {"ARCHIVING", "UNKNOWN"} & set(heading.split())


def test_inspect_lists_every_state(run):
    lines = run("groups", "inspect", GROUP, "--offsets").out.splitlines()
    rows = [line.split() for line in lines if line.startswith("orders ")]

    assert ["10", "13", "4", "archiving:"] == rows[2][2:6]
    assert ["16", "16", "1", "unknown", "state", "of", "a"] == rows[4][2:9]


@pytest.mark.parametrize("form", ["html", "svg"])
def test_html_and_svg_show_every_state(run, tmp_path, form):
    path = tmp_path / f"group.{form}"

    run("groups", "inspect", GROUP, f"--{form}", path)

    shown = path.read_text().replace("&#160;", " ")
    assert "archiving: writing a dead letter" in shown
    assert "unknown state of a newer broker" in shown


def test_exporter_counts_every_state(broker):
    async def collect():
        async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
            return await Collector(admin, [GROUP]).collect()

    metrics = Metrics()
    metrics.update(anyio.run(collect))
    shown = scrape(metrics)

    counts = shown.by("status", f"{PREFIX}records_by_deliveries", group=GROUP)
    expected = {name: count for name, count in COUNTS.items() if name != "above"}
    assert expected == counts
    assert 3 == shown.value(f"{PREFIX}available_or_locked_records", group=GROUP)


def test_migration_counts_archiving_records_as_archived(broker, run):
    broker.faults.clear()
    fault = broker.faults.on("ReadShareGroupState", times=None)
    fault.respond(with_batches(*BATCHES[:-1]))

    result = run("migrate", GROUP, "classic", "--json")

    (row,) = json.loads(result.out)
    assert (7, 6, 13) == (row["acknowledged"], row["archived"], row["twice"])


def test_migration_of_unknown_states_counts_nothing(run):
    (row,) = json.loads(run("migrate", GROUP, "classic", "--json").out)

    assert 0 == row["new_offset"]
    assert [None] * 3 == [row[name] for name in ("acknowledged", "archived", "twice")]
