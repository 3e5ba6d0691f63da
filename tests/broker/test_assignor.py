"""The assignor: every partition is assigned, and members are balanced."""

import uuid
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sharecons.testing.broker.share.assignor import assign

TOPICS = [uuid.UUID(int=number) for number in range(1, 4)]
T, U, V = TOPICS


def partitions_of(*counts):
    return {topic: range(count) for topic, count in zip(TOPICS, counts, strict=False)}


def t(*indexes):
    return frozenset((T, index) for index in indexes)


def holders_of(assignment):
    return Counter(each for held in assignment.values() for each in held)


def test_subscription_to_missing_topic_gives_no_partitions():
    assert {"a": frozenset(), "b": frozenset()} == assign(
        {"a": {V}, "b": set()}, partitions_of(3), {}
    )


def test_new_member_takes_surplus_partitions():
    result = assign({"a": {T}, "b": {T}}, partitions_of(4), {"a": t(0, 1, 2, 3)})

    assert {"a": t(0, 1), "b": t(2, 3)} == result


def test_partitions_of_removed_member_go_to_remaining_members():
    result = assign({"a": {T}, "c": {T}}, partitions_of(4), {"a": t(0), "c": t(3)})

    assert t(0) < result["a"]
    assert t(3) < result["c"]
    assert {1} == set(holders_of(result).values())


def test_more_members_than_partitions_share_them():
    members = {member: {T} for member in "abcde"}
    result = assign(members, partitions_of(2), {})

    assert {3} == set(holders_of(result).values())
    assert all(result.values())


def test_order_of_members_breaks_ties():
    members = {"x": {T}, "a": {T}}

    assert {"x": t(0, 2), "a": t(1, 3)} == assign(members, partitions_of(4), {})


counts = st.lists(st.integers(1, 7), min_size=1, max_size=3)
members = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=10, unique=True)
rounds = st.lists(st.tuples(members, counts), min_size=1, max_size=5)


@given(rounds)
def test_equal_subscriptions_stay_balanced(rounds):
    held = {}
    for who, how_many in rounds:
        partitions = partitions_of(*how_many)
        subscriptions = {member: set(partitions) for member in who}
        held = assign(subscriptions, partitions, held)
        total = sum(how_many)
        sharing = -(-len(who) // total)
        everything = {(topic, i) for topic in partitions for i in partitions[topic]}

        assert held.keys() == set(who)
        assert holders_of(held).keys() == everything
        assert max(holders_of(held).values()) <= sharing
        assert max(map(len, held.values())) <= -(-sharing * total // len(who))
        assert held == assign(subscriptions, partitions, held)


wishes = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sets(st.sampled_from(TOPICS)), min_size=1
)


@given(st.lists(st.tuples(wishes, counts), min_size=1, max_size=5))
def test_every_subscribed_partition_is_assigned(rounds):
    held = {}
    for subscriptions, how_many in rounds:
        partitions = partitions_of(*how_many)
        held = assign(subscriptions, partitions, held)
        expected = {
            (topic, index)
            for topics in subscriptions.values()
            for topic in topics & partitions.keys()
            for index in partitions[topic]
        }

        assert holders_of(held).keys() == expected
        assert all(
            topic in subscriptions[member]
            for member, had in held.items()
            for topic, _ in had
        )


@given(st.integers(1, 20), st.integers(1, 20))
def test_new_member_moves_few_partitions(partitions, before):
    members = {f"m{number}": {T} for number in range(before)}
    old = assign(members, partitions_of(partitions), {})
    new = assign({**members, "late": {T}}, partitions_of(partitions), old)

    if before < partitions:
        assert all(len(new[member] - old[member]) <= 1 for member in members)
