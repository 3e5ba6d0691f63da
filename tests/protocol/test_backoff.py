"""Delays between attempts."""

import string

from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.backoff import INITIAL_DELAY, MAX_DELAY, Backoff, spread_of
from tests.protocol.hypothesis_profile import EXAMPLES

# A few characters: `st.text()` without them builds a table of Unicode first.
MEMBER_IDS = st.text(string.ascii_letters + string.digits + "-_ é漢😀")


def test_delays_double_up_to_the_limit():
    backoff = Backoff(first=0.05, limit=1.0)

    delays = [backoff.next_delay() for _ in range(7)]

    assert [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0] == delays


def test_delays_start_again_after_a_reset():
    backoff = Backoff(first=0.5, limit=2.0)
    backoff.next_delay()
    backoff.next_delay()

    backoff.reset()

    assert 0.5 == backoff.next_delay()


def test_default_delays_grow_from_the_initial_to_the_maximum_delay():
    backoff = Backoff()

    delays = [backoff.next_delay() for _ in range(20)]

    assert (INITIAL_DELAY, MAX_DELAY) == (delays[0], delays[-1])


def test_spread_depends_only_on_the_member_id():
    assert spread_of("a member") == spread_of("a member")
    assert spread_of("a member") != spread_of("another member")


@EXAMPLES
@given(MEMBER_IDS)
def test_spread_is_at_most_20_percent(member_id: str):
    assert 0.8 <= spread_of(member_id) <= 1.2


@EXAMPLES
@given(MEMBER_IDS, st.lists(st.booleans(), max_size=30))
def test_delays_stay_between_the_initial_and_the_maximum_delay(
    member_id: str, successes: list[bool]
):
    backoff = Backoff(spread_of(member_id))

    for success in successes:
        assert 0.8 * INITIAL_DELAY <= backoff.next_delay() <= 1.2 * MAX_DELAY
        if success:
            backoff.reset()
