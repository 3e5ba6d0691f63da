"""A topic that may not be read: raised once, and read when it may be.

The topic beside it is consumed all the time.
"""

import re
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from sharecons import ShareConsumer
from sharecons.errors import AuthorizationError
from tests.kafka_plugin import HALVES, Admin

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PARTITIONS = 5
CALM = 4.0
"""Seconds in which an error was raised a dozen times."""
HINT = (
    r"topic '(\S+)' may not be read: (fetching \1-\d: )?TOPIC_AUTHORIZATION_FAILED; "
    "this needs READ on it"
)


class Reader:
    """A consumer of two topics, and what it gets of them."""

    def __init__(self, admin: Admin, *topics: str) -> None:
        self.admin = admin
        self.values: list[bytes] = []
        self.errors: list[str] = []  # the topics of them
        group = f"group-{topics[0]}"
        admin.set_group_config(group, {"share.auto.offset.reset": "earliest"})
        self.consumer: ShareConsumer[Any, Any] = ShareConsumer(
            *topics, group_id=group, bootstrap_servers=admin.bootstrap_servers
        )

    async def read(self) -> None:
        while True:
            try:
                async for record in self.consumer:
                    self.values.append(record.value)
            except AuthorizationError as error:
                match = re.fullmatch(HINT, str(error))
                self.errors.append(match[1] if match else str(error))

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(20):
            while not condition():
                await anyio.sleep(0.05)

    async def gets(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Produce values, and wait until they were consumed."""
        await in_thread(self.admin.produce, topic, values, partition)
        await self.until(lambda: set(values) <= set(self.values))

    async def gets_all(self, topic: str, word: bytes) -> None:
        """Produce a value to each partition, and wait until all were consumed."""
        values = [b"%b-%d" % (word, partition) for partition in range(PARTITIONS)]
        for partition, value in enumerate(values):
            await in_thread(self.admin.produce, topic, [value], partition)
        await self.until(lambda: set(values) <= set(self.values))


async def in_thread(call: Callable[..., Any], *arguments: Any) -> None:
    await anyio.to_thread.run_sync(lambda: call(*arguments))


@pytest.fixture(params=HALVES)
def half(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return {"kafka": "real_kafka", "embedded": "embedded_kafka"}[found]


@pytest.fixture(params=["one broker", "three brokers"])
def brokers(half: str, request: pytest.FixtureRequest) -> Admin:
    name = half if request.param == "one broker" else f"{half}3"
    found: Admin = request.getfixturevalue(name).admin
    return found


FORBIDDING = {
    "describe only": (Admin.hide_records, Admin.show_records),
    "nothing": (Admin.deny_topic, Admin.allow_topic),
}


@pytest.fixture(params=FORBIDDING.values(), ids=FORBIDDING.keys())
def ways(request: pytest.FixtureRequest) -> Any:
    """How a topic is forbidden, and allowed."""
    return request.param


async def test_topic_that_is_forbidden_from_the_start(
    brokers: Admin, ways: Any
) -> None:
    forbid, allow = ways
    secret = brokers.create_topic(partitions=PARTITIONS)
    public = brokers.create_topic(partitions=PARTITIONS)
    forbid(brokers, secret)
    reader = Reader(brokers, secret, public)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.until(lambda: bool(reader.errors))
        for number in range(4):
            await reader.gets_all(public, b"public-%d" % number)
            await anyio.sleep(CALM / 4)
        assert reader.errors == [secret]

        await in_thread(allow, brokers, secret)
        await reader.gets_all(secret, b"secret")
        assert len(reader.errors) == 1
        tasks.cancel_scope.cancel()


async def test_topic_that_is_forbidden_and_allowed_again_and_again(
    brokers: Admin, ways: Any
) -> None:
    forbid, allow = ways
    secret = brokers.create_topic(partitions=PARTITIONS)
    public = brokers.create_topic(partitions=PARTITIONS)
    reader = Reader(brokers, public, secret)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.gets_all(secret, b"before")
        for turn in range(1, 3):
            await in_thread(forbid, brokers, secret)
            await reader.until(lambda turn=turn: len(reader.errors) == turn)
            fetches = reader.consumer.metrics()["fetch-total"]
            await reader.gets(public, b"public-%d" % turn)
            await anyio.sleep(CALM)
            assert reader.errors == [secret] * turn
            assert reader.consumer.metrics()["fetch-total"] - fetches < 40 * CALM

            await in_thread(allow, brokers, secret)
            await reader.gets_all(secret, b"secret-%d" % turn)
        tasks.cancel_scope.cancel()


async def test_two_forbidden_topics_are_two_errors(admin: Admin, ways: Any) -> None:
    forbid, allow = ways
    secrets = [admin.create_topic(partitions=PARTITIONS) for _ in range(2)]
    for secret in secrets:
        forbid(admin, secret)
    reader = Reader(admin, *secrets)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await anyio.sleep(CALM)
        assert sorted(reader.errors) == sorted(secrets)

        await in_thread(allow, admin, secrets[0])
        await reader.gets_all(secrets[0], b"first")
        assert len(reader.errors) == 2
        tasks.cancel_scope.cancel()


async def test_new_subscription_raises_the_error_again(admin: Admin, ways: Any) -> None:
    secret = admin.create_topic(partitions=PARTITIONS)
    public = admin.create_topic(partitions=PARTITIONS)
    ways[0](admin, secret)
    reader = Reader(admin, secret)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.until(lambda: len(reader.errors) == 1)
        reader.consumer.subscribe(secret, public)
        await reader.until(lambda: len(reader.errors) == 2)
        await reader.gets_all(public, b"public")
        await anyio.sleep(CALM / 2)
        assert len(reader.errors) == 2
        tasks.cancel_scope.cancel()
