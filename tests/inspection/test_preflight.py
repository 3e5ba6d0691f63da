"""Checks of whether a cluster is ready."""

import pytest

from sharecons.admin import (
    ConfigEntry,
    FeatureRange,
    Features,
    Result,
    ShareGroupAdmin,
    Topic,
    TopicPartitionInfo,
)
from sharecons.errors import AuthorizationError, BrokerError, ConnectionFailedError
from sharecons.inspection.diagnosis.checks import Verdict
from sharecons.inspection.diagnosis.internal_topics import (
    STATE_TOPIC,
    InternalTopicFacts,
    check_internal_topic,
)
from sharecons.inspection.diagnosis.preflight import (
    check_configs,
    check_features,
    check_group,
    check_rights,
    check_topic,
)
from sharecons.inspection.preflight import check_cluster
from sharecons.testing import EmbeddedBroker
from tests.scenarios.queue import Queue, take

anyio_tests = pytest.mark.anyio

OK, WARN, FAIL = Verdict


def features(share_version, share_fetch=(1, 2), supported=True):
    def only(found):
        return {"share.version": FeatureRange(lowest=0, highest=found)}

    apis = {}
    if share_fetch:
        apis[78] = FeatureRange(lowest=share_fetch[0], highest=share_fetch[1])
    return Result(
        Features(
            finalized=only(share_version) if share_version else {},
            supported=only(1) if supported else {},
            apis=apis,
        )
    )


def verdicts(checks):
    return [each.verdict for each in checks]


def test_current_cluster_is_ready():
    assert [OK, OK] == verdicts(check_features({1: features(1), 2: features(1)}))


def test_kafka_4_1_is_a_warning():
    version, feature = check_features({1: features(1, (1, 1))})

    assert (WARN, OK) == (version.verdict, feature.verdict)
    assert "preview" in version.found


def test_disabled_feature_advice_says_how_to_enable_it():
    _, feature = check_features({1: features(0)})

    assert FAIL is feature.verdict
    assert "upgrade --feature share.version=1" in feature.advice


def test_old_cluster_advice_names_the_version():
    version, feature = check_features({1: features(0, (), supported=False)})

    assert (FAIL, FAIL) == (version.verdict, feature.verdict)
    assert "4.2" in version.advice


def test_one_old_broker_among_others_is_named():
    version, _ = check_features({1: features(1), 2: features(0, ())})

    assert "of 2 brokers 2 is without share groups" in version.found


def a_topic(replicas=(1, 2, 3), in_sync=(1, 2, 3), leader=1):
    return Result(
        Topic(
            name="orders",
            topic_id=bytes(16),
            internal=False,
            partitions={
                0: TopicPartitionInfo(
                    leader=leader,
                    leader_epoch=0,
                    replicas=replicas,
                    in_sync=in_sync,
                )
            },
        )
    )


def gone(code=3):
    return Result(error=BrokerError("there is none", code=code, name="NONE"))


def configs(**values):
    entries = {
        name: ConfigEntry(name=name, value=str(value), source="STATIC_BROKER_CONFIG")
        for name, value in values.items()
    }
    return Result(entries)


def check_state_topic(described, *, brokers=3, factor=3, min_isr=1):
    of_broker = configs(**{STATE_TOPIC.replication_factor: factor})
    facts = InternalTopicFacts(
        described=described,
        topic_configs=configs(**{"min.insync.replicas": min_isr}),
        brokers=brokers,
        broker_configs={1: of_broker if factor else gone(29)},
    )
    return check_internal_topic(STATE_TOPIC, facts)


def test_state_topic_needs_replicas_and_leaders():
    alone = a_topic(replicas=(1,), in_sync=(1,))
    assert OK is check_state_topic(a_topic()).verdict
    assert WARN is check_state_topic(a_topic(in_sync=(1,))).verdict
    assert WARN is check_state_topic(alone).verdict
    assert FAIL is check_state_topic(a_topic(leader=None)).verdict


@pytest.mark.parametrize(
    ("replicas", "expected"), [((1, 2, 3), FAIL), ((1, 2), FAIL), ((1,), WARN)]
)
def test_state_topic_with_too_few_in_sync_replicas_fails(replicas, expected):
    described = a_topic(replicas=replicas, in_sync=(1,))
    check = check_state_topic(described, min_isr=2)

    assert expected is check.verdict
    if expected is FAIL:
        assert "1 of 1 partitions have fewer in-sync replicas than" in check.found


def test_state_topic_that_cannot_be_described_needs_describe():
    error = AuthorizationError("no right", code=29, name="TOPIC_AUTHORIZATION_FAILED")
    check = check_state_topic(Result(error=error), brokers=1)

    assert WARN is check.verdict
    assert "whether __share_group_state exists is unknown: no right" == check.found
    assert check.advice.startswith("grant DESCRIBE on the topic")


@pytest.mark.parametrize(
    ("brokers", "factor", "expected"), [(1, 1, WARN), (3, 3, WARN), (2, 3, FAIL)]
)
def test_missing_state_topic_fails_if_it_cannot_be_created(brokers, factor, expected):
    check = check_state_topic(gone(), brokers=brokers, factor=factor)

    assert expected is check.verdict
    if expected is FAIL:
        name = "share.coordinator.state.topic.replication.factor"
        assert f"set {name} to at most {brokers}" in check.advice


def test_missing_state_topic_is_a_warning_if_configs_are_not_readable():
    check = check_state_topic(gone(), factor=None)

    assert WARN is check.verdict
    assert "it is not readable: there is none" in check.advice


def test_a_topic_needs_a_leader_for_each_partition():
    assert OK is check_topic("orders", a_topic()).verdict
    assert FAIL is check_topic("orders", a_topic(leader=None)).verdict
    assert FAIL is check_topic("orders", gone()).verdict


def test_group_of_another_type_fails():
    check = check_group("billing", gone(69), "classic")

    assert (FAIL, "there is a classic group with this id") == (
        check.verdict,
        check.found,
    )
    assert OK is check_group("billing", gone(69), None).verdict


@pytest.mark.parametrize("kind", [None, "share"])
def test_group_that_cannot_be_described_fails(kind):
    denied = Result(error=AuthorizationError("denied", code=30, name="DENIED"))
    check = check_group("billing", denied, kind)

    assert (FAIL, "denied", "allow READ on it, to join it") == (
        check.verdict,
        check.found,
        check.advice,
    )
    check = check_group("billing", gone(15), kind)
    assert (FAIL, "check its coordinator") == (check.verdict, check.advice)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("share.auto.offset.reset", "latest", WARN),
        ("share.auto.offset.reset", "earliest", OK),
        ("share.delivery.count.limit", "2", WARN),
        ("share.record.lock.duration.ms", "1000", WARN),
    ],
)
def test_unsuitable_defaults_are_warnings(name, value, expected):
    entry = ConfigEntry(name=name, value=value, source="DEFAULT_CONFIG")
    (check,) = check_configs("billing", Result({name: entry}))

    assert expected is check.verdict


def test_missing_rights_are_named_with_their_purpose():
    needed = {"READ": "to consume it", "DESCRIBE": "to find its leaders"}
    check = check_rights("topic orders", frozenset(("DESCRIBE",)), needed)

    assert (FAIL, "no READ", "READ: to consume it") == (
        check.verdict,
        check.found,
        check.advice,
    )


@anyio_tests
async def test_each_check_of_a_ready_cluster_has_a_line(kafka, admin):
    queue = Queue(kafka.admin)
    queue.produce([b"x"])
    async with queue.consumer() as consumer:
        await take(aiter(consumer), 1)
        checks = await check_cluster(
            admin, topics=[queue.topic, "nix"], groups=[queue.group, "new"]
        )
    found = {each.name: each.verdict for each in checks}

    assert FAIL is found.pop("topic nix")
    assert WARN is found.pop("configs of new")
    assert FAIL not in found.values()
    assert {
        "cluster",
        "version",
        "share.version",
        "state topic",
        "offsets topic",
        f"topic {queue.topic}",
        f"rights to topic {queue.topic}",
        f"group {queue.group}",
        f"configs of {queue.group}",
        f"rights to group {queue.group}",
        "group new",
        f"dead letters of {queue.group}",
        "dead letters of new",
    } == found.keys()


@anyio_tests
async def test_old_kafka_returns_checks_and_no_error():
    def old(request, context):
        apis = {1: (4, 17), 3: (0, 12), 18: (0, 3), 60: (0, 0), 32: (1, 4), 16: (0, 4)}
        return {
            "api_keys": [
                {"api_key": key, "min_version": low, "max_version": high}
                for key, (low, high) in apis.items()
            ],
            "supported_features": [],
            "finalized_features_epoch": 1,
            "finalized_features": [],
        }

    async with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        broker.faults.on("ApiVersions", times=None).respond(old)
        async with ShareGroupAdmin(bootstrap_servers=broker.bootstrap_servers) as admin:
            checks = await check_cluster(admin, topics=["orders"], groups=["billing"])
    found = {each.name: each for each in checks}

    assert FAIL is found["version"].verdict
    assert "upgrade to Kafka 4.2 or newer" == found["version"].advice
    assert FAIL is found["share.version"].verdict
    assert OK is found["topic orders"].verdict


@anyio_tests
async def test_unreachable_cluster_is_an_error():
    async with ShareGroupAdmin(bootstrap_servers="localhost:1", timeout=0.1) as admin:
        with pytest.raises(ConnectionFailedError):
            await check_cluster(admin)
