"""A record that ends its process, beside records of other leaders.

Each leader returns at least one record, so a worker holds several from its start.
"""

from typing import Any

import anyio
import pytest

from sharecons import Record, RetryPolicy
from sharecons.testing import EmbeddedBroker
from sharecons.testing.pytest_plugin import SETTINGS
from tests.killable_network import KillableNetwork
from tests.worker.working import new_worker

pytestmark = pytest.mark.anyio

CRASH, DEAD = b"crash", "orders.dead"


class Process:
    """A process with a worker; `CRASH` ends it as the operating system would."""

    def __init__(self, broker: EmbeddedBroker, handled: set[bytes]) -> None:
        self.network = KillableNetwork(broker.network)
        self.has_crashed = anyio.Event()
        self._handled = handled

    async def handle(self, record: Record[Any, Any]) -> None:
        if record.value == CRASH:
            self.network.kill()
            with anyio.CancelScope(shield=True):
                await self.network.close()
            self.has_crashed.set()
            await anyio.sleep_forever()
        await anyio.sleep(0.5)
        self._handled.add(record.value)

    async def run(self, broker: EmbeddedBroker) -> None:
        """Run until the process crashes, or has nothing to do."""
        worker = new_worker(
            broker,
            "orders",
            self.handle,
            dead_letter=DEAD,
            network=self.network,
            retry=RetryPolicy(),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            with anyio.move_on_after(60.0):
                await self.has_crashed.wait()
            tasks.cancel_scope.cancel()


@pytest.mark.slow("six lives of a worker on three brokers")
@pytest.mark.parametrize("crashing", range(3))
async def test_record_that_ends_its_process_takes_none_of_another_leader(
    crashing: int,
) -> None:
    handled: set[bytes] = set()
    async with EmbeddedBroker(brokers=3, settings=SETTINGS, listen=False) as broker:
        broker.create_topic("orders", partitions=3)
        broker.create_topic(DEAD)
        for partition in range(3):
            first = CRASH if partition == crashing else b"first %d" % partition
            values = [first, b"later %d" % partition]
            broker.produce("orders", values, partition=partition)
        for _ in range(6):
            process = Process(broker, handled)
            await process.run(broker)
            if not process.has_crashed.is_set():
                break

        assert [CRASH] == [record.value for record in broker.records(DEAD)]
        assert 5 == len(handled)
