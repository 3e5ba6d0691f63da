"""Replica placement of new partitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons.testing.broker.errors import RequestError
from sharecons.testing.broker.placement import Nodes, place_replicas


@given(st.integers(1, 5), st.integers(0, 3), st.integers(1, 6), st.integers(1, 12))
def test_partitions_are_spread_over_running_brokers(
    running, stopped, replication, partitions
):
    nodes = Nodes(list(range(running)), list(range(10, 10 + stopped)))
    if replication > running + stopped:
        with pytest.raises(RequestError):
            place_replicas(nodes, range(partitions), replication)
        return
    placed = place_replicas(nodes, range(partitions), replication)

    led = [sum(each[0] == node for each in placed) for node in nodes.running]
    assert sum(led) == partitions
    assert max(led) - min(led) <= 1
    for each in placed:
        assert replication == len(set(each))
        assert min(running, replication) == len(set(each) & set(nodes.running))


def test_placement_without_running_broker_raises():
    with pytest.raises(RequestError, match="All brokers are currently fenced"):
        place_replicas(Nodes([], [1]), range(1), 1)
