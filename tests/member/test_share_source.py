"""The core below consumer, worker, taskiq and Spark, used without any of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from sharecons._record import AcknowledgeType
from sharecons.config.validation import member_id_of, parse_bootstrap
from sharecons.errors import ClosedError, ConsumerStateError, LockLostError
from sharecons.member.group_setup import OffsetReset
from sharecons.member.record_source import SHORT_SETTLE_TIMEOUT
from sharecons.member.settings import MemberSettings
from sharecons.member.share_source import LEAVE_TIMEOUT, ShareSource
from sharecons.member.source_options import SourceOptions
from sharecons.net.cluster import Cluster
from sharecons.net.io.event_loop import running_clock
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.testing import EmbeddedBroker
from tests.net.embedded import GROUP, LATENCY, SlowNetwork, accepted, running
from tests.waiting import until

pytestmark = pytest.mark.anyio


def options(broker: EmbeddedBroker, **functions: Any) -> SourceOptions:
    fetch = FetchSettings(
        group_id=GROUP,
        member_id=member_id_of("core"),
        max_wait=0.5,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=100,
        record_limit=False,
    )
    cluster = Cluster(
        parse_bootstrap(broker.brokers[1]),
        SlowNetwork(broker),
        client_id="test",
        software_version="1",
        security=None,
    )
    settings = MemberSettings(
        fetch=fetch, cluster=cluster, auto_offset_reset=OffsetReset(None)
    )
    return SourceOptions(settings=settings, topics=("orders",), **functions)


class Taking:
    """A member whose records one task takes, and when it has lost locks."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.member = ShareSource(options(broker, on_locks_lost=self._on_locks_lost))
        self.lost_at = 0.0

    def _on_locks_lost(self, reason: str) -> bool:
        self.lost_at = running_clock()()
        return False

    async def take(self, count: int, within: float = 60.0) -> list[Any]:
        return await self.member.take(count, timeout=within)


@asynccontextmanager
async def taking(broker: EmbeddedBroker) -> AsyncIterator[Taking]:
    user = Taking(broker)
    await user.member.start()
    try:
        yield user
    finally:
        await user.member.close(10.0)


async def test_records_are_taken_up_to_the_demand_once_requested() -> None:
    async with running(records=20) as broker, taking(broker) as user:
        user.member.demand.up_to(5)
        await user.member.assigned()
        assert user.member.buffered == 0

        records = await user.take(5)

        assert [record.offset for record in records] == [0, 1, 2, 3, 4]
        assert records[0].value == b"0"
        await anyio.sleep(1.0)
        assert user.member.buffered == 0, "nothing is fetched ahead"
        assert user.member.lock_duration == 30.0
        for record in records:
            record.accept()
        assert len(await user.member.commit(10.0)) == 1
        assert accepted(broker) == 5


async def test_take_returns_nothing_after_its_timeout_without_records() -> None:
    async with running() as broker, taking(broker) as user:
        await user.member.assigned()
        clock = running_clock()
        before = clock()

        assert await user.take(5, within=3.0) == []

        assert clock() - before == pytest.approx(3.0, abs=0.1)


async def test_locks_lost_with_the_connection_are_reported_immediately() -> None:
    async with running(records=3) as broker, taking(broker) as user:
        user.member.demand.up_to(3)
        records = await user.take(3)
        before = running_clock()()
        broker.faults.on("ShareAcknowledge").cut()
        records[1].renew()
        await until(lambda: user.lost_at > 0.0)

        assert user.lost_at - before <= 0.005 + 2 * LATENCY, "after the linger"
        with pytest.raises(LockLostError):
            records[0].accept()


async def test_acknowledgement_of_a_record_whose_lock_is_lost_has_a_result() -> None:
    results: list[AcknowledgeResult] = []
    async with running(records=3) as broker:
        source = ShareSource(options(broker, on_acknowledged=results.extend))
        await source.start()
        source.demand.up_to(3)
        records = await source.take(3, timeout=60.0)
        broker.faults.on("ShareAcknowledge").cut()
        records[1].renew()
        await until(lambda: not records[0].held)

        with pytest.raises(LockLostError):
            source.acknowledge(records[0], AcknowledgeType.ACCEPT)
        await source.close(10.0)

    (result,) = [each for each in results if each.type is AcknowledgeType.ACCEPT]
    assert ("orders", 0, 0, 0) == result[:4]
    assert result.error is not None
    assert "INVALID_RECORD_STATE" == result.error.name
    assert "the connection to node 1 was lost" in result.error.message


async def test_leases_arrive_undecoded_in_rounds_without_a_request() -> None:
    async with running(records=20) as broker:
        leases: list[Lease] = []
        source = ShareSource(
            options(broker, on_changed=lambda: leases.extend(source.take_leases()))
        )
        await source.start()
        source.demand.rounds(100)
        await until(lambda: sum(lease.count for lease in leases) == 20)
        for lease in leases:
            lease.set_offsets(range(lease.count))
            lease.acknowledge_implicitly(0, lease.count, AcknowledgeType.ACCEPT)
        await source.drain()
        await source.close(10.0)

        assert accepted(broker) == 20


async def test_take_raises_once_the_member_is_closed() -> None:
    async with running() as broker, taking(broker) as user:
        async with anyio.create_task_group() as tasks:

            async def close() -> None:
                await anyio.sleep(1.0)
                await user.member.close(10.0)

            tasks.start_soon(close)
            with pytest.raises(ClosedError):
                await user.take(1)
        with pytest.raises(ConsumerStateError):
            await user.member.start()


async def test_close_soon_ends_in_time_if_brokers_do_not_respond() -> None:
    async with running(records=3) as broker, taking(broker) as user:
        user.member.demand.up_to(3)
        await user.take(3)
        for api in ("ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat"):
            broker.faults.on(api, times=None).lose()
        user.member.shorten_close()
        clock = running_clock()
        before = clock()

        await user.member.close_soon()

        assert clock() - before <= SHORT_SETTLE_TIMEOUT + LEAVE_TIMEOUT + 0.1
