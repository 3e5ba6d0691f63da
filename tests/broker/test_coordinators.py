"""The choice of the coordinator of a key."""

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


def place_keys(coordinators, running, key_type=GROUP):
    return {key: coordinators.node_for(key_type, key, running) for key in KEYS}


def test_coordinator_choice_is_deterministic():
    assert place_keys(Coordinators(), [1, 2, 3]) == place_keys(
        Coordinators(), [3, 1, 2]
    )


def test_keys_are_spread_over_brokers():
    counts = Counter(place_keys(Coordinators(), [1, 2, 3]).values())

    assert min(counts.values()) > 60


def test_key_types_are_independent():
    coordinators = Coordinators()

    assert place_keys(coordinators, [1, 2, 3]) != place_keys(
        coordinators, [1, 2, 3], SHARE
    )


def test_keys_of_stopped_broker_move():
    coordinators = Coordinators()
    before = place_keys(coordinators, [1, 2, 3])

    after = place_keys(coordinators, [1, 3])

    assert {1, 3} == set(after.values())
    assert all(after[key] == node for key, node in before.items() if node != 2)


def test_restarted_broker_gets_no_keys_back():
    coordinators = Coordinators()
    place_keys(coordinators, [1, 2, 3])
    without = place_keys(coordinators, [1, 3])

    assert without == place_keys(coordinators, [1, 2, 3])


@given(st.text(), st.sampled_from([GROUP, TRANSACTION, SHARE]), st.sets(st.integers()))
def test_keys_stay_while_their_broker_runs(key, key_type, others):
    coordinators = Coordinators()
    here = coordinators.node_for(key_type, key, [1, 2, 3])

    assert here == coordinators.node_for(key_type, key, [here, *others])
