"""Whole clients on an embedded broker, whose responses are changed on the way.

In virtual time. A client never hangs, raises only errors of the library, and goes on
after the last change; a consumer delivers only offsets that were acquired.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from sharecons import Producer, ShareConsumer, ShareGroupAdmin, TopicPartition
from sharecons.errors import BackgroundTaskError, Error
from sharecons.group_state.collector import GroupCollector
from sharecons.inspection import inspect_group
from sharecons.inspection.preflight import check_cluster
from sharecons.testing import EmbeddedBroker, virtual_time
from tests.fuzz.mutating_network import MutatingNetwork, mutations
from tests.fuzz.target import Case, Target
from tests.net.embedded import GROUP, SlowNetwork, consuming, running

__all__ = ["TARGETS"]

PATIENCE: Final = 3_000.0
"""Seconds, in virtual time, after which a client hangs."""

WHILE_CHANGED: Final = 100.0
AFTERWARDS: Final = 600.0
"""Seconds to read, with changes and without."""

HEARTBEAT: Final = "ShareGroupHeartbeat"

MAX_ERRORS: Final = 10
"""Errors in a row after which a client counts as failed for good."""

HERE: Final = TopicPartition("orders", 0)


def _in_virtual_time(
    run: Callable[[EmbeddedBroker, MutatingNetwork], Awaitable[None]],
) -> Callable[[Case], None]:
    async def check(case: Case) -> None:
        with anyio.fail_after(PATIENCE):
            async with running(8) as broker:
                await run(broker, MutatingNetwork(SlowNetwork(broker), case))

    def check_case(case: Case) -> None:
        _, options = virtual_time.backend("asyncio")
        anyio.run(check, case, backend="asyncio", backend_options=options)

    return check_case


def _documented(error: Error) -> Error:
    """Return an error; raise it if it is a bug of sharecons."""
    if isinstance(error, BackgroundTaskError):
        raise error
    return error


# A consumer.


async def _consume(broker: EmbeddedBroker, network: MutatingNetwork) -> None:
    if await _reads_last_record(broker, network):
        return
    network.end()
    assert await _reads_last_record(broker, network), "a new consumer goes on"


async def _reads_last_record(broker: EmbeddedBroker, network: MutatingNetwork) -> bool:
    """Return whether a consumer reads a record that was written after the changes.

    False if it raises, for good: a broker's response can say so.
    """
    try:
        async with consuming(broker, network=network, within=PATIENCE / 2) as consumer:
            with anyio.move_on_after(WHILE_CHANGED):
                await _read(consumer, network, None)
            network.end()
            broker.produce("orders", [b"last"], partition=0)
            with anyio.move_on_after(AFTERWARDS):
                return await _read(consumer, network, b"last")
            assert HEARTBEAT in network.changed, "the consumer reads or raises"
            return False  # the coordinator does not repeat an assignment
    except Error as error:
        _documented(error)
        return False


async def _read(
    consumer: ShareConsumer[bytes, bytes], network: MutatingNetwork, last: bytes | None
) -> bool:
    """Read until a value; return False after errors without an end."""
    errors = 0
    while errors < MAX_ERRORS:
        try:
            async for record in consumer:
                errors = 0
                acquired = (a <= record.offset <= b for a, b in network.acquired)
                assert any(acquired), f"{record.offset} was not acquired"
                if record.value == last:
                    return True
        except Error as error:
            _documented(error)
            errors += 1
            await anyio.sleep(0.1)
        if last is None and network.has_ended:
            return True
    return False


# A producer.


async def _produce(broker: EmbeddedBroker, network: MutatingNetwork) -> None:
    if await _writes_last_record(network):
        return
    network.end()
    assert await _writes_last_record(network), "a new producer goes on"


async def _writes_last_record(network: MutatingNetwork) -> bool:
    try:
        async with Producer(
            bootstrap_servers="127.0.0.1:9092",
            network=network,
            delivery_timeout=100.0,
        ) as producer:
            for number in range(4):
                with contextlib.suppress(Error):
                    await _checked(producer.send("orders", b"%d" % number))
            network.end()
            await producer.send("orders", b"last", key=b"k")
            return True
    except Error as error:
        _documented(error)
        return False


async def _checked(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except Error as error:
        raise _documented(error) from error


# An admin client, and the readers that use it.

CALLS: Final[tuple[Callable[[ShareGroupAdmin], Awaitable[Any]], ...]] = (
    lambda admin: admin.alter_share_group_offsets(GROUP, {HERE: 2}),
    lambda admin: admin.list_groups(),
    lambda admin: admin.describe_share_groups(GROUP),
    lambda admin: admin.list_share_group_offsets(GROUP),
    lambda admin: admin.read_state(GROUP),
    lambda admin: admin.read_state_summary(GROUP),
    lambda admin: admin.read_state_records(GROUP),
    lambda admin: admin.describe_group_configs(GROUP),
    lambda admin: admin.describe_topic_configs("orders"),
    lambda admin: admin.describe_broker_configs(),
    lambda admin: admin.alter_group_configs(GROUP, {"share.delivery.count.limit": 7}),
    lambda admin: admin.list_offsets([HERE]),
    lambda admin: admin.list_consumer_group_offsets("c"),
    lambda admin: admin.describe_consumer_groups("c"),
    lambda admin: admin.alter_consumer_group_offsets("c", {HERE: 5}),
    lambda admin: admin.describe_topics("orders"),
    lambda admin: admin.describe_cluster(),
    lambda admin: admin.describe_features(),
    lambda admin: inspect_group(admin, GROUP),
    lambda admin: check_cluster(admin, topics=["orders"], groups=[GROUP]),
    lambda admin: GroupCollector(admin).collect(),
    lambda admin: admin.delete_records({HERE: 1}),
    lambda admin: admin.delete_share_group_offsets(GROUP, ["orders"]),
    lambda admin: admin.delete_share_groups(GROUP),
)


async def _administer(broker: EmbeddedBroker, network: MutatingNetwork) -> None:
    async with ShareGroupAdmin(
        bootstrap_servers=broker.bootstrap_servers, network=network
    ) as admin:
        for call in CALLS:
            with contextlib.suppress(Error):
                await _checked(call(admin))
        network.end()
        assert [HERE.topic] == list(await admin.describe_topics("orders"))
        assert await admin.list_groups()


CONNECTING: Final = ("ApiVersions", "Metadata")

TARGETS: Final = (
    Target(
        name="consumer",
        cases=mutations(
            *CONNECTING,
            "FindCoordinator",
            HEARTBEAT,
            *("ShareFetch",) * 3,
            "ShareAcknowledge",
            "DescribeConfigs",
            "GetTelemetrySubscriptions",
        ),
        check=_in_virtual_time(_consume),
        modules=("member", "consumer", "net.connection", "protocol.fetch"),
        seconds=10.0,
        memory=64 << 20,
        traces=False,
        examples=30,
    ),
    Target(
        name="producer",
        cases=mutations(*CONNECTING, "InitProducerId", *("Produce",) * 2),
        check=_in_virtual_time(_produce),
        modules=("producer", "protocol.produce"),
        seconds=10.0,
        memory=64 << 20,
        traces=False,
        examples=40,
    ),
    Target(
        name="admin",
        cases=mutations(
            *CONNECTING,
            "FindCoordinator",
            "DescribeConfigs",
            "DescribeCluster",
            "ListGroups",
            "ShareGroupDescribe",
            "DescribeShareGroupOffsets",
            "ReadShareGroupState",
            "ReadShareGroupStateSummary",
            "ListOffsets",
            "OffsetFetch",
            "OffsetCommit",
            "Fetch",
            "AlterShareGroupOffsets",
            "DeleteShareGroupOffsets",
            "DeleteGroups",
            "DeleteRecords",
            "IncrementalAlterConfigs",
        ),
        check=_in_virtual_time(_administer),
        modules=("admin", "group_state", "protocol.admin", "inspection"),
        seconds=10.0,
        memory=64 << 20,
        traces=False,
        examples=25,
    ),
)
