"""librdkafka's producer and plain consumer, on a real Kafka and on the embedded one."""

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    KafkaException,
    TopicPartition,
)

from tests.broker.clients import TIMEOUT, Clients, read
from tests.waiting import until_true

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.fixture
def clients(any_kafka):
    with Clients(any_kafka) as clients:
        yield clients


@pytest.fixture
def admin(any_kafka):
    return any_kafka.admin


def produce(producer, topic, values, **what):
    """Produce values; return the position of each."""
    places, errors = [], []

    def delivered(error, message):
        (errors if error else places).append(error or message)

    for value in values:
        producer.produce(topic, value, on_delivery=delivered, **what)
    assert 0 == producer.flush(TIMEOUT)
    assert [] == errors
    return [(message.partition(), message.offset()) for message in places]


def assigned(consumer, topic, partition=0, offset=0):
    consumer.assign([TopicPartition(topic, partition, offset)])
    return consumer


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_consumed_record_has_all_produced_fields(clients, admin, acks):
    topic = admin.create_topic()
    producer = clients.producer(acks=acks)
    headers = [("a", b"1"), ("a", None), ("ä", b"")]
    producer.produce(topic, b"value", b"key", headers=headers, timestamp=1234567890123)
    producer.produce(topic, None, None)
    producer.flush(TIMEOUT)

    full, null = read(assigned(clients.consumer(), topic), 2)

    assert (b"key", b"value", headers) == (full.key(), full.value(), full.headers())
    assert (TIMESTAMP_CREATE_TIME, 1234567890123) == full.timestamp()
    assert (None, None, None) == (null.key(), null.value(), null.headers())
    assert [0, 1] == [full.offset(), null.offset()]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_records_of_every_codec_are_read_back(clients, admin, codec, idempotent):
    topic = admin.create_topic()
    producer = clients.producer(compression_type=codec, enable_idempotence=idempotent)
    values = [b"value %d, worth compressing" % number for number in range(2_000)]

    places = produce(producer, topic, values)
    records = read(assigned(clients.consumer(), topic), len(values))

    assert [(0, offset) for offset in range(len(values))] == places
    assert values == [record.value() for record in records]


def test_unknown_topic_is_an_error_for_producer_and_consumer(clients):
    # By default, clients wait for an unknown topic, which can be new.
    without_wait = {"topic_metadata_propagation_max_ms": 0}
    producer, errors = clients.producer(**without_wait), []
    producer.produce("nowhere", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT)
    consumer = clients.consumer(**without_wait)
    consumer.subscribe(["nowhere"])
    message = until_true(lambda: consumer.poll(0.1), what="an error")

    (error,) = errors
    unknown = {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"}
    assert error.name() in unknown
    assert message.error().name() in unknown


def test_consumer_waits_at_the_end_of_the_log(clients, admin):
    topic = admin.create_topic()
    producer = clients.producer(linger_ms=0)
    produce(producer, topic, [b"old"])
    consumer = assigned(clients.consumer(fetch_wait_max_ms=5000), topic, 0, 1)
    assert consumer.poll(0.3) is None

    produce(producer, topic, [b"new"])
    (record,) = read(consumer, 1, within=2)  # less than the wait of the fetch

    assert b"new" == record.value()


def test_offset_out_of_range_is_reported_if_configured(clients, admin):
    topic = admin.create_topic()
    produce(clients.producer(), topic, [b"x"])
    consumer = assigned(clients.consumer(auto_offset_reset="error"), topic, 0, 17)

    message = until_true(lambda: consumer.poll(0.1), what="an error")

    assert "_AUTO_OFFSET_RESET" == message.error().name()


def test_partitions_can_be_paused_seeked_and_resumed(clients, admin):
    topic = admin.create_topic(2)
    for partition in range(2):
        produce(clients.producer(), topic, [b"a", b"b"], partition=partition)
    consumer = clients.consumer()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
    read(consumer, 4)

    consumer.pause([TopicPartition(topic, 1)])
    consumer.seek(TopicPartition(topic, 0, 1))
    consumer.seek(TopicPartition(topic, 1, 1))
    (record,) = read(consumer, 1)
    assert (0, b"b") == (record.partition(), record.value())
    assert consumer.poll(0.2) is None
    consumer.resume([TopicPartition(topic, 1)])
    (record,) = read(consumer, 1)

    assert (1, b"b") == (record.partition(), record.value())


# Transactions.


def transactional(clients, name, **config):
    producer = clients.producer(transactional_id=name, **config)
    producer.init_transactions(TIMEOUT)
    return producer


def test_read_committed_skips_aborted_records(clients, admin):
    topic = admin.create_topic()
    producer = transactional(clients, topic)
    for number in range(6):
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, str(number))
        producer.flush(TIMEOUT)
        if number % 2:
            producer.abort_transaction(TIMEOUT)
        else:
            producer.commit_transaction(TIMEOUT)

    committed = clients.consumer(isolation_level="read_committed")
    all_of_them = clients.consumer(isolation_level="read_uncommitted")

    seen = [record.value() for record in read(assigned(committed, topic), 9)]
    assert [b"0"] * 3 + [b"2"] * 3 + [b"4"] * 3 == seen
    assert 18 == len(read(assigned(all_of_them, topic), 18))


def test_transaction_commits_or_discards_offsets(clients, admin):
    source, target = admin.create_topic(), admin.create_topic()
    produce(clients.producer(), source, [b"%d" % number for number in range(10)])
    producer = transactional(clients, source)

    def pass_on(number, commit):
        consumer = clients.consumer(source, isolation_level="read_committed")
        consumer.subscribe([source])
        records = read(consumer, number)
        producer.begin_transaction()
        for record in records:
            producer.produce(target, record.value())
        producer.send_offsets_to_transaction(
            [TopicPartition(source, 0, records[-1].offset() + 1)],
            consumer.consumer_group_metadata(),
            TIMEOUT,
        )
        if commit:
            producer.commit_transaction(TIMEOUT)
        else:
            producer.abort_transaction(TIMEOUT)
        consumer.close()
        return [record.value() for record in records]

    first = pass_on(4, commit=True)
    dropped = pass_on(3, commit=False)
    second = pass_on(6, commit=True)

    assert [b"4", b"5", b"6"] == dropped
    reader = assigned(clients.consumer(isolation_level="read_committed"), target)
    assert first + second == [record.value() for record in read(reader, 10)]
    assert [b"%d" % number for number in range(10)] == first + second


def test_second_producer_of_a_transactional_id_fences_the_first(clients, admin):
    topic = admin.create_topic()
    first = transactional(clients, topic)
    first.begin_transaction()
    first.produce(topic, b"from the first")
    first.flush(TIMEOUT)

    second = transactional(clients, topic)
    with pytest.raises(KafkaException) as fenced:
        first.commit_transaction(TIMEOUT)
    second.begin_transaction()
    second.produce(topic, b"from the second")
    second.commit_transaction(TIMEOUT)

    assert "_FENCED" == fenced.value.args[0].name()
    clients.complaints.clear()  # the fenced producer has logged it
    reader = assigned(clients.consumer(isolation_level="read_committed"), topic)
    assert [b"from the second"] == [record.value() for record in read(reader, 1)]
    assert reader.poll(0.2) is None
