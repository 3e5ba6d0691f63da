"""Other clients during broker restarts, leader moves and lost responses."""

import json
import subprocess
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    ShareConsumer,
    TopicPartition,
)

from sharecons.testing import EmbeddedBroker
from tests.broker.clients import TIMEOUT, Clients, new_name, poll_until, read
from tests.broker.java_tools import JavaTools
from tests.waiting import until_true

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

PARTITIONS = 3
QUICK = {  # otherwise the backoff takes most of each test
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 100,
    "retry_backoff_ms": 20,
    "retry_backoff_max_ms": 100,
    "topic_metadata_refresh_fast_interval_ms": 20,
}


@pytest.fixture
def brokers():
    with EmbeddedBroker(brokers=3, topics={"jobs": PARTITIONS}) as brokers:
        yield brokers


@pytest.fixture
def clients(brokers):
    servers = brokers.bootstrap_servers
    with Clients(SimpleNamespace(bootstrap_servers=servers, started=None)) as clients:
        yield clients


def produce(producer, numbers, topic="jobs"):
    errors = []

    def delivered(error, message):
        if error:
            errors.append(error)

    for number in numbers:
        place = number % PARTITIONS
        producer.produce(topic, b"%d" % number, partition=place, on_delivery=delivered)
        producer.poll(0)
    assert not producer.flush(TIMEOUT)
    assert not errors


def read_topic(clients, count, **config):
    """Read the topic from the beginning, and check that there are no more records."""
    consumer = clients.consumer(**config, **QUICK)
    everywhere = [
        TopicPartition("jobs", partition, OFFSET_BEGINNING)
        for partition in range(PARTITIONS)
    ]
    consumer.assign(everywhere)
    numbers = [int(record.value()) for record in read(consumer, count)]
    assert consumer.poll(0.2) is None
    return Counter(numbers)


def once(count):
    return Counter(range(count))


@pytest.mark.parametrize("kind", ["cut", "lose", "refuse"])
def test_idempotent_producer_writes_once_despite_lost_responses(brokers, clients, kind):
    producer = clients.producer(
        enable_idempotence=True,
        linger_ms=0,
        batch_num_messages=10,
        request_timeout_ms=500,
        socket_timeout_ms=1000,
        # TCP cannot lose a response before later ones, and Kafka does not recognise a
        # duplicate after five other batches.
        max_in_flight=1 if kind == "lose" else 5,
        **QUICK,
    )
    produce(producer, range(30))
    trap = brokers.faults.on("Produce", times=2)
    if kind == "cut":
        fault = trap.cut(after=True)
    elif kind == "lose":
        fault = trap.lose()
    else:
        fault = trap.refuse("NOT_ENOUGH_REPLICAS")
    with fault:
        produce(producer, range(30, 300))

    assert once(300) == read_topic(clients, 300)


def test_producer_and_group_continue_while_brokers_restart(brokers, clients):
    producer = clients.producer(enable_idempotence=True, **QUICK)
    group = new_name("group")
    consumer = clients.consumer(group, session_timeout_ms=6000, **QUICK)
    consumer.subscribe(["jobs"])
    seen, count = Counter(), 0

    def more():
        nonlocal count
        produce(producer, range(count, count + 90))
        count += 90
        poll = lambda: seen.update(numbers(consumer))  # noqa: E731
        poll_until(f"{count} have come", lambda: len(seen) == count, poll)
        consumer.commit(asynchronous=False)

    more()
    for node_id in (brokers.coordinator(group), brokers.leader("jobs", 0)):
        brokers.stop_broker(node_id)
        more()
        brokers.start_broker(node_id)
    more()

    assert once(count) == seen == read_topic(clients, count)


def numbers(consumer):
    messages = consumer.consume(100, 0.05)
    return [int(each.value()) for each in messages if not each.error()]


def test_consumer_follows_moved_leaders(brokers, clients):
    producer = clients.producer(**QUICK)
    consumer = clients.consumer(**QUICK)
    consumer.assign([TopicPartition("jobs", 0, 0)])
    seen = []
    for turn in range(6):
        brokers.move_leader("jobs", 0, turn % 3 + 1)
        producer.produce("jobs", b"%d" % turn, partition=0)
        assert not producer.flush(TIMEOUT)
        seen += [int(record.value()) for record in read(consumer, 1)]

    assert list(range(6)) == seen


def test_transaction_survives_moves_of_coordinator_and_leaders(brokers, clients):
    producer = clients.producer(transactional_id="mover", **QUICK)
    producer.init_transactions(TIMEOUT)
    for turn in range(3):
        producer.begin_transaction()
        first = 30 * turn
        produce(producer, range(first, first + 15))
        node_id = turn % 3 + 1
        brokers.stop_broker(node_id)
        produce(producer, range(first + 15, first + 30))
        if turn % 2:
            producer.abort_transaction(TIMEOUT)
        else:
            producer.commit_transaction(TIMEOUT)
        brokers.start_broker(node_id)

    committed = read_topic(clients, 60, isolation_level="read_committed")
    assert Counter([*range(30), *range(60, 90)]) == committed


def test_librdkafka_share_consumers_continue_while_brokers_restart(brokers, clients):
    brokers.set_group_config(
        "workers",
        {
            "share.auto.offset.reset": "earliest",
            "share.heartbeat.interval.ms": 100,
            "share.assignment.interval.ms": 0,
        },
    )
    producer = clients.producer(enable_idempotence=True, **QUICK)
    seen, ended = Counter(), threading.Event()
    settings = clients.settings(group_id="workers", **QUICK)

    def work():
        with ShareConsumer({**settings, "log_level": 0}) as consumer:
            consumer.subscribe(["jobs"])
            while not ended.is_set():
                for record in consumer.poll(0.1):
                    if not record.error():
                        seen[int(record.value())] += 1

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        count = 0
        for node_id in (None, 1, 2, 3):
            if node_id:
                brokers.stop_broker(node_id)
            produce(producer, range(count, count + 60))
            count += 60
            until_true(
                lambda total=count: len(seen) == total, what=f"{count} have come"
            )
            if node_id:
                brokers.start_broker(node_id)
    finally:
        ended.set()
        for thread in threads:
            thread.join(TIMEOUT)

    assert set(range(count)) == set(seen)


@pytest.mark.kafka
@pytest.mark.slow("brokers restart while clients work")
def test_kafka_share_consumer_continues_while_brokers_restart(brokers, clients):
    brokers.set_group_config("workers", {"share.auto.offset.reset": "earliest"})
    producer = clients.producer(enable_idempotence=True, **QUICK)
    command = JavaTools(brokers.bootstrap_servers).command(
        "kafka-verifiable-share-consumer",
        *("--topic", "jobs", "--group-id", "workers", "--max-messages", "400"),
        *("--acknowledgement-mode", "sync"),
    )
    accepted = Counter()

    def follow(lines):
        for event in map(json.loads, lines):
            if event["name"] == "offsets_acknowledged" and event["success"]:
                accepted["records"] += event["count"]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as java:
        reader = threading.Thread(target=follow, args=(java.stdout,))
        reader.start()
        try:
            for node_id in (None, 1, 2, 3):
                if node_id:
                    brokers.stop_broker(node_id)
                count = 100 * (node_id or 0)
                produce(producer, range(count, count + 100))
                until_true(
                    lambda n=count: accepted["records"] >= n + 100,
                    what="they are accepted",
                )
                if node_id:
                    brokers.start_broker(node_id)
        finally:
            # Its close waits 30 s for the broker of its session, which does not run;
            # with real brokers it does the same.
            java.kill()
            reader.join()
