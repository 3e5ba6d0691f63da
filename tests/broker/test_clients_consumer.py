"""librdkafka's consumer in a classic group, on a real Kafka and on the embedded one."""

import pytest

from tests.broker.clients import Clients, new_name, poll_all, poll_until, read
from tests.waiting import until_true

pytestmark = pytest.mark.slow("clients poll over sockets in real time")

PARTITIONS = 4


@pytest.fixture
def clients(any_kafka):
    with Clients(any_kafka) as clients:
        yield clients


@pytest.fixture
def admin(any_kafka):
    return any_kafka.admin


@pytest.fixture
def topic(admin):
    return admin.create_topic(PARTITIONS)


def sizes(*consumers):
    return [len(consumer.assignment()) for consumer in consumers]


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_second_member_gets_half_and_returns_it(clients, admin, topic, strategy):
    group, moves = new_name("group"), []

    def member():
        consumer = clients.consumer(group, partition_assignment_strategy=strategy)
        consumer.subscribe(
            [topic],
            on_assign=lambda _, places: moves.append(("assigned", len(places))),
            on_revoke=lambda _, places: moves.append(("revoked", len(places))),
            on_lost=lambda _, places: moves.append(("lost", len(places))),
        )
        return consumer

    one = member()
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])
    two = member()
    poll_all([one, two], lambda _: sizes(one, two) == [2, 2])
    # Both get records. Without keys, a producer can put a whole burst into one
    # partition, and a consumer without records has nothing to commit.
    for partition in range(PARTITIONS):
        values = map(str, range(10 * partition, 10 * (partition + 1)))
        admin.produce(topic, values, partition=partition)
    records = []
    poll_all([one, two], lambda got: len(got) == 40, records)
    for each in (one, two):
        each.commit(asynchronous=False)
    two.close()
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])
    admin.produce(topic, map(str, range(40, 60)))
    poll_all([one], lambda got: len(got) == 60, records)

    assert list(range(60)) == sorted(int(record.value()) for record in records)
    assert "lost" not in [move for move, _ in moves]


def test_next_consumer_starts_at_auto_committed_offset(clients, admin, topic):
    group = new_name("group")
    admin.produce(topic, map(str, range(30)))
    config = {"enable_auto_commit": True, "auto_commit_interval_ms": 50}
    first = clients.consumer(group, **config)
    first.subscribe([topic])
    before = read(first, 30)
    first.close()

    admin.produce(topic, map(str, range(30, 35)))
    second = clients.consumer(group, **config)
    second.subscribe([topic])
    after = read(second, 5)

    assert list(range(30)) == sorted(int(record.value()) for record in before)
    assert list(range(30, 35)) == sorted(int(record.value()) for record in after)


def test_group_without_offsets_starts_by_auto_offset_reset(clients, admin, topic):
    admin.produce(topic, ["old"], partition=0)
    latest = clients.consumer(auto_offset_reset="latest")
    earliest = clients.consumer(auto_offset_reset="earliest")
    for consumer in (latest, earliest):
        consumer.subscribe([topic])
    (record,) = read(earliest, 1)
    poll_all([latest], lambda _: sizes(latest) == [PARTITIONS])
    # An assigned consumer still has to look up the end offset.
    produce = lambda: admin.produce(topic, ["new"], partition=0)  # noqa: E731
    first = poll_until("a new record", lambda: latest.poll(0.1), produce)

    assert b"old" == record.value()
    assert b"new" == first.value()


def test_static_member_fences_its_previous_instance(clients, topic):
    group = new_name("group")
    former = clients.consumer(group, group_instance_id="one")
    former.subscribe([topic])
    poll_all([former], lambda _: sizes(former) == [PARTITIONS])
    again = clients.consumer(group, group_instance_id="one")
    again.subscribe([topic])
    poll_all([again], lambda _: sizes(again) == [PARTITIONS])

    message = until_true(lambda: former.poll(0.1), what="it is fenced")

    assert "_FATAL" == message.error().name()
    assert "fenced" in message.error().str()
    clients.complaints.clear()  # librdkafka logs it as well


def test_added_partitions_are_assigned(clients, admin, topic):
    pattern = f"^{topic}.*"
    one = clients.consumer(topic_metadata_refresh_interval_ms=200)
    one.subscribe([pattern])
    poll_all([one], lambda _: sizes(one) == [PARTITIONS])

    other = admin.create_topic(2, name=f"{topic}-more")
    poll_all([one], lambda _: sizes(one) == [PARTITIONS + 2])
    admin.produce(other, ["x"])

    assert other == read(one, 1)[0].topic()
