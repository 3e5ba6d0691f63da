"""The member of a query, in virtual time, without Spark and without a ledger."""

import anyio
import pytest

from sharecons.member.settings import MemberSettings
from sharecons.net.cluster import Cluster
from sharecons.protocol.fetch.settings import FetchSettings
from sharecons.protocol.partitions import Endpoint
from sharecons.record import RELEASE
from sharecons.spark.acquirer import Acquirer, MemberConfig
from tests.net.embedded import GROUP, running
from tests.scenarios.dead_letter_setup import LIMIT_2, archived_offsets
from tests.scenarios.interrupted_network import InterruptedNetwork

pytestmark = pytest.mark.anyio

LOCK = 1.0
"""Seconds; the group's lock duration."""


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


class Ledger:
    """A writer with room, to which nothing must be written."""

    room = 1000

    def write(self, ranges):
        raise AssertionError(ranges)


async def test_last_deliveries_that_end_before_the_ledger_has_them_are_logged(caplog):
    lock = {"share.record.lock.duration.ms": "1000"}
    minimum = {"group.share.min.record.lock.duration.ms": "1000"}
    async with running(20, settings=minimum) as broker:
        broker.set_group_config(GROUP, {**LIMIT_2, **lock})
        network = InterruptedNetwork(broker.network)
        network.on_records = lambda: anyio.sleep(1.3 * LOCK)
        acquirer = new_acquirer(broker, network)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(acquirer.run)
            await broker.wait_until_settled(GROUP)
            acquirer.stop()

    assert [*range(20)] == archived_offsets(caplog.text)
    assert (0, 40) == (acquirer.stats.entered, acquirer.stats.lost)


async def test_records_of_a_late_response_are_released():
    released = []

    def note(request, _):
        for topic in request.topics:
            for partition in topic.partitions:
                released.extend(partition.acknowledgement_batches)
        return False

    minimum = {"group.share.min.record.lock.duration.ms": "5000"}
    async with running(20, settings=minimum) as broker:
        broker.set_group_config(GROUP, {"share.record.lock.duration.ms": "5000"})
        broker.faults.on("ShareFetch", where=note).lose()
        late = broker.faults.on("ShareFetch", where=lambda r, _: r.max_records > 0)
        late.stall(6.0)
        acquirer = new_acquirer(broker, broker.network)
        with pytest.raises(AssertionError, match="delivery_count=2"):
            await acquirer.run()

    (batch,) = released
    assert (0, 19) == (batch.first_offset, batch.last_offset)
    assert (RELEASE,) == tuple(batch.acknowledge_types)
    assert 20 == acquirer.stats.lost


def new_acquirer(broker, network):
    fetch = FetchSettings(
        group_id=GROUP,
        member_id="AAAAAAAAQACAAAAAAAAAAA",
        max_wait=0.5,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=500,
        record_limit=False,
    )
    host, _, port = broker.brokers[1].rpartition(":")
    cluster = Cluster(
        [Endpoint(host, int(port))], network, client_id="spark", software_version="1"
    )
    settings = MemberSettings(fetch=fetch, cluster=cluster)
    config = MemberConfig(settings=settings, topics=("orders",))
    return Acquirer(config, Ledger(), lambda: None)
