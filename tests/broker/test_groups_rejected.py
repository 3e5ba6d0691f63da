"""Requests that a group rejects for any member: wrong broker, or an ACL."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from sharecons.testing.broker.acls import Operation, Resource
from sharecons.testing.broker.coordinators import GROUP, TRANSACTION
from tests.broker.either import Embedded
from tests.broker.group_requests import (
    COMMITTED,
    REQUESTS,
    TOPIC,
    commit,
    commit_later,
    delete_offset,
    fetch,
    join,
    partition,
)

HERE, ELSEWHERE = 1, 2
EACH = pytest.mark.parametrize(
    ("api", "version", "fields", "error"),
    REQUESTS,
    ids=[f"{a}-{v}" for a, v, *_ in REQUESTS],
)


@pytest.fixture
def embedded():
    embedded = Embedded(brokers=2)
    embedded.cluster.add_topic("t", [[1]])
    embedded.cluster.coordinators.move(GROUP, "g", HERE)
    return embedded


@EACH
def test_other_brokers_are_not_the_coordinator(embedded, api, version, fields, error):
    response = embedded.request(api, version, ELSEWHERE, **fields("g"))

    assert ErrorCode.not_coordinator is error(response)
    assert ErrorCode.not_coordinator is not error(
        embedded.request(api, version, HERE, **fields("g"))
    )


@EACH
def test_denied_group_is_an_error_in_every_request(
    embedded, api, version, fields, error
):
    embedded.deny(Resource.GROUP, "g", Operation.ALL)

    response = embedded.request(api, version, HERE, **fields("g"))

    assert ErrorCode.group_authorization_failed is error(response)


@pytest.mark.parametrize(
    ("operation", "apis"),
    [
        (
            Operation.DELETE,
            {"offset_delete", "delete_groups", "delete_share_group_offsets"},
        ),
        (
            Operation.DESCRIBE,
            {
                "offset_fetch",
                "describe_groups",
                "share_group_describe",
                "describe_share_group_offsets",
            },
        ),
        (
            Operation.READ,
            {
                "join_group",
                "sync_group",
                "heartbeat",
                "leave_group",
                "offset_commit",
                "txn_offset_commit",
                "share_group_heartbeat",
                "alter_share_group_offsets",
            },
        ),
    ],
)
def test_operations_are_denied_separately(embedded, operation, apis):
    embedded.deny_only(Resource.GROUP, "g", operation)

    denied = {
        api
        for api, version, fields, error in REQUESTS
        if error(embedded.request(api, version, HERE, **fields("g")))
        is ErrorCode.group_authorization_failed
    }

    assert apis == denied


@pytest.mark.parametrize(
    ("api", "version", "fields"),
    [
        ("offset_commit", 9, commit),
        ("txn_offset_commit", 5, commit_later),
        ("offset_delete", 0, delete_offset),
    ],
)
def test_commits_to_denied_topic_are_rejected(embedded, api, version, fields):
    embedded.request("offset_commit", 9, HERE, **commit("g"))
    embedded.deny(Resource.TOPIC, "t", Operation.READ)

    response = embedded.request(api, version, HERE, **fields("g"))

    assert ErrorCode.topic_authorization_failed is partition(response)


def test_offsets_of_denied_topic_are_not_returned(embedded):
    embedded.request("offset_commit", 9, HERE, **commit("g"))
    embedded.deny(Resource.TOPIC, "t", Operation.DESCRIBE)

    (named,) = embedded.request("offset_fetch", 9, HERE, **fetch("g")).groups
    (every,) = embedded.request(
        "offset_fetch", 9, HERE, groups=[{"group_id": "g", "topics": None}]
    ).groups

    found = named.topics[0].partitions[0]
    assert (ErrorCode.topic_authorization_failed, -1) == (
        found.error_code,
        found.committed_offset,
    )
    assert () == every.topics


def test_denied_transactional_id_is_rejected(embedded):
    embedded.deny(Resource.TRANSACTIONAL_ID, "x", Operation.WRITE)

    response = embedded.request("txn_offset_commit", 5, HERE, **commit_later("g"))

    assert ErrorCode.transactional_id_authorization_failed is partition(response)


def test_a_broker_lists_the_groups_that_it_coordinates(embedded):
    embedded.request("offset_commit", 9, HERE, **commit("g"))

    def listed(node_id):
        return [g.group_id for g in embedded.request("list_groups", 5, node_id).groups]

    assert (["g"], []) == (listed(HERE), listed(ELSEWHERE))
    embedded.deny(Resource.GROUP, "g", Operation.DESCRIBE)
    assert ["g"] == listed(HERE)
    embedded.deny(Resource.CLUSTER, "kafka-cluster", Operation.DESCRIBE)
    assert [] == listed(HERE)


@pytest.mark.parametrize(
    ("key_type", "resource", "operation", "expected"),
    [
        (0, Resource.GROUP, Operation.DESCRIBE, "group_authorization_failed"),
        (
            1,
            Resource.TRANSACTIONAL_ID,
            Operation.DESCRIBE,
            "transactional_id_authorization_failed",
        ),
        (2, Resource.CLUSTER, Operation.CLUSTER_ACTION, "cluster_authorization_failed"),
    ],
)
def test_denied_coordinator_lookup_is_rejected(
    embedded, key_type, resource, operation, expected
):
    key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0" if key_type == 2 else "g"
    embedded.deny(resource, "kafka-cluster" if key_type == 2 else "g", operation)

    (found,) = embedded.request(
        "find_coordinator", 6, HERE, key_type=key_type, coordinator_keys=[key]
    ).coordinators

    assert (expected, -1) == (found.error_code.name, found.node_id)


def test_no_running_broker_means_no_coordinator(embedded):
    for node_id in (1, 2):
        embedded.cluster.broker_stopped(node_id)

    (found,) = embedded.request(
        "find_coordinator", 6, coordinator_keys=["g"]
    ).coordinators

    assert ErrorCode.coordinator_not_available is found.error_code


def test_deleting_a_topic_deletes_its_offsets(embedded):
    embedded.request("offset_commit", 9, HERE, **commit("g"))

    embedded.cluster.delete_topic(embedded.cluster.topics.by_name("t"))

    (group,) = embedded.request(
        "offset_fetch", 9, HERE, groups=[{"group_id": "g", "topics": None}]
    ).groups
    assert () == group.topics


def test_broker_settings_limit_groups():
    embedded = Embedded(
        settings={"group.max.size": "1", "offset.metadata.max.bytes": "3"}
    )
    embedded.cluster.add_topic("t", [[1]])
    first = embedded.request("join_group", 3, **join("g"))

    second = embedded.request("join_group", 3, **join("g"))

    assert ErrorCode.none is first.error_code
    assert ErrorCode.group_max_size_reached is second.error_code
    long = {**COMMITTED, "committed_metadata": "four"}
    response = embedded.request(
        "offset_commit",
        9,
        group_id="h",
        generation_id_or_member_epoch=-1,
        topics=[{"name": "t", "partitions": [long]}],
    )
    assert ErrorCode.offset_metadata_too_large is partition(response)


def test_members_expire(embedded):
    version = 3  # without the round for a member id
    embedded.request("join_group", version, HERE, **join("g"))

    def state():
        (group,) = embedded.request("list_groups", 5, HERE).groups
        (described,) = embedded.request("describe_groups", 6, HERE, groups=["g"]).groups
        assert group.group_state == described.group_state
        return group.group_state

    assert "CompletingRebalance" == state()
    embedded.sleep(10.0)

    assert "Empty" == state()


def test_commit_to_unknown_partitions_is_no_heartbeat(embedded):
    joined = embedded.request("join_group", 3, HERE, **join("g"))
    who = {
        "group_id": "g",
        "member_id": joined.member_id,
        "generation_id_or_member_epoch": joined.generation_id,
    }
    embedded.request(
        "sync_group",
        0,
        HERE,
        group_id="g",
        member_id=joined.member_id,
        generation_id=joined.generation_id,
    )
    embedded.sleep(9.0)

    missing = {**TOPIC, "name": "missing"}
    embedded.request("offset_commit", 9, HERE, **who, topics=[missing])
    embedded.sleep(1.0)

    assert ErrorCode.unknown_member_id is partition(
        embedded.request("offset_commit", 9, HERE, **who, topics=[TOPIC])
    )


def test_deleting_a_share_group_deletes_its_share_partitions(embedded):
    embedded.request(
        "share_group_heartbeat",
        1,
        HERE,
        group_id="g",
        member_id="m",
        member_epoch=0,
        subscribed_topic_names=["t"],
    )
    embedded.request(
        "share_group_heartbeat", 1, HERE, group_id="g", member_id="m", member_epoch=-1
    )
    deleted = []
    embedded.cluster.share_partitions.delete_group = deleted.append

    embedded.request("delete_groups", 2, HERE, groups_names=["g"])

    assert ["g"] == deleted


class TestTransactionThatTakesTooLong:
    @pytest.fixture
    def embedded(self, embedded):
        embedded.cluster.coordinators.move(TRANSACTION, "x", HERE)
        made = embedded.request(
            "init_producer_id",
            4,
            HERE,
            transactional_id="x",
            transaction_timeout=timedelta(seconds=5),
            producer_id=-1,
            producer_epoch=-1,
        )
        embedded.who = {
            **commit_later("g"),
            "producer_id": made.producer_id,
            "producer_epoch": made.producer_epoch,
        }
        assert ErrorCode.none is self.commit(embedded)
        embedded.sleep(5.0)
        return embedded

    def commit(self, embedded):
        return partition(embedded.request("txn_offset_commit", 5, HERE, **embedded.who))

    def test_expired_transaction_leaves_no_pending_offsets(self, embedded):
        fields = {**fetch("g"), "require_stable": True}

        response = embedded.request("offset_fetch", 9, HERE, **fields)

        found = response.groups[0].topics[0].partitions[0]
        assert (ErrorCode.none, -1) == (found.error_code, found.committed_offset)

    def test_expired_transaction_accepts_no_offsets(self, embedded):
        assert ErrorCode.none is not self.commit(embedded)
