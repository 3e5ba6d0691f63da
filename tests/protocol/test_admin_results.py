"""Outcomes, results and broker errors."""

import pytest

from sharecons.errors import AuthorizationError, BrokerError, Error
from sharecons.protocol.admin.broker_errors import broker_error, is_code
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code

ERROR = Error("no")


def test_outcome_returns_its_value_or_raises_its_error():
    assert 5 == Result(5).value
    assert Result(None).ok
    with pytest.raises(Error, match="no"):
        _ = Result(error=ERROR).value


def test_results_are_separated_into_values_and_errors():
    results = Results({"a": Result(1), "b": Result(error=ERROR)})

    assert {"a": 1} == results.found
    assert {"b": ERROR} == results.errors
    assert not results.ok
    assert results.common_error is None
    assert {"a": 2} == results.map(lambda value: value * 2).found
    with pytest.raises(Error, match="no"):
        results.check()


def test_values_and_errors_are_made_once_for_loops_over_keys():
    results = Results({"a": Result(1), "b": Result(error=Error("no"))})

    assert results.found is results.found
    assert results.errors is results.errors


def test_check_returns_results_without_errors():
    results = Results({"a": Result(1)})

    assert results is results.check()
    assert results == Results({"a": Result(1)})


def test_common_error_is_the_error_of_all_keys():
    assert ERROR is Results({"a": Result(error=ERROR)}).common_error
    assert Results({}).common_error is None


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        (
            Code.NON_EMPTY_GROUP,
            "The group is not empty.",
            "cannot delete group 'g': NON_EMPTY_GROUP (The group is not empty): "
            "it has members; stop its consumers first",
        ),
        (
            Code.GROUP_ID_NOT_FOUND,
            None,
            "cannot delete group 'g': GROUP_ID_NOT_FOUND: there is no such group of "
            "this type",
        ),
        (
            Code.GROUP_ID_NOT_FOUND,
            "Group g is not a share group.",
            "cannot delete group 'g': GROUP_ID_NOT_FOUND "
            "(Group g is not a share group)",
        ),
        (
            Code.UNKNOWN_TOPIC_OR_PARTITION,
            "This server does not host this topic-partition.",
            "cannot delete group 'g': UNKNOWN_TOPIC_OR_PARTITION: there is no such "
            "topic or partition",
        ),
        (9999, None, "cannot delete group 'g': error code 9999"),
    ],
)
def test_broker_error_names_action_target_and_advice(code, message, expected):
    error = broker_error("delete", "group 'g'", code, message)

    assert expected == str(error)
    assert isinstance(error, BrokerError)
    assert is_code(error, code)
    assert not is_code(None, code)


@pytest.mark.parametrize(
    "code",
    [
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
    ],
)
def test_missing_permission_is_an_authorization_error(code):
    assert isinstance(broker_error("delete", "it", code, None), AuthorizationError)
