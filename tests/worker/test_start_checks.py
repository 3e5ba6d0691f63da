"""Topics that a worker needs, looked at before the first record is taken."""

from typing import Any

import anyio
import pytest

from sharecons import DeadLetter, Record, RetryTopic
from sharecons.config.not_given import NOT_GIVEN
from sharecons.errors import AuthorizationError, BrokerError, ConfigurationError
from sharecons.testing import EmbeddedBroker
from tests.waiting import until
from tests.worker.routes import route, working_routes
from tests.worker.working import Handled, new_worker, process, settled, working

pytestmark = pytest.mark.anyio

BROKERS = ("embedded",)

RESET = "share.auto.offset.reset"
RETRY = [RetryTopic("orders.retry", 60.0)]
TOPICS: dict[str, Any] = {"dead_letter": "orders.dead", "retry_topics": RETRY}


async def start_error(
    broker: EmbeddedBroker, reset: Any = NOT_GIVEN, **options: Any
) -> Exception:
    """Run a worker that must not start; return the error that `run` raises."""
    handled = Handled()
    worker = new_worker(broker, "orders", handled, auto_offset_reset=reset, **options)
    broker.produce("orders", [b"1"])
    with anyio.fail_after(30):
        with pytest.raises(Exception) as caught:
            await worker.run()
    assert [] == handled.calls
    assert not [each for each in broker.requests if each.api == "ShareGroupHeartbeat"]
    return caught.value


def forbid(broker: EmbeddedBroker, *denied: tuple[str, str]) -> None:
    """Deny operations on topics, or all ("*")."""
    access = broker.cluster.authorizer
    denies = access.denies

    def denies_more(operation: str, kind: str, name: str) -> bool:
        wanted = {(operation, name), ("*", name), (operation, "*")}
        return bool(wanted & {*denied}) or denies(operation, kind, name)

    access.denies = denies_more  # type: ignore[method-assign]


def replace(broker: EmbeddedBroker, name: str, **options: Any) -> None:
    """Delete a topic, and create it with these options."""
    broker.delete_topic(name)
    broker.create_topic(name, **options)


# Retry topics and the offset reset.


@pytest.mark.parametrize(
    ("config", "reset", "denied"),
    [
        ({RESET: "latest"}, NOT_GIVEN, []),
        ({}, None, []),
        ({}, NOT_GIVEN, [("ALTER_CONFIGS", "billing")]),
    ],
    ids=["latest", "left unchanged", "no right to set it"],
)
async def test_retry_topics_of_a_group_that_starts_at_the_end_are_an_error(
    broker: EmbeddedBroker, config: Any, reset: Any, denied: Any
) -> None:
    broker.set_group_config("billing", config)
    forbid(broker, *denied)

    error = await start_error(broker, reset, retry_topics=RETRY)

    assert isinstance(error, ConfigurationError)
    assert 'pass auto_offset_reset="earliest"' in str(error)
    command = f"sharecons groups configure billing --set {RESET}=earliest"
    assert command in str(error)


async def test_config_that_cannot_be_read_is_one_warning_and_the_worker_goes_on(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    forbid(broker, ("DESCRIBE_CONFIGS", "billing"))
    handled = Handled()
    async with working(
        broker, handled, auto_offset_reset=None, retry_topics=RETRY
    ) as worker:
        await until(lambda: bool(worker.assignment))
        await anyio.sleep(1.0)
        broker.produce("orders", [b"late"])
        await until(lambda: handled.calls == [b"late"])

    assert 1 == caplog.text.count("of the group cannot be read")
    assert "Grant DESCRIBE_CONFIGS on the group" in caplog.text
    assert f"sharecons groups configure billing --set {RESET}=earliest" in caplog.text


# Topics for copies.


async def test_missing_topics_are_one_error_with_the_commands_that_create_them(
    broker: EmbeddedBroker,
) -> None:
    replace(broker, "orders", partitions=3, config={"retention.ms": 7200000})
    broker.delete_topic("orders.dead")
    broker.delete_topic("orders.retry")

    error = await start_error(broker, **TOPICS)

    assert isinstance(error, BrokerError)
    assert "UNKNOWN_TOPIC_OR_PARTITION" == error.name
    text = str(error)
    names = "the retry topic 'orders.retry' and the dead-letter topic 'orders.dead'"
    assert text.startswith(f"{names} do not exist; ")
    assert "create_topics=True" in text
    for topic in ("orders.retry", "orders.dead"):
        command = (
            f"kafka-topics.sh --bootstrap-server {broker.bootstrap_servers} --create "
            f"--topic {topic} --partitions 3 --config cleanup.policy=delete "
            "--config retention.ms=7200000 --config max.message.bytes=1064972"
        )
        assert command in text


async def test_topic_that_brokers_learn_of_a_moment_later_is_no_error(
    broker: EmbeddedBroker,
) -> None:
    broker.delete_topic("orders.dead")
    broker.produce("orders", [b"1"])
    async with working(broker, Handled(), dead_letter="orders.dead"):
        await anyio.sleep(0.5)
        broker.create_topic("orders.dead")
        await until(lambda: settled(broker, 1))


@pytest.mark.parametrize(
    ("denied", "rights"),
    [
        (("*", "orders.dead"), "DESCRIBE and WRITE"),
        (("WRITE", "orders.dead"), "WRITE"),
        (("*", "orders.retry"), "DESCRIBE and READ and WRITE"),
        (("WRITE", "orders.retry"), "WRITE"),
        (("READ", "orders.retry"), "READ"),
    ],
)
async def test_forbidden_topic_is_an_error_that_names_the_rights(
    broker: EmbeddedBroker, denied: tuple[str, str], rights: str
) -> None:
    forbid(broker, denied)

    error = await start_error(broker, **TOPICS)

    assert isinstance(error, AuthorizationError)
    assert "TOPIC_AUTHORIZATION_FAILED" == error.name
    assert f"topic {denied[1]!r} cannot be used" in str(error)
    assert f"grant {rights} on it" in str(error)


async def test_right_to_read_the_dead_letter_topic_is_not_needed(
    broker: EmbeddedBroker,
) -> None:
    forbid(broker, ("READ", "orders.dead"))
    broker.produce("orders", [b"1"])
    await process(broker, Handled(), 1, dead_letter="orders.dead")


@pytest.mark.parametrize(
    ("name", "config", "text"),
    [
        ("orders.dead", {"max.message.bytes": 1000}, "=1000, less than"),
        ("orders.retry", {"max.message.bytes": 1000}, "=1000, less than"),
        ("orders.dead", {"cleanup.policy": "compact"}, "cleanup.policy=compact, which"),
        ("orders.retry", {"cleanup.policy": "compact,delete"}, "which removes copies"),
        ("orders.retry", {"retention.ms": 8000}, "retention.ms=8000, which removes"),
        ("orders.retry", {"retention.bytes": 8000}, "retention.bytes=8000, which can"),
        ("orders.dead", {"min.insync.replicas": 2}, "more than its 1 replicas"),
    ],
)
async def test_topic_that_loses_copies_is_an_error_with_a_command(
    broker: EmbeddedBroker, name: str, config: dict[str, str | int], text: str
) -> None:
    replace(broker, name, config=config)

    error = await start_error(broker, **TOPICS)

    assert isinstance(error, ConfigurationError)
    assert f"topic {name!r} has {next(iter(config))}=" in str(error)
    assert text in str(error)
    assert f"--alter --topic {name} --add-config {next(iter(config))}=" in str(error)


async def test_topic_with_less_retention_than_its_source_is_one_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    replace(broker, "orders.retry", config={"retention.ms": 3_600_000})
    async with working(broker, Handled(), retry=None, **TOPICS) as worker:
        await until(lambda: bool(worker.assignment))

    assert 1 == caplog.text.count("copies can be lost")
    assert "retention.ms=3600000, less than the 604800000 of 'orders'" in caplog.text


async def test_configs_of_topics_that_cannot_be_read_are_no_error(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    forbid(broker, ("DESCRIBE_CONFIGS", "orders"), ("DESCRIBE_CONFIGS", "orders.dead"))
    broker.produce("orders", [b"1"])
    with caplog.at_level("INFO"):
        await process(broker, Handled(), 1, dead_letter="orders.dead")

    (line,) = (each for each in caplog.records if "configs not" in each.getMessage())
    assert "WARNING" == line.levelname
    assert "['orders', 'orders.dead']" in line.getMessage()


async def test_missing_source_topic_is_no_error(broker: EmbeddedBroker) -> None:
    broker.delete_topic("orders")
    async with working(broker, Handled(), **TOPICS, retry=None) as worker:
        await until(lambda: bool(worker.assignment))
        broker.create_topic("orders")
        broker.produce("orders", [b"1"])
        await until(lambda: worker.stats.accepted == 1)


@pytest.mark.parametrize("action", ["stall", "cut"])
async def test_brokers_that_do_not_respond_are_a_warning(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, action: str
) -> None:
    broker.produce("orders", [b"1"])
    fault = broker.faults.on("Metadata", times=3)
    getattr(fault, action)()
    await process(
        broker,
        Handled(),
        1,
        within=25.0,
        request_timeout=5.0,
        dead_letter="orders.dead",
    )

    assert 1 == caplog.text.count("dead-letter topic not checked: no response")


async def test_worker_that_is_cancelled_while_it_checks_has_not_joined(
    broker: EmbeddedBroker,
) -> None:
    broker.delete_topic("orders.dead")
    worker = new_worker(broker, "orders", Handled(), dead_letter="orders.dead")
    with anyio.move_on_after(0.5) as scope:
        await worker.run()

    assert scope.cancelled_caught
    assert not worker.connected
    assert not [each for each in broker.requests if each.api == "ShareGroupHeartbeat"]


# Creating topics.


async def test_missing_topics_are_created_like_the_source(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    replace(
        broker,
        "orders",
        partitions=3,
        config={"retention.ms": 7200000, "max.message.bytes": 2000000},
    )
    broker.delete_topic("orders.dead")
    broker.delete_topic("orders.retry")
    with caplog.at_level("INFO"):
        async with working(
            broker, Handled(), create_topics=True, retry=None, **TOPICS
        ) as worker:
            await until(lambda: bool(worker.assignment))

    assert 2 == caplog.text.count("topic created")
    for name in ("orders.dead", "orders.retry"):
        topic = broker.cluster.topics.by_name(name)
        assert topic is not None
        assert 3 == len(topic.partitions)
        assert {
            "cleanup.policy": "delete",
            "retention.ms": "7200000",
            "max.message.bytes": "2016384",
            "retention.bytes": "-1",
            "min.insync.replicas": "1",
        } == dict(topic.config)


async def test_existing_topics_are_unchanged_with_create_topics(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        async with working(
            broker, Handled(), create_topics=True, retry=None, **TOPICS
        ) as worker:
            await until(lambda: bool(worker.assignment))

    assert "topic created" not in caplog.text


async def test_lost_response_to_the_creation_is_no_error(
    broker: EmbeddedBroker,
) -> None:
    broker.delete_topic("orders.dead")
    fault = broker.faults.on("CreateTopics").cut(after=True)
    broker.produce("orders", [b"1"])
    await process(broker, Handled(), 1, create_topics=True, dead_letter="orders.dead")

    assert fault.hits


async def test_topic_that_cannot_be_created_is_an_error_with_the_command(
    broker: EmbeddedBroker,
) -> None:
    broker.delete_topic("orders.dead")
    forbid(broker, ("CREATE", "*"))

    error = await start_error(broker, create_topics=True, dead_letter="orders.dead")

    assert isinstance(error, AuthorizationError)
    assert "cannot create topic 'orders.dead': TOPIC_AUTHORIZATION_FAILED" in str(error)
    assert "grant CREATE on the topic, or run: kafka-topics.sh" in str(error)


async def test_topic_is_created_with_defaults_without_the_source(
    broker: EmbeddedBroker,
) -> None:
    broker.delete_topic("orders")
    broker.delete_topic("orders.dead")
    async with working(
        broker, Handled(), create_topics=True, dead_letter="orders.dead"
    ):
        await until(lambda: broker.cluster.topics.by_name("orders.dead") is not None)


# Topics that are deleted while the worker runs.


async def fail(record: Record[Any, Any]) -> None:
    raise DeadLetter("bad")


@pytest.mark.slow("waits for delivery timeouts, in virtual time")
async def test_deleted_topic_is_one_warning_and_one_line_when_it_is_back(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sharecons.worker")
    async with working(
        broker,
        fail,
        max_wait=10.0,
        within=900.0,
        dead_letter="orders.dead",
    ) as worker:
        await until(lambda: bool(worker.assignment))
        for _ in range(2):
            broker.delete_topic("orders.dead")
            broker.produce("orders", [b"x"] * 5)
            await anyio.sleep(70.0)
            assert 5 == worker.stats.held
            broker.create_topic("orders.dead", partitions=1)
            await until(lambda: worker.stats.held == 0, within=100, pause=1.0)

        assert 10 == worker.stats.dead_lettered

    assert 2 == caplog.text.count("a topic for copies does not exist")
    assert 2 == caplog.text.count("the topic for copies exists again")
    assert "copies of failed records" not in caplog.text


async def test_created_topics_are_like_the_topics_of_their_handlers(
    broker: EmbeddedBroker,
) -> None:
    day, week = 86_400_000, 7 * 86_400_000
    broker.create_topic("small", partitions=2, config={"retention.ms": day})
    broker.create_topic("large", partitions=5, config={"retention.ms": week})
    handled = Handled()
    retry = {"retry_topics": [RetryTopic("shared.retry", 60.0)]}
    routes = {
        "small": route(handled, dead_letter="small.dead", **retry),
        "large": route(handled, dead_letter="large.dead", **retry),
    }
    broker.produce("small", [b"1"])
    async with working_routes(broker, routes, create_topics=True):
        await until(lambda: handled.calls == [b"1"])

    def settings_of(name: str) -> tuple[int, str]:
        topic = broker.cluster.topics.by_name(name)
        assert topic is not None
        return len(topic.partitions), topic.config["retention.ms"]

    assert (2, str(day)) == settings_of("small.dead")
    assert (5, str(week)) == settings_of("large.dead") == settings_of("shared.retry")
