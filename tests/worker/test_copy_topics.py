"""Settings of the topics that a worker creates for copies of records."""

import pytest

from sharecons.copies.topic_configs import CopyTopic, SourceTopic, find_problems
from sharecons.worker.copy_topics import creation_of

DEAD = CopyTopic("orders.dead", False, frozenset(["orders"]))
RETRY = CopyTopic("orders.retry", True, frozenset(["orders"]), longest_wait=60.0)
ORDERS = SourceTopic(
    "orders",
    1,
    {
        "retention.ms": "86400000",
        "retention.bytes": "-1",
        "max.message.bytes": "1000",
        "min.insync.replicas": "2",
    },
    replicas=3,
)
UNREADABLE = SourceTopic("unreadable", 1, {})


def source(retention: int) -> SourceTopic:
    return SourceTopic(f"kept-{retention}", 1, {"retention.ms": str(retention)})


def retention_for(*sources: SourceTopic) -> str | None:
    return creation_of(DEAD, sources, 30.0).configs.get("retention.ms")


def test_topic_has_the_longest_retention_of_its_sources() -> None:
    assert "2000" == retention_for(source(1000), source(2000), source(500))


def test_topic_has_no_limit_of_time_if_one_source_has_none() -> None:
    assert "-1" == retention_for(source(1000), source(-1))


def test_topic_has_the_default_retention_if_no_source_can_be_read() -> None:
    assert retention_for() is None
    assert retention_for(UNREADABLE, UNREADABLE) is None


def test_source_that_cannot_be_read_does_not_change_the_retention() -> None:
    assert "1000" == retention_for(UNREADABLE, source(1000))


def test_retry_topic_keeps_copies_for_their_delay_and_more_than_a_minute() -> None:
    request = creation_of(RETRY, [source(8_000)], 30.0)

    assert "120000" == request.configs["retention.ms"]


def test_topic_has_the_replicas_of_its_source_and_no_limit_of_bytes() -> None:
    request = creation_of(DEAD, [ORDERS], 30.0)

    assert 3 == request.replication_factor
    assert "2" == request.configs["min.insync.replicas"]
    assert "-1" == request.configs["retention.bytes"]


def test_created_topic_has_no_problem() -> None:
    for topic in (DEAD, RETRY):
        request = creation_of(topic, [ORDERS], 30.0)
        assert [] == find_problems(topic, request.configs, 3, [ORDERS])


@pytest.mark.parametrize(
    ("topic", "config", "value", "is_certain"),
    [
        (DEAD, "cleanup.policy", "compact", True),
        (RETRY, "cleanup.policy", "compact,delete", True),
        (RETRY, "retention.ms", "119999", True),
        (RETRY, "retention.ms", "120000", False),
        (RETRY, "retention.ms", "86400000", None),
        (RETRY, "retention.ms", "-1", None),
        (DEAD, "retention.ms", "1000", False),
        (RETRY, "retention.bytes", "1000000", True),
        (RETRY, "retention.bytes", "-1", None),
        (DEAD, "retention.bytes", "1000000", None),
        (DEAD, "max.message.bytes", "999", True),
        (DEAD, "max.message.bytes", "1000", None),
        (DEAD, "min.insync.replicas", "3", None),
        (DEAD, "min.insync.replicas", "4", True),
        (DEAD, "message.timestamp.before.max.ms", "999", True),
        (RETRY, "message.timestamp.before.max.ms", "59999", False),
        (RETRY, "message.timestamp.before.max.ms", "60000", None),
        (DEAD, "message.timestamp.after.max.ms", "0", False),
        (RETRY, "message.timestamp.after.max.ms", "3600000", None),
        (RETRY, "message.timestamp.type", "CreateTime", None),
    ],
)
def test_setting_of_an_existing_topic_is_judged(
    topic: CopyTopic, config: str, value: str, is_certain: bool | None
) -> None:
    findings = find_problems(topic, {config: value}, 3, [ORDERS])

    expected = [] if is_certain is None else [(config, value, is_certain)]
    assert expected == [(one.config, one.found, one.is_certain) for one in findings]
    for one in findings:
        assert [] == find_problems(topic, {config: one.wanted}, 3, [ORDERS])


def test_limits_of_timestamps_that_the_broker_sets_are_no_problem() -> None:
    configs = {
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": "0",
    }

    assert [] == find_problems(RETRY, configs, 3, [ORDERS])


def test_limit_of_bytes_that_the_source_has_as_well_is_uncertain() -> None:
    limited = ORDERS._replace(configs={"retention.bytes": "5000"})

    (same,) = find_problems(RETRY, {"retention.bytes": "5000"}, 3, [limited])
    (less,) = find_problems(RETRY, {"retention.bytes": "4999"}, 3, [limited])

    assert (False, True) == (same.is_certain, less.is_certain)


def test_other_topics_and_configs_that_cannot_be_read_are_not_judged() -> None:
    other = ORDERS._replace(name="other")

    assert [] == find_problems(RETRY, {"retention.ms": "120000"}, 3, [other])
    assert [] == find_problems(RETRY, {}, 0, [UNREADABLE])
