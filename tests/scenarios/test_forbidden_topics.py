"""A topic that a real Kafka forbids raises one error, and is consumed once allowed.

The other topic of the subscription is consumed all the time.
tests/consumer/test_repeated_errors.py has the same on the embedded broker.
"""

import re
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest

from sharecons import ShareConsumer
from sharecons.errors import AuthorizationError
from tests.kafka_plugin import Admin, Kafka
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.kafka]

PARTITIONS = 5
OBSERVED_SECONDS = 1.6
"""Seconds in which a repeated error would be raised several times."""
MESSAGE = (
    r"topic '(\S+)' is not readable: (fetching \1-\d: )?TOPIC_AUTHORIZATION_FAILED; "
    "this needs READ on it"
)


class Reader:
    """A consumer that records the values and errors it receives."""

    def __init__(self, admin: Admin, *topics: str) -> None:
        self.admin = admin
        self.values: list[bytes] = []
        self.errors: list[str] = []  # the topic of each error
        group = f"group-{topics[0]}"
        config = {
            "share.auto.offset.reset": "earliest",
            "share.heartbeat.interval.ms": "300",  # heartbeats can repeat an error
        }
        admin.set_group_config(group, config)
        self.consumer: ShareConsumer[Any, Any] = ShareConsumer(
            *topics, group_id=group, bootstrap_servers=admin.bootstrap_servers
        )

    async def read(self) -> None:
        while True:
            try:
                async for record in self.consumer:
                    self.values.append(record.value)
            except AuthorizationError as error:
                match = re.fullmatch(MESSAGE, str(error))
                self.errors.append(match[1] if match else str(error))

    async def observe(self, seconds: float = OBSERVED_SECONDS) -> None:
        """Read for some seconds, in which repeated errors can arrive."""
        await anyio.sleep(seconds)  # real time: an error would be repeated

    async def consume_values(
        self, topic: str, *values: bytes, partition: int = 0
    ) -> None:
        """Produce values, and wait until they are consumed."""
        await run_in_thread(self.admin.produce, topic, values, partition)
        await until(lambda: set(values) <= set(self.values))

    async def consume_from_all_partitions(self, topic: str, word: bytes) -> None:
        """Produce a value to each partition, and wait until all are consumed."""
        values = [b"%b-%d" % (word, partition) for partition in range(PARTITIONS)]
        for partition, value in enumerate(values):
            await run_in_thread(self.admin.produce, topic, [value], partition)
        await until(lambda: set(values) <= set(self.values))


async def run_in_thread(call: Callable[..., Any], *arguments: Any) -> None:
    await anyio.to_thread.run_sync(lambda: call(*arguments))


@pytest.fixture
def brokers(real_kafka3: Kafka) -> Admin:
    return real_kafka3.admin


ACL_CHANGES = {
    "describe only": (Admin.hide_records, Admin.show_records),
    "nothing": (Admin.deny_topic, Admin.allow_topic),
}


@pytest.fixture(params=ACL_CHANGES.values(), ids=ACL_CHANGES.keys())
def acl_changes(request: pytest.FixtureRequest) -> Any:
    """Return two functions, which forbid and allow a topic."""
    return request.param


async def test_topic_forbidden_from_start_raises_once_and_is_consumed_when_allowed(
    brokers: Admin, acl_changes: Any
) -> None:
    forbid, allow = acl_changes
    secret = brokers.create_topic(partitions=PARTITIONS)
    public = brokers.create_topic(partitions=PARTITIONS)
    forbid(brokers, secret)
    reader = Reader(brokers, secret, public)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await until(lambda: bool(reader.errors))
        for number in range(4):
            await reader.consume_from_all_partitions(public, b"public-%d" % number)
            await reader.observe(OBSERVED_SECONDS / 4)
        assert reader.errors == [secret]

        await run_in_thread(allow, brokers, secret)
        await reader.consume_from_all_partitions(secret, b"secret")
        assert len(reader.errors) == 1
        tasks.cancel_scope.cancel()


async def test_topic_forbidden_repeatedly_raises_once_each_time(
    brokers: Admin, acl_changes: Any
) -> None:
    forbid, allow = acl_changes
    secret = brokers.create_topic(partitions=PARTITIONS)
    public = brokers.create_topic(partitions=PARTITIONS)
    reader = Reader(brokers, public, secret)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await reader.consume_from_all_partitions(secret, b"before")
        for turn in range(1, 3):
            await run_in_thread(forbid, brokers, secret)
            await until(lambda turn=turn: len(reader.errors) == turn)
            fetches = reader.consumer.metrics()["fetch-total"]
            await reader.consume_values(public, b"public-%d" % turn)
            await reader.observe()
            assert reader.errors == [secret] * turn
            assert (
                reader.consumer.metrics()["fetch-total"] - fetches
                < 40 * OBSERVED_SECONDS
            )

            await run_in_thread(allow, brokers, secret)
            await reader.consume_from_all_partitions(secret, b"secret-%d" % turn)
        tasks.cancel_scope.cancel()


async def test_two_forbidden_topics_raise_two_errors(brokers: Admin) -> None:
    secrets = [brokers.create_topic(partitions=PARTITIONS) for _ in range(2)]
    for secret in secrets:
        brokers.deny_topic(secret)
    reader = Reader(brokers, *secrets)
    async with reader.consumer, anyio.create_task_group() as tasks:
        tasks.start_soon(reader.read)
        await until(lambda: len(reader.errors) == 2)  # a new Kafka admits slowly
        await reader.observe()
        assert sorted(reader.errors) == sorted(secrets)

        await run_in_thread(brokers.allow_topic, secrets[0])
        await reader.consume_from_all_partitions(secrets[0], b"first")
        assert len(reader.errors) == 2
        tasks.cancel_scope.cancel()


async def test_record_whose_acknowledgement_is_denied_is_not_locked_for_long(
    brokers: Admin,
) -> None:
    """It comes again when the topic is allowed; a lock lasts for 30 s."""
    topic = brokers.create_topic()
    group = f"group-{topic}"
    brokers.set_group_config(group, {"share.auto.offset.reset": "earliest"})
    brokers.produce(topic, [b"value"])
    consumer: ShareConsumer[Any, Any] = ShareConsumer(
        topic,
        group_id=group,
        acknowledgement="explicit",
        bootstrap_servers=brokers.bootstrap_servers,
    )
    async with consumer:
        record = await anext(aiter(consumer))
        await run_in_thread(brokers.deny_topic, topic)
        record.accept()
        (result,) = await consumer.commit()
        with pytest.raises(AuthorizationError):
            await anext(aiter(consumer))
        await run_in_thread(brokers.allow_topic, topic)
        with anyio.fail_after(15):
            again = await anext(aiter(consumer))

    assert result.error is not None
    assert "TOPIC_AUTHORIZATION_FAILED" == result.error.name
    assert (record.offset, 2) == (again.offset, again.delivery_count)
