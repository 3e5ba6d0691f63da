"""Metrics of groups, compared with what their consumers did; on both Kafkas."""

import time

import anyio
import pytest

from sharecons import ShareConsumer, ShareGroupAdmin
from sharecons._record import TopicPartition
from sharecons.exporter import Collector
from sharecons.exporter.metrics import Metrics
from tests.exporter.scraped import GROUP, scrape
from tests.group_state.stored import with_batches
from tests.kafka_plugin import BROKERS

pytestmark = pytest.mark.anyio

RECORDS = 100


@pytest.fixture
def topic(kafka):
    name = kafka.admin.create_topic(2)
    kafka.admin.produce(name, [b"%d" % n for n in range(RECORDS)], partition=0)
    return name


def consumer(kafka, topic, group):
    return ShareConsumer(
        topic,
        group_id=group,
        bootstrap_servers=kafka.bootstrap_servers,
        acknowledgement="explicit",
        auto_offset_reset="earliest",
    )


async def collected(admin, *groups):
    metrics = Metrics()
    readings = await Collector(admin, groups).collect()
    metrics.update(readings)
    return scrape(metrics)


async def test_numbers_match_the_acknowledgements_of_a_consumer(
    admin, kafka, topic, group
):
    # The first is held, twenty are accepted, five rejected and five released.
    def settle(record):
        if 1 <= record.offset <= 20:
            record.accept()
        elif 21 <= record.offset <= 25:
            record.reject()
        elif 26 <= record.offset <= 30:
            record.release()

    before = time.time()
    async with consumer(kafka, topic, group) as reader:
        records = []
        while len(records) < 31:
            records += await reader.poll(timeout=20, max_records=31 - len(records))
        for record in records:
            settle(record)
        await reader.commit()
        shown = await collected(admin, group)
    here = {"group": group, "topic": topic, "partition": "0"}

    assert 1 == shown.value(f"{GROUP}members", group=group)
    assert 1 == shown.value(f"{GROUP}state", group=group, state="Stable")
    assert 0 == shown.value(f"{GROUP}state", group=group, state="Empty")
    assert 0 == shown.value(f"{GROUP}start_offset", **here)
    assert RECORDS == shown.value(f"{GROUP}log_end_offset", **here)
    assert RECORDS - 25 == shown.value(f"{GROUP}lag_records", **here)
    # The held one and those released; the others above were never settled.
    assert 6 == shown.value(f"{GROUP}available_or_locked_records", **here)
    assert 5 == shown.value(f"{GROUP}archived_records", **here)
    assert 5 == shown.value(f"{GROUP}archived_seen_total", **here)
    assert 31 == shown.value(f"{GROUP}window_records", **here)
    assert 2000 == shown.value(f"{GROUP}window_limit_records", **here)
    assert {} == shown.by("reason", f"{GROUP}stalled", **here)
    counts = f"{GROUP}records_by_deliveries"
    assert {"1": 20} == shown.by("delivery_count", counts, status="acknowledged")
    assert {"1": 5} == shown.by("delivery_count", counts, status="archived")
    assert 5 == shown.by("delivery_count", counts, status="available_or_locked")["1"]
    age = shown.value(f"{GROUP}oldest_unsettled_age_seconds", **here)
    assert records[0].timestamp / 1000 <= time.time() - age + 1
    assert age < time.time() - before + 60
    assert 1 == shown.value("sharecons_exporter_up")


async def test_the_age_is_that_of_the_first_record_not_settled(
    admin, kafka, topic, group
):
    there = TopicPartition(topic, 0)
    (await admin.alter_share_group_offsets(group, {there: 40})).check()
    collecting = Collector(admin, [group])
    first = (await collecting.collect()).groups[group].partitions[there]
    again = (await collecting.collect()).groups[group].partitions[there]
    (await admin.alter_share_group_offsets(group, {there: 60})).check()
    moved = (await collecting.collect()).groups[group].partitions[there]

    assert (40, 60) == (first.oldest.offset, moved.oldest.offset)
    assert first.oldest is again.oldest
    record = (await admin.read_log({there: 60}))[there].value.records[0]
    assert record.timestamp == moved.oldest.timestamp


async def test_patterns_choose_groups(admin, kafka, topic, group):
    there = TopicPartition(topic, 0)
    for name in (f"{group}-a", f"{group}-b"):
        (await admin.alter_share_group_offsets(name, {there: 0})).check()

    one = await Collector(admin, [f"{group}-a"]).collect()
    both = await Collector(admin, [f"{group}-*"]).collect()

    assert [f"{group}-a"] == list(one.groups)
    assert [f"{group}-a", f"{group}-b"] == list(both.groups)
    assert not both.error_counts


@pytest.mark.slow("connects until a timeout")
async def test_unreachable_brokers_are_reported_and_not_raised():
    async with ShareGroupAdmin(bootstrap_servers="localhost:1", timeout=0.5) as admin:
        metrics = Metrics()
        metrics.update(await Collector(admin).collect())
    shown = scrape(metrics)

    assert 0 == shown.value("sharecons_exporter_up")
    assert 1 == shown.value("sharecons_exporter_errors_total", what="cluster")
    assert [] == shown.values(f"{GROUP}lag_records")


@pytest.mark.skipif(BROKERS == "kafka", reason="faults are the embedded broker's")
class TestErrors:
    @pytest.fixture
    def kafka(self, embedded_kafka):
        yield embedded_kafka
        embedded_kafka.cluster.broker.faults.clear()

    @pytest.fixture
    def faults(self, kafka):
        return kafka.cluster.broker.faults

    @pytest.fixture
    async def groups(self, admin, topic, group):
        names = [f"{group}-{letter}" for letter in "abc"]
        for name in names:
            (
                await admin.alter_share_group_offsets(
                    name, {TopicPartition(topic, 0): 10}
                )
            ).check()
        return names

    async def test_without_permission_for_states_the_rest_is_exported(
        self, admin, faults, groups, group
    ):
        fault = faults.on("ReadShareGroupStateSummary", times=None)
        with fault.refuse("CLUSTER_AUTHORIZATION_FAILED"):
            readings = await Collector(admin, [f"{group}-*"]).collect()
        metrics = Metrics()
        metrics.update(readings)
        shown = scrape(metrics)

        (complaint,) = readings.error_messages
        assert "CLUSTER_ACTION on the cluster" in complaint
        for name in groups:
            assert 90 == shown.value(f"{GROUP}lag_records", group=name)
            assert shown.value(f"{GROUP}oldest_unsettled_age_seconds", group=name) > 0
        assert [] == shown.values(f"{GROUP}available_or_locked_records")

    async def test_a_full_window_is_stalled(self, admin, faults, topic, group):
        there = TopicPartition(topic, 0)
        (await admin.alter_share_group_offsets(group, {there: 0})).check()
        limit = {"share.partition.max.record.locks": 100}
        (await admin.alter_group_configs(group, limit)).value  # noqa: B018 (raises)

        batches = with_batches((1, RECORDS - 1, 2, 1))
        with faults.on("ReadShareGroupState", times=None).respond(batches):
            shown = await collected(admin, group)
        here = {"group": group, "topic": topic, "partition": "0"}

        assert 1 == shown.value(f"{GROUP}stalled", reason="window_full", **here)
        assert 100 == shown.value(f"{GROUP}window_limit_records", **here)
        assert 100 == shown.value(f"{GROUP}window_records", **here)

    async def test_without_configs_the_window_is_left_out(
        self, admin, faults, groups, group
    ):
        fault = faults.on("DescribeConfigs", times=None)
        with fault.refuse("GROUP_AUTHORIZATION_FAILED", each=True):
            shown = await collected(admin, f"{group}-*")

        assert [] == shown.values(f"{GROUP}window_limit_records")
        assert [] == shown.values(f"{GROUP}stalled", reason="window_full")
        assert [1, 1, 1] == shown.values(f"{GROUP}stalled", reason="no_members")
        assert 3 == shown.value("sharecons_exporter_errors_total", what="configs")

    async def test_failed_offsets_do_not_affect_other_values(
        self, admin, faults, groups, group
    ):
        fault = faults.on("DescribeShareGroupOffsets", times=None)
        with fault.refuse("GROUP_AUTHORIZATION_FAILED", each=True):
            readings = await Collector(admin, [f"{group}-*"]).collect()

        assert {"offsets": 3} == dict(readings.error_counts)
        assert {"Empty"} == {each.group.state for each in readings.groups.values()}

    async def test_a_collection_that_takes_too_long_ends(self, admin, faults, groups):
        with faults.on("ListGroups", times=None).stall():
            readings = await Collector(admin, limit=0.2).collect()

        assert not readings.reached
        assert "took more than 0.2 s" in readings.error_messages[0]


async def test_missing_topics_of_members_are_1(admin, kafka, topic, group):
    missing = f"missing-{group}"
    async with consumer(kafka, topic, group) as reader:
        reader.subscribe(topic, missing)
        with anyio.fail_after(20):
            while True:
                shown = await collected(admin, group)
                if len(shown.values(f"{GROUP}missing_topic", group=group)) == 2:
                    break
                await anyio.sleep(0.1)  # real time: the coordinator has no event
        kafka.admin.create_topic(name=missing)
        later = await collected(admin, group)

    by_topic = shown.by("topic", f"{GROUP}missing_topic", group=group)
    assert by_topic == {topic: 0, missing: 1}
    by_topic = later.by("topic", f"{GROUP}missing_topic", group=group)
    assert by_topic == {topic: 0, missing: 0}
    assert not shown.values("sharecons_exporter_errors_total", what="topics")[0]
