"""Fan-outs: routes, retries and timeouts."""

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
from sharecons.protocol.admin.results import Result
from sharecons.protocol.codes import Code


def fan_out_of(*keys):
    return FanOut(keys, "describe", lambda key: f"group {key!r}")


def succeeded(value=None):
    return Reply(Code.NONE, None, value)


def failed(code, message=None):
    return Reply(code, message, None)


def routed(*keys, node=1):
    fan_out = fan_out_of(*keys)
    for key in keys:
        fan_out.set_route(key, node)
    return fan_out


def test_results_are_in_the_order_of_the_keys():
    fan_out = routed("b", "a")
    fan_out.on_reply("a", succeeded(1))
    fan_out.on_reply("b", succeeded(2))

    assert fan_out.finished
    assert [("b", 2), ("a", 1)] == [
        (k, one.value) for k, one in fan_out.results.items()
    ]


def test_error_of_one_key_does_not_affect_others():
    fan_out = routed("a", "b")
    fan_out.on_reply("a", failed(Code.GROUP_ID_NOT_FOUND))
    fan_out.on_reply("b", succeeded(2))

    assert {"b": 2} == fan_out.results.found
    assert "cannot describe group 'a'" in str(fan_out.results["a"].error)


@pytest.mark.parametrize("code", RETRIABLE)
def test_retriable_code_keeps_the_key_pending(code):
    fan_out = routed("a", "b")
    fan_out.on_reply("a", failed(code))

    assert not fan_out.finished
    elsewhere = RETRIABLE[code] is RetryRoute.LOOK_UP
    assert (("a",) if elsewhere else ()) == fan_out.without_route
    assert elsewhere is ("a" not in fan_out.keys_by_node()[1])


def test_connection_error_removes_the_route():
    fan_out = routed("a", "b")
    fan_out.on_connection_error(("a",), ConnectionFailedError("gone"))

    assert ("a",) == fan_out.without_route
    assert {1: ("b",)} == fan_out.keys_by_node()


def test_timeout_error_includes_the_last_error():
    fan_out = routed("a", "b", "c")
    lost = ConnectionFailedError("connection failed")
    fan_out.on_reply("a", failed(Code.NOT_COORDINATOR, "not here"))
    fan_out.on_connection_error(("b",), lost)
    fan_out.expire(7)

    errors = fan_out.results.errors
    assert fan_out.finished
    assert all(isinstance(error, RequestTimedOutError) for error in errors.values())
    assert str(errors["a"]).endswith("7 s; last error: NOT_COORDINATOR (not here)")
    assert str(errors["b"]).endswith("last error: connection failed")
    assert lost is errors["b"].__cause__
    assert str(errors["c"]).endswith("no response")


def test_partial_values_are_returned_at_the_timeout():
    fan_out = routed("a", "b")
    fan_out.on_reply("a", PartialReply(Code.NOT_LEADER_OR_FOLLOWER, None, {"x": 1}))
    fan_out.on_reply("b", Reply(Code.NOT_LEADER_OR_FOLLOWER, None, {"empty": 1}))
    fan_out.expire(7)

    assert {"a": {"x": 1}} == fan_out.results.found


def test_first_outcome_of_a_key_is_final():
    fan_out = routed("a")
    fan_out.on_reply("a", succeeded(1))
    fan_out.on_reply("a", failed(Code.GROUP_ID_NOT_FOUND))
    fan_out.expire(7)

    assert 1 == fan_out.results["a"].value


def test_dropped_keys_are_left_out():
    fan_out = routed("a", "b")
    fan_out.drop("a")
    fan_out.on_reply("b", succeeded(2))

    assert fan_out.finished
    assert ["b"] == list(fan_out.results)


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([*RETRIABLE, Code.NONE, Code.GROUP_ID_NOT_FOUND, 9999]),
        )
    )
)
def test_every_key_has_one_outcome_after_any_replies(replies):
    fan_out = routed("a", "b", "c")
    for key, code in replies:
        fan_out.on_reply(key, Reply(code, None, None))
        pending = {
            *fan_out.without_route,
            *(k for keys in fan_out.keys_by_node().values() for k in keys),
        }
        assert pending | set(fan_out.results) == set("abc")
        assert not pending & set(fan_out.results)
    fan_out.expire(1)

    assert ["a", "b", "c"] == list(fan_out.results)


def test_merged_reply_is_retriable_if_one_part_is():
    good = {"x": succeeded(1)}
    moving = {**good, "y": failed(Code.NOT_LEADER_OR_FOLLOWER)}
    unknown = {**good, "y": failed(Code.UNKNOWN_TOPIC_OR_PARTITION)}
    lagging = (Code.UNKNOWN_TOPIC_OR_PARTITION,)

    assert Code.NONE == merge_replies(good).code
    assert Code.NOT_LEADER_OR_FOLLOWER == merge_replies(moving).code
    assert Code.NONE == merge_replies(unknown).code
    assert merge_replies(unknown, lagging).code in RETRIABLE
    assert isinstance(merge_replies(moving), PartialReply)


def test_part_results_have_the_common_error_or_their_own():
    error = BrokerError("no", code=68, name="NON_EMPTY_GROUP")
    all_failed = part_results(Result(error=error), ["x", "y"], "set", str)
    replied = {"x": succeeded(), "y": failed(Code.UNKNOWN_TOPIC_OR_PARTITION)}
    separate = part_results(Result(replied), ["x", "y", "z"], "set", str)

    assert error is all_failed.common_error
    assert separate["x"].ok
    assert separate.common_error is None
    assert "cannot set y" in str(separate["y"].error)
    assert "the response is incomplete" in str(separate["z"].error)


def test_topic_without_description_is_unknown():
    assert (
        Code.UNKNOWN_TOPIC_OR_PARTITION
        == find_partition({}, TopicPartition("t", 0)).code
    )
