"""A consumer's metrics, compared with what the broker and the application saw."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

import anyio
import pytest
from kio.schema.errors import ErrorCode

from sharecons import ShareConsumer
from tests.net.scripted import (
    ACKNOWLEDGE,
    FETCH,
    HEARTBEAT,
    LATENCY,
    Asked,
    Late,
    ScriptedBroker,
    State,
    consuming,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend(virtual_clock):
    return virtual_clock


FETCH_TIME = 0.25
HEARTBEAT_TIME = 0.125
RECORD_BYTES = 8  # with a value of one byte


class Event(NamedTuple):
    """Something that was to be measured, and when."""

    value: float
    at: float


class Observer:
    """A broker that notes what a consumer's metrics should say."""

    def __init__(self) -> None:
        self.broker = ScriptedBroker(9)
        self.broker.answers |= {
            FETCH: self.fetch,
            ACKNOWLEDGE: self.acknowledge,
            HEARTBEAT: self.heartbeat,
        }
        self.throttle = 0.0
        self.assigned = True
        self.fetches: list[Event] = []  # latencies
        self.throttles: list[Event] = []
        self.records: list[Event] = []
        self.sent: list[Event] = []
        self.failed: list[Event] = []
        self.heartbeats: list[Event] = []  # latencies
        self.rebalances: list[Event] = []
        self.polls: list[tuple[float, float]] = []

    def fetch(self, asked: Asked) -> Any:
        self._note_acknowledgements(asked)
        before = len(self.broker.delivered)
        response = self.broker.share_fetch(asked)
        done = asked.at + LATENCY + FETCH_TIME
        self.fetches.append(Event(FETCH_TIME + LATENCY, done))
        self.throttles.append(Event(self.throttle, done))
        if count := len(self.broker.delivered) - before:
            self.records.append(Event(count, done))
        throttle_time = timedelta(seconds=self.throttle)
        self.throttle = 0.0
        return Late(FETCH_TIME, replace(response, throttle_time=throttle_time))

    def acknowledge(self, asked: Asked) -> Any:
        self._note_acknowledgements(asked)
        response = self.broker.share_acknowledge(asked)
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.error_code is not ErrorCode.none:
                    count = self._acknowledgements(asked)
                    self.failed.append(Event(count, asked.at + LATENCY))
        return response

    def heartbeat(self, asked: Asked) -> Any:
        done = asked.at + LATENCY + HEARTBEAT_TIME
        self.heartbeats.append(Event(HEARTBEAT_TIME + LATENCY, done))
        response = self.broker.share_group_heartbeat(asked)
        if asked.request.member_epoch >= 0 and asked.request.subscribed_topic_names:
            self.rebalances.append(Event(1, done))
        return Late(HEARTBEAT_TIME, response)

    def _note_acknowledgements(self, asked: Asked) -> None:
        if count := self._acknowledgements(asked):
            self.sent.append(Event(count, asked.at))

    def _acknowledgements(self, asked: Asked) -> int:
        return sum(
            batch.last_offset - batch.first_offset + 1
            for topic in asked.request.topics
            for partition in topic.partitions
            for batch in partition.acknowledgement_batches
        )

    async def poll(self, consumer: ShareConsumer[Any, Any]) -> list[Any]:
        started = anyio.current_time()
        records = await consumer.poll(timeout=1.0)
        self.polls.append((started, anyio.current_time()))
        return records


def total(events: list[Event]) -> float:
    return sum(event.value for event in events)


def average(events: list[Event]) -> float:
    return total(events) / len(events)


def maximum(events: list[Event]) -> float:
    return max(event.value for event in events)


def rate(
    events: list[Event], now: float, of: Callable[[list[Event]], float] = total
) -> float:
    """Return the rate, if the first event is less than 30 s ago."""
    return of(events) / (now - events[0].at + 30)


async def test_metrics_are_what_broker_and_application_observed() -> None:
    seen = Observer()
    options = {"acknowledgement": "explicit", "max_wait": 0.0, "max_records": 4}

    async with consuming(seen.broker, **options) as consumer:
        records = await seen.poll(consumer)  # the first fetch is for one record
        await anyio.sleep(0.5)
        records += await seen.poll(consumer)
        for record in records:
            record.accept()
        await consumer.commit()
        held = await seen.poll(consumer)
        seen.throttle = 1.5
        held += await seen.poll(consumer)
        assert len(held) == consumer.metrics()["sharecons-records-held"]

        # The broker ends the lock early, so it rejects the acknowledgement.
        seen.broker.shares[0].records[held[0].offset].state = State.ARCHIVED
        held[0].accept()
        await consumer.commit()
        consumer.unsubscribe()
        await anyio.sleep(3)
        consumer.subscribe("orders")
        await anyio.sleep(3)
        await seen.poll(consumer)
        await anyio.sleep(2)
    values, now = consumer.metrics(), anyio.current_time()

    starts = [start for start, _ in seen.polls]
    pauses = [b - a for a, b in zip(starts, starts[1:], strict=False)]
    idle = [
        (end - start) / (end - previous)
        for (_, previous), (start, end) in zip(seen.polls, seen.polls[1:], strict=False)
    ]
    sizes = [Event(each.value * RECORD_BYTES, each.at) for each in seen.records]
    left = seen.broker.asked(HEARTBEAT)[-1].at
    expected = {
        "last-poll-seconds-ago": now - starts[-1],
        "time-between-poll-avg": 1000 * sum(pauses) / len(pauses),
        "time-between-poll-max": 1000 * max(pauses),
        "poll-idle-ratio-avg": sum(idle) / len(idle),
        "heartbeat-response-time-max": 1000 * maximum(seen.heartbeats),
        "heartbeat-rate": rate(seen.heartbeats, now, len),
        "heartbeat-total": len(seen.heartbeats),
        "last-heartbeat-seconds-ago": now - left,
        "rebalance-total": 2,
        "rebalance-rate-per-hour": 3600 * rate(seen.rebalances, now),
        "fetch-size-avg": average(sizes),
        "fetch-size-max": maximum(sizes),
        "bytes-fetched-total": total(sizes),
        "records-per-request-avg": average(seen.records),
        "records-per-request-max": maximum(seen.records),
        "records-fetched-rate": rate(seen.records, now),
        "records-fetched-total": len(seen.broker.delivered),
        "acknowledgements-send-rate": rate(seen.sent, now),
        "acknowledgements-send-total": total(seen.sent),
        "acknowledgements-error-rate": rate(seen.failed, now),
        "acknowledgements-error-total": total(seen.failed),
        "fetch-latency-avg": 1000 * average(seen.fetches),
        "fetch-latency-max": 1000 * maximum(seen.fetches),
        "fetch-rate": rate(seen.fetches, now, len),
        "fetch-total": len(seen.broker.asked(FETCH)),
        "fetch-throttle-time-avg": 1000 * average(seen.throttles),
        "fetch-throttle-time-max": 1500.0,
    }
    assert expected == pytest.approx({name: values[name] for name in expected})
    assert 0 < values["bytes-fetched-rate"]
    assert 0 == values["sharecons-records-held"]
