"""Checks and configs of a worker before it takes the first record."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from sharecons import DeadLetter, Record, RetryTopic, ShareWorker
from sharecons.admin import ConfigEntry, ShareGroupAdmin
from sharecons.config.not_given import NOT_GIVEN
from sharecons.errors import BrokerError, ConfigurationError
from tests.scenarios.embedded_admin import LOOPS, AnyAdmin
from tests.waiting import until

pytestmark = pytest.mark.anyio

RESET = "share.auto.offset.reset"


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


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
        if record.value == b"bad":
            raise DeadLetter("bad")

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


async def test_group_with_another_config_starts_at_the_beginning(
    admin: AnyAdmin,
) -> None:
    start = Start(admin)
    admin.set_group_config(start.group, {"share.record.lock.duration.ms": "20000"})
    admin.produce(start.topic, [b"early"], partition=1)

    await start.run(start.worker(), b"early")


async def test_value_of_the_group_is_kept_by_a_worker(admin: AnyAdmin) -> None:
    start = Start(admin)
    admin.set_group_config(start.group, {RESET: "by_duration:PT1H"})
    admin.produce(start.topic, [b"early"], partition=1)

    await start.run(start.worker(), b"early")

    assert "by_duration:PT1H" == (await start.configs())[RESET].value


async def test_retry_topics_of_a_group_that_starts_at_the_end_are_an_error(
    admin: AnyAdmin,
) -> None:
    start = Start(admin)
    retry = admin.create_topic(name=f"{start.topic}.retry")
    worker = start.worker(None, retry_topics=[RetryTopic(retry, 60.0)])

    with pytest.raises(ConfigurationError, match="sharecons groups configure"):
        await worker.run()


async def test_missing_dead_letter_topic_is_an_error(admin: AnyAdmin) -> None:
    start = Start(admin)

    with pytest.raises(BrokerError, match="does not exist; .* --partitions 2 --config"):
        await start.worker(dead_letter=f"{start.topic}.dead").run()


async def test_dead_letter_topic_that_takes_smaller_records_is_an_error(
    admin: AnyAdmin,
) -> None:
    start = Start(admin)
    dead = admin.create_topic(
        name=f"{start.topic}.dead", config={"max.message.bytes": "1000"}
    )

    with pytest.raises(ConfigurationError, match=r"max.message.bytes=1000, less than"):
        await start.worker(dead_letter=dead).run()


async def test_created_topics_have_the_partitions_and_retention_of_the_source(
    admin: AnyAdmin,
) -> None:
    start = Start(admin)
    dead, retry = f"{start.topic}.dead", f"{start.topic}.retry"
    admin.produce(start.topic, [b"bad"])
    worker = start.worker(
        create_topics=True, dead_letter=dead, retry_topics=[RetryTopic(retry, 60.0)]
    )

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda: worker.stats.dead_lettered == 1, within=30)
            worker.stop()

    async with ShareGroupAdmin(
        bootstrap_servers=admin.bootstrap_servers, network=admin.network
    ) as client:
        described = await client.describe_topics(dead, retry)
        configs = await client.describe_topic_configs(dead, retry, start.topic)
    size = int(configs[start.topic].value["max.message.bytes"].value or "")
    for name in (dead, retry):
        assert 2 == len(described[name].value.partitions)
        entries = configs[name].value
        assert "7200000" == entries["retention.ms"].value
        assert str(size + 16384) == entries["max.message.bytes"].value
        assert "delete" == entries["cleanup.policy"].value


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
