"""Delivery states of Kafka 4.4 (ARCHIVING) and of newer brokers, in commands.

tests/group_state/test_outputs.py has all outputs of `groups inspect`.
"""

import json

import anyio
import pytest

from sharecons import ShareGroupAdmin, TopicPartition
from sharecons.admin import DeliveryState
from sharecons.testing import EmbeddedBroker
from tests.cli.run_cli import run_cli
from tests.group_state.stored import with_batches

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


def test_inspect_table_without_rare_states_has_no_columns_for_them(broker, run):
    broker.faults.clear()
    fault = broker.faults.on("ReadShareGroupState", times=None)
    fault.respond(with_batches(*BATCHES[:2]))

    lines = run("groups", "inspect", GROUP).out.splitlines()

    (heading,) = (line for line in lines if line.startswith("TOPIC"))
    assert set() == {"ARCHIVING", "UNKNOWN"} & set(heading.split())


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
