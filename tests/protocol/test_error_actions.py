"""The action tables, compared with KIP-932 and Kafka's message files."""

from collections.abc import Mapping

import pytest

from sharecons.protocol import error_actions
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for

TABLES = {
    "HEARTBEAT": error_actions.HEARTBEAT,
    "FETCH": error_actions.FETCH,
    "FETCH_PARTITION": error_actions.FETCH_PARTITION,
    "ACKNOWLEDGE": error_actions.ACKNOWLEDGE,
    "PRODUCE": error_actions.PRODUCE,
}

# "Supported errors" of ShareGroupHeartbeatResponse, ShareFetchResponse and
# ShareAcknowledgeResponse; where those files list nothing, other clients' actions.
# ProduceResponse: the actions of Kafka's idempotent producer.
EXPECTED: dict[str, dict[ErrorAction, set[Code]]] = {
    "HEARTBEAT": {
        ErrorAction.PROCEED: {Code.NONE},
        ErrorAction.RETRY: {Code.COORDINATOR_LOAD_IN_PROGRESS},
        ErrorAction.FIND_COORDINATOR: {
            Code.NOT_COORDINATOR,
            Code.COORDINATOR_NOT_AVAILABLE,
        },
        ErrorAction.REJOIN: {
            Code.UNKNOWN_MEMBER_ID,
            Code.FENCED_MEMBER_EPOCH,
            Code.GROUP_ID_NOT_FOUND,
        },
        ErrorAction.REPORT: {Code.TOPIC_AUTHORIZATION_FAILED},
        ErrorAction.RAISE_FATAL: {
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.INVALID_REQUEST,
            Code.INVALID_GROUP_ID,
            Code.UNSUPPORTED_VERSION,
            Code.GROUP_MAX_SIZE_REACHED,
            Code.INCONSISTENT_GROUP_PROTOCOL,
        },
    },
    "FETCH": {
        ErrorAction.PROCEED: {Code.NONE},
        ErrorAction.RETRY: {Code.SHARE_SESSION_LIMIT_REACHED},
        ErrorAction.REOPEN_SESSION: {Code.INVALID_SHARE_SESSION_EPOCH},
        ErrorAction.LOSE_SESSION: {Code.SHARE_SESSION_NOT_FOUND},
        ErrorAction.RAISE_FATAL: {
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.INVALID_REQUEST,
            Code.INVALID_GROUP_ID,
            Code.UNSUPPORTED_VERSION,
        },
    },
    "FETCH_PARTITION": {
        ErrorAction.PROCEED: {Code.NONE},
        ErrorAction.FIND_LEADER: {
            Code.NOT_LEADER_OR_FOLLOWER,
            Code.FENCED_LEADER_EPOCH,
            Code.LEADER_NOT_AVAILABLE,
        },
        ErrorAction.REFRESH_METADATA: {
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            Code.UNKNOWN_TOPIC_ID,
            Code.INCONSISTENT_TOPIC_ID,
        },
        ErrorAction.REPORT: {
            Code.TOPIC_AUTHORIZATION_FAILED,
            Code.GROUP_AUTHORIZATION_FAILED,
            Code.CORRUPT_MESSAGE,
            Code.INVALID_REQUEST,
        },
    },
    "ACKNOWLEDGE": {
        ErrorAction.PROCEED: {Code.NONE},
        ErrorAction.SPLIT_BATCH: {Code.INVALID_RECORD_STATE},
        ErrorAction.RETRY: {
            Code.REQUEST_TIMED_OUT,
            Code.KAFKA_STORAGE_ERROR,
            Code.COORDINATOR_LOAD_IN_PROGRESS,
            Code.COORDINATOR_NOT_AVAILABLE,
            Code.NOT_COORDINATOR,
        },
        ErrorAction.FAIL_BATCH: {
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
    "PRODUCE": {
        ErrorAction.PROCEED: {Code.NONE, Code.DUPLICATE_SEQUENCE_NUMBER},
        ErrorAction.FIND_LEADER: {
            Code.NOT_LEADER_OR_FOLLOWER,
            Code.LEADER_NOT_AVAILABLE,
            Code.FENCED_LEADER_EPOCH,
            Code.KAFKA_STORAGE_ERROR,
            Code.UNKNOWN_TOPIC_OR_PARTITION,
        },
        ErrorAction.SPLIT_BATCH: {
            Code.MESSAGE_TOO_LARGE,
            Code.RECORD_LIST_TOO_LARGE,
        },
        ErrorAction.NEW_PRODUCER_ID: {
            Code.OUT_OF_ORDER_SEQUENCE_NUMBER,
            Code.UNKNOWN_PRODUCER_ID,
            Code.INVALID_PRODUCER_EPOCH,
        },
        ErrorAction.FAIL_BATCH: {
            Code.TOPIC_AUTHORIZATION_FAILED,
            Code.CLUSTER_AUTHORIZATION_FAILED,
            Code.INVALID_TOPIC_EXCEPTION,
            Code.INVALID_TIMESTAMP,
            Code.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            Code.POLICY_VIOLATION,
            Code.INVALID_RECORD,
            Code.INVALID_REQUEST,
            Code.UNSUPPORTED_COMPRESSION_TYPE,
        },
    },
}


@pytest.mark.parametrize("name", TABLES)
def test_each_code_of_a_table_has_the_expected_action(name: str):
    expected = {
        int(code): action for action, codes in EXPECTED[name].items() for code in codes
    }

    assert expected == dict(TABLES[name])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_action_of_an_unknown_code_is_retry(
    table: Mapping[int, ErrorAction],
):
    unknown = {*range(-5, 200)} - table.keys()

    assert {ErrorAction.RETRY} == {action_for(table, code) for code in unknown}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_action_of_success_is_proceed(table: Mapping[int, ErrorAction]):
    assert ErrorAction.PROCEED == action_for(table, Code.NONE)


def test_acknowledgement_errors_of_a_moved_leader_fail_the_batch():
    lost = (
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.UNKNOWN_TOPIC_ID,
    )

    assert {ErrorAction.FAIL_BATCH} == {
        action_for(error_actions.ACKNOWLEDGE, code) for code in lost
    }


def test_each_action_is_used():
    used = {action for table in TABLES.values() for action in table.values()}

    assert set(ErrorAction) == used
