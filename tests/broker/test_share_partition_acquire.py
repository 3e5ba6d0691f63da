"""Acquisition of records from a share partition.

The expected values were measured on Kafka 4.3.0; see also test_same_histories.py.
"""

from time import process_time

from sharecons.testing.broker.share.acquire import AcquireRequest
from tests.broker.share_groups import ACCEPT, RELEASE, Group


def test_whole_batches_are_acquired_up_to_max_records():
    group = Group(10, 10, 10)

    assert [(0, 19, 1)] == group.fetch(max_records=11)


def test_acquired_ranges_are_split_at_batch_size():
    group = Group(4, 4, 4, 4)

    assert [(0, 7, 1), (8, 15, 1)] == group.fetch(batch_size=5)


def test_record_limit_is_exact():
    group = Group(10, 10)

    assert [(0, 6, 1)] == group.fetch(max_records=7, record_limit=True)
    assert [(7, 9, 1)] == group.fetch(max_records=3, record_limit=True)
    assert [(10, 14, 1)] == group.fetch(max_records=5, record_limit=True)


def test_next_member_acquires_following_records():
    group = Group(10, 10)
    group.fetch("ann", max_records=1)

    assert [(10, 19, 1)] == group.fetch("bob")
    assert [] == group.fetch("cy")


def test_record_locks_count_from_the_start_offset():
    group = Group(*[1] * 3000, record_locks=2000)
    acquired = []
    while got := group.fetch():
        acquired += got
        for first, last, _ in got:
            if last > 0:
                group.acknowledge((max(first, 1), last, ACCEPT))

    assert acquired[-1][1] == 1999
    group.acknowledge((0, 0, ACCEPT))
    assert [(2000, 2499, 1)] == group.fetch()


def test_acquisition_is_limited_by_record_locks():
    group = Group(*[10] * 20, record_locks=100)
    group.fetch(max_records=50)

    assert [(50, 99, 1)] == group.fetch(max_records=500)


def test_released_records_are_acquired_without_free_locks():
    group = Group(50, 50, 50, record_locks=100)
    group.fetch()
    group.acknowledge((20, 29, RELEASE))

    assert [(20, 29, 2)] == group.fetch("bob")
    assert [] == group.fetch("bob")


def test_released_records_are_acquired_before_new_ones():
    group = Group(10, 10)
    group.fetch(max_records=1)
    group.acknowledge((3, 5, RELEASE))

    assert [(3, 5, 2), (10, 19, 1)] == group.fetch("bob")


def test_records_near_the_delivery_limit_are_isolated():
    group = Group(30, delivery_limit=5)
    for count in (1, 2, 3):
        assert [(0, 29, count)] == group.fetch()
        group.release()

    assert [(0, 14, 4)] == group.fetch()
    assert [(15, 29, 4)] == group.fetch()
    group.release()
    assert [(0, 0, 5)] == group.fetch()
    assert [(1, 1, 5)] == group.fetch()


def test_throttled_records_are_acquired_alone():
    group = Group(10, 10, delivery_limit=5)
    for _ in range(3):
        group.fetch(max_records=1)
        group.release()

    assert [(0, 4, 4)] == group.fetch()
    assert [(5, 9, 4)] == group.fetch()
    assert [(10, 19, 1)] == group.fetch()


def test_record_on_last_delivery_is_acquired_alone():
    group = Group(4, delivery_limit=4)
    group.fetch()
    for _ in range(2):
        group.acknowledge((2, 2, RELEASE))
        group.fetch()
    group.release()

    assert [(0, 1, 2)] == group.fetch()
    assert [(2, 2, 4)] == group.fetch()
    assert [(3, 3, 2)] == group.fetch()


def test_delivery_limit_of_two_only_halves_batches():
    group = Group(8, delivery_limit=2)
    group.fetch()
    group.release()

    assert [(0, 7, 2)] == group.fetch()


def test_hundred_thousand_records_take_under_a_second():
    group = Group(*[100] * 1000)
    began = process_time()
    passed = 0
    while passed < 100_000:
        read = group.log.batches[passed // 100 :][:5]
        for first, last, _ in group.partition.acquire(
            AcquireRequest(member="ann", max_records=500),
            passed,
            read,
            group.settings,
            0.0,
        ):
            group.acknowledge((first, last, *[ACCEPT] * (last - first + 1)))
            passed = last + 1

    assert 100_000 == group.partition.start_offset
    assert process_time() - began < 1.0  # 0.2 on two slow cores
