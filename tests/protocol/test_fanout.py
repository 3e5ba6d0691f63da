"""Errands: whom is asked, what is asked again, and what is said when time is up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharecons._record import TopicPartition
from sharecons.errors import BrokerError, ConnectionFailedError, RequestTimedOutError
from sharecons.protocol.admin.fanout import (
    RETRIABLE,
    FanOut,
    RetryRoute,
    find_partition,
    merge_replies,
    part_results,
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
        errand.set_route(key, node)
    return errand


def test_keys_are_looked_up_then_asked_of_their_nodes():
    errand = errand_of("a", "b", "c", "a")
    before = errand.without_route
    errand.set_route("a", 1)
    errand.set_route("b", 2)
    errand.set_route("c", 1)

    assert ("a", "b", "c") == before
    assert () == errand.without_route
    assert {1: ("a", "c"), 2: ("b",)} == errand.keys_by_node()


def test_results_come_in_the_order_of_asking():
    errand = routed("b", "a")
    errand.on_reply("a", well(1))
    errand.on_reply("b", well(2))

    assert errand.finished
    assert [("b", 2), ("a", 1)] == [(k, one.value) for k, one in errand.results.items()]


def test_an_error_is_one_keys_alone():
    errand = routed("a", "b")
    errand.on_reply("a", refused(Code.GROUP_ID_NOT_FOUND))
    errand.on_reply("b", well(2))

    assert {"b": 2} == errand.results.found
    assert "cannot describe group 'a'" in str(errand.results["a"].error)


@pytest.mark.parametrize("code", RETRIABLE)
def test_a_code_that_passes_is_asked_again(code):
    errand = routed("a", "b")
    errand.on_reply("a", refused(code))

    assert not errand.finished
    elsewhere = RETRIABLE[code] is RetryRoute.LOOK_UP
    assert (("a",) if elsewhere else ()) == errand.without_route
    assert elsewhere is ("a" not in errand.keys_by_node()[1])


def test_a_broker_that_is_lost_is_looked_up_again():
    errand = routed("a", "b")
    errand.on_connection_error(("a",), ConnectionFailedError("gone"))

    assert ("a",) == errand.without_route
    assert {1: ("b",)} == errand.keys_by_node()


def test_time_that_is_up_says_what_was_last_heard():
    errand = routed("a", "b", "c")
    lost = ConnectionFailedError("connection refused")
    errand.on_reply("a", refused(Code.NOT_COORDINATOR, "not here"))
    errand.on_connection_error(("b",), lost)
    errand.expire(7)

    errors = errand.results.errors
    assert errand.finished
    assert all(isinstance(error, RequestTimedOutError) for error in errors.values())
    assert str(errors["a"]).endswith("7 s; last error: NOT_COORDINATOR (not here)")
    assert str(errors["b"]).endswith("last error: connection refused")
    assert lost is errors["b"].__cause__
    assert str(errors["c"]).endswith("no response")


def test_parts_that_came_count_when_time_is_up():
    errand = routed("a", "b")
    errand.on_reply("a", PartialReply(Code.NOT_LEADER_OR_FOLLOWER, None, {"x": 1}))
    errand.on_reply("b", Reply(Code.NOT_LEADER_OR_FOLLOWER, None, {"empty": 1}))
    errand.expire(7)

    assert {"a": {"x": 1}} == errand.results.found


def test_what_is_settled_stays_so():
    errand = routed("a")
    errand.on_reply("a", well(1))
    errand.on_reply("a", refused(Code.GROUP_ID_NOT_FOUND))
    errand.expire(7)

    assert 1 == errand.results["a"].value


def test_what_is_dropped_is_left_out():
    errand = routed("a", "b")
    errand.drop("a")
    errand.on_reply("b", well(2))

    assert errand.finished
    assert ["b"] == list(errand.results)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([*RETRIABLE, Code.NONE, Code.GROUP_ID_NOT_FOUND, 9999]),
        )
    )
)
def test_every_key_is_settled_once_whatever_is_heard(heard):
    errand = routed("a", "b", "c")
    for key, code in heard:
        errand.on_reply(key, Reply(code, None, None))
        pending = {
            *errand.without_route,
            *(k for keys in errand.keys_by_node().values() for k in keys),
        }
        assert pending | set(errand.results) == set("abc")
        assert not pending & set(errand.results)
    errand.expire(1)

    assert ["a", "b", "c"] == list(errand.results)


def test_a_whole_passes_if_a_part_does():
    good = {"x": well(1)}
    moving = {**good, "y": refused(Code.NOT_LEADER_OR_FOLLOWER)}
    unknown = {**good, "y": refused(Code.UNKNOWN_TOPIC_OR_PARTITION)}
    lagging = (Code.UNKNOWN_TOPIC_OR_PARTITION,)

    assert Code.NONE == merge_replies(good).code
    assert Code.NOT_LEADER_OR_FOLLOWER == merge_replies(moving).code
    assert Code.NONE == merge_replies(unknown).code
    assert merge_replies(unknown, lagging).code in RETRIABLE
    assert isinstance(merge_replies(moving), PartialReply)


def test_parts_have_the_wholes_error_or_their_own():
    error = BrokerError("no", code=68, name="NON_EMPTY_GROUP")
    refused_whole = part_results(Outcome(error=error), ["x", "y"], "set", str)
    told = {"x": well(), "y": refused(Code.UNKNOWN_TOPIC_OR_PARTITION)}
    apart = part_results(Outcome(told), ["x", "y", "z"], "set", str)

    assert error is refused_whole.common_error
    assert apart["x"].ok
    assert apart.common_error is None
    assert "cannot set y" in str(apart["y"].error)
    assert "the response is incomplete" in str(apart["z"].error)


def test_a_topic_that_nobody_described_is_not_there():
    assert (
        Code.UNKNOWN_TOPIC_OR_PARTITION
        == find_partition({}, TopicPartition("t", 0)).code
    )
