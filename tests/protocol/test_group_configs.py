"""What group configs may be set to, and what is said of what they may not."""

import pytest

from sharecons.errors import ConfigurationError
from sharecons.protocol.admin.group_configs import check_configs, read_bounds

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


def check(wanted, brokers=None, present=None):
    bounds = read_bounds(BROKERS if brokers is None else brokers)
    return check_configs(wanted, bounds, PRESENT if present is None else present)


@pytest.mark.parametrize(
    ("name", "value", "spelt"),
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
def test_what_may_be_set_is_spelt_as_brokers_read_it(name, value, spelt):
    assert {name: spelt} == check({name: value})


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
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
def test_what_may_not_be_set_is_named_with_the_reason(name, value, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        check({name: value})


def test_every_complaint_is_made_at_once():
    with pytest.raises(ConfigurationError) as caught:
        check({LOCK: 1, RESET: "x", LIMIT: 3})

    assert LOCK in str(caught.value)
    assert RESET in str(caught.value)
    assert LIMIT not in str(caught.value)


def test_where_brokers_do_not_tell_the_kips_bounds_hold():
    assert {LOCK: "1000"} == check({LOCK: 1000}, brokers={})
    with pytest.raises(ConfigurationError, match="from 1000 to 3600000 .by Kafka"):
        check({LOCK: 999}, brokers={})


def test_where_configs_may_not_be_read_those_of_the_kip_are_known():
    assert {LIMIT: "3"} == check({LIMIT: 3}, present={})
    with pytest.raises(ConfigurationError, match="no group config"):
        check({"share.colour": "red"}, present={})


def test_nothing_to_set_is_a_mistake():
    with pytest.raises(ConfigurationError, match="no config"):
        check({})
