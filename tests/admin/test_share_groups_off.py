"""The feature share.version is off: the errors say how to switch it on."""

import subprocess

import anyio
import pytest

from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from tests.cli.run_cli import run_cli
from tests.kafka_plugin import VERSION, Admin

COMMANDS = [
    ["describe", "g"],
    ["offsets", "g"],
    ["inspect", "g"],
    ["delete", "g"],
    ["reset-offsets", "g", "--topic", "orders", "--to-earliest", "--execute"],
    ["delete-offsets", "g", "--topic", "orders"],
]
APIS = [
    "ShareGroupDescribe",
    "DescribeShareGroupOffsets",
    "DeleteShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteGroups",
]


def check(bootstrap_servers, topic="orders"):
    for command in COMMANDS:
        words = [topic if word == "orders" else word for word in command]
        ended = run_cli("groups", *words, "--bootstrap-server", bootstrap_servers)
        assert 5 == ended.code, command
        assert "UnsupportedVersionError" not in ended.out, command
        assert "upgrade --feature share.version=1` switches it on" in ended.err


@pytest.mark.anyio
async def test_groups_commands_give_advice_if_share_groups_are_off():
    async with EmbeddedBroker(topics={"orders": 1}) as broker:
        for api in APIS:
            broker.faults.on(api, times=None).refuse("UNSUPPORTED_VERSION")
        await anyio.to_thread.run_sync(check, broker.bootstrap_servers)


@pytest.mark.kafka
@pytest.mark.slow("a Kafka of its own starts, and its tools")
def test_groups_commands_give_advice_on_kafka_with_share_groups_off():
    with KafkaCluster(VERSION) as cluster:
        where = ["--bootstrap-server", cluster.bootstrap_servers]
        command = cluster.java_command(
            "org.apache.kafka.tools.FeatureCommand",
            *where,
            *["downgrade", "--feature", "share.version=0"],
        )
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        check(cluster.bootstrap_servers, Admin(where[1]).create_topic())
