"""Use an installed sharecons: producer, consumer, worker and command line.

    python -I tests/packaging/smoke_program.py

They use the embedded broker. The last line says which build runs; a part that does
not work is an exception. Needs sharecons and its dependencies, no other package.
"""

import platform
import subprocess
import sys
import sysconfig
from pathlib import Path

import anyio

import sharecons
from sharecons import Producer, Record, ShareConsumer, ShareWorker
from sharecons.testing import EmbeddedBroker

VALUES = {b"one", b"two", b"three"}
TIMEOUT = 120.0
"""In seconds; long, because an emulated processor can be a hundred times slower."""


async def produce_and_consume(servers: str) -> None:
    async with Producer(bootstrap_servers=servers) as producer:
        for value in VALUES:
            await producer.send("orders", value)
    left = set(VALUES)
    async with ShareConsumer(
        "orders",
        group_id="billing",
        auto_offset_reset="earliest",
        bootstrap_servers=servers,
    ) as consumer:
        async for record in consumer:
            left.remove(record.value)
            if not left:
                record.accept()
                break


async def work(servers: str) -> None:
    handled = set()

    async def handle(record: Record) -> None:
        handled.add(record.value)
        if handled == VALUES:
            worker.stop()

    worker = ShareWorker(
        "orders", handle, group_id="shipping", bootstrap_servers=servers
    )
    await worker.run()
    assert worker.stats.accepted == len(VALUES), worker.stats


def describe(servers: str) -> None:
    program = Path(sysconfig.get_path("scripts")) / "sharecons"
    for group in ("billing", "shipping"):
        command = [program, "groups", "describe", group, "--bootstrap-server", servers]
        result = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=TIMEOUT
        )
        assert "orders" in result.stdout, result.stdout


async def use(servers: str) -> None:
    with anyio.fail_after(TIMEOUT):
        await produce_and_consume(servers)
        await work(servers)


def main() -> None:
    assert sharecons.__file__.startswith(sysconfig.get_path("platlib"))
    with EmbeddedBroker(topics={"orders": 1}) as broker:
        anyio.run(use, broker.bootstrap_servers)
        describe(broker.bootstrap_servers)
    build = "compiled" if sharecons.COMPILED else "plain Python"
    version = f"sharecons {sharecons.__version__}, {build}"
    sys.stdout.write(
        f"{version}: works on Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}\n"
    )


if __name__ == "__main__":
    main()
