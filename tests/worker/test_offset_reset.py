"""Where the group of a worker starts: its `share.auto.offset.reset`."""

from typing import Any

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.config.not_given import NOT_GIVEN
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.working import Handled, new_worker

pytestmark = pytest.mark.anyio

BROKERS = ("embedded",)

RESET = "share.auto.offset.reset"
COMMAND = f"sharecons groups configure billing --set {RESET}=earliest"


async def run_until_handled(
    broker: EmbeddedBroker, reset: Any = NOT_GIVEN
) -> list[bytes]:
    """Run a worker until it has handled "late", which is produced once it runs."""
    handled = Handled()
    worker = new_worker(broker, "orders", handled, auto_offset_reset=reset)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await until(lambda: bool(worker.assignment))
            await anyio.sleep(1.0)
            broker.produce("orders", [b"late"])
            await until(lambda: b"late" in handled.calls)
            worker.stop()
    return handled.calls


def reset_of(broker: EmbeddedBroker) -> str | None:
    """Return the group's own value."""
    return broker.cluster.configs.group_config("billing").get(RESET)


async def test_group_without_a_value_starts_at_the_beginning(
    broker: EmbeddedBroker,
) -> None:
    broker.set_group_config("billing", {"share.record.lock.duration.ms": "20000"})
    broker.produce("orders", [b"early"])

    assert [b"early", b"late"] == await run_until_handled(broker)
    assert "earliest" == reset_of(broker)


@pytest.mark.parametrize("value", ["latest", "by_duration:PT1H"])
async def test_value_that_the_group_has_is_kept(
    broker: EmbeddedBroker, value: str
) -> None:
    broker.set_group_config("billing", {RESET: value})

    await run_until_handled(broker)

    assert value == reset_of(broker)


async def test_reset_of_none_leaves_the_group_unchanged(broker: EmbeddedBroker) -> None:
    broker.produce("orders", [b"early"])

    assert [b"late"] == await run_until_handled(broker, None)
    assert reset_of(broker) is None


async def test_reset_that_is_given_replaces_the_value_of_the_group(
    broker: EmbeddedBroker,
) -> None:
    broker.set_group_config("billing", {RESET: "earliest"})
    broker.produce("orders", [b"early"])

    assert [b"late"] == await run_until_handled(broker, "latest")
    assert "latest" == reset_of(broker)


async def test_consumer_without_a_worker_leaves_the_group_unchanged(
    broker: EmbeddedBroker,
) -> None:
    async with ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
    ) as consumer:
        await until(lambda: bool(consumer.assignment))

    assert reset_of(broker) is None


async def test_forbidden_change_of_the_group_is_one_warning_and_the_worker_goes_on(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.faults.on("IncrementalAlterConfigs", times=None).refuse(
        "GROUP_AUTHORIZATION_FAILED"
    )

    assert [b"late"] == await run_until_handled(broker)

    assert 1 == caplog.text.count("share.auto.offset.reset of the group is not set")
    assert COMMAND in caplog.text
