"""The public API for type checkers: mypy and pyright check this file."""

import json
from collections.abc import Mapping
from typing import Any, assert_type

import sharecons
from sharecons import (
    AcknowledgeResult,
    AcknowledgeType,
    Attempt,
    Batch,
    BatchAttempt,
    BatchHandler,
    CallNext,
    Error,
    OutcomeEvent,
    Producer,
    ProducerRecord,
    Record,
    RecordPosition,
    ShareConsumer,
    ShareWorker,
    TopicPartition,
)
from sharecons.errors import DeserializationError
from sharecons.metrics import METRICS, Metric, MetricName
from sharecons.worker.handlers import HandlerBatch
from sharecons.worker.outcomes import RecordOutcome
from sharecons.worker.stats import WorkerStats


async def plain() -> None:
    async with ShareConsumer("t", group_id="g") as consumer:
        assert_type(consumer.assignment, frozenset[TopicPartition])
        assert_type(consumer.metrics(), Mapping[MetricName, float])
        consumer.metrics()["fetch-totals"]  # type: ignore[index]
        assert_type(METRICS["fetch-total"], Metric)
        assert_type(await consumer.commit(), list[AcknowledgeResult])
        async for record in consumer:
            assert_type(record, Record[bytes, bytes])
            assert_type(record.key, bytes | None)
            assert_type(record.headers, tuple[tuple[str, bytes | None], ...])


async def produced() -> None:
    async with Producer("localhost:9092", compression="zstd") as producer:
        assert_type(producer, Producer)
        position = await producer.send("t", b"v", key=None, headers=[("n", None)])
        assert_type(position, RecordPosition)
        records = [ProducerRecord("t", b"v", key=b"k")]
        assert_type(await producer.send_many(records), list[RecordPosition | Error])
        await producer.send("t", "v")  # type: ignore[arg-type]
    Producer(compression="brotli")  # type: ignore[arg-type]


async def deserialized() -> None:
    consumer = ShareConsumer("t", group_id="g", key_deserializer=bytes.decode)
    assert_type(consumer, ShareConsumer[str, bytes])
    async with consumer:
        async for batch in consumer.batches():
            assert_type(batch, Batch[str, bytes])
            assert_type(batch[0].key, str | None)
            assert_type([record.value for record in batch], list[bytes | None])


async def polled(consumer: ShareConsumer[bytes, Any]) -> None:
    for record in await consumer.poll(timeout=1.0, max_records=5):
        assert_type(record, Record[bytes, Any])
        record.accept()


def from_file() -> None:
    consumer = ShareConsumer.from_properties("client.properties", "t")
    assert_type(consumer, ShareConsumer[bytes, bytes])
    decoded = ShareConsumer.from_properties({}, "t", key_deserializer=bytes.decode)
    assert_type(decoded, ShareConsumer[str, bytes])


def acknowledged(consumer: ShareConsumer[str, bytes]) -> None:
    consumer.acknowledge("t", 0, 0, AcknowledgeType.ACCEPT)
    consumer.on_acknowledged = None
    assert_type(consumer.lock_duration, float | None)


def jsons() -> ShareConsumer[bytes, Any]:
    return ShareConsumer("t", group_id="g", value_deserializer=json.loads)


async def charge(record: Record[str, bytes]) -> None: ...


def charge_in_thread(record: Record[str, bytes]) -> int:
    return record.offset


async def write(batch: HandlerBatch[str, bytes]) -> None:
    batch.fail(batch[0], ValueError())
    assert_type(batch[0].key, str | None)
    for record in batch:
        assert_type(record, Record[str, bytes])


async def of_bytes(record: Record[bytes, bytes]) -> None: ...


async def trace(attempt: Attempt[str, bytes], call_next: CallNext) -> None:
    assert_type(attempt.record, Record[str, bytes])
    assert_type(attempt.outcome, RecordOutcome | None)
    assert_type(await call_next(), None)


async def trace_batch(attempt: BatchAttempt[str, bytes], call_next: CallNext) -> None:
    assert_type(attempt.attempts, tuple[Attempt[str, bytes], ...])
    await call_next()


def not_async(attempt: Attempt[str, bytes], call_next: CallNext) -> None: ...


def report(event: OutcomeEvent[str, bytes]) -> None:
    assert_type(event.record, Record[str, bytes])
    assert_type(event.outcome, RecordOutcome)


def workers() -> None:
    consumer = ShareConsumer("t", group_id="g", key_deserializer=bytes.decode)
    worker = ShareWorker(consumer, charge, concurrency=100)
    assert_type(worker, ShareWorker[str, bytes])
    assert_type(worker.consumer, ShareConsumer[str, bytes])
    assert_type(worker.stats, WorkerStats)
    ShareWorker(consumer, charge, middleware=[trace, trace_batch], on_outcome=report)
    ShareWorker(consumer, charge, middleware=[not_async])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    ShareWorker(consumer, charge_in_thread)
    ShareWorker(consumer, BatchHandler(write, max_records=10))
    ShareWorker(consumer, lambda record: assert_type(record.key, str | None))
    ShareWorker(consumer, of_bytes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ShareWorker(consumer, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def not_deserialized(error: DeserializationError) -> None:
    assert_type(error.record, Record[bytes, bytes])
    assert_type(error.record.value, bytes | None)
    error.record.reject()


def version() -> str:
    return sharecons.__version__


def wrong() -> None:
    ShareConsumer("t")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ShareConsumer("t", group_id="g", acknowledgement="maybe")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
