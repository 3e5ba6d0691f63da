"""Checks and configs of a worker before it takes the first record."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from sharecons import Record, ShareWorker
from sharecons.admin import ConfigEntry, ShareGroupAdmin
from sharecons.config.not_given import NOT_GIVEN
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH]

RESET = "share.auto.offset.reset"


@pytest.fixture
def admin(any_admin: AnyAdmin) -> AnyAdmin:
    return any_admin


class Start:
    """A worker of a new topic and group, and what it handles."""

    def __init__(self, admin: AnyAdmin) -> None:
        self.admin = admin
        self.topic = admin.create_topic(
            partitions=2, config={"retention.ms": "7200000"}
        )
        self.group = f"group-{self.topic}"
        self.handled: list[bytes | None] = []

    def worker(self, reset: Any = NOT_GIVEN, **options: Any) -> ShareWorker[Any, Any]:
        return ShareWorker(
            self.topic,
            self.handle,
            group_id=self.group,
            bootstrap_servers=self.admin.bootstrap_servers,
            auto_offset_reset=reset,
            network=self.admin.network,
            **options,
        )

    async def handle(self, record: Record[bytes, bytes]) -> None:
        self.handled.append(record.value)

    async def run(self, worker: ShareWorker[Any, Any], until_handled: bytes) -> None:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(worker.run)
                await until(lambda: until_handled in self.handled, within=30)
                worker.stop()

    async def configs(self) -> Mapping[str, ConfigEntry]:
        async with ShareGroupAdmin(
            bootstrap_servers=self.admin.bootstrap_servers, network=self.admin.network
        ) as client:
            return (await client.describe_group_configs(self.group))[self.group].value


async def test_new_group_of_a_worker_starts_at_the_beginning(admin: AnyAdmin) -> None:
    start = Start(admin)
    admin.produce(start.topic, [b"early"], partition=1)

    await start.run(start.worker(), b"early")

    entry = (await start.configs())[RESET]
    assert ("earliest", False) == (entry.value, entry.is_default)


@pytest.mark.client_only
async def test_group_with_another_config_starts_at_the_beginning(
    admin: AnyAdmin,
) -> None:
    start = Start(admin)
    admin.set_group_config(start.group, {"share.record.lock.duration.ms": "20000"})
    admin.produce(start.topic, [b"early"], partition=1)

    await start.run(start.worker(), b"early")


async def test_group_that_starts_at_the_end_logs_the_records_that_it_skips(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    start = Start(admin)
    admin.produce(start.topic, [b"early"] * 7, partition=0)
    admin.produce(start.topic, [b"early"] * 4, partition=1)
    worker = start.worker(None)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda: bool(worker.assignment), within=30)
            worker.stop()

    line = "the group starts at the end of partitions that it has not read"
    (event,) = [each for each in caplog.records if line in each.getMessage()]
    assert "WARNING" == event.levelname
    assert "records=11 " in event.getMessage()


@pytest.mark.client_only
async def test_group_that_has_read_the_topic_logs_no_skipped_records(
    admin: AnyAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    start = Start(admin)
    for partition in range(2):
        admin.produce(start.topic, [b"%d" % partition], partition=partition)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            worker = start.worker("earliest")
            tasks.start_soon(worker.run)
            await until(lambda: worker.stats.accepted == 2, within=30)
            worker.stop()
    worker = start.worker("latest")

    with caplog.at_level("INFO"), anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda: bool(worker.assignment), within=30)
            worker.stop()

    assert "that it has not read" not in caplog.text
