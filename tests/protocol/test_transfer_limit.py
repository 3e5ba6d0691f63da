"""How many bytes a fetch requests, from how long the previous responses took."""

import pytest

from sharecons.protocol.fetch.transfer_limit import MIN_LIMIT, TransferLimit

MIB = 1 << 20
WANTED = 8 * MIB
LOCK = 30.0


@pytest.fixture
def limit():
    return TransferLimit()


def test_first_fetch_has_no_limit(limit):
    assert limit.limit_bytes(WANTED) == WANTED


def test_slow_response_limits_to_what_arrives_in_two_seconds(limit):
    limit.on_received(MIB, 4.0, 0.0, LOCK)
    assert limit.limit_bytes(WANTED) == MIB // 2


def test_target_is_at_most_a_sixth_of_the_lock_duration(limit):
    limit.on_received(MIB, 4.0, 0.0, 6.0)
    assert limit.limit_bytes(WANTED) == MIB // 4


def test_short_delay_is_no_slow_network(limit):
    """A hundred consumers of one broker wait for each other; so does a busy loop."""
    limit.on_received(50_000, 0.4, 0.0, LOCK)
    assert limit.limit_bytes(WANTED) == WANTED


def test_wait_at_the_broker_is_no_slow_network(limit):
    limit.on_received(50_000, 5.1, 5.0, LOCK)
    assert limit.limit_bytes(WANTED) == WANTED


def test_fast_response_raises_the_limit(limit):
    limit.on_received(MIB, 4.0, 0.0, LOCK)
    limit.on_received(MIB // 2, 0.01, 0.0, LOCK)
    assert limit.limit_bytes(WANTED) == WANTED


def test_timeouts_limit_down_to_the_minimum(limit):
    limit.on_timed_out(WANTED)
    assert limit.limit_bytes(WANTED) == WANTED // 16
    limit.on_timed_out(WANTED // 16)
    limit.on_timed_out(MIN_LIMIT)
    assert limit.limit_bytes(WANTED) == MIN_LIMIT


def test_small_responses_end_the_limit_as_well(limit):
    """With many partitions, each has a small part of the limit: one batch arrives."""
    limit.on_timed_out(WANTED)
    limit.on_timed_out(WANTED)
    for _ in range(7):
        limit.on_received(4_000, 0.005, 0.0, LOCK)
    assert limit.limit_bytes(WANTED) == WANTED


def test_small_slow_responses_change_nothing(limit):
    limit.on_received(MIB, 4.0, 0.0, LOCK)
    limit.on_received(4_000, 2.0, 0.0, LOCK)
    assert limit.limit_bytes(WANTED) == MIB // 2
