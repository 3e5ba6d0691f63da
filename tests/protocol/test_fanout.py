"""Errands: whom is asked, what is asked again, and what is said when time is up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons._record import TopicPartition
from sharecons.errors import BrokerError, ConnectionFailedError, RequestTimedOutError
from sharecons.protocol.admin.fanout import (
    PASSING,
    FanOut,
    Passing,
    parts,
    place,
    worst_of,
)
from sharecons.protocol.admin.requests import PartialReply, Reply
from sharecons.protocol.admin.results import Outcome
from sharecons.protocol.codes import Code


def errand_of(*keys):
    return FanOut(keys, "describe", lambda key: f"group {key!r}")


def well(value=None):
    return Reply(Code.NONE, None, value)


def refused(code, message=None):
    return Reply(code, message, None)


def routed(*keys, node=1):
    errand = errand_of(*keys)
    for key in keys:
        errand.routed(key, node)
    return errand


def test_keys_are_looked_up_then_asked_of_their_nodes():
    errand = errand_of("a", "b", "c", "a")
    before = errand.unrouted
    errand.routed("a", 1)
    errand.routed("b", 2)
    errand.routed("c", 1)

    assert ("a", "b", "c") == before
    assert () == errand.unrouted
    assert {1: ("a", "c"), 2: ("b",)} == errand.by_node()


def test_results_come_in_the_order_of_asking():
    errand = routed("b", "a")
    errand.replied("a", well(1))
    errand.replied("b", well(2))

    assert errand.finished
    assert [("b", 2), ("a", 1)] == [(k, one.value) for k, one in errand.results.items()]


def test_an_error_is_one_keys_alone():
    errand = routed("a", "b")
    errand.replied("a", refused(Code.GROUP_ID_NOT_FOUND))
    errand.replied("b", well(2))

    assert {"b": 2} == errand.results.found
    assert "cannot describe group 'a'" in str(errand.results["a"].error)


@pytest.mark.parametrize("code", PASSING)
def test_a_code_that_passes_is_asked_again(code):
    errand = routed("a", "b")
    errand.replied("a", refused(code))

    assert not errand.finished
    elsewhere = PASSING[code] is Passing.ELSEWHERE
    assert (("a",) if elsewhere else ()) == errand.unrouted
    assert elsewhere is ("a" not in errand.by_node()[1])


def test_a_broker_that_is_lost_is_looked_up_again():
    errand = routed("a", "b")
    errand.lost(("a",), ConnectionFailedError("gone"))

    assert ("a",) == errand.unrouted
    assert {1: ("b",)} == errand.by_node()


def test_time_that_is_up_says_what_was_last_heard():
    errand = routed("a", "b", "c")
    lost = ConnectionFailedError("connection refused")
    errand.replied("a", refused(Code.NOT_COORDINATOR, "not here"))
    errand.lost(("b",), lost)
    errand.expired(7)

    errors = errand.results.errors
    assert errand.finished
    assert all(isinstance(error, RequestTimedOutError) for error in errors.values())
    assert str(errors["a"]).endswith("7 s; last heard: NOT_COORDINATOR (not here)")
    assert str(errors["b"]).endswith("last heard: connection refused")
    assert lost is errors["b"].__cause__
    assert str(errors["c"]).endswith("no answer")


def test_parts_that_came_count_when_time_is_up():
    errand = routed("a", "b")
    errand.replied("a", PartialReply(Code.NOT_LEADER_OR_FOLLOWER, None, {"x": 1}))
    errand.replied("b", Reply(Code.NOT_LEADER_OR_FOLLOWER, None, {"empty": 1}))
    errand.expired(7)

    assert {"a": {"x": 1}} == errand.results.found


def test_what_is_settled_stays_so():
    errand = routed("a")
    errand.replied("a", well(1))
    errand.replied("a", refused(Code.GROUP_ID_NOT_FOUND))
    errand.expired(7)

    assert 1 == errand.results["a"].value


def test_what_is_dropped_is_left_out():
    errand = routed("a", "b")
    errand.dropped("a")
    errand.replied("b", well(2))

    assert errand.finished
    assert ["b"] == list(errand.results)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([*PASSING, Code.NONE, Code.GROUP_ID_NOT_FOUND, 9999]),
        )
    )
)
def test_every_key_is_settled_once_whatever_is_heard(heard):
    errand = routed("a", "b", "c")
    for key, code in heard:
        errand.replied(key, Reply(code, None, None))
        pending = {
            *errand.unrouted,
            *(k for keys in errand.by_node().values() for k in keys),
        }
        assert pending | set(errand.results) == set("abc")
        assert not pending & set(errand.results)
    errand.expired(1)

    assert ["a", "b", "c"] == list(errand.results)


def test_a_whole_passes_if_a_part_does():
    good = {"x": well(1)}
    moving = {**good, "y": refused(Code.NOT_LEADER_OR_FOLLOWER)}
    unknown = {**good, "y": refused(Code.UNKNOWN_TOPIC_OR_PARTITION)}
    lagging = (Code.UNKNOWN_TOPIC_OR_PARTITION,)

    assert Code.NONE == worst_of(good).code
    assert Code.NOT_LEADER_OR_FOLLOWER == worst_of(moving).code
    assert Code.NONE == worst_of(unknown).code
    assert worst_of(unknown, lagging).code in PASSING
    assert isinstance(worst_of(moving), PartialReply)


def test_parts_have_the_wholes_error_or_their_own():
    error = BrokerError("no", code=68, name="NON_EMPTY_GROUP")
    refused_whole = parts(Outcome(error=error), ["x", "y"], "set", str)
    told = {"x": well(), "y": refused(Code.UNKNOWN_TOPIC_OR_PARTITION)}
    apart = parts(Outcome(told), ["x", "y", "z"], "set", str)

    assert error is refused_whole.common_error
    assert apart["x"].ok
    assert apart.common_error is None
    assert "cannot set y" in str(apart["y"].error)
    assert "leaves some of it out" in str(apart["z"].error)


def test_a_topic_that_nobody_described_is_not_there():
    assert Code.UNKNOWN_TOPIC_OR_PARTITION == place({}, TopicPartition("t", 0)).code
