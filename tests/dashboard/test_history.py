"""The history of lag and rate."""

import pytest

from sharecons import TopicPartition
from sharecons.dashboard.charts import Chart, chart_svg
from sharecons.dashboard.history import MAX_POINTS, History, Series
from sharecons.dashboard.rows import group_row
from sharecons.errors import RequestTimedOutError
from sharecons.group_state.collector import CollectedGroups
from sharecons.group_state.group_states import GroupState, PartitionState, Unread


def partition(end, lag):
    return PartitionState(start_offset=0, end_offset=end, lag=lag)


def series(*collections, seconds=10.0):
    """Return a series of collections: the end and the lag of each partition."""
    made = Series()
    for number, partitions in enumerate(collections):
        states = {n: partition(*each) for n, each in partitions.items()}
        made.add(1000.0 + number * seconds, states)
    return made


def collected(at, groups, **others):
    states = {
        group_id: GroupState(
            group=None,
            partitions={
                TopicPartition("orders", n): partition(*each)
                for n, each in partitions.items()
            },
        )
        for group_id, partitions in groups.items()
    }
    return CollectedGroups(at=at, duration=0.1, groups=states, **others)


def test_rates_are_of_settled_and_written_records():
    rates = series({0: (100, 80), 1: (50, 50)}, {0: (160, 40), 1: (50, 30)}).rates

    assert rates is not None
    assert 12.0 == rates.settled  # 100 and 20 in ten seconds
    assert 6.0 == rates.written
    assert pytest.approx(70 / 6) == rates.drained_in


def test_rates_are_of_the_last_minute():
    slow = [{0: (1000, 1000 - n)} for n in range(20)]
    fast = [{0: (1000, 980 - 100 * n)} for n in range(7)]

    assert series(*slow, *fast).rates.settled == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("before", "after", "drained_in"),
    [
        ((100, 50), (100, 0), 0.0),
        ((100, 50), (200, 150), None),
        ((100, 50), (150, 100), None),
        ((100, 50), (100, None), None),
    ],
    ids=["nothing waits", "the lag grows", "nothing is settled", "unknown"],
)
def test_time_to_drain(before, after, drained_in):
    assert drained_in == series({0: before}, {0: after}).rates.drained_in


def test_there_is_no_rate_before_the_second_collection():
    assert series({0: (100, 50)}).rates is None


def test_new_partition_adds_no_records():
    made = series(
        {0: (100, 50)}, {0: (100, 50), 1: (5000, 0)}, {0: (110, 50), 1: (5000, 0)}
    )

    assert [0, 0, 10] == [each.settled for each in made.points]


def test_unread_partition_is_a_gap_in_the_lag_and_no_drop_of_records():
    made = series({0: (100, 50)}, {0: (None, None)}, {0: (130, 50)})

    assert [50, None, 50] == [each.lag for each in made.points]
    assert [0, 0, 30] == [each.settled for each in made.points]


def test_day_of_collections_takes_no_more_points_than_an_hour():
    made = Series()
    for number in range(17_280):  # every five seconds
        made.add(float(number * 5), {0: partition(number, 0)})

    assert len(made.points) <= MAX_POINTS
    assert made.points == sorted(made.points)
    assert 17_279 == made.points[-1].settled
    newest = [each.at for each in made.points[-100:]]
    assert {5.0} == {b - a for a, b in zip(newest, newest[1:], strict=False)}


def test_group_that_no_longer_exists_is_forgotten():
    history = History()
    history.add(collected(1.0, {"billing": {0: (9, 3)}, "mail": {0: (9, 3)}}))
    history.add(collected(2.0, {"mail": {0: (9, 3)}}))

    assert ["mail"] == list(history.topics)


def test_topics_that_a_group_no_longer_has_are_forgotten():
    history = History()
    history.watch(["billing"])
    for number in range(30):
        partitions = {
            TopicPartition(topic, 0): partition(9, 3)
            for topic in ("orders", f"replies-{number}")
        }
        groups = {"billing": GroupState(group=None, partitions=partitions)}
        history.add(CollectedGroups(at=float(number), duration=0.1, groups=groups))

    assert {"orders", "replies-29"} == history.topics["billing"].keys()
    assert {("billing", key) for key in partitions} == history.partitions.keys()


def test_topics_are_kept_while_the_offsets_of_their_group_cannot_be_read():
    history = History()
    history.watch(["billing"])
    history.add(collected(1.0, {"billing": {0: (9, 3)}}))
    unread = {"offsets": Unread(RequestTimedOutError("late"), None)}
    groups = {"billing": GroupState(group=None, unread=unread)}
    history.add(CollectedGroups(at=2.0, duration=0.1, groups=groups))

    assert {"orders"} == history.topics["billing"].keys()
    assert {("billing", TopicPartition("orders", 0))} == history.partitions.keys()


def test_groups_are_kept_while_they_cannot_be_listed():
    history = History()
    history.add(collected(1.0, {"billing": {0: (9, 3)}}))
    history.add(collected(2.0, {}, error_counts={"groups": 1}))
    history.add(collected(3.0, {}, reached=False, error_counts={"cluster": 1}))

    assert ["billing"] == list(history.topics)


def test_partitions_have_series_only_of_watched_groups():
    history = History()
    history.watch(["billing"])
    groups = {"billing": {0: (9, 3), 1: (5, 5)}, "mail": {0: (9, 3)}}
    history.add(collected(1.0, groups))

    assert {("billing", TopicPartition("orders", n)) for n in (0, 1)} == (
        history.partitions.keys()
    )
    history.watch(["mail"])
    assert {} == history.partitions


@pytest.mark.parametrize(
    ("value", "text"), [(24_000.0, "24,000"), (1.25, "1.25"), (999.0, "999"), (0, "0")]
)
def test_largest_value_of_a_chart_is_written_out(value, text):
    svg = chart_svg(Chart("lag", [0.0, 1.0], [0.0, value]))

    assert f"now {text}, between 0 and {text}" in svg


@pytest.mark.parametrize("groups", [2, 50])
def test_rates_of_a_group_are_read_without_a_look_at_other_groups(groups):
    class Counted(dict):
        looks = 0

        def items(self):
            self.looks += len(self)
            return super().items()

    history = History()
    states = {f"group-{n}": {0: (100, 50)} for n in range(groups)}
    history.add(collected(1000.0, states))
    found = collected(1010.0, {name: {0: (160, 40)} for name in states})
    history.add(found)
    history.topics = Counted(history.topics)

    row = group_row("group-1", found.groups["group-1"], history, 1010.0)

    assert 7.0 == row.rates.settled  # 70 in ten seconds
    assert 0 == history.topics.looks
