"""ShareFetch, ShareAcknowledge and ReadShareGroupState, as clients ask them.

Over memory, on a clock that jumps. What is answered was measured on Kafka 4.3.0.
"""

import uuid
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from sharecons.testing import virtual_time
from sharecons.testing.broker.embedded import EmbeddedBroker
from tests.broker.histories import KEYS, built, spelt
from tests.broker.talking import Client

pytestmark = pytest.mark.anyio

ACCEPT, RELEASE, REJECT, RENEW = (1,), (2,), (3,), (4,)
EARLIEST = {"share.auto.offset.reset": "earliest"}
TOPIC = "orders"


@pytest.fixture(params=virtual_time.BACKENDS)
def anyio_backend(request):
    return virtual_time.backend(request.param)


class Group:
    """Members of group g, and the brokers that they ask."""

    def __init__(self, kafka):
        self.kafka = kafka
        self._members = []

    @property
    def topic_id(self):
        return self.kafka.cluster.topics.named(TOPIC).topic_id

    @property
    def partitions(self):
        return self.kafka.cluster.share_partitions

    def member(self, name, node=1, **values):
        member = Member(self, name, self.kafka.connect(node), **values)
        self._members.append(member)
        return member

    def produce(self, count=10, partition=0, **values):
        self.kafka.produce(TOPIC, ["x"] * count, partition=partition, **values)

    def denied(self, resource, name):
        access = self.kafka.cluster.access
        denies = access.denies
        access.denies = lambda operation, kind, what: (
            (operation, kind, what) == ("READ", resource, name)
            or denies(operation, kind, what)
        )

    async def close(self):
        for member in self._members:
            await member.cut()


class Member:
    def __init__(self, group, name, stream, version=2):
        self.group, self.name, self.version = group, name, version
        self.epoch = 0
        self._client = Client(stream)

    async def fetch(self, *partitions, wait=0.0, **values):
        """Fetch from what is named, or from partition 0 to begin with."""
        if not partitions and not self.epoch:
            partitions = (0,)
        limits = {
            "max_wait": timedelta(seconds=wait),
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "topics": self.named(*((each, ()) for each in partitions)),
        }
        answer = await self.ask("share_fetch", **{**limits, **values})
        if not answer.error_code:
            self.epoch += 1
        return answer

    async def say(self, *batches, partition=0, **values):
        """Acknowledge offsets of one partition: first, last, types."""
        named = {"topics": self.named((partition, batches))} if batches else {}
        answer = await self.ask("share_acknowledge", **{**named, **values})
        if not answer.error_code:
            self.epoch += 1
        return answer

    async def close(self):
        self.epoch = -1
        return await self.say()

    async def cut(self):
        await self._client.stream.aclose()
        await anyio.sleep(0.001)

    async def ask(self, api, **values):
        kind = load_request_schema(KEYS[api], self.version)
        who = {
            "group_id": "g",
            "member_id": self.name,
            "share_session_epoch": self.epoch,
        }
        return await self._client.ask(built(kind, {**who, **values}))

    def named(self, *partitions, topic_id=None):
        return (
            {
                "topic_id": topic_id or self.group.topic_id,
                "partitions": tuple(
                    {
                        "partition_index": index,
                        "acknowledgement_batches": tuple(
                            {
                                "first_offset": first,
                                "last_offset": last,
                                "acknowledge_types": types,
                            }
                            for first, last, types in batches
                        ),
                    }
                    for index, batches in partitions
                ),
            },
        )


@asynccontextmanager
async def group_of(brokers=1, partitions=1, subscribed=True, **config):
    async with EmbeddedBroker(
        brokers=brokers, topics={TOPIC: partitions}, listen=False
    ) as kafka:
        dotted = {f"share.{key.replace('_', '.')}": v for key, v in config.items()}
        kafka.set_group_config("g", {**EARLIEST, **dotted})
        group = Group(kafka)
        for index in range(partitions if subscribed else 0):
            group.partitions.initialize("g", group.topic_id, index)
        yield group
        await group.close()


def parts(answer):
    return [part for topic in answer.responses for part in topic.partitions]


def acquired(answer):
    return [
        (records.first_offset, records.last_offset, records.delivery_count)
        for part in parts(answer)
        for records in part.acquired_records
    ]


def codes(answer):
    return [part.error_code for part in parts(answer)]


async def took(work):
    began = anyio.current_time()
    result = await work
    return round(anyio.current_time() - began, 3), result


async def together(*works):
    """Do several things, each after so many seconds; give their results."""
    results = [None] * len(works)

    async def one(index, after, work):
        await anyio.sleep(after)
        results[index] = await took(work())

    async with anyio.create_task_group() as tasks:
        for index, (after, work) in enumerate(works):
            tasks.start_soon(one, index, after, work)
    return results


@pytest.mark.parametrize("version", [1, 2])
async def test_first_fetch_opens_a_session_and_names_every_partition(version):
    async with group_of(partitions=2) as group:
        group.produce()
        answer = await group.member("ann", version=version).fetch(0, 1)

    assert [0, 1] == [part.partition_index for part in parts(answer)]
    assert [(0, 9, 1)] == acquired(answer)
    assert timedelta(seconds=30) == answer.acquisition_lock_timeout
    assert parts(answer)[0].records


async def test_later_answers_name_only_what_has_news():
    async with group_of(partitions=3) as group:
        ann = group.member("ann")
        await ann.fetch(0, 1)
        group.produce(partition=1)

        first = await ann.fetch()
        assert [1] == [part.partition_index for part in parts(first)]
        assert [] == parts(await ann.fetch())
        assert [2] == [part.partition_index for part in parts(await ann.fetch(2))]


async def test_forgotten_partitions_are_fetched_no_more():
    async with group_of(partitions=2) as group:
        ann = group.member("ann")
        await ann.fetch(0, 1)
        group.produce(partition=0)
        gone = ({"topic_id": group.topic_id, "partitions": (0,)},)

        assert [] == parts(await ann.fetch(forgotten_topics_data=gone))


async def test_records_limit_spans_partitions():
    async with group_of(partitions=2) as group:
        group.produce(5, partition=0, batch=1)
        group.produce(5, partition=1, batch=1)
        answer = await group.member("ann").fetch(0, 1, max_records=7)

    assert [5, 2] == [last - first + 1 for first, last, _ in acquired(answer)]


async def test_records_are_cut_to_the_batches_acquired():
    async with group_of() as group:
        group.produce(30, batch=10)
        ann = group.member("ann")
        answer = await ann.fetch(max_records=5)
        one = len(parts(answer)[0].records)
        rest = await ann.fetch()

    assert [(0, 9, 1)] == acquired(answer)
    assert 2 * one == len(parts(rest)[0].records)


async def test_at_least_one_batch_is_given_whatever_its_size():
    async with group_of() as group:
        group.produce(30, batch=10)
        answer = await group.member("ann").fetch(max_bytes=1)

    assert [(0, 9, 1)] == acquired(answer)


async def test_partitions_looked_at_before_have_a_first_batch_of_their_own():
    async with group_of(partitions=2) as group:
        ann = group.member("ann")
        await ann.fetch(0, 1)
        for partition in (0, 1):
            group.produce(10, partition=partition)
        first = await ann.fetch(max_bytes=2, max_records=1)
        second = await ann.fetch(max_bytes=2)
        for partition in (0, 1):
            group.produce(5, partition=partition)
        both = await ann.fetch(max_bytes=2)

    assert [[(0, 9, 1)], [(0, 9, 1)]] == [acquired(first), acquired(second)]
    assert [(10, 14, 1), (10, 14, 1)] == acquired(both)


@pytest.mark.parametrize("nothing", ["max_bytes", "max_records"])
async def test_who_wants_nothing_gets_nothing_at_once(nothing):
    async with group_of() as group:
        group.produce()
        answer = group.member("ann").fetch(wait=5.0, **{nothing: 0})

        assert (0.0, []) == (await took(_parts_of(answer)))


async def _parts_of(answer):
    return parts(await answer)


async def test_fetch_waits_for_enough_bytes_and_takes_what_there_is_in_the_end():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        seconds, answer = await took(ann.fetch(wait=2.0, min_bytes=10_000))

    assert (2.0, [(0, 9, 1)]) == (seconds, acquired(answer))


async def parked(happening, **config):
    """What a fetch of bob's gets, parked while something happens to ann's records."""
    async with group_of(**config) as group:
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        await bob.fetch()
        (seconds, answer), _ = await together(
            (0.0, lambda: bob.fetch(wait=3.0)), (0.5, lambda: happening(group, ann))
        )
    return seconds, acquired(answer)


async def test_new_records_wake_a_parked_fetch():
    async def produce(group, ann):
        group.produce(3)

    assert (0.5, [(10, 12, 1)]) == await parked(produce)


async def test_a_start_offset_that_moves_wakes_a_parked_fetch():
    async def accept_some(group, ann):
        await ann.say((0, 3, ACCEPT), (4, 9, RELEASE))

    assert (0.5, [(4, 9, 2)]) == await parked(accept_some)


async def test_the_end_of_a_lock_wakes_a_parked_fetch():
    async def nothing(group, ann):
        pass

    lock = {"record_lock_duration_ms": "1000"}
    assert (1.0, [(0, 9, 2)]) == await parked(nothing, **lock)


async def test_locks_that_a_test_ends_wake_a_parked_fetch():
    async def expire(group, ann):
        group.kafka.expire_locks("g", TOPIC, 0)

    assert (0.5, [(0, 9, 2)]) == await parked(expire)


@pytest.mark.parametrize("way", ["release", "close", "cut"])
async def test_what_is_let_go_is_fetched_when_time_is_up(way):
    async def let_go(group, ann):
        if way == "release":
            await ann.say((0, 9, RELEASE))
        elif way == "close":
            await ann.close()
        else:
            await ann.cut()

    assert (3.0, [(0, 9, 2)]) == await parked(let_go)


async def test_a_parked_fetch_whose_client_goes_leaves_nothing_behind():
    async with group_of() as group:
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        with anyio.move_on_after(0.5):
            await ann.fetch(wait=60.0)
        await ann.cut()
        group.produce()

        assert [(0, 9, 1)] == acquired(await bob.fetch())


async def test_an_acknowledgement_from_elsewhere_ends_a_parked_fetch_in_an_error():
    async with group_of() as group:
        group.produce(1)
        ann, other = group.member("ann"), group.member("ann")
        await ann.fetch()
        other.epoch = 2
        (_, fetched), (seconds, said) = await together(
            (0.0, lambda: ann.fetch(wait=2.0)), (0.5, lambda: other.say((0, 0, ACCEPT)))
        )

    assert (0.0, [ErrorCode.none]) == (seconds, codes(said))
    assert fetched.error_code is ErrorCode.invalid_share_session_epoch


async def test_what_a_fetch_releases_it_does_not_get_itself():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        group.produce(5)
        said = ann.named((0, ((0, 4, RELEASE), (5, 9, ACCEPT))))

        assert [(10, 14, 1)] == acquired(await ann.fetch(topics=said))
        assert [(0, 4, 2)] == acquired(await ann.fetch())


async def test_results_of_acknowledgements_come_with_the_records():
    async with group_of(partitions=2) as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch(0, 1)
        good = await ann.fetch(topics=ann.named((0, ((0, 4, ACCEPT),))))
        bad = await ann.fetch(topics=ann.named((0, ((3, 7, ACCEPT), (12, 12, ACCEPT)))))

    assert [0] == [part.acknowledge_error_code for part in parts(good)]
    assert [(0, 42)] == [
        (part.partition_index, part.acknowledge_error_code) for part in parts(bad)
    ]


async def test_a_renewal_fetches_nothing():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        group.produce()
        said = {"topics": ann.named((0, ((0, 9, RENEW),))), "is_renew_ack": True}
        none = {"max_records": 0, "max_bytes": 0, "min_bytes": 0}
        await anyio.sleep(20.0)

        assert [] == acquired(await ann.fetch(**said, **none))
        await anyio.sleep(20.0)
        assert [ErrorCode.none] == codes(await ann.say((0, 9, ACCEPT)))
        refused = await ann.fetch(**said)
        assert refused.error_code is ErrorCode.invalid_request


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(0, 0, RENEW)], ErrorCode.invalid_request),  # unannounced
        ([(0, 0, (5,))], ErrorCode.invalid_request),
        ([(0, 0, ())], ErrorCode.invalid_request),
        ([(0, 3, (1, 1))], ErrorCode.invalid_request),
        ([(3, 0, ACCEPT)], ErrorCode.invalid_request),
        ([(4, 5, ACCEPT), (0, 1, ACCEPT)], ErrorCode.invalid_request),
        ([(8, 12, ACCEPT)], ErrorCode.invalid_request),
        ([(0, 9, (1,) * 10)], ErrorCode.none),
    ],
)
async def test_acknowledgements_have_to_make_sense(batches, code):
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()

        assert [code] == codes(await ann.say(*batches))


async def test_acknowledgements_do_not_open_a_session():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        said = await ann.say((0, 0, ACCEPT))
        fetched = await ann.fetch(topics=ann.named((0, ((0, 0, ACCEPT),))))
        ann.epoch = -1
        closed = await ann.say()

    assert [
        ErrorCode.invalid_share_session_epoch,
        ErrorCode.invalid_request,
        ErrorCode.share_session_not_found,
    ] == [said.error_code, fetched.error_code, closed.error_code]


async def test_a_closing_fetch_acknowledges_and_releases():
    async with group_of() as group:
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        await ann.fetch()
        ann.epoch = -1
        await ann.fetch(topics=ann.named((0, ((0, 4, ACCEPT),))))

        assert [(5, 9, 2)] == acquired(await bob.fetch())


async def test_with_too_many_sessions_a_fetch_waits_and_is_refused():
    async with group_of() as group:
        group.kafka.cluster.share_sessions.limit = 1
        await group.member("ann").fetch()
        seconds, answer = await took(group.member("bob").fetch(wait=2.0))

    assert answer.error_code is ErrorCode.share_session_limit_reached
    assert 2.0 == seconds


@pytest.mark.parametrize(
    "who", [{"group_id": None}, {"member_id": ""}, {"member_id": "m" * 37}]
)
async def test_a_request_says_who_asks(who):
    async with group_of() as group:
        answer = await group.member("ann").ask("share_fetch", **who)

    assert answer.error_code is ErrorCode.invalid_request


async def test_a_topic_id_that_nobody_knows_is_an_error_of_the_server():
    async with group_of() as group:
        group.produce()
        ann, bob = group.member("ann"), group.member("bob")
        unknown = ann.named((0, ()), topic_id=uuid.uuid4())
        answer = await ann.fetch(topics=ann.named((0, ())) + unknown)

        assert answer.error_code is ErrorCode.unknown_server_error
        assert [(0, 9, 1)] == acquired(await bob.fetch())


async def test_a_partition_that_is_not_there_gets_its_own_error():
    async with group_of() as group:
        group.produce()
        answer = await group.member("ann").fetch(0, 7)

    by_partition = {part.partition_index: part.error_code for part in parts(answer)}
    assert {
        0: ErrorCode.none,
        7: ErrorCode.unknown_topic_or_partition,
    } == by_partition


async def test_nobody_has_subscribed_to_a_share_partition_yet():
    async with group_of(subscribed=False) as group:
        answer = await group.member("ann").fetch()

    assert [ErrorCode.unknown_server_error] == codes(answer)


@pytest.mark.parametrize("resource", ["GROUP", "TOPIC"])
async def test_who_is_denied_gets_nothing(resource):
    async with group_of() as group:
        group.produce()
        group.denied(resource, "g" if resource == "GROUP" else TOPIC)
        ann = group.member("ann")
        fetched = await ann.fetch()

    if resource == "GROUP":
        assert fetched.error_code is ErrorCode.group_authorization_failed
    else:
        assert [ErrorCode.topic_authorization_failed] == codes(fetched)
        assert [] == acquired(fetched)


async def test_another_broker_says_who_leads():
    async with group_of(brokers=2) as group:
        group.kafka.move_leader(TOPIC, 0, 2)
        answer = await group.member("ann", node=1).fetch()
        address = group.kafka.cluster.brokers[2]

    (part,) = parts(answer)
    assert part.error_code is ErrorCode.not_leader_or_follower
    assert 2 == part.current_leader.leader_id
    assert [(2, address.port)] == [(n.node_id, n.port) for n in answer.node_endpoints]


async def test_locks_are_lost_with_the_leader_and_deliveries_are_not():
    async with group_of(brokers=2) as group:
        group.kafka.move_leader(TOPIC, 0, 1)
        group.produce(10)
        ann = group.member("ann", node=1)
        await ann.fetch()
        await ann.say((0, 4, RELEASE))
        group.kafka.move_leader(TOPIC, 0, 2)
        late = await ann.say((5, 9, ACCEPT))
        answer = await group.member("bob", node=2).fetch()

    assert [ErrorCode.unknown_topic_or_partition] == codes(late)
    assert [(0, 4, 2), (5, 9, 1)] == acquired(answer)


async def test_a_group_begins_where_its_setting_says():
    async with group_of(auto_offset_reset="latest") as group:
        group.produce()
        ann = group.member("ann")
        assert [] == acquired(await ann.fetch())
        group.produce(3)

        assert [(10, 12, 1)] == acquired(await ann.fetch())


async def test_a_group_may_begin_so_long_ago():
    async with group_of(auto_offset_reset="by_duration:PT1H") as group:
        group.produce(timestamp=1)
        group.produce(5)

        assert [(10, 14, 1)] == acquired(await group.member("ann").fetch())


async def test_records_that_were_deleted_are_passed_over():
    async with group_of() as group:
        group.produce(30, batch=10)
        ann = group.member("ann")
        await ann.fetch(max_records=5)
        log = group.kafka.cluster.topics.named(TOPIC).partition(0).log
        log.truncate_before(20)

        assert [] == acquired(await ann.fetch())  # that its start has moved is all
        assert [(20, 29, 1)] == acquired(await ann.fetch())


async def read_state(member, leader_epoch=0, **values):
    kind = load_request_schema(KEYS["read_share_group_state"], 0)
    partition = {"partition": 0, "leader_epoch": leader_epoch}
    topics = ({"topic_id": member.group.topic_id, "partitions": (partition,)},)
    request = built(kind, {"group_id": "g", "topics": topics, **values})
    answer = await member._client.ask(request)
    return answer.results[0].partitions[0]


async def test_the_coordinator_tells_what_was_written():
    async with group_of() as group:
        group.produce(100)
        ann = group.member("ann")
        await ann.fetch()
        await ann.say((0, 9, ACCEPT), (10, 14, RELEASE), (15, 19, REJECT))
        state = await read_state(ann)

    assert [(0, 9, 2, 1), (10, 14, 0, 1), (15, 19, 4, 1)] == [
        (b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
        for b in state.state_batches
    ]
    assert (0, 0) == (state.start_offset, state.state_epoch)


async def test_the_coordinator_has_noticed_locks_that_ended():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        await anyio.sleep(31.0)
        state = await read_state(ann)

    assert [(0, 9, 0)] == [
        (b.first_offset, b.last_offset, b.delivery_state) for b in state.state_batches
    ]


async def test_the_coordinator_fences_older_leaders():
    async with group_of() as group:
        ann = group.member("ann")
        newer = await read_state(ann, leader_epoch=3)
        older = await read_state(ann, leader_epoch=2)

    assert (ErrorCode.none, -1) == (newer.error_code, newer.start_offset)
    assert older.error_code is ErrorCode.fenced_leader_epoch


async def test_another_broker_is_not_the_coordinator():
    async with group_of(brokers=2) as group:
        cluster = group.kafka.cluster
        key = f"g:{spelt(group.topic_id)}:0"
        right = cluster.coordinators.of(2, key, cluster.running)
        state = await read_state(group.member("ann", node=3 - right))

    assert state.error_code is ErrorCode.not_coordinator


async def test_offsets_may_be_altered_and_deleted():
    async with group_of() as group:
        group.produce()
        ann = group.member("ann")
        await ann.fetch()
        await ann.say((0, 3, ACCEPT))
        (told,) = group.partitions.offsets("g")
        await ann.close()
        group.partitions.alter("g", group.topic_id, 0, 7)
        ann.epoch = 0

        assert (0, 6) == (told.start_offset, told.lag(10))
        assert [(7, 9, 1)] == acquired(await ann.fetch())
        assert 1 == (await read_state(ann)).state_epoch
        group.partitions.delete("g", group.topic_id, 0)
        assert [] == group.partitions.offsets("g")
