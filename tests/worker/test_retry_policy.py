"""When a failed record is retried, and when the worker gives up."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sharecons.errors import ConfigurationError
from sharecons.worker.outcomes import (
    DeadLetter,
    DeadLettered,
    Reject,
    Rejected,
    Retry,
    RetryAfter,
)
from sharecons.worker.retry_policy import RetryPolicy

PLAIN = RetryPolicy(max_attempts=3, initial=1.0, maximum=5.0, jitter=0.0)


def decided(policy, error, attempt=1, *, chance=0.5, queue=True):
    return policy.decide(
        error, attempt=attempt, chance=chance, has_dead_letter_queue=queue
    )


def test_delays_grow_up_to_the_maximum() -> None:
    policy = RetryPolicy(initial=0.5, maximum=3.0, multiplier=2.0, jitter=0.0)

    assert [0.5, 1.0, 2.0, 3.0, 3.0] == [policy.delay(n, 0.5) for n in range(1, 6)]


def test_jitter_makes_a_delay_shorter_or_longer() -> None:
    policy = RetryPolicy(initial=10.0, maximum=10.0, jitter=0.25)

    assert [7.5, 10.0, 12.5] == [policy.delay(1, chance) for chance in (0.0, 0.5, 1.0)]


@given(
    attempt=st.integers(1, 1 << 31),
    chance=st.floats(0.0, 1.0),
    multiplier=st.floats(1.0, 100.0),
    maximum=st.floats(1.0, 86400.0),
)
def test_delay_is_finite_and_bounded(attempt, chance, multiplier, maximum) -> None:
    policy = RetryPolicy(maximum=maximum, multiplier=multiplier)

    delay = policy.delay(attempt, chance)

    assert math.isfinite(delay)
    assert 0.8 <= delay <= 1.2 * maximum + 1e-9


def test_failures_are_retried_until_the_last_attempt() -> None:
    error = TimeoutError("slow")

    assert RetryAfter(1.0, 2, error) == decided(PLAIN, error, 1)
    assert RetryAfter(2.0, 3, error) == decided(PLAIN, error, 2)
    reason = "failed after 3 attempts: TimeoutError: slow"
    assert DeadLettered(reason, error) == decided(PLAIN, error, 3)
    assert Rejected(reason, error) == decided(PLAIN, error, 3, queue=False)
    # More deliveries than attempts are possible: other workers had the record before.
    assert DeadLettered is type(decided(PLAIN, error, 9))


def test_single_attempt_is_never_retried() -> None:
    error = ValueError("bad")
    found = decided(RetryPolicy(max_attempts=1), error)

    assert DeadLettered("failed after 1 attempt: ValueError: bad", error) == found


def test_exception_of_a_handler_decides_the_outcome() -> None:
    assert Rejected("no customer") == decided(PLAIN, Reject("no customer"))
    assert DeadLettered("strange", cause="decision") == decided(
        PLAIN, DeadLetter("strange")
    )
    assert Rejected("strange") == decided(PLAIN, DeadLetter("strange"), queue=False)
    soon, now, some_time = Retry(after=7.5), Retry(after=0), Retry()
    assert RetryAfter(7.5, 2, soon) == decided(PLAIN, soon)
    assert RetryAfter(0.0, 3, now) == decided(PLAIN, now, 2)
    assert RetryAfter(1.0, 2, some_time) == decided(PLAIN, some_time)


def test_retry_in_the_last_attempt_is_a_dead_letter() -> None:
    error = Retry(after=1)

    found = decided(PLAIN, error, 3)

    reason = "the handler requested another attempt after 3 attempts"
    assert DeadLettered(reason, error) == found


def test_policy_is_that_of_the_nearest_exception_class() -> None:
    often, once = RetryPolicy(max_attempts=9), RetryPolicy(max_attempts=1)
    policy = RetryPolicy(
        max_attempts=3, by_exception={OSError: often, ConnectionResetError: once}
    )

    assert 1 == policy.for_error(ConnectionResetError()).max_attempts
    assert 9 == policy.for_error(ConnectionRefusedError()).max_attempts
    assert policy.for_error(ValueError()) is policy
    assert RetryAfter is type(decided(policy, FileNotFoundError(), 8))
    assert DeadLettered is type(decided(policy, ConnectionResetError(), 1))


def test_policy_of_an_exception_in_a_group_counts_for_the_group() -> None:
    once = RetryPolicy(max_attempts=1)
    policy = RetryPolicy(max_attempts=3, by_exception={OSError: once})
    inner = ExceptionGroup("inner", [KeyError(), FileNotFoundError()])

    group = ExceptionGroup("tasks", [ValueError(), inner])
    assert 1 == policy.for_error(group).max_attempts
    assert policy.for_error(ExceptionGroup("tasks", [ValueError()])) is policy


def test_policy_by_exception_inherits_what_it_does_not_set() -> None:
    policy = RetryPolicy(
        max_attempts=7,
        initial=2.0,
        maximum=8.0,
        jitter=0.0,
        by_exception={
            ValueError: RetryPolicy(max_attempts=1),
            OSError: RetryPolicy(maximum=1.0),
            KeyError: RetryPolicy(initial=90.0, multiplier=3.0),
        },
    )

    def of(error: Exception) -> tuple[float, ...]:
        found = policy.for_error(error)
        return found.max_attempts, found.initial, found.maximum, found.multiplier

    assert (1, 2.0, 8.0, 2.0) == of(ValueError())
    assert (7, 1.0, 1.0, 2.0) == of(OSError()), "the first delay is not above"
    assert (7, 90.0, 90.0, 3.0) == of(KeyError())
    assert 0.0 == policy.for_error(OSError()).jitter


def test_delay_that_is_not_given_fits_the_other_one() -> None:
    assert 0.5 == RetryPolicy(maximum=0.5).initial
    assert 61.0 == RetryPolicy(initial=61.0).maximum


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attempts": 0}, "max_attempts must be between 1 and"),
        ({"max_attempts": 2.5}, "max_attempts must be a whole number"),
        ({"max_attempts": "5"}, "max_attempts must be a whole number"),
        ({"initial": "1s"}, "initial must be a number"),
        ({"initial": -1}, "initial must be between"),
        (
            {"initial": 61, "maximum": 60},
            r"initial \(61 s\) must not be above maximum \(60 s\)",
        ),
        ({"by_exception": [OSError]}, "by_exception must be a mapping"),
        ({"by_exception": None}, "by_exception must be a mapping"),
        ({"maximum": float("nan")}, "maximum must be between"),
        ({"multiplier": 0.5}, "multiplier must be between"),
        ({"jitter": 2}, "jitter must be between"),
        ({"by_exception": {"OSError": PLAIN}}, "exception classes as keys"),
        ({"by_exception": {KeyboardInterrupt: PLAIN}}, "exception classes as keys"),
        ({"by_exception": {OSError: 3}}, r"by_exception\[OSError\] must be a Retry"),
    ],
)
def test_invalid_policy_is_rejected(options, message) -> None:
    with pytest.raises(ConfigurationError, match=message):
        RetryPolicy(**options)


@pytest.mark.parametrize("after", [-1, float("inf"), float("nan"), 1e16, "3", True])
def test_invalid_delay_is_rejected(after) -> None:
    with pytest.raises(ConfigurationError, match=r"Retry\(after=...\) must be"):
        Retry(after=after)
