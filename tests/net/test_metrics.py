"""A consumer's metrics, compared with what its broker and its application observe."""

from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import pytest

from sharecons import ShareConsumer
from sharecons.testing import EmbeddedBroker
from tests.net.embedded import LATENCY, consuming, requests, running

pytestmark = pytest.mark.anyio


FETCH_TIME = 0.25
HEARTBEAT_TIME = 0.125
RECORD_BYTES = 8  # with a value of one byte


class Event(NamedTuple):
    """A measurement and its time."""

    value: float
    at: float


class Observer:
    """Records what the metrics of a broker's consumer are about."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.broker = broker
        self.throttle = 0.0
        self.assignment: Any = None
        self.fetches: list[Event] = []  # latencies
        self.throttles: list[Event] = []
        self.records: list[Event] = []
        self.sent: list[Event] = []
        self.failed: list[Event] = []
        self.heartbeats: list[Event] = []  # latencies
        self.rebalances: list[Event] = []
        self.polls: list[tuple[float, float]] = []
        faults = broker.faults
        for api in ("ShareFetch", "ShareAcknowledge"):
            faults.on(api, times=None, where=self.on_request).lose()
        faults.on("ShareFetch", times=None).change(self.on_fetch)
        faults.on("ShareGroupHeartbeat", times=None).change(self.on_heartbeat)

    def on_request(self, request: Any, context: Any) -> bool:
        """Record the acknowledgements of a request; its fault does not take it."""
        if count := acknowledgements(request):
            self.sent.append(Event(count, context.now - LATENCY))
        return False

    async def on_fetch(self, response: Any, context: Any) -> Any:
        done = context.now + FETCH_TIME
        self.fetches.append(Event(LATENCY + FETCH_TIME, done))
        self.throttles.append(Event(self.throttle, done))
        if count := acquired(response):
            self.records.append(Event(count, done))
        throttled = {**response, "throttle_time": self.throttle}
        self.throttle = 0.0
        await anyio.sleep(FETCH_TIME)
        return throttled

    async def on_heartbeat(self, response: Any, context: Any) -> Any:
        done = context.now + HEARTBEAT_TIME
        self.heartbeats.append(Event(LATENCY + HEARTBEAT_TIME, done))
        assignment = response.get("assignment")
        if response["member_epoch"] < 0:
            self.assignment = None
        elif assignment is not None and assignment != self.assignment:
            self.assignment = assignment
            self.rebalances.append(Event(1, done))
        await anyio.sleep(HEARTBEAT_TIME)
        return response

    def reject_acknowledgement(self) -> None:
        """Reject the next ShareAcknowledge."""

        def on_rejected(request: Any, context: Any) -> bool:
            self.failed.append(Event(acknowledgements(request), context.now))
            return True

        fault = self.broker.faults.on("ShareAcknowledge", where=on_rejected)
        fault.refuse_partitions("INVALID_RECORD_STATE")

    async def poll(self, consumer: ShareConsumer[Any, Any]) -> list[Any]:
        started = anyio.current_time()
        records = await consumer.poll(timeout=1.0)
        self.polls.append((started, anyio.current_time()))
        return records


def acknowledgements(request: Any) -> int:
    """Return the number of acknowledged records of a request."""
    return sum(
        batch.last_offset - batch.first_offset + 1
        for topic in request.topics
        for partition in topic.partitions
        for batch in partition.acknowledgement_batches
    )


def acquired(response: Any) -> int:
    """Return the number of acquired records of a response."""
    return sum(
        each["last_offset"] - each["first_offset"] + 1
        for topic in response["responses"]
        for partition in topic["partitions"]
        for each in partition["acquired_records"]
    )


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
    async with running() as broker:
        for number in range(9):
            broker.produce("orders", [b"%d" % number])
        observer = Observer(broker)
        options = {"acknowledgement": "explicit", "max_wait": 0.0, "max_records": 4}

        async with consuming(broker, **options) as consumer:
            records = await observer.poll(consumer)  # the first fetch is for one record
            await anyio.sleep(0.5)
            records += await observer.poll(consumer)
            for record in records:
                record.accept()
            await consumer.commit()
            unacknowledged = await observer.poll(consumer)
            observer.throttle = 1.5
            unacknowledged += await observer.poll(consumer)
            assert len(unacknowledged) == consumer.metrics()["sharecons-records-held"]

            observer.reject_acknowledgement()
            unacknowledged[0].accept()
            await consumer.commit()
            consumer.unsubscribe()
            await anyio.sleep(3)
            consumer.subscribe("orders")
            await anyio.sleep(3)
            await observer.poll(consumer)
            await anyio.sleep(2)
        values, now = consumer.metrics(), anyio.current_time()

        starts = [start for start, _ in observer.polls]
        pauses = [b - a for a, b in zip(starts, starts[1:], strict=False)]
        idle = [
            (end - start) / (end - previous)
            for (_, previous), (start, end) in zip(
                observer.polls, observer.polls[1:], strict=False
            )
        ]
        sizes = [Event(each.value * RECORD_BYTES, each.at) for each in observer.records]
        left_at = requests(broker, "ShareGroupHeartbeat")[-1].at - LATENCY
        expected = {
            "last-poll-seconds-ago": now - starts[-1],
            "time-between-poll-avg": 1000 * sum(pauses) / len(pauses),
            "time-between-poll-max": 1000 * max(pauses),
            "poll-idle-ratio-avg": sum(idle) / len(idle),
            "heartbeat-response-time-max": 1000 * maximum(observer.heartbeats),
            "heartbeat-rate": rate(observer.heartbeats, now, len),
            "heartbeat-total": len(observer.heartbeats),
            "last-heartbeat-seconds-ago": now - left_at,
            # None after the first join, one partition, and it again after the second.
            "rebalance-total": 3,
            "rebalance-rate-per-hour": 3600 * rate(observer.rebalances, now),
            "fetch-size-avg": average(sizes),
            "fetch-size-max": maximum(sizes),
            "bytes-fetched-total": total(sizes),
            "records-per-request-avg": average(observer.records),
            "records-per-request-max": maximum(observer.records),
            "records-fetched-rate": rate(observer.records, now),
            "records-fetched-total": total(observer.records),
            "acknowledgements-send-rate": rate(observer.sent, now),
            "acknowledgements-send-total": total(observer.sent),
            "acknowledgements-error-rate": rate(observer.failed, now),
            "acknowledgements-error-total": total(observer.failed),
            "fetch-latency-avg": 1000 * average(observer.fetches),
            "fetch-latency-max": 1000 * maximum(observer.fetches),
            "fetch-rate": rate(observer.fetches, now, len),
            "fetch-total": len(requests(broker, "ShareFetch")),
            "fetch-throttle-time-avg": 1000 * average(observer.throttles),
            "fetch-throttle-time-max": 1500.0,
        }
        assert expected == pytest.approx({name: values[name] for name in expected})
        assert 0 < values["bytes-fetched-rate"]
        assert 0 == values["sharecons-records-held"]
