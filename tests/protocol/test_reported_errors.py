"""Errors of topics: each is raised once until it ends."""

import pytest

from sharecons.errors import AuthorizationError, BrokerError
from sharecons.protocol.codes import Code
from sharecons.protocol.reported_errors import (
    METADATA,
    ReportedErrors,
    fetch_error,
    topic_error,
)
from tests.protocol.message_factories import P0, P1, P2

FORBIDDEN = Code.TOPIC_AUTHORIZATION_FAILED
CODES = [FORBIDDEN, Code.CORRUPT_MESSAGE, Code.INVALID_REQUEST]
HELD = AuthorizationError("not admitted", code=FORBIDDEN, name=FORBIDDEN.name)


@pytest.mark.parametrize("code", CODES)
def test_partitions_of_a_topic_raise_one_error(code):
    errors = ReportedErrors()

    raised = [errors.begin("orders", code, p) for _ in range(8) for p in (P0, P1, P2)]

    assert 1 == sum(raised)


def test_group_error_is_raised_once_for_all_topics():
    errors = ReportedErrors()

    assert errors.begin("orders", Code.GROUP_AUTHORIZATION_FAILED, P0)
    assert not errors.begin("refunds", Code.GROUP_AUTHORIZATION_FAILED, P1)


def test_error_is_raised_again_after_all_partitions_were_fetched():
    """A broker that receives an ACL later than another causes no second error."""
    errors = ReportedErrors()
    errors.begin("orders", FORBIDDEN, P0)
    errors.begin("orders", FORBIDDEN, P1)

    errors.end_fetch_errors(P0)
    assert not errors.begin("orders", FORBIDDEN, P0)
    errors.end_fetch_errors(P0)
    errors.end_fetch_errors(P1)
    assert errors.begin("orders", FORBIDDEN, P1)


def test_error_is_raised_again_after_its_partitions_were_reassigned():
    errors = ReportedErrors()
    errors.begin("orders", FORBIDDEN, P0)
    errors.begin("orders", FORBIDDEN, P1)

    errors.keep_only({P1, P2})
    assert not errors.begin("orders", FORBIDDEN, P0)
    errors.keep_only(())
    assert errors.begin("orders", FORBIDDEN, P0)


def test_error_is_raised_again_after_a_new_subscription():
    errors = ReportedErrors()
    errors.begin("orders", FORBIDDEN, METADATA)
    errors.clear()

    assert errors.begin("orders", FORBIDDEN, METADATA)


def test_metadata_and_fetches_raise_one_error():
    errors = ReportedErrors()

    assert errors.begin("orders", FORBIDDEN, METADATA)
    assert not errors.begin("orders", FORBIDDEN, P0)
    errors.end_metadata_errors("orders")
    assert not errors.begin("orders", FORBIDDEN, P0)
    errors.end_fetch_errors(P0)
    assert errors.begin("orders", FORBIDDEN, METADATA)


def test_error_is_known_for_its_partition_and_code_only():
    errors = ReportedErrors()
    errors.begin("orders", FORBIDDEN, P0)

    assert errors.is_known(FORBIDDEN, P0)
    assert not errors.is_known(FORBIDDEN, P1)
    assert not errors.is_known(Code.CORRUPT_MESSAGE, P0)


# A rejected heartbeat.


def test_rejected_heartbeat_waits_for_newer_metadata():
    errors = ReportedErrors()
    errors.hold(HELD, 5.0)

    assert errors.take_held(4.9) is None
    assert HELD is errors.take_held(5.0)
    assert errors.take_held(6.0) is None


def test_rejected_heartbeat_is_explained_by_a_topic():
    errors = ReportedErrors()
    errors.hold(HELD, 5.0)
    errors.begin("orders", FORBIDDEN, METADATA)

    assert errors.take_held(5.1) is None
    errors.end_metadata_errors("orders")
    assert errors.take_held(5.2) is None


def test_rejected_heartbeat_is_not_explained_by_a_fetch():
    errors = ReportedErrors()
    errors.begin("orders", FORBIDDEN, P0)
    errors.hold(HELD, 5.0)

    assert HELD is errors.take_held(5.1)


# Error messages.


def test_forbidden_topic_error_has_a_hint():
    errors = [
        topic_error("orders", FORBIDDEN),
        fetch_error("orders", 3, FORBIDDEN, "m"),
    ]

    assert {AuthorizationError} == {type(each) for each in errors}
    assert [
        "topic 'orders' is not readable: TOPIC_AUTHORIZATION_FAILED; this needs READ "
        "on it",
        "topic 'orders' is not readable: fetching orders-3: "
        "TOPIC_AUTHORIZATION_FAILED; this needs READ on it",
    ] == [str(each) for each in errors]


def test_forbidden_group_error_has_a_hint():
    error = fetch_error("orders", 3, Code.GROUP_AUTHORIZATION_FAILED, "m")

    assert isinstance(error, AuthorizationError)
    assert "orders-3: GROUP_AUTHORIZATION_FAILED (m); " in str(error)
    assert "needs READ on the group" in str(error)


def test_other_errors_name_the_partition():
    error = fetch_error("orders", 3, Code.CORRUPT_MESSAGE, "m")

    assert (BrokerError, "fetching orders-3: CORRUPT_MESSAGE (m)") == (
        type(error),
        str(error),
    )
