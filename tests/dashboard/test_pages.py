"""The pages, on an embedded broker."""

import re

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sharecons import ShareConsumer, TopicPartition
from sharecons.admin import ShareGroupAdmin
from sharecons.inspection import inspect_group
from tests.dashboard.serving import HOSTILE, Page, dashboard

pytestmark = pytest.mark.anyio


async def settle(broker, group_id, count):
    """Produce 20 records, and accept all but the last one of `count`."""
    for partition in (0, 1):
        broker.produce("orders", [b"x"] * 10, partition=partition)
    settled = 0
    async with ShareConsumer(
        "orders",
        group_id=group_id,
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="earliest",
    ) as consumer:
        async for _ in consumer:
            settled += 1
            if settled == count:
                break
        await consumer.commit()


async def test_overview_has_each_group_the_worst_first(broker):
    await settle(broker, "billing", 20)
    await settle(broker, "mail", 5)

    async with dashboard(broker) as http:
        page = Page((await http.get("/")).text)

    assert page.text.index("mail") < page.text.index("billing")
    assert "2 groups, the worst first" in page.text
    assert "stalled orders-0: the group has no members" in page.text


async def test_group_has_the_values_of_an_inspection(broker):
    await settle(broker, "billing", 7)
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        inspection = await inspect_group(admin, "billing")

    async with dashboard(broker) as http:
        page = Page((await http.get("/group", params={"id": "billing"})).text)

    for key, one in inspection.partitions.found.items():
        row = (
            f"{key.topic} {key.partition} {one.start_offset} {one.end_offset} {one.lag}"
        )
        assert row in page.text
    for findings in inspection.findings.values():
        for finding in findings:
            text = re.sub(r"\d+ (ms|s) old", "", finding.text)
            assert text[:40] in page.text
    assert "share.record.lock.duration.ms" in page.text


async def test_unknown_group_is_a_page_of_its_own(broker):
    async with dashboard(broker) as http:
        response = await http.get("/group", params={"id": "<b>none</b>"})

    assert 404 == response.status_code
    assert "No share group has the id <b>none</b>" in Page(response.text).text
    assert "<b>" not in response.text


async def test_text_of_clients_is_escaped(broker):
    await settle(broker, HOSTILE, 3)
    async with ShareConsumer(
        "orders",
        group_id=HOSTILE,
        client_id=HOSTILE,
        bootstrap_servers=broker.bootstrap_servers,
    ) as consumer:
        await consumer.assigned()
        async with dashboard(broker) as http:
            texts = [
                (await http.get("/")).text,
                (await http.get("/", params={"find": HOSTILE})).text,
                (await http.get("/group", params={"id": HOSTILE})).text,
            ]

    for text in texts:
        page = Page(text)
        assert "img" not in [tag for tag, _ in page.tags]
        assert not [
            attrs for _, attrs in page.tags if any(a[:2] == "on" for a in attrs)
        ]
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "<img src=x onerror=alert(1)>\"' &\\x1b[2J\\u202e" in page.text


async def test_mounted_application_has_links_below_its_prefix(broker):
    await settle(broker, "billing", 3)

    async with dashboard(broker, mounted=True) as http:
        overview = Page((await http.get("/")).text)
        pages = [
            await http.get(f"http://localhost{each}")
            for each in overview.links
            if each[0] == "/"
        ]

    assert all(each.startswith(("/queues/", "#")) for each in overview.links)
    assert {200} == {each.status_code for each in pages}
    assert len(pages) >= 4


async def test_page_loads_nothing_from_elsewhere_and_has_no_inline_script(broker):
    await settle(broker, "billing", 3)

    async with dashboard(broker) as http:
        texts = [(await http.get(each)).text for each in ("/", "/group?id=billing")]
        texts += [
            (await http.get(each)).text for each in ("/style.css", "/static/live.js")
        ]

    for text in texts:
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
        assert not re.search(
            r"<script(?! src=)|<style|style=|@import|javascript:", text
        )


async def test_groups_can_be_found_and_are_on_pages(broker):
    async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
        for number in range(60):
            start = {TopicPartition("orders", 0): 0}
            (await admin.alter_share_group_offsets(f"group-{number:02}", start)).check()

    async with dashboard(broker) as http:
        first, second, beyond, wrong, found = [
            Page((await http.get(f"/?{query}")).text)
            for query in ("page=1", "page=2", "page=99", "page=x", "find=GROUP-5")
        ]

    assert "page 1 of 2" in first.text
    assert "group-49" in first.text
    assert "group-50" not in first.text
    assert "group-59" in second.text
    assert second.text == beyond.text
    assert first.text == wrong.text
    assert "10 groups" in found.text


async def test_metrics_are_of_the_collection_of_the_pages(broker):
    await settle(broker, "billing", 7)

    async with dashboard(broker) as http:
        response = await http.get("/metrics")

    assert response.headers["content-type"].startswith("text/plain; version=")
    samples = {
        sample.labels["partition"]: sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
        if sample.name == "kafka_share_group_lag_records"
    }
    assert 14 == sum(samples.values())
    assert "sharecons_exporter_collections_total 1.0" in response.text


async def test_open_group_has_the_lag_of_each_partition_over_time(broker):
    await settle(broker, "billing", 7)
    async with dashboard(broker, interval=0.2) as http:
        before = Page((await http.get("/group?id=billing")).text)
        for _ in range(3):
            await http.live.wait_for_change(http.live.version)
        after = Page((await http.get("/group?id=billing")).text)

    lines = [one["aria-label"] for _, one in after.tags if one.get("class") == "small"]
    lags = [re.fullmatch(r"lag: now (\d+), between \1 and \1", each) for each in lines]
    assert 14 == sum(int(each[1]) for each in lags)
    assert 2 == len(lags)
    assert "small" not in [one.get("class") for _, one in before.tags]


@pytest.mark.slow("waits until the broker is known to be away")
async def test_broker_that_is_away_leaves_values_with_their_age(broker):
    await settle(broker, "billing", 7)
    async with dashboard(broker) as http:
        before = Page((await http.get("/group?id=billing")).text)
        broker.stop_broker(1)
        with anyio.fail_after(20):
            while http.live.reached:
                await http.live.wait_for_change(http.live.version)
        after = Page((await http.get("/group?id=billing")).text)
        overview = Page((await http.get("/")).text)

    assert "No broker responds" not in before.text
    assert "No broker responds" in after.text
    assert re.search(r"offsets, .*: .*; the values are of \d{4}-\d\d", after.text)
    assert 1 == after.text.count("the values are of")
    assert "orders 0" in after.text
    assert "could not be read" in overview.text
