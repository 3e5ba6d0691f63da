"""Offsets that expire: the retention time of a commit, and groups without members.

KIP-211: a broker deletes expired offsets at `offsets.retention.check.interval.ms`. They
expire `offsets.retention.minutes` after the group has lost its last member, or after
the commit if the group never had members. OffsetCommit 2 to 4 can set another time.
"""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from sharecons.testing import EmbeddedBroker
from sharecons.testing.kafka import KafkaCluster
from tests.broker.blocking_client import BlockingClient
from tests.broker.classic_groups import subscription
from tests.broker.either import BOTH, Embedded
from tests.kafka_plugin import VERSION
from tests.waiting import until_true

MINUTE = 60.0
DAY = 24 * 60 * MINUTE
RETENTION = 7 * DAY  # Kafka's default
CHECK = 10 * MINUTE  # Kafka's default
NO_RETENTION_TIME = timedelta(milliseconds=-1)


class Requests:
    """Requests about one group, to a broker or to its handlers."""

    def __init__(self, request, topic="t", group="g"):
        self.request, self.topic, self.group = request, topic, group

    def commit(self, partition=0, version=4, retention=NO_RETENTION_TIME, **fields):
        offset = {
            "partition_index": partition,
            "committed_offset": 5,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        response = self.request(
            "offset_commit",
            version,
            **{
                "group_id": self.group,
                "generation_id_or_member_epoch": -1,
                "retention_time": retention,
                "topics": [{"name": self.topic, "partitions": [offset]}],
                **fields,
            },
        )
        return response.topics[0].partitions[0].error_code

    def partitions(self):
        """Return the partitions that have a committed offset."""
        groups = [{"group_id": self.group, "topics": None}]
        (found,) = self.request("offset_fetch", 9, groups=groups).groups
        return [each.partition_index for t in found.topics for each in t.partitions]

    def groups(self):
        return [each.group_id for each in self.request("list_groups", 5).groups]

    def join(self, session=10, topics=("other",)):
        """Join as the only member, and return its id and generation."""
        joined = self.request(
            "join_group",
            3,
            group_id=self.group,
            session_timeout=timedelta(seconds=session),
            rebalance_timeout=timedelta(seconds=session),
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": subscription(*topics)}],
        )
        member = {
            "group_id": self.group,
            "member_id": joined.member_id,
            "generation_id": joined.generation_id,
        }
        self.request("sync_group", 0, **member)
        return member


@pytest.fixture
def embedded():
    embedded = Embedded()
    embedded.cluster.add_topic("t", [[1]] * 3)
    embedded.cluster.add_topic("other", [[1]])
    return embedded


@pytest.fixture
def requests(embedded):
    return Requests(embedded.request)


@pytest.fixture(params=BOTH)
def checking(request):
    """Requests to a broker that checks for expired offsets every 100 ms."""
    settings = {
        "offsets.retention.check.interval.ms": "100",
        "offsets.retention.minutes": "1",
    }
    with (
        EmbeddedBroker(settings=settings)
        if request.param == "embedded"
        else KafkaCluster(VERSION, config=settings) as cluster
    ):
        with BlockingClient(cluster.bootstrap_servers) as client:
            requests = Requests(client.request)
            client.request("create_topics", 5, **new_topic("t", 3))
            until_true(
                lambda: client.request("find_coordinator", 3, key="g").node_id > 0,
                what="a coordinator",
            )
            yield requests


def new_topic(name, partitions):
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return {"topics": [topic], "timeout": timedelta(seconds=10)}


@pytest.mark.newer_kafka
def test_only_offsets_whose_retention_time_is_over_are_deleted(checking):
    commit = checking.commit
    until_true(lambda: commit(0) is ErrorCode.none, what="the coordinator has loaded")
    for partition, version in enumerate((3, 4), start=1):
        retention = timedelta(milliseconds=1)
        assert ErrorCode.none is commit(partition, version, retention)

    until_true(lambda: checking.partitions() == [0], what="two offsets have expired")


@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_with_a_retention_time_is_deleted_at_the_next_check(
    embedded, requests, version
):
    requests.commit(0, version, timedelta(milliseconds=1))
    requests.commit(1, version)

    embedded.sleep(CHECK - 1)
    assert [0, 1] == requests.partitions()
    embedded.sleep(1)

    assert [1] == requests.partitions()


def test_retention_time_can_be_longer_than_the_retention_of_the_broker(
    embedded, requests
):
    requests.commit(0, 4, timedelta(days=30))

    embedded.sleep(30 * DAY - 1)
    assert [0] == requests.partitions()
    embedded.sleep(1)

    assert [] == requests.partitions()


def test_offset_of_a_group_that_never_had_members_expires_after_its_commit(
    embedded, requests
):
    requests.commit(0)
    embedded.sleep(DAY)
    requests.commit(1)

    embedded.sleep(RETENTION - DAY)
    assert [1] == requests.partitions()
    embedded.sleep(DAY)

    assert [] == requests.partitions()


def test_offsets_expire_after_the_group_has_lost_its_last_member(embedded, requests):
    requests.commit(0)
    requests.join(session=10)

    embedded.sleep(10 + RETENTION - 1)
    assert [0] == requests.partitions()
    embedded.sleep(CHECK)

    assert [] == requests.partitions()


def test_offsets_of_a_subscribed_topic_stay_while_the_group_has_members(
    embedded, requests
):
    requests.commit(0)
    member = requests.join(session=1800, topics=("t",))
    for _ in range(int(2 * RETENTION / 1700)):
        embedded.sleep(1700)
        assert not requests.request("heartbeat", 0, **member).error_code

    assert [0] == requests.partitions()


def test_offsets_of_topics_that_no_member_subscribes_to_expire(embedded, requests):
    requests.commit(0)
    member = requests.join(session=1800, topics=("other",))
    for _ in range(int(2 * RETENTION / 1700)):
        embedded.sleep(1700)
        assert not requests.request("heartbeat", 0, **member).error_code

    assert [] == requests.partitions()
    assert ["g"] == requests.groups()


def test_offset_with_a_pending_commit_of_a_transaction_stays(embedded, requests):
    requests.commit(0, retention=timedelta(milliseconds=1))
    group = embedded.cluster.groups.classic("g")
    group.offsets.add_pending(9, {("t", 0): group.offsets.get(("t", 0))})

    embedded.sleep(CHECK)
    assert [0] == requests.partitions()
    group.transaction_ended(9, committed=False)
    embedded.sleep(CHECK)

    assert [] == requests.partitions()


def test_group_without_members_and_offsets_is_deleted_at_the_next_check(
    embedded, requests
):
    requests.join(session=10)

    embedded.sleep(CHECK - 1)
    assert ["g"] == requests.groups()
    embedded.sleep(1)

    assert [] == requests.groups()


def test_broker_settings_set_retention_and_check_interval():
    embedded = Embedded(
        settings={
            "offsets.retention.minutes": "2",
            "offsets.retention.check.interval.ms": "7000",
        }
    )
    embedded.cluster.add_topic("t", [[1]])
    requests = Requests(embedded.request)
    requests.commit(0)

    embedded.sleep(125)
    assert [0] == requests.partitions()
    embedded.sleep(1)

    assert [] == requests.partitions()


def test_member_of_a_deleted_group_is_unknown(embedded, requests):
    member = requests.join(session=10)

    embedded.sleep(CHECK)

    error = requests.request("heartbeat", 0, **member).error_code
    assert ErrorCode.unknown_member_id is error
    missing = requests.commit(0, 9, generation_id_or_member_epoch=1)
    assert ErrorCode.group_id_not_found is missing
