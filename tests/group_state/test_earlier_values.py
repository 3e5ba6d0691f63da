"""Values that cannot be read: earlier ones are kept, with their time and the error."""

from sharecons._record import TopicPartition
from sharecons.errors import ConnectionFailedError
from sharecons.group_state.group_states import (
    GroupState,
    PartitionState,
    Unread,
    with_earlier_values,
)
from sharecons.group_state.offset_states import OffsetRange, OffsetStatus

KEY = TopicPartition("orders", 0)
ERROR = ConnectionFailedError("broker 1 is away")
SETTLED = (
    OffsetRange(first_offset=3, last_offset=5, status=OffsetStatus.ACKNOWLEDGED),
)
ESTIMATED = (OffsetRange(first_offset=3, last_offset=9, status=OffsetStatus.ABOVE),)


def groups(at, unread=(), of_partition=(), **values):
    values = {"start_offset": 3, "lag": 4, "ranges": SETTLED, **values}
    one = PartitionState(
        at=at, unread=dict.fromkeys(of_partition, Unread(ERROR)), **values
    )
    state = GroupState(
        group=None,
        missing_topics={"orders": False},
        partitions={KEY: one},
        at=at,
        unread=dict.fromkeys(unread, Unread(ERROR)),
    )
    return {"billing": state}


def partition(groups):
    return groups["billing"].partitions[KEY]


def test_values_of_a_source_that_is_not_read_are_kept_with_their_time():
    now = groups(20.0, of_partition=["states"], ranges=ESTIMATED, has_state=False)
    kept = partition(with_earlier_values(now, groups(10.0, lag=9)))

    assert (4, SETTLED, True) == (kept.lag, kept.ranges, kept.has_state)
    assert (20.0, 10.0) == (kept.read_at("offsets"), kept.read_at("states"))
    assert {"states": Unread(ERROR, 10.0)} == kept.unread


def test_values_that_are_lost_twice_keep_their_first_time():
    lost = {"of_partition": ["logs"], "end_offset": None}
    first = with_earlier_values(groups(20.0, **lost), groups(10.0, end_offset=7))
    again = partition(with_earlier_values(groups(30.0, **lost), first))

    assert (7, 10.0, 30.0) == (again.end_offset, again.read_at("logs"), again.at)


def test_source_that_was_never_read_leaves_the_values_of_now():
    unknown = {"of_partition": ["states"], "has_state": False}
    before = groups(10.0, ranges=(), **unknown)
    kept = partition(
        with_earlier_values(groups(20.0, ranges=ESTIMATED, **unknown), before)
    )

    assert (ESTIMATED, None) == (kept.ranges, kept.read_at("states"))


def test_group_that_is_not_listed_is_kept_only_with_an_error():
    before = groups(10.0)
    kept = with_earlier_values({}, before, ERROR)

    assert {} == with_earlier_values({}, before)
    assert (4, 10.0) == (partition(kept).lag, partition(kept).read_at("offsets"))
    assert ERROR is partition(kept).unread["offsets"].error
    assert ERROR is kept["billing"].unread["groups"].error


def test_partitions_whose_offsets_are_not_read_are_kept():
    now = {
        "billing": GroupState(group=None, at=20.0, unread={"offsets": Unread(ERROR)})
    }
    of_group = partition(with_earlier_values(now, groups(10.0)))
    of_one = partition(
        with_earlier_values(
            groups(20.0, of_partition=["offsets"], start_offset=None, lag=None),
            groups(10.0),
        )
    )

    for each in (of_group, of_one):
        assert (3, 4, 10.0) == (each.start_offset, each.lag, each.read_at("offsets"))


def test_values_that_are_read_again_are_new():
    lost = with_earlier_values({}, groups(10.0), ERROR)
    read = with_earlier_values(groups(20.0, lag=1), lost)

    assert ({}, 1, 20.0) == (
        partition(read).unread,
        partition(read).lag,
        partition(read).read_at("offsets"),
    )
