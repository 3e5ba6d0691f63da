"""Consumers whose broker returns error codes."""

import logging
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest
from kio.schema.errors import ErrorCode

from sharecons import ShareConsumer
from sharecons.errors import (
    AuthorizationError,
    BrokerError,
    CommitTimeoutError,
    GroupError,
    UnsupportedVersionError,
)
from tests.net.scripted import (
    ACKNOWLEDGE,
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    METADATA,
    Late,
    Parked,
    ScriptedBroker,
    State,
    consuming,
    first,
    response_with,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


STORM = 25
"""More requests of one kind in a second than this are too many."""


def saying(code, **changes):
    return lambda asked: response_with(asked, code, **changes)


def saying_number(number):
    """A code that no codec knows: the second field of the answers that we ask it of."""

    def answer(asked):
        from tests.wire.oracle import encode_entity

        body = encode_entity(response_with(asked, ErrorCode.unknown_server_error))
        return body[:4] + number.to_bytes(2, "big") + body[6:]

    return answer


async def next_record(consumer, within=60.0):
    with anyio.move_on_after(within):
        return await anext(aiter(consumer))
    return None


# Brokers that do not serve.


@pytest.mark.parametrize("key", [HEARTBEAT, FETCH, ACKNOWLEDGE])
async def test_broker_without_share_groups_raises_immediately(key):
    broker = ScriptedBroker(1)
    del broker.served[key]

    with pytest.raises(UnsupportedVersionError, match=r"broker:9091.*Kafka 4\.1"):
        async with consuming(broker):
            pass

    assert [] == broker.asked(HEARTBEAT)
    assert 0 == broker.open


async def test_record_limit_with_kafka_4_1_raises_immediately():
    broker = ScriptedBroker(1)
    broker.served |= {FETCH: (1, 1), ACKNOWLEDGE: (1, 1)}

    with pytest.raises(UnsupportedVersionError, match="record_limit.*Kafka 4.2"):
        async with consuming(broker, acquire_mode="record_limit"):
            pass

    assert 0 == broker.open


async def test_kafka_4_1_serves():
    broker = ScriptedBroker(3)
    broker.served |= {FETCH: (1, 1), ACKNOWLEDGE: (1, 1)}
    async with consuming(broker) as consumer:
        records = [record async for record in Taking(consumer, 3)]

    assert [0, 1, 2] == [record.offset for record in records]


async def test_kafka_4_1_cannot_renew():
    broker = ScriptedBroker(1)
    broker.served |= {FETCH: (1, 1), ACKNOWLEDGE: (1, 1)}
    async with consuming(broker) as consumer:
        record = await next_record(consumer)

        with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2"):
            record.renew()


class Taking:
    """So many records, then no more."""

    def __init__(self, consumer, count):
        self._loop = aiter(consumer)
        self._left = count

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        with anyio.fail_after(100):
            return await anext(self._loop)


async def test_disabled_feature_ends_the_consumer_and_names_the_setting():
    broker = ScriptedBroker(1)
    broker.answers[HEARTBEAT] = saying(ErrorCode.unsupported_version)
    async with consuming(broker) as consumer:
        for _ in range(2):
            with pytest.raises(UnsupportedVersionError, match=r"share\.version=1"):
                await anext(aiter(consumer))

    assert 1 == len(broker.asked(HEARTBEAT))


async def test_leader_without_share_fetch_ends_the_consumer():
    """A cluster in the middle of an upgrade."""
    broker = ScriptedBroker(nodes=2, partitions=2)
    broker.produce(b"a", partition=1)
    serves = broker.api_versions

    def send_versions(asked):
        answer = serves(asked)
        if asked.node == 2:
            keys = tuple(api for api in answer.api_keys if api.api_key != FETCH)
            return replace(answer, api_keys=keys)
        return answer

    broker.answers[18] = send_versions
    async with consuming(broker) as consumer:
        with pytest.raises(UnsupportedVersionError, match="broker:9092.*ShareFetch"):
            await anext(aiter(consumer))


# Heartbeats.

FATAL_ERRORS = {
    ErrorCode.group_authorization_failed: AuthorizationError,
    ErrorCode.group_max_size_reached: GroupError,
    ErrorCode.inconsistent_group_protocol: GroupError,
    ErrorCode.invalid_group_id: GroupError,
    ErrorCode.group_id_not_found: GroupError,
    ErrorCode.invalid_request: BrokerError,
}


@pytest.mark.parametrize(("code", "kind"), FATAL_ERRORS.items())
async def test_heartbeat_error_that_ends_the_consumer(code, kind):
    """It is raised, and raised again, by whatever asks; no further heartbeat goes."""
    broker = ScriptedBroker(1)
    broker.answers[HEARTBEAT] = saying(code, error_message="said so")
    async with consuming(broker) as consumer:
        with pytest.raises(kind, match=f"billing.*{code.name.upper()}.*said so"):
            await anext(aiter(consumer))
        for ask in (
            lambda: anext(aiter(consumer)),
            lambda: anext(consumer.batches()),
            lambda: consumer.poll(timeout=1),
            lambda: consumer.commit(),
        ):
            with pytest.raises(kind) as caught:
                await ask()
            assert code.value == caught.value.code
        await anyio.sleep(30)

    assert 1 == len(broker.asked(HEARTBEAT))


async def test_fatal_error_wakes_waiting_readers():
    broker = ScriptedBroker()
    refuse = saying(ErrorCode.group_authorization_failed)
    broker.answers[HEARTBEAT] = first(3, broker.share_group_heartbeat, refuse)
    async with consuming(broker) as consumer:
        with anyio.fail_after(60), pytest.raises(AuthorizationError):
            await anext(aiter(consumer))


PASSING = [
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.unknown_member_id,
    ErrorCode.fenced_member_epoch,
    ErrorCode.unknown_server_error,
    ErrorCode.request_timed_out,
    ErrorCode.stale_member_epoch,
    ErrorCode.topic_authorization_failed,
]


@pytest.mark.parametrize("code", PASSING)
async def test_heartbeat_error_that_ends_is_recovered(code):
    broker = ScriptedBroker(1)
    serve = broker.share_group_heartbeat
    broker.answers[HEARTBEAT] = first(4, saying(code), serve)
    async with consuming(broker) as consumer:
        try:
            record = await next_record(consumer)
        except AuthorizationError:
            assert code is ErrorCode.topic_authorization_failed
            record = await next_record(consumer)

        assert 0 == record.offset
    assert broker.busiest_second() <= STORM


async def test_unknown_heartbeat_error_is_recovered():
    broker = ScriptedBroker(1)
    serve = broker.share_group_heartbeat
    broker.answers[HEARTBEAT] = first(4, saying_number(9999), serve)
    async with consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset
    assert broker.busiest_second() <= STORM


@pytest.mark.parametrize("code", [*PASSING, 9999])
async def test_persistent_heartbeat_error_causes_no_request_storm(code):
    broker = ScriptedBroker(1)
    broker.answers[HEARTBEAT] = saying_number(9999) if code == 9999 else saying(code)
    raised = 0
    async with consuming(broker) as consumer:
        with anyio.move_on_after(60):
            while True:
                try:
                    await anext(aiter(consumer))
                except AuthorizationError:
                    raised += 1

    assert (code is ErrorCode.topic_authorization_failed) == raised
    assert broker.busiest_second() <= STORM
    assert len(broker.asked(HEARTBEAT)) < 60 * 3


@pytest.mark.parametrize(
    "code", [ErrorCode.unknown_member_id, ErrorCode.fenced_member_epoch]
)
async def test_member_that_is_fenced_joins_again_immediately_under_its_id(code):
    broker = ScriptedBroker()
    async with consuming(broker) as consumer:
        assert await next_record(consumer, within=20) is None
        before = broker.asked(HEARTBEAT)
        fenced_at = anyio.current_time()
        broker.answers[HEARTBEAT] = first(1, saying(code), broker.share_group_heartbeat)
        await anyio.sleep(6)
        broker.produce(b"a")
        record = await next_record(consumer)

        joins = [
            asked
            for asked in broker.asked(HEARTBEAT, fenced_at)
            if asked.request.member_epoch == 0
        ]
        assert 0 == record.offset
        assert 1 == len(joins)
        assert joins[0].request.member_id == before[0].request.member_id
        assert (broker.topic,) == joins[0].request.subscribed_topic_names


# Looking for the coordinator.


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.unknown_server_error,
    ],
)
async def test_unavailable_coordinator_is_looked_up_again(code):
    broker = ScriptedBroker(1)
    serve = broker.find_coordinator
    broker.answers[FIND_COORDINATOR] = first(4, saying(code), serve)
    async with consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset
    assert broker.busiest_second() <= STORM


async def test_forbidden_group_in_the_coordinator_lookup_is_raised():
    broker = ScriptedBroker(1)
    code = ErrorCode.group_authorization_failed
    broker.answers[FIND_COORDINATOR] = saying(code)
    async with consuming(broker) as consumer:
        for _ in range(2):
            with pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"):
                await anext(aiter(consumer))
    assert 1 == len(broker.asked(FIND_COORDINATOR))


async def test_coordinator_that_moved_is_followed():
    broker = ScriptedBroker(1, nodes=2)
    here = [1]

    def find(asked):
        node = here[0]
        return response_with(
            asked, ErrorCode.none, node_id=node, port=broker.nodes[node]
        )

    def heartbeat(asked):
        if asked.node != here[0]:
            return response_with(asked, ErrorCode.not_coordinator)
        return broker.share_group_heartbeat(asked)

    broker.answers |= {FIND_COORDINATOR: find, HEARTBEAT: heartbeat}
    async with consuming(broker) as consumer:
        await next_record(consumer)
        here[0] = 2
        moved_at = anyio.current_time()
        await anyio.sleep(20)

        heartbeats = broker.asked(HEARTBEAT, moved_at)
        assert 1 == len([asked for asked in heartbeats if asked.node == 1])
        assert [asked for asked in heartbeats if asked.node == 2]
        # The assignment outlives the move: the member has not left the group.
        assert consumer.assignment


# Fetching.


async def test_forbidden_group_in_a_fetch_is_raised_by_every_call():
    broker = ScriptedBroker(1)
    broker.answers[FETCH] = saying(ErrorCode.group_authorization_failed)
    async with consuming(broker) as consumer:
        for _ in range(3):
            with pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"):
                await anext(aiter(consumer))
        await anyio.sleep(30)

    assert 1 == len(broker.asked(FETCH))


FETCH_PASSING = [
    ErrorCode.share_session_not_found,
    ErrorCode.invalid_share_session_epoch,
    ErrorCode.share_session_limit_reached,
    ErrorCode.unknown_server_error,
    ErrorCode.kafka_storage_error,
    ErrorCode.request_timed_out,
]


@pytest.mark.parametrize("code", [*FETCH_PASSING, 9999])
async def test_fetch_error_that_ends_is_recovered(code):
    broker = ScriptedBroker(3)
    wrong = saying_number(9999) if code == 9999 else saying(code)
    broker.answers[FETCH] = first(4, wrong, broker.share_fetch)
    async with consuming(broker) as consumer:
        records = [record async for record in Taking(consumer, 3)]

        assert [0, 1, 2] == [record.offset for record in records]
        assert {1} == {record.delivery_count for record in records}
    assert broker.busiest_second() <= STORM


@pytest.mark.parametrize("code", [*FETCH_PASSING, 9999])
async def test_persistent_fetch_error_causes_no_request_storm(code):
    broker = ScriptedBroker(3)
    broker.answers[FETCH] = saying_number(9999) if code == 9999 else saying(code)
    async with consuming(broker) as consumer:
        assert await next_record(consumer) is None

    assert broker.busiest_second() <= STORM
    assert len(broker.asked(FETCH)) < 60 * 3


async def test_full_session_cache_delays_the_consumer():
    """SHARE_SESSION_LIMIT_REACHED asks for patience, not for another session."""
    broker = ScriptedBroker(1)
    limit = saying(ErrorCode.share_session_limit_reached)
    broker.answers[FETCH] = first(8, limit, broker.share_fetch)
    async with consuming(broker) as consumer:
        started = anyio.current_time()
        assert 0 == (await next_record(consumer)).offset

        assert anyio.current_time() - started < 15
    assert {0} == {a.request.share_session_epoch for a in broker.asked(FETCH)[:9]}
    assert len({asked.stream for asked in broker.asked(FETCH)}) == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.share_session_not_found, ErrorCode.invalid_share_session_epoch]
)
async def test_session_that_was_lost_is_opened_again(code):
    broker = ScriptedBroker(2)
    async with consuming(broker) as consumer:
        loop = aiter(consumer)
        await anext(loop)
        await anext(loop)
        broker.answers[FETCH] = first(1, saying(code), broker.share_fetch)
        broker.produce(b"c")
        with anyio.fail_after(60):
            while (await anext(loop)).offset != 2:
                pass

    assert broker.busiest_second() <= STORM


PARTITION_RAISED = {
    ErrorCode.topic_authorization_failed: AuthorizationError,
    ErrorCode.corrupt_message: BrokerError,
    ErrorCode.invalid_request: BrokerError,
}


@pytest.mark.parametrize(("code", "kind"), PARTITION_RAISED.items())
async def test_partition_error_that_ends_is_raised_and_recovered(code, kind):
    broker = ScriptedBroker(1)
    broker.answers[FETCH] = first(
        1, lambda asked: broker.fetch_failed(asked, code), broker.share_fetch
    )
    async with consuming(broker) as consumer:
        with pytest.raises(kind, match=f"orders-0: {code.name.upper()}"):
            await next_record(consumer)
        assert 0 == (await next_record(consumer)).offset


@pytest.mark.parametrize("code", PARTITION_RAISED)
async def test_persistent_partition_error_causes_no_request_storm(code):
    broker = ScriptedBroker(1)
    broker.answers[FETCH] = lambda asked: broker.fetch_failed(asked, code)
    errors = []
    async with consuming(broker) as consumer:
        with anyio.move_on_after(60):
            while True:
                with pytest.raises(BrokerError) as caught:
                    await anext(aiter(consumer))
                errors.append(caught.value)

    assert 1 == len(errors)
    assert broker.busiest_second() <= STORM
    assert len(broker.asked(FETCH)) < 60 * 3


PARTITION_SILENT = [
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.unknown_topic_id,
    ErrorCode.inconsistent_topic_id,
    ErrorCode.not_leader_or_follower,
    ErrorCode.fenced_leader_epoch,
    ErrorCode.leader_not_available,
    ErrorCode.kafka_storage_error,
    ErrorCode.unknown_server_error,
]


@pytest.mark.parametrize("code", PARTITION_SILENT)
async def test_retriable_partition_error_is_recovered_without_raising(code):
    broker = ScriptedBroker(1)
    broker.answers[FETCH] = first(
        3, lambda asked: broker.fetch_failed(asked, code), broker.share_fetch
    )
    async with consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset
    assert broker.busiest_second() <= STORM


@pytest.mark.parametrize("code", PARTITION_SILENT)
async def test_persistent_retriable_partition_error_causes_no_request_storm(code):
    broker = ScriptedBroker(1)
    broker.answers[FETCH] = lambda asked: broker.fetch_failed(asked, code)
    async with consuming(broker) as consumer:
        assert await next_record(consumer) is None

    assert broker.busiest_second() <= STORM
    assert len(broker.log) < 60 * 8


# Leaders that move.


@pytest.mark.parametrize("node", [2, 0])
async def test_leader_hint_is_followed_without_a_metadata_request(node):
    """Also to node 0 at epoch 0 plus one, and to one that no metadata named."""
    broker = ScriptedBroker(1)
    leaders = [1]

    def fetch(asked):
        if asked.node == leaders[0]:
            return broker.share_fetch(asked)
        code = ErrorCode.not_leader_or_follower
        where = [(node, broker.nodes[node])]
        return broker.fetch_failed(asked, code, leader=(node, 1), endpoints=where)

    broker.answers[FETCH] = fetch
    async with consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset
        broker.nodes[node] = 9095
        leaders[0] = node
        broker.produce(b"b")
        moved_at = anyio.current_time()
        record = await next_record(consumer)

        assert b"b" == record.value or 0 == record.offset
        assert anyio.current_time() - moved_at < 2
        assert [] == broker.asked(METADATA, moved_at)
        # The old leader is not asked for it any more.
        since = broker.asked(FETCH, moved_at)
        assert len([asked for asked in since if asked.node == 1]) <= 2


async def test_leader_change_without_a_hint_requests_metadata():
    broker = ScriptedBroker(1, nodes=2)
    leaders = [1]

    def fetch(asked):
        if asked.node == leaders[0]:
            return broker.share_fetch(asked)
        return broker.fetch_failed(asked, ErrorCode.not_leader_or_follower)

    broker.answers[FETCH] = fetch
    async with consuming(broker) as consumer:
        await next_record(consumer)
        leaders[0] = 2
        broker.leaders[0] = (2, 1)
        broker.produce(b"b")
        moved_at = anyio.current_time()
        await next_record(consumer)

        assert anyio.current_time() - moved_at < 3
        assert 1 <= len(broker.asked(METADATA, moved_at)) <= 3


async def test_outdated_leader_hint_is_ignored():
    broker = ScriptedBroker(1, nodes=2)
    broker.leaders[0] = (1, 5)
    stale = first(
        2,
        lambda asked: broker.fetch_failed(
            asked, ErrorCode.not_leader_or_follower, leader=(2, 4)
        ),
        broker.share_fetch,
    )
    broker.answers[FETCH] = stale
    async with consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset

    assert {1} == {asked.node for asked in broker.asked(FETCH)}


async def test_brokers_that_name_each_other_as_leader_cause_no_request_storm():
    broker = ScriptedBroker(1, nodes=2)
    epoch = [0]

    def fetch(asked):
        epoch[0] += 1
        other = 3 - asked.node
        code = ErrorCode.not_leader_or_follower
        return broker.fetch_failed(asked, code, leader=(other, epoch[0]))

    broker.answers[FETCH] = fetch
    async with consuming(broker) as consumer:
        assert await next_record(consumer) is None

    assert broker.busiest_second() <= STORM


async def test_dead_leader_is_replaced_by_the_one_in_metadata():
    broker = ScriptedBroker(1, nodes=2)
    async with consuming(broker) as consumer:
        await next_record(consumer)
        del broker.nodes[1]
        broker.leaders[0] = (2, 1)
        broker.produce(b"b")
        broker.cut(1)
        died_at = anyio.current_time()
        await next_record(consumer)

        assert anyio.current_time() - died_at < 5
        assert 2 == broker.asked(FETCH)[-1].node


# Acknowledging.


def acknowledge_failed(broker, code):
    def answer(asked):
        acknowledged = broker.share_acknowledge(asked)
        v = asked.schema
        topics = tuple(
            v.ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    v.PartitionData(
                        partition_index=part.partition_index,
                        error_code=code,
                        current_leader=part.current_leader,
                    )
                    for part in topic.partitions
                ),
            )
            for topic in acknowledged.responses
        )
        return response_with(asked, ErrorCode.none, responses=topics)

    return answer


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.invalid_record_state,
        ErrorCode.not_leader_or_follower,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.topic_authorization_failed,
        ErrorCode.unknown_server_error,
    ],
)
async def test_failed_acknowledgement_is_reported_and_not_sent_again(code):
    broker = ScriptedBroker(1)
    broker.answers[ACKNOWLEDGE] = acknowledge_failed(broker, code)
    results = []
    async with consuming(
        broker, acknowledgement="explicit", on_acknowledged=results.extend
    ) as consumer:
        (await next_record(consumer)).accept()
        (result,) = await consumer.commit()
        await anyio.sleep(20)

        assert code.value == result.error.code
        assert code.name.upper() == result.error.name
        assert [result] == results
        sent = [asked for asked in broker.asked(ACKNOWLEDGE) if asked.request.topics]
        assert 1 == len(sent)


@pytest.mark.parametrize(
    "code", [ErrorCode.request_timed_out, ErrorCode.kafka_storage_error]
)
async def test_acknowledgement_with_a_retriable_error_is_sent_again(code):
    broker = ScriptedBroker(1)
    right = broker.share_acknowledge

    def refuse(asked):
        answer = right(asked)
        for record in broker.shares[0].records:
            if record.state is State.ACKNOWLEDGED:  # it was not written after all
                record.state = State.ACQUIRED
        v = asked.schema
        parts = tuple(
            v.ShareAcknowledgeTopicResponse(
                topic_id=topic.topic_id,
                partitions=tuple(
                    v.PartitionData(
                        partition_index=part.partition_index,
                        error_code=code,
                        current_leader=part.current_leader,
                    )
                    for part in topic.partitions
                ),
            )
            for topic in answer.responses
        )
        return response_with(asked, ErrorCode.none, responses=parts)

    broker.answers[ACKNOWLEDGE] = first(2, refuse, right)
    async with consuming(broker, acknowledgement="explicit") as consumer:
        (await next_record(consumer)).accept()
        (result,) = await consumer.commit()

        assert result.error is None
    assert [0] == broker.accepted
    assert broker.busiest_second() <= STORM


@pytest.mark.parametrize("key", [FETCH, ACKNOWLEDGE])
async def test_lost_session_fails_acknowledgements_in_flight(key):
    broker = ScriptedBroker(2)
    async with consuming(broker, acknowledgement="explicit") as consumer:
        record = await next_record(consumer)
        lost = saying(ErrorCode.share_session_not_found)
        for each in (FETCH, ACKNOWLEDGE):
            broker.answers[each] = lost
        record.accept()
        (result,) = await consumer.commit()

        assert ErrorCode.share_session_not_found.value == result.error.code
        broker.answers |= {
            FETCH: broker.share_fetch,
            ACKNOWLEDGE: broker.share_acknowledge,
        }
        broker.cut()
        again = await next_record(consumer)
        assert (0, 2) == (again.offset, again.delivery_count)


async def test_commit_with_a_late_response_times_out_and_its_result_comes_later():
    broker = ScriptedBroker(1)
    right = broker.share_acknowledge
    broker.answers[ACKNOWLEDGE] = lambda asked: Late(5.0, right(asked))
    results = []
    async with consuming(
        broker, acknowledgement="explicit", on_acknowledged=results.extend
    ) as consumer:
        (await next_record(consumer)).accept()
        started = anyio.current_time()
        with pytest.raises(CommitTimeoutError, match="after 1 s"):
            await consumer.commit(timeout=1.0)

        assert 1.0 == pytest.approx(anyio.current_time() - started)
        assert [] == results
        await anyio.sleep(5)
        assert [None] == [result.error for result in results]
    assert [0] == broker.accepted


# Throttling.


@pytest.mark.parametrize("key", [HEARTBEAT, FETCH, ACKNOWLEDGE])
async def test_throttle_times_are_obeyed(key):
    broker = ScriptedBroker(50)
    right = broker.answers[key]
    wait = timedelta(seconds=7)

    def throttled(asked):
        answer = right(asked)
        parked = isinstance(answer, Parked)
        return answer if parked else replace(answer, throttle_time=wait)

    broker.answers[key] = throttled
    async with consuming(broker, acknowledgement="explicit") as consumer:
        with anyio.move_on_after(60):
            async for record in consumer:
                record.accept()
                await anyio.sleep(0.5)

        # Answered at once but for parked fetches; then not asked for so long.
        times = [asked.at for asked in broker.asked(key)]
        assert len(times) >= 3
        for before, after in zip(times, times[1:], strict=False):
            assert after - before >= 6.999


# Topics.


async def test_forbidden_topic_in_metadata_is_raised():
    broker = ScriptedBroker(1)
    forbidden = saying(ErrorCode.topic_authorization_failed)
    broker.answers[METADATA] = forbidden
    async with consuming(broker) as consumer:
        with pytest.raises(AuthorizationError, match="'orders'.*READ"):
            await anext(aiter(consumer))
        # Once; it may be granted yet.
        assert await next_record(consumer, within=20) is None
        broker.answers[METADATA] = broker.metadata
        assert 0 == (await next_record(consumer)).offset
    assert broker.busiest_second() <= STORM


async def test_invalid_topic_name_is_raised():
    broker = ScriptedBroker(1)
    broker.answers[METADATA] = saying(ErrorCode.invalid_topic_exception)
    async with consuming(broker) as consumer:
        with pytest.raises(BrokerError, match="no name for a topic"):
            await anext(aiter(consumer))


async def test_missing_topic_is_awaited_with_one_warning(caplog):
    broker = ScriptedBroker(1)
    broker.exists = False
    caplog.set_level(logging.WARNING, logger="sharecons")
    async with consuming(broker) as consumer:
        assert await next_record(consumer, within=30) is None
        asked = len(broker.asked(METADATA))
        broker.exists = True
        broker.member_epoch = 0  # the coordinator assigns again
        broker.answers[HEARTBEAT] = first(
            1, saying(ErrorCode.unknown_member_id), broker.share_group_heartbeat
        )
        appeared_at = anyio.current_time()
        assert 0 == (await next_record(consumer)).offset

        assert anyio.current_time() - appeared_at < 3
    warnings = [r for r in caplog.records if "waiting for topic" in r.getMessage()]
    assert 1 == len(warnings)
    assert "orders" in warnings[0].getMessage()
    assert asked < 30 * 3


async def test_missing_topic_causes_no_request_storm():
    broker = ScriptedBroker()
    broker.exists = False
    async with consuming(broker) as consumer:
        assert await next_record(consumer) is None

    assert broker.busiest_second() <= STORM
    assert len(broker.asked(METADATA)) < 60 * 2


# Group configs.


async def test_offset_reset_is_set_before_joining():
    broker = ScriptedBroker(1)
    async with consuming(broker, auto_offset_reset="earliest"):
        pass

    assert "earliest" == broker.configs["share.auto.offset.reset"]
    first_join = broker.asked(HEARTBEAT)[:1]
    assert all(
        a.at < join.at for join in first_join for a in broker.asked(ALTER_CONFIGS)
    )


async def test_offset_reset_that_is_set_already_is_not_set_again():
    broker = ScriptedBroker(1)
    broker.configs["share.auto.offset.reset"] = "earliest"
    async with consuming(broker, auto_offset_reset="earliest"):
        pass

    assert [] == broker.asked(ALTER_CONFIGS)


@pytest.mark.parametrize("key", [DESCRIBE_CONFIGS, ALTER_CONFIGS])
async def test_forbidden_offset_reset_raises_immediately(key):
    broker = ScriptedBroker(1)
    broker.answers[key] = saying(ErrorCode.group_authorization_failed)

    with pytest.raises(AuthorizationError, match="ALTER_CONFIGS"):
        async with consuming(broker, auto_offset_reset="earliest"):
            pass

    assert 0 == broker.open


async def test_offset_reset_that_is_not_applied_raises():
    broker = ScriptedBroker(1)
    broker.answers[ALTER_CONFIGS] = saying(ErrorCode.none)
    started = anyio.current_time()

    with pytest.raises(BrokerError, match="does not return it after 5 s"):
        async with consuming(broker, auto_offset_reset="earliest"):
            pass

    assert anyio.current_time() - started < 6
    assert 0 == broker.open
    assert broker.busiest_second() <= 100


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.cluster_authorization_failed,
        ErrorCode.group_authorization_failed,
        ErrorCode.invalid_request,
        ErrorCode.invalid_config,
    ],
)
async def test_forbidden_config_read_is_ignored(code):
    broker = ScriptedBroker(1)
    broker.answers[DESCRIBE_CONFIGS] = saying(code)
    async with consuming(broker) as consumer:
        assert 0 == (await next_record(consumer)).offset


async def test_repr_and_state_of_a_consumer_that_could_not_be_entered():
    broker = ScriptedBroker(1)
    broker.nodes.clear()
    consumer = ShareConsumer(
        "orders", group_id="billing", bootstrap_servers="broker:9091", network=broker
    )

    with pytest.raises(Exception, match="no broker responded"):
        await consumer.__aenter__()
    assert "new" in repr(consumer)
