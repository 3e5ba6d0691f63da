"""Reading, validating and setting group configs, on both Kafkas."""

import pytest

from sharecons.errors import ConfigurationError

pytestmark = pytest.mark.anyio

LOCK = "share.record.lock.duration.ms"
RESET = "share.auto.offset.reset"


async def test_configs_are_set_and_reset_to_default(admin, group):
    done = await admin.alter_group_configs(group, {RESET: "earliest", LOCK: 20000})
    first = (await admin.describe_group_configs(group))[group].value
    undone = await admin.alter_group_configs(group, {RESET: None})
    then = (await admin.describe_group_configs(group))[group].value

    assert done.ok
    assert ("earliest", "20000") == (first[RESET].value, first[LOCK].value)
    assert not first[RESET].is_default
    assert undone.ok
    assert ("latest", "20000") == (then[RESET].value, then[LOCK].value)
    assert then[RESET].is_default


async def test_validate_only_sets_nothing(admin, group):
    done = await admin.alter_group_configs(
        group, {RESET: "earliest"}, validate_only=True
    )

    assert done.ok
    described = await admin.describe_group_configs(group)
    assert "latest" == described[group].value[RESET].value


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        (LOCK, 999, "from 1000 to 60000 .*group.share.min.record.lock.duration.ms"),
        ("share.delivery.count.limit", 11, "from 2 to 10"),
        ("share.isolation.level", "none", "read_committed or read_uncommitted"),
        (RESET, "by_duration:1h", "by_duration: with an ISO 8601 duration"),
        ("auto.offset.reset", "latest", "did you mean 'share.auto.offset.reset'"),
        ("share.heartbeat.interval.ms", "soon", "must be a whole number"),
    ],
)
async def test_invalid_configs_are_not_sent(admin, group, name, value, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        await admin.alter_group_configs(group, {name: value})


async def test_broker_configs_contain_bounds(admin):
    configs = await admin.describe_broker_configs("group.share.max.session.timeout.ms")

    assert ["60000"] == [entry.value for entry in configs.values()]
