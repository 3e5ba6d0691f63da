from hypothesis import given
from hypothesis import strategies as st

from sharecons.protocol.backoff import INITIAL_DELAY, MAX_DELAY, Backoff, spread_of
from tests.protocol.hypothesis_profile import EXAMPLES


def test_each_delay_is_twice_the_one_before_up_to_the_limit():
    backoff = Backoff(first=0.05, limit=1.0)

    delays = [backoff.next_delay() for _ in range(7)]

    assert [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0] == delays


def test_delays_begin_anew_after_a_success():
    backoff = Backoff(first=0.5, limit=2.0)
    backoff.next_delay()
    backoff.next_delay()

    backoff.reset()

    assert 0.5 == backoff.next_delay()


def test_delays_begin_at_the_first_and_end_at_the_limit_of_kafkas_own_clients():
    backoff = Backoff()

    delays = [backoff.next_delay() for _ in range(20)]

    assert (INITIAL_DELAY, MAX_DELAY) == (delays[0], delays[-1])


def test_members_are_spread_by_their_ids_alone():
    assert spread_of("a member") == spread_of("a member")
    assert spread_of("a member") != spread_of("another member")


@EXAMPLES
@given(st.text())
def test_a_spread_is_at_most_a_fifth_to_either_side(member_id: str):
    assert 0.8 <= spread_of(member_id) <= 1.2


@EXAMPLES
@given(st.text(), st.lists(st.booleans(), max_size=30))
def test_no_delay_is_ever_nothing_or_longer_than_the_limit(
    member_id: str, successes: list[bool]
):
    backoff = Backoff(spread_of(member_id))

    for success in successes:
        assert 0.8 * INITIAL_DELAY <= backoff.next_delay() <= 1.2 * MAX_DELAY
        if success:
            backoff.reset()
