"""Consumers whose leaders return errors for acknowledgements, or respond late."""

import anyio
import pytest

from sharecons.errors import CommitTimeoutError
from sharecons.testing.broker.codec import ErrorCode
from tests.net.embedded import (
    STORM,
    accepted,
    busiest_second,
    consuming,
    next_record,
    record_requests,
    running,
)

pytestmark = pytest.mark.anyio

ACKNOWLEDGE = "ShareAcknowledge"


def fail_acknowledgements(code):
    """Return a change of responses: the broker has acknowledged, but returns errors."""

    def failed(response, context):
        responses = [
            {
                **topic,
                "partitions": [
                    {**each, "error_code": code} for each in topic["partitions"]
                ],
            }
            for topic in response["responses"]
        ]
        return {**response, "responses": responses}

    return failed


@pytest.mark.parametrize(
    "code",
    [
        "INVALID_RECORD_STATE",
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_SERVER_ERROR",
    ],
)
async def test_failed_acknowledgement_is_reported_and_not_sent_again(code):
    number = ErrorCode[code.lower()].value
    results = []
    async with running(1) as broker:
        sent = record_requests(broker, ACKNOWLEDGE)
        acknowledges = broker.faults.on(ACKNOWLEDGE, times=None)
        acknowledges.change(fail_acknowledgements(number))
        async with consuming(
            broker, acknowledgement="explicit", on_acknowledged=results.extend
        ) as consumer:
            (await next_record(consumer)).accept()
            (result,) = await consumer.commit()
            await anyio.sleep(20)

            assert number == result.error.code
            assert code == result.error.name
            assert [result] == results
            assert 1 == len([request for request, _ in sent if request.topics])


async def test_record_whose_acknowledgement_was_denied_is_released():
    """It would stay locked, and hold up the window of its partition."""
    async with running(1) as broker:
        broker.faults.on(ACKNOWLEDGE).refuse_partitions("TOPIC_AUTHORIZATION_FAILED")
        async with consuming(broker, acknowledgement="explicit") as consumer:
            (await next_record(consumer)).accept()
            (result,) = await consumer.commit()
            denied_at = anyio.current_time()
            again = await next_record(consumer)
            seconds = anyio.current_time() - denied_at

    assert "TOPIC_AUTHORIZATION_FAILED" == result.error.name
    assert (0, 2) == (again.offset, again.delivery_count)
    assert seconds < 1.5


@pytest.mark.parametrize("code", ["REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR"])
async def test_acknowledgement_with_a_retriable_error_is_sent_again(code):
    async with running(1) as broker:
        fault = broker.faults.on(ACKNOWLEDGE, times=2).refuse_partitions(code)
        async with consuming(broker, acknowledgement="explicit") as consumer:
            (await next_record(consumer)).accept()
            (result,) = await consumer.commit()

            assert result.error is None
        assert 2 == fault.hits
        assert 1 == accepted(broker)
        assert busiest_second(broker) <= STORM


async def test_lost_session_fails_acknowledgements_in_flight():
    async with running(2) as broker:
        async with consuming(broker, acknowledgement="explicit") as consumer:
            record = await next_record(consumer)
            faults = [
                broker.faults.on(api, times=None).refuse("SHARE_SESSION_NOT_FOUND")
                for api in ("ShareFetch", ACKNOWLEDGE)
            ]
            record.accept()
            (result,) = await consumer.commit()

            assert ErrorCode.share_session_not_found.value == result.error.code
            for fault in faults:
                fault.undo()
            broker.forget_session("billing", consumer.member_id)  # releases the record
            again = await next_record(consumer)
            assert (0, 2) == (again.offset, again.delivery_count)


async def test_commit_with_a_late_response_times_out_and_its_result_comes_later():
    results = []
    async with running(1) as broker:
        broker.faults.on(ACKNOWLEDGE, times=None).delay(5.0)
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
        assert 1 == accepted(broker)
