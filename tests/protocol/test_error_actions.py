"""The tables against what KIP-932 and Kafka's message files say of each request."""

from collections.abc import Mapping

import pytest

from sharecons.protocol import error_actions
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import Reaction, reaction

TABLES = {
    "HEARTBEAT": error_actions.HEARTBEAT,
    "FETCH": error_actions.FETCH,
    "FETCH_PARTITION": error_actions.FETCH_PARTITION,
    "ACKNOWLEDGE": error_actions.ACKNOWLEDGE,
}

# "Supported errors" of ShareGroupHeartbeatResponse, ShareFetchResponse and
# ShareAcknowledgeResponse, with what peers do where those files are silent.
EXPECTED: dict[str, dict[Reaction, set[Code]]] = {
    "HEARTBEAT": {
        Reaction.PROCEED: {Code.NONE},
        Reaction.RETRY: {Code.COORDINATOR_LOAD_IN_PROGRESS},
        Reaction.FIND_COORDINATOR: {
            Code.NOT_COORDINATOR,
            Code.COORDINATOR_NOT_AVAILABLE,
        },
        Reaction.REJOIN: {
            Code.UNKNOWN_MEMBER_ID,
            Code.FENCED_MEMBER_EPOCH,
            Code.GROUP_ID_NOT_FOUND,
        },
        Reaction.REPORT: {Code.TOPIC_AUTHORIZATION_FAILED},
        Reaction.REFUSE: {
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.INVALID_REQUEST,
            Code.INVALID_GROUP_ID,
            Code.UNSUPPORTED_VERSION,
            Code.GROUP_MAX_SIZE_REACHED,
            Code.INCONSISTENT_GROUP_PROTOCOL,
        },
    },
    "FETCH": {
        Reaction.PROCEED: {Code.NONE},
        Reaction.RETRY: {Code.SHARE_SESSION_LIMIT_REACHED},
        Reaction.REOPEN: {Code.INVALID_SHARE_SESSION_EPOCH},
        Reaction.LOSE_SESSION: {Code.SHARE_SESSION_NOT_FOUND},
        Reaction.REFUSE: {
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.INVALID_REQUEST,
            Code.INVALID_GROUP_ID,
            Code.UNSUPPORTED_VERSION,
        },
    },
    "FETCH_PARTITION": {
        Reaction.PROCEED: {Code.NONE},
        Reaction.MOVE: {
            Code.NOT_LEADER_OR_FOLLOWER,
            Code.FENCED_LEADER_EPOCH,
            Code.LEADER_NOT_AVAILABLE,
        },
        Reaction.DESCRIBE: {
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            Code.UNKNOWN_TOPIC_ID,
            Code.INCONSISTENT_TOPIC_ID,
        },
        Reaction.REPORT: {
            Code.TOPIC_AUTHORIZATION_FAILED,
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.CORRUPT_MESSAGE,
            Code.INVALID_REQUEST,
        },
    },
    "ACKNOWLEDGE": {
        Reaction.PROCEED: {Code.NONE},
        Reaction.SPLIT: {Code.INVALID_RECORD_STATE},
        Reaction.RETRY: {
            Code.REQUEST_TIMED_OUT,
            Code.KAFKA_STORAGE_ERROR,
            Code.COORDINATOR_LOAD_IN_PROGRESS,
            Code.COORDINATOR_NOT_AVAILABLE,
            Code.NOT_COORDINATOR,
        },
        Reaction.FAIL: {
            Code.NOT_LEADER_OR_FOLLOWER,
            Code.FENCED_LEADER_EPOCH,
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            Code.UNKNOWN_TOPIC_ID,
            Code.TOPIC_AUTHORIZATION_FAILED,
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.INVALID_REQUEST,
            Code.FENCED_STATE_EPOCH,
            Code.UNKNOWN_SERVER_ERROR,
        },
    },
}


@pytest.mark.parametrize("name", TABLES)
def test_each_code_of_a_table_has_the_reaction_that_kafka_means(name: str):
    expected = {
        int(code): what for what, codes in EXPECTED[name].items() for code in codes
    }

    assert expected == dict(TABLES[name])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_a_code_that_nobody_foresaw_is_tried_again_later(table: Mapping[int, Reaction]):
    strangers = {*range(-5, 200)} - table.keys()

    assert {Reaction.RETRY} == {reaction(table, code) for code in strangers}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_success_is_success_everywhere(table: Mapping[int, Reaction]):
    assert Reaction.PROCEED == reaction(table, Code.NONE)


def test_no_acknowledgement_is_sent_again_once_its_lock_went_with_the_leader():
    lost = (
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.UNKNOWN_TOPIC_ID,
    )

    assert {Reaction.FAIL} == {
        reaction(error_actions.ACKNOWLEDGE, code) for code in lost
    }


def test_each_reaction_is_some_codes():
    used = {what for table in TABLES.values() for what in table.values()}

    assert set(Reaction) == used
