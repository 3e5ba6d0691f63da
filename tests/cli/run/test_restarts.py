"""When a process that ended is started again."""

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.cli.run.restarts import Next, RestartPolicy

KILLED = -signal.SIGKILL


def delays(policy, *runs, code=1):
    return [policy.after_end(code, ran_for)[1] for ran_for in runs]


def test_crash_loop_waits_twice_as_long_each_time():
    found = delays(RestartPolicy(), *[0.2] * 10)

    assert [0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30] == found


def test_killed_process_is_restarted_without_delay():
    assert (Next.RESTART, 0.0) == RestartPolicy().after_end(KILLED, 3600.0)


def test_process_that_ran_long_is_restarted_without_delay():
    assert [0, 0.5, 1, 0, 0.5] == delays(RestartPolicy(), 1, 1, 1, 10.0, 9.9)


def test_change_of_files_ends_the_backoff():
    policy = RestartPolicy()
    delays(policy, 1, 1, 1)
    policy.reset()

    assert [0, 0.5] == delays(policy, 1, 1)


@pytest.mark.parametrize(
    ("code", "watching", "follows"),
    [
        (0, False, Next.FINISHED),
        (2, False, Next.STOP_ALL),
        (0, True, Next.WAIT_FOR_CHANGE),
        (2, True, Next.WAIT_FOR_CHANGE),
        (3, False, Next.RESTART),
        (3, True, Next.RESTART),
    ],
)
def test_exit_code_decides_what_follows(code, watching, follows):
    assert follows is RestartPolicy(watches_changes=watching).after_end(code, 1.0)[0]


@given(st.lists(st.floats(0.0, 9.99), min_size=2, max_size=2000))
def test_delays_grow_up_to_the_maximum(runs):
    found = delays(RestartPolicy(), *runs)

    assert found == sorted(found)
    assert found[-1] <= 30.0
