"""Random histories get the same responses from a real Kafka and the embedded broker.

The thorough tier plays hundreds of them instead of a handful.
"""

import threading
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sharecons.testing.broker.embedded import EmbeddedBroker
from tests.broker.histories import Player
from tests.broker.steps import (
    Acknowledge,
    Close,
    Cut,
    Fetch,
    Produce,
    Reopen,
    Trim,
    Wait,
    with_waits,
)
from tests.tiers import THOROUGH

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.slow("a history has dozens of requests and waits for locks"),
    pytest.mark.timeout(7200),
]

LOCK = 2.5  # seconds; the minimum of the test brokers is 1
HISTORIES = 150 if THOROUGH else 4
TRIES = 3

members = st.integers(0, 2)
seeds = st.integers(0, 999)
partitions = st.integers(0, 2)
sizes = st.lists(st.integers(1, 40), min_size=1, max_size=4).map(tuple)
steps = st.one_of(
    st.builds(Produce, sizes, partitions),
    st.builds(
        Fetch,
        members,
        max_records=st.sampled_from([1, 5, 20, 100, 500]),
        record_limit=st.booleans(),
        batch_size=st.sampled_from([1, 10, 500]),
        max_bytes=st.sampled_from([3, 300, 1000, 1 << 20]),
        acknowledge=st.none() | seeds,
    ),
    st.builds(Fetch, members),
    st.builds(Acknowledge, members, seeds),
    st.builds(Acknowledge, members, seeds),
    st.builds(Acknowledge, members, seeds, is_honest=st.just(False)),
    st.builds(Trim, st.sampled_from([0.1, 0.5, 0.9, 1.0]), partitions),
    st.builds(Close, members),
    st.builds(Cut, members),
    st.builds(Reopen, members),
    st.just(Wait()),
)
histories = st.lists(steps, min_size=6, max_size=30).map(
    lambda some: with_waits([Produce((30,)), Fetch(0), *some], LOCK * 0.7)
)


@settings(max_examples=HISTORIES, deadline=None, phases=[Phase.generate])
@given(
    history=histories,
    limit=st.sampled_from([2, 3, 5, 6]),
    locks=st.sampled_from([100, 2000]),
    partitions=st.sampled_from([1, 3]),
)
def test_same_history_gets_same_responses(kafka, history, limit, locks, partitions):
    history = [on_partition(step, partitions) for step in history]
    config = {
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": str(int(LOCK * 1000)),
        "share.delivery.count.limit": str(limit),
        "share.partition.max.record.locks": str(locks),
    }
    # Some results of a real Kafka are random: the order in which states of several
    # partitions are written, and the order in which partitions with records move to
    # the end of a session (the order of its hash map).
    for _ in range(TRIES):
        real, embedded = responses(kafka, history, config, partitions)
        if real == embedded:
            return
    for one, other in zip(real, embedded, strict=True):
        assert one == other


def on_partition(step, partitions):
    """Return the step for one of several partitions."""
    if not isinstance(step, Produce | Trim):
        return step
    return replace(step, partition=step.partition % partitions)


def responses(kafka, history, config, partitions):
    """Play a history on a new topic and with a new group."""
    group = f"history-{uuid.uuid4().hex[:8]}"
    topic = kafka.admin.create_topic(partitions)
    kafka.admin.set_group_config(group, config)
    address = kafka.bootstrap_servers.split(",")[0]
    with EmbeddedBroker(topics={topic: partitions}) as broker:
        broker.set_group_config(group, config)
        return play_on_all(
            history,
            Player(address, topic, group, LOCK),
            Player(broker.bootstrap_servers, topic, group, LOCK),
        )


def test_aborted_records_are_skipped_equally(kafka):
    group, topic = f"committed-{uuid.uuid4().hex[:8]}", kafka.admin.create_topic()
    config = {
        "share.auto.offset.reset": "earliest",
        "share.isolation.level": "read_committed",
    }
    kafka.admin.set_group_config(group, config)
    with EmbeddedBroker(topics={topic: 1}) as broker:
        broker.set_group_config(group, config)
        real, embedded = (
            play_transactions(address, topic, group)
            for address in (kafka.bootstrap_servers.split(",")[0], broker.brokers[1])
        )

    assert real == embedded
    assert [(0, 2, 1), (7, 13, 1)] == real[0][1][2][0][3]


def play_transactions(address, topic, group):
    """Return the acquired records around an aborted transaction."""
    transactional = Producer(
        {"bootstrap.servers": address, "transactional.id": group, "log_level": 0}
    )
    plain = Producer({"bootstrap.servers": address})
    transactional.init_transactions(30)

    def write(producer, count):
        for _ in range(count):
            producer.produce(topic, b"x", partition=0)
        assert not producer.flush(30)

    write(plain, 3)
    transactional.begin_transaction()
    write(transactional, 4)
    transactional.abort_transaction(30)
    write(plain, 2)
    transactional.begin_transaction()
    write(transactional, 3)
    transactional.commit_transaction(30)
    transactional.begin_transaction()
    write(transactional, 2)
    write(plain, 2)
    player = Player(address, topic, group, LOCK)
    player.join()
    before = player.play([Fetch(0), Fetch(1)])
    transactional.abort_transaction(30)
    write(plain, 1)
    after = player.play([Fetch(1), Fetch(1), Acknowledge(0, 3), Acknowledge(1, 3)])
    state = player.state()
    player.close()
    return [*before, *after, state]


def play_on_all(history, *players):
    """Play a history with all players in parallel, since they mostly wait."""
    reported = [[] for _ in players]

    def play(player, into):
        try:
            player.join()
            into += player.play(history)
            into.append(player.state())
        finally:
            player.close()

    threads = [
        threading.Thread(target=play, args=each)
        for each in zip(players, reported, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return reported
