from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sharecons.testing.broker.coordinators import (
    GROUP,
    SHARE,
    TRANSACTION,
    Coordinators,
)

KEYS = [f"group-{number}" for number in range(300)]


def placed(coordinators, running, key_type=GROUP):
    return {key: coordinators.node_for(key_type, key, running) for key in KEYS}


def test_no_broker_coordinates_if_none_runs():
    assert -1 == Coordinators().node_for(GROUP, "g", [])


def test_two_clusters_place_a_key_alike():
    assert placed(Coordinators(), [1, 2, 3]) == placed(Coordinators(), [3, 1, 2])


def test_every_broker_gets_its_share_of_keys():
    counts = Counter(placed(Coordinators(), [1, 2, 3]).values())

    assert min(counts.values()) > 60


def test_kinds_of_keys_are_placed_apart():
    coordinators = Coordinators()

    assert placed(coordinators, [1, 2, 3]) != placed(coordinators, [1, 2, 3], SHARE)


def test_keys_leave_a_broker_that_stops_and_no_other():
    coordinators = Coordinators()
    before = placed(coordinators, [1, 2, 3])

    after = placed(coordinators, [1, 3])

    assert {1, 3} == set(after.values())
    assert all(after[key] == node for key, node in before.items() if node != 2)


def test_a_broker_that_comes_back_gets_nothing_back():
    coordinators = Coordinators()
    placed(coordinators, [1, 2, 3])
    without = placed(coordinators, [1, 3])

    assert without == placed(coordinators, [1, 2, 3])


@given(st.text(), st.sampled_from([GROUP, TRANSACTION, SHARE]), st.sets(st.integers()))
def test_a_key_stays_where_it_is_as_long_as_that_broker_runs(key, key_type, others):
    coordinators = Coordinators()
    here = coordinators.node_for(key_type, key, [1, 2, 3])

    assert here == coordinators.node_for(key_type, key, [here, *others])


def test_a_key_that_is_moved_is_there_and_whoever_waits_is_told():
    coordinators = Coordinators()
    here = coordinators.node_for(GROUP, "g", [1, 2])
    rung = []
    coordinators.moved.notify = lambda: rung.append(True)

    coordinators.move(GROUP, "g", 3 - here)

    assert 3 - here == coordinators.node_for(GROUP, "g", [1, 2])
    assert [True] == rung
    assert here == coordinators.node_for(GROUP, "g", [here])
