"""Errors: retries, types, and errors that are raised more than once."""

import copy
import pickle
import traceback

import pytest

from sharecons import errors
from sharecons.errors import (
    AuthenticationError,
    BackgroundTaskError,
    BrokerError,
    CallbackError,
    CommitTimeoutError,
    ConfigurationError,
    ConnectionFailedError,
    CorruptRecordsError,
    DeserializationError,
    GroupError,
    ProtocolError,
    RequestTimedOutError,
    fresh,
)
from sharecons.protocol.admin.results import Result, Results
from sharecons.protocol.codes import Code
from sharecons.testing import make_record

# Kafka 4.4's `Errors` whose exception is a RetriableException.
RETRIABLE = {
    *(2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78),
    *(80, 83, 84, 88, 89, 100, 103, 106, 122, 123, 133),
}

STORED = [
    ConnectionFailedError("no broker"),
    RequestTimedOutError("no response"),
    CommitTimeoutError("still under way"),
    GroupError("full", code=81, name="GROUP_MAX_SIZE_REACHED"),
    CorruptRecordsError(
        "bad CRC", topic="orders", partition=1, first_offset=2, last_offset=3
    ),
]


def raised(error):
    try:
        raise fresh(error)
    except type(error) as again:
        return again


@pytest.mark.parametrize("error", STORED, ids=lambda error: type(error).__name__)
def test_fresh_error_has_type_message_attributes_and_cause(error):
    again = raised(error)

    assert type(again) is type(error)
    assert again is not error
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert again.__cause__ is error


KINDS = [getattr(errors, name) for name in errors.__all__ if name[0].isupper()]
DETAILS = {
    BrokerError: {"code": 7, "name": "REQUEST_TIMED_OUT"},
    CorruptRecordsError: {
        "topic": "orders",
        "partition": 1,
        "first_offset": 2,
        "last_offset": 3,
    },
}


def error_of(kind):
    if kind is CallbackError:
        return kind("on_acknowledged", ZeroDivisionError("bad"))
    if kind is DeserializationError:
        return kind(make_record(b"a", offset=1), "value", "orders-0@1")
    details = [DETAILS[each] for each in kind.__mro__ if each in DETAILS]
    return kind("what happened", **(details[0] if details else {}))


def copies_of(error):
    yield pickle.loads(pickle.dumps(error))
    yield copy.copy(error)
    yield copy.deepcopy(error)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_error_can_be_pickled_and_copied_with_its_attributes(kind):
    error = error_of(kind)
    error.add_note("a note")

    for again in copies_of(error):
        assert type(again) is kind
        assert (again.args, str(again)) == (error.args, str(error))
        assert again.retriable is error.retriable
        assert {key: repr(value) for key, value in vars(again).items()} == {
            key: repr(value) for key, value in vars(error).items()
        }


def test_group_of_errors_can_be_pickled_and_copied():
    group = ExceptionGroup("both", [error_of(GroupError), error_of(CallbackError)])

    for again in copies_of(group):
        assert [7, "on_acknowledged"] == [
            again.exceptions[0].code,
            again.exceptions[1].callback,
        ]


def test_fresh_error_raised_often_keeps_tracebacks_short():
    error = ConnectionFailedError("no broker")

    for _ in range(50):
        again = raised(error)

    assert len(traceback.extract_tb(again.__traceback__)) == 1
    assert error.__traceback__ is None


def test_fresh_background_error_has_the_cause_of_the_first():
    error = BackgroundTaskError("a task failed")
    error.__cause__ = ZeroDivisionError()

    assert raised(error).__cause__ is error.__cause__


def test_fresh_of_an_exit_is_the_exit_itself():
    exit_error = SystemExit(3)

    assert fresh(exit_error) is exit_error


def test_results_raise_a_new_error_at_each_access():
    results = Results({"a": Result(None, ConnectionFailedError("no broker"))})

    for access in (lambda: results["a"].value, results.check):
        for _ in range(3):
            with pytest.raises(ConnectionFailedError, match="no broker") as caught:
                access()
            assert caught.value.__cause__ is results["a"].error

    assert results["a"].error.__traceback__ is None


def test_request_timeout_is_a_timeout_error():
    assert issubclass(RequestTimedOutError, TimeoutError)
    assert issubclass(RequestTimedOutError, ConnectionFailedError)


@pytest.mark.parametrize(
    ("error", "retriable"),
    [
        (ConnectionFailedError("no broker"), True),
        (RequestTimedOutError("no response"), True),
        (CommitTimeoutError("still under way"), True),
        (ProtocolError("not Kafka"), False),
        (AuthenticationError("unknown user"), False),
        (ConfigurationError("max_records is 0"), False),
    ],
)
def test_retriable_follows_the_kind_of_error(error, retriable):
    assert error.retriable is retriable


@pytest.mark.parametrize("code", range(-1, 140))
def test_retriable_broker_errors_are_those_of_kafka(code):
    error = BrokerError("failed", code=code, name="NAME")

    assert error.retriable is (code in RETRIABLE)


def test_every_error_has_retriable():
    kinds = [getattr(errors, name) for name in errors.__all__ if name[0].isupper()]

    assert all(isinstance(kind.retriable, bool) for kind in kinds)
    assert Code.NOT_COORDINATOR in errors.RETRIABLE_CODES
