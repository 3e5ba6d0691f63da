"""Two groups that share a retry topic: each processes its own copies only."""

from typing import Any

import pytest

from sharecons import Record, Retry, RetryPolicy, RetryTopic
from tests.scenarios.dead_letter_setup import Setup
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.share_workers import wait_until_settled
from tests.scenarios.versions import since_4_3
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH, since_4_3, pytest.mark.timeout(60)]

SKIPPED = "a copy of another group in a retry topic is accepted without a call"


@pytest.mark.parametrize(
    "has_one_source", [True, pytest.param(False, marks=pytest.mark.client_only)]
)
async def test_copies_of_another_group_are_accepted_without_a_call(
    any_admin: AnyAdmin, has_one_source: bool, caplog: pytest.LogCaptureFixture
) -> None:
    billing, shipping = Setup(any_admin), Setup(any_admin)
    retry = any_admin.create_topic()
    if has_one_source:
        shipping.queue.topic = billing.queue.topic
    options: dict[str, Any] = {
        "retry_topics": [RetryTopic(retry, 2.0)],
        "retry": RetryPolicy(max_attempts=3, initial=2.0, maximum=2.0),
    }
    calls: list[tuple[str, str, Any]] = []

    async def charge(record: Record[Any, Any]) -> None:
        calls.append(("charge", record.topic, record.value))
        if record.topic != retry:
            raise Retry(after=2.0)

    async def ship(record: Record[Any, Any]) -> None:
        calls.append(("ship", record.topic, record.value))

    expected = {("charge", retry, b"a"), ("charge", retry, b"b")}
    # A stop moves the records that wait to the retry topic.
    billing.queue.produce([b"a", b"b"])
    async with billing.working(charge, **options) as worker:
        await until(lambda: worker.stats.waiting == 2)
    calls.clear()

    async with shipping.working(ship, **options):
        topics = {shipping.queue.topic: 1, retry: 1}
        await wait_until_settled(any_admin, shipping.queue.group, topics, within=15)
    async with billing.working(charge, **options):
        await until(lambda: expected <= {*calls})
        await wait_until_settled(any_admin, billing.queue.group, {retry: 1}, within=15)

    assert expected == {call for call in calls if call[1] == retry}
    assert [] == await billing.letters() + await shipping.letters()
    (line,) = [each for each in caplog.messages if SKIPPED in each]
    for each in (f"topic={retry}", f"origin_group={billing.queue.group}"):
        assert each in line
