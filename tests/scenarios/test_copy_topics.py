"""Topics for copies of records: with which settings they are created and refused."""

from typing import Any

import anyio
import pytest

from sharecons import RetryPolicy, RetryTopic, ShareGroupAdmin, ShareWorker
from sharecons.errors import ConfigurationError
from sharecons.inspection.diagnosis.checks import Verdict
from sharecons.inspection.preflight import check_cluster
from tests.broker.clients import new_name
from tests.scenarios.embedded_admin import ON_BOTH, AnyAdmin
from tests.scenarios.queue import Queue
from tests.scenarios.versions import since_4_3
from tests.waiting import until

pytestmark = [pytest.mark.anyio, ON_BOTH, since_4_3, pytest.mark.timeout(60)]


async def accept(record: Any) -> None:
    return None


def new_worker(admin: AnyAdmin, topic: str, **options: Any) -> ShareWorker[Any, Any]:
    queue = Queue(admin)
    queue.topic = topic
    return queue.worker(accept, create_topics=True, **options)


async def test_created_topics_keep_the_copies_of_a_source_with_a_short_retention(
    any_admin: AnyAdmin,
) -> None:
    """It was the source's retention: the copies were removed before they were due."""
    topic = any_admin.create_topic(
        config={"retention.ms": "8000", "retention.bytes": "1000000"}
    )
    retry, dead = new_name("retry"), new_name("dead")
    worker = new_worker(
        any_admin,
        topic,
        retry=RetryPolicy(maximum=40.0),
        retry_topics=[RetryTopic(retry, 40.0)],
        dead_letter=dead,
    )

    async with worker:
        await until(lambda: worker.connected)
    async with ShareGroupAdmin(
        bootstrap_servers=any_admin.bootstrap_servers, network=any_admin.network
    ) as client:
        configs = await client.describe_topic_configs(retry, dead)

    for name, retention in ((retry, "120000"), (dead, "8000")):
        found = configs[name].value
        assert ("delete", retention, "-1") == (
            found["cleanup.policy"].value,
            found["retention.ms"].value,
            found["retention.bytes"].value,
        )


@pytest.mark.parametrize(
    ("config", "is_retry"),
    [
        ({"retention.ms": "8000"}, True),
        ({"cleanup.policy": "compact,delete"}, False),
    ],
)
async def test_existing_topic_that_loses_copies_is_an_error(
    any_admin: AnyAdmin, config: dict[str, str], is_retry: bool
) -> None:
    topic, copies = any_admin.create_topic(), any_admin.create_topic(config=config)
    options = (
        {"retry_topics": [RetryTopic(copies, 60.0)]}
        if is_retry
        else {"dead_letter": copies}
    )

    with anyio.fail_after(20):
        with pytest.raises(ConfigurationError) as caught:
            await new_worker(any_admin, topic, **options).run()

    (name, value), *_ = config.items()
    assert f"topic {copies!r} has {name}={value}, " in str(caught.value)
    assert f"--alter --topic {copies} --add-config {name}=" in str(caught.value)


async def test_preflight_checks_the_topics_as_a_worker_does(
    any_admin: AnyAdmin,
) -> None:
    topic = any_admin.create_topic(config={"retention.ms": "8000"})
    retry = any_admin.create_topic(config={"retention.ms": "8000"})
    dead = any_admin.create_topic(config={"cleanup.policy": "compact"})
    async with ShareGroupAdmin(
        bootstrap_servers=any_admin.bootstrap_servers, network=any_admin.network
    ) as admin:
        checks = await check_cluster(
            admin, topics=[topic], retry_topics={retry: 40.0}, dead_letter=dead
        )
        missing = await check_cluster(admin, topics=[topic], dead_letter="missing")

    found = {each.name: each for each in checks}
    short = found[f"retry topic {retry}"]
    command = f"--alter --topic {retry} --add-config retention.ms=120000"
    assert Verdict.FAIL is short.verdict
    assert "retention.ms=8000, which" in short.found
    assert short.advice.endswith(command)
    compacted = found[f"dead-letter topic {dead}"]
    assert Verdict.FAIL is compacted.verdict
    assert "cleanup.policy=compact, which removes copies" in compacted.found
    assert Verdict.OK is found[f"rights to topic {dead}"].verdict
    (gone,) = (each for each in missing if each.name == "dead-letter topic missing")
    assert Verdict.FAIL is gone.verdict
    assert "sharecons create-topics" in gone.advice
