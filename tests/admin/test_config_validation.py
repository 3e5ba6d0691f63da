"""Validation of group configs."""

import pytest

from sharecons.admin.config_validation import check_configs, read_bounds
from sharecons.errors import ConfigurationError

LOCK = "share.record.lock.duration.ms"
LIMIT = "share.delivery.count.limit"
RESET = "share.auto.offset.reset"
SESSION = "share.session.timeout.ms"
HEARTBEAT = "share.heartbeat.interval.ms"
PRESENT = {
    LOCK: "30000",
    LIMIT: "5",
    RESET: "latest",
    SESSION: "45000",
    HEARTBEAT: "5000",
    "share.isolation.level": "read_uncommitted",
    "share.renew.acknowledge.enable": "true",
    "streams.num.standby.replicas": "0",
}
BROKERS = {
    "group.share.min.record.lock.duration.ms": "15000",
    "group.share.max.record.lock.duration.ms": "60000",
}


def check(changes, brokers=None, present=None):
    bounds = read_bounds(BROKERS if brokers is None else brokers)
    return check_configs(changes, bounds, PRESENT if present is None else present)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (LOCK, 15000, "15000"),
        (LOCK, " 60000 ", "60000"),
        (LOCK, None, None),
        (RESET, "by_duration:P1DT2H3M4.5S", "by_duration:P1DT2H3M4.5S"),
        (RESET, "by_duration:PT1H", "by_duration:PT1H"),
        ("share.renew.acknowledge.enable", False, "false"),
        ("share.isolation.level", "read_committed", "read_committed"),
        ("streams.num.standby.replicas", "whatever", "whatever"),
    ],
)
def test_valid_configs_are_returned_as_text(name, value, text):
    assert {name: text} == check({name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (LOCK, 14999, "from 15000 to 60000 .by the brokers' group.share.min.record"),
        (LOCK, 60001, "not 60001"),
        (LOCK, "30s", "a whole number, not '30s'"),
        (LOCK, 30000.5, "a whole number"),
        (LIMIT, 1, "from 2 to 10 .by Kafka"),
        (RESET, "by_duration:P", "latest or by_duration"),
        (RESET, "by_duration:PT", "latest or by_duration"),
        (RESET, "first", "earliest, latest"),
        ("share.renew.acknowledge.enable", "yes", "true or false"),
        ("record.lock.duration.ms", 1, f"did you mean '{LOCK}'"),
        ("share.delivery.limit", 1, f"did you mean '{LIMIT}'"),
        ("qqq", 1, "share groups have share.auto"),
        (HEARTBEAT, 45000, "must be less than share.session.timeout.ms .45000"),
        (SESSION, 5000, "must be less than share.session.timeout.ms .5000"),
    ],
)
def test_invalid_config_error_has_the_reason(name, value, message):
    with pytest.raises(ConfigurationError, match=message):
        check({name: value})


def test_error_lists_all_problems():
    with pytest.raises(ConfigurationError) as caught:
        check({LOCK: 1, RESET: "x", LIMIT: 3})

    assert LOCK in str(caught.value)
    assert RESET in str(caught.value)
    assert LIMIT not in str(caught.value)


def test_bounds_of_the_kip_apply_without_broker_bounds():
    assert {LOCK: "1000"} == check({LOCK: 1000}, brokers={})
    with pytest.raises(ConfigurationError, match="from 1000 to 3600000 .by Kafka"):
        check({LOCK: 999}, brokers={})


def test_configs_of_the_kip_are_known_without_current_configs():
    assert {LIMIT: "3"} == check({LIMIT: 3}, present={})
    with pytest.raises(ConfigurationError, match="no group config"):
        check({"share.colour": "red"}, present={})


def test_empty_changes_are_rejected():
    with pytest.raises(ConfigurationError, match="no config"):
        check({})
