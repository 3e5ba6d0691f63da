"""Checks of a group's dead-letter settings (KIP-1191), without a broker."""

import pytest

from sharecons.admin import (
    ConfigEntry,
    FeatureRange,
    Features,
    Result,
    Topic,
    TopicPartitionInfo,
)
from sharecons.errors import AuthorizationError, BrokerError
from sharecons.inspection.diagnosis.checks import Verdict
from sharecons.inspection.diagnosis.dead_letter_checks import (
    DEAD_LETTER_CREATE,
    DEAD_LETTER_ENABLE,
    DeadLetterFacts,
    DeadLetterSettings,
    check_dead_letters,
    dead_letter_settings,
)
from sharecons.protocol.codes import Code

NAME = "errors.deadletterqueue.topic.name"
COPY = "errors.deadletterqueue.copy.record.enable"
PREFIX = "errors.deadletterqueue.topic.name.prefix"
OK, WARN, FAIL = Verdict
FORBIDDEN = Result(
    error=AuthorizationError("no right", code=31, name="CLUSTER_AUTHORIZATION_FAILED")
)
MISSING = Result(
    error=BrokerError("gone", code=Code.UNKNOWN_TOPIC_OR_PARTITION, name="UNKNOWN")
)


def entries(**values):
    return {
        name: ConfigEntry(name=name, value=value, source="DEFAULT_CONFIG")
        for name, value in values.items()
    }


def broker(prefix="dlq.", create="false"):
    return Result(entries(**{PREFIX: prefix, DEAD_LETTER_CREATE: create}))


def features(finalized, supported=2):
    def only(version):
        return {"share.version": FeatureRange(lowest=0, highest=version)}

    return Features(finalized=only(finalized), supported=only(supported), apis={})


def topic(leader=1, operations=frozenset(("READ", "DESCRIBE"))):
    one = TopicPartitionInfo(leader=leader, leader_epoch=0, replicas=(1,), in_sync=(1,))
    return Result(
        Topic(
            name="dlq.orders",
            topic_id=bytes(16),
            internal=False,
            partitions={0: one},
            authorized_operations=operations,
        )
    )


def topic_configs(enable="true", policy="delete"):
    return Result(entries(**{DEAD_LETTER_ENABLE: enable, "cleanup.policy": policy}))


def check(name="dlq.orders", *, copy=False, **facts):
    found = {
        "brokers": {1: broker()},
        "features": {1: features(2)},
        "topic": topic(),
        "topic_configs": topic_configs(),
        **facts,
    }
    settings = DeadLetterSettings(topic=name, copy_records=copy)
    return list(check_dead_letters("billing", settings, DeadLetterFacts(**found)))


def verdicts(checks):
    return [each.verdict for each in checks]


def test_settings_are_parsed_from_group_configs():
    found = dead_letter_settings(entries(**{NAME: "dlq.x", COPY: "true"}))
    assert DeadLetterSettings(topic="dlq.x", copy_records=True) == found
    assert dead_letter_settings(entries(**{NAME: "", COPY: "false"})).topic is None
    assert dead_letter_settings(entries(other="1")) is None


def test_group_without_dead_letters_is_ok():
    (old,) = check_dead_letters("billing", None, None)
    unset = DeadLetterSettings(topic=None, copy_records=False)
    (none,) = check_dead_letters("billing", unset, None)

    assert (OK, OK) == (old.verdict, none.verdict)
    assert "older than Kafka 4.4" in old.found
    assert f"{NAME} is not set" in none.found


@pytest.mark.parametrize(("copy", "word"), [(True, "with"), (False, "without")])
def test_working_settings_are_ok(copy, word):
    checks = check(copy=copy)

    assert [OK, OK, OK] == verdicts(checks)
    assert f"to topic dlq.orders, {word} keys and values" == checks[0].found


@pytest.mark.parametrize(
    ("facts", "at", "verdict", "found", "advice"),
    [
        (
            {"features": {1: features(2), 2: features(1)}},
            0,
            FAIL,
            "share.version is finalized at 1",
            "upgrade --feature share.version=2",
        ),
        (
            {"brokers": {1: broker(), 2: broker("dead.")}},
            0,
            FAIL,
            f"does not begin with dead., broker 2's {PREFIX}",
            f"sharecons groups configure billing --set {NAME}=dead.NAME",
        ),
        (
            {"brokers": {1: FORBIDDEN}},
            0,
            WARN,
            "cannot check the prefix",
            "DESCRIBE_CO",
        ),
        (
            {"topic": MISSING},
            1,
            FAIL,
            "brokers do not create it",
            f"--create --topic dlq.orders --config {DEAD_LETTER_ENABLE}=true",
        ),
        (
            {"topic": MISSING, "brokers": {1: FORBIDDEN}},
            1,
            WARN,
            "unknown whether",
            "--create",
        ),
        ({"topic": FORBIDDEN}, 1, WARN, "no right", "DESCRIBE"),
        ({"topic": topic(leader=None)}, 1, FAIL, "no leader for partition 0", "check"),
        (
            {"topic_configs": topic_configs("false")},
            1,
            FAIL,
            f"{DEAD_LETTER_ENABLE} is not true",
            f"--alter --topic dlq.orders --add-config {DEAD_LETTER_ENABLE}=true",
        ),
        ({"topic_configs": FORBIDDEN}, 1, WARN, "no right", "DESCRIBE_CONFIGS"),
        (
            {"topic_configs": topic_configs(policy="compact,delete")},
            1,
            FAIL,
            "compact, which rejects records without keys; dead letters have none",
            "cleanup.policy=delete",
        ),
        (
            {"topic_configs": topic_configs(policy="compact"), "copy": True},
            1,
            WARN,
            "compact",
            "cleanup.policy=delete",
        ),
        (
            {"topic": topic(operations=frozenset(("DESCRIBE",)))},
            2,
            WARN,
            "no READ",
            "--operation READ --topic dlq.orders",
        ),
        ({"topic": topic(operations=None)}, 2, WARN, "do not return", "try to read"),
    ],
)
def test_problem_is_reported_with_advice(facts, at, verdict, found, advice):
    one = check(**facts)[at]

    assert verdict is one.verdict
    assert found in one.found
    assert advice in one.advice


def test_brokers_that_do_not_support_share_version_2_are_not_checked_for_it():
    """The embedded broker writes dead letters with share.version 1."""
    assert OK is check(features={1: features(1, supported=1)})[0].verdict


def test_missing_topic_is_ok_only_if_all_brokers_create_it():
    creating, other = broker(create="true"), broker()

    assert OK is check(topic=MISSING, brokers={1: creating})[1].verdict
    assert FAIL is check(topic=MISSING, brokers={1: creating, 2: other})[1].verdict


def test_invalid_topic_name_is_the_only_check():
    (one,) = check("no topic", topic=FORBIDDEN)

    assert FAIL is one.verdict
    assert "must be the name of a topic" in one.found
