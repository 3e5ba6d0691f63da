"""A request of each API about groups, for a topic `t`, and its error code."""

from datetime import timedelta

__all__ = [
    "COMMITTED",
    "REQUESTS",
    "TOPIC",
    "beat",
    "commit",
    "commit_later",
    "delete",
    "delete_offset",
    "fetch",
    "join",
    "own_error",
    "partition",
    "reset",
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


def beat(group, epoch=0):
    return {
        "group_id": group,
        "member_id": "m",
        "member_epoch": epoch,
        "subscribed_topic_names": ["t"],
    }


def reset(group):
    partitions = [{"partition_index": 0, "start_offset": 0}]
    return {
        "group_id": group,
        "topics": [{"topic_name": "t", "partitions": partitions}],
    }


def delete(group):
    return {"group_id": group, "topics": [{"topic_name": "t"}]}


def own_error(response):
    return response.error_code


REQUESTS = [
    ("join_group", 9, join, own_error),
    ("sync_group", 5, sync, own_error),
    ("heartbeat", 4, of_member, own_error),
    ("leave_group", 5, leave, own_error),
    ("leave_group", 2, of_member, own_error),
    ("offset_commit", 9, commit, partition),
    ("txn_offset_commit", 5, commit_later, partition),
    ("offset_fetch", 1, old_fetch, partition),
    ("offset_fetch", 2, old_fetch, own_error),
    ("offset_fetch", 9, fetch, lambda response: response.groups[0].error_code),
    ("offset_delete", 0, delete_offset, own_error),
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
    ("share_group_heartbeat", 1, beat, own_error),
    (
        "share_group_describe",
        1,
        lambda group: {"group_ids": [group]},
        lambda response: response.groups[0].error_code,
    ),
    ("alter_share_group_offsets", 0, reset, own_error),
    ("delete_share_group_offsets", 0, delete, own_error),
    (
        "describe_share_group_offsets",
        1,
        lambda group: {"groups": [{"group_id": group, "topics": None}]},
        lambda response: response.groups[0].error_code,
    ),
]
