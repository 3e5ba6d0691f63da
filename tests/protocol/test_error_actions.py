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
EXPECTED = """
HEARTBEAT
  PROCEED: NONE
  RETRY: COORDINATOR_LOAD_IN_PROGRESS
  FIND_COORDINATOR: COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR
  REJOIN: FENCED_MEMBER_EPOCH GROUP_ID_NOT_FOUND UNKNOWN_MEMBER_ID
  REPORT: TOPIC_AUTHORIZATION_FAILED
  RAISE_FATAL: GROUP_AUTHORIZATION_FAILED GROUP_MAX_SIZE_REACHED
    INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID INVALID_REQUEST UNSUPPORTED_VERSION
FETCH
  PROCEED: NONE
  RETRY: SHARE_SESSION_LIMIT_REACHED
  REOPEN_SESSION: INVALID_SHARE_SESSION_EPOCH
  LOSE_SESSION: SHARE_SESSION_NOT_FOUND
  RAISE_FATAL: GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID INVALID_REQUEST
    UNSUPPORTED_VERSION
FETCH_PARTITION
  PROCEED: NONE
  FIND_LEADER: FENCED_LEADER_EPOCH LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER
  REFRESH_METADATA: INCONSISTENT_TOPIC_ID UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION
  REPORT: CORRUPT_MESSAGE GROUP_AUTHORIZATION_FAILED INVALID_REQUEST
    TOPIC_AUTHORIZATION_FAILED
ACKNOWLEDGE
  PROCEED: NONE
  SPLIT_BATCH: INVALID_RECORD_STATE
  RETRY: COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE KAFKA_STORAGE_ERROR
    NOT_COORDINATOR REQUEST_TIMED_OUT
  FAIL_BATCH: FENCED_LEADER_EPOCH FENCED_STATE_EPOCH GROUP_AUTHORIZATION_FAILED
    INVALID_REQUEST NOT_LEADER_OR_FOLLOWER TOPIC_AUTHORIZATION_FAILED
    UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION
PRODUCE
  PROCEED: DUPLICATE_SEQUENCE_NUMBER NONE
  FIND_LEADER: FENCED_LEADER_EPOCH KAFKA_STORAGE_ERROR LEADER_NOT_AVAILABLE
    NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION
  SPLIT_BATCH: MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE
  NEW_PRODUCER_ID: INVALID_PRODUCER_EPOCH OUT_OF_ORDER_SEQUENCE_NUMBER
    UNKNOWN_PRODUCER_ID
  FAIL_BATCH: CLUSTER_AUTHORIZATION_FAILED INVALID_RECORD INVALID_REQUEST
    INVALID_TIMESTAMP INVALID_TOPIC_EXCEPTION POLICY_VIOLATION
    TOPIC_AUTHORIZATION_FAILED UNSUPPORTED_COMPRESSION_TYPE
    UNSUPPORTED_FOR_MESSAGE_FORMAT
"""


def parsed(text: str) -> dict[str, dict[int, ErrorAction]]:
    """Return the tables of a text: names, below each its actions with their codes."""
    tables: dict[str, dict[int, ErrorAction]] = {}
    for word in text.split():
        if word in TABLES:
            table = tables.setdefault(word, {})
        elif word.endswith(":"):
            action = ErrorAction[word[:-1]]
        else:
            table[Code[word]] = action
    return tables


@pytest.mark.parametrize("name", TABLES)
def test_each_code_of_a_table_has_the_expected_action(name: str):
    assert parsed(EXPECTED)[name] == dict(TABLES[name])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_action_of_an_unknown_code_is_retry(
    table: Mapping[int, ErrorAction],
):
    unknown = {*range(-5, 200)} - table.keys()

    assert {ErrorAction.RETRY} == {action_for(table, code) for code in unknown}


def test_each_action_is_used():
    used = {action for table in TABLES.values() for action in table.values()}

    assert set(ErrorAction) == used
