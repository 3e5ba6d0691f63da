"""A request of each API about classic groups, for a topic `t`, and its error code."""

from datetime import timedelta

__all__ = [
    "COMMITTED",
    "REQUESTS",
    "TOPIC",
    "commit",
    "commit_later",
    "delete_offset",
    "fetch",
    "join",
    "partition",
]

NAMED = [{"name": "t", "partition_indexes": [0]}]
COMMITTED = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
TOPIC = {"name": "t", "partitions": [COMMITTED]}
TEN = timedelta(seconds=10)
SESSION = {"session_timeout": TEN, "rebalance_timeout": TEN, "member_id": ""}


def join(group):
    return {
        "group_id": group,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
        **SESSION,
    }


def of_member(group):
    return {"group_id": group, "generation_id": 1, "member_id": "m"}


def sync(group):
    return {**of_member(group), "protocol_type": "consumer", "protocol_name": "range"}


def leave(group):
    return {"group_id": group, "members": [{"member_id": "m"}]}


def commit(group):
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "topics": [TOPIC],
    }


def commit_later(group):
    return {
        "group_id": group,
        "transactional_id": "x",
        "producer_id": 1,
        "generation_id": -1,
        "topics": [TOPIC],
    }


def fetch(group):
    return {"groups": [{"group_id": group, "topics": NAMED}]}


def old_fetch(group):
    return {"group_id": group, "topics": NAMED}


def delete_offset(group):
    partitions = [{"partition_index": 0}]
    return {"group_id": group, "topics": [{"name": "t", "partitions": partitions}]}


def partition(response):
    return response.topics[0].partitions[0].error_code


REQUESTS = [
    ("join_group", 9, join, lambda response: response.error_code),
    ("sync_group", 5, sync, lambda response: response.error_code),
    ("heartbeat", 4, of_member, lambda response: response.error_code),
    ("leave_group", 5, leave, lambda response: response.error_code),
    ("leave_group", 2, of_member, lambda response: response.error_code),
    ("offset_commit", 9, commit, partition),
    ("txn_offset_commit", 5, commit_later, partition),
    ("offset_fetch", 1, old_fetch, partition),
    ("offset_fetch", 2, old_fetch, lambda response: response.error_code),
    ("offset_fetch", 9, fetch, lambda response: response.groups[0].error_code),
    ("offset_delete", 0, delete_offset, lambda response: response.error_code),
    (
        "describe_groups",
        6,
        lambda group: {"groups": [group]},
        lambda response: response.groups[0].error_code,
    ),
    (
        "delete_groups",
        2,
        lambda group: {"groups_names": [group]},
        lambda response: response.results[0].error_code,
    ),
]
