"""How long rejections do not end a client, for each broker."""

import pytest

from sharecons.protocol.grace_period import DURATION, GAP, GracePeriod


@pytest.fixture
def grace():
    grace = GracePeriod()
    grace.on_accepted("a:1")
    return grace


def test_rejection_of_a_client_that_no_broker_has_accepted_is_final():
    assert not GracePeriod().on_rejected("a:1", 0.0, until=100.0)


def test_lasting_rejection_is_final_while_another_broker_accepts(grace):
    for now in range(int(DURATION)):
        assert grace.on_rejected("b:1", now)
        grace.on_accepted("a:1")

    assert not grace.on_rejected("b:1", DURATION)


def test_sessions_at_the_first_rejection_prolong_the_grace_period(grace):
    assert grace.on_rejected("b:1", 0.0, until=30.0)
    assert grace.on_rejected("b:1", 29.0, until=60.0)
    assert not grace.on_rejected("b:1", 30.0, until=60.0)


def test_rejection_after_the_broker_has_accepted_is_the_first_again(grace):
    assert grace.on_rejected("b:1", 0.0)
    grace.on_accepted("b:1")
    assert grace.on_rejected("b:1", DURATION)


def test_rejection_without_attempts_before_it_is_the_first_again(grace):
    assert grace.on_rejected("b:1", 0.0)
    assert grace.on_rejected("b:1", GAP + 1)
