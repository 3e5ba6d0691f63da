"""Workers of a new group that starts at the end of the tasks' topic."""

from typing import Any

import pytest

pytest.importorskip("taskiq", reason="needs sharecons[taskiq]")

from taskiq import TaskiqEvents

from sharecons.testing import virtual_time
from tests.taskiq.running import Tasks, make_broker, receiving
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> virtual_time.Backend:
    """taskiq runs on asyncio only."""
    return virtual_time.backend("asyncio")


async def test_task_that_a_worker_sends_at_its_startup_is_run(kafka) -> None:
    broker = make_broker(kafka, auto_offset_reset="latest")
    tasks = Tasks(broker)

    @broker.on_event(TaskiqEvents.WORKER_STARTUP)
    async def send(_: Any) -> None:
        await tasks.note.kiq(1)

    async with receiving(broker):
        await until(lambda: tasks.calls == [1])


async def test_worker_without_partitions_starts_with_a_warning(kafka, caplog) -> None:
    kafka.delete_topic("tasks")
    broker = make_broker(kafka, auto_offset_reset="latest", connect_timeout=3.0)
    broker.is_worker_process = True

    await broker.startup()
    await broker.shutdown()

    assert "no partitions yet" in caplog.text
