"""The public API for type checkers: mypy and pyright check this file."""

import json
from collections.abc import Mapping
from typing import Any, assert_type

from pydantic import BaseModel, TypeAdapter

import sharecons
import sharecons.testing
from sharecons import (
    AcknowledgeResult,
    AcknowledgeType,
    Attempt,
    Batch,
    BatchAttempt,
    BatchHandler,
    CallNext,
    Error,
    Handler,
    OutcomeEvent,
    Producer,
    ProducerRecord,
    Record,
    RecordPosition,
    RetryPolicy,
    ShareConsumer,
    ShareWorker,
    TopicPartition,
    WorkerOptions,
    load_properties,
    load_security,
)
from sharecons.errors import DeserializationError
from sharecons.metrics import METRICS, Metric, MetricName
from sharecons.testing import MadeRecord, make_batch, make_record
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
    async with Producer(
        bootstrap_servers="localhost:9092", compression="zstd"
    ) as producer:
        assert_type(producer, Producer)
        Producer("localhost:9092")  # type: ignore[call-arg]
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
            batch.release(after=1)
            batch[0].release(after=0.5)
            assert_type(batch[0].key, str | None)
            assert_type([record.value for record in batch], list[bytes | None])


class Parcel(BaseModel):
    weight: int


async def models() -> None:
    consumer = ShareConsumer(
        "t", group_id="g", value_deserializer=Parcel.model_validate_json
    )
    assert_type(consumer, ShareConsumer[bytes, Parcel])
    async for record in consumer:
        assert_type(record, Record[bytes, Parcel])
        assert_type(record.value, Parcel | None)
    worker = ShareWorker(group_id="g")

    @worker.handler("t", value_deserializer=Parcel.model_validate_json)
    async def deliver(record: Record[bytes, Parcel]) -> None: ...

    @worker.handler("u", value_deserializer=TypeAdapter(list[Parcel]).validate_json)
    async def deliver_all(record: Record[bytes, list[Parcel]]) -> None: ...

    @worker.handler("v", value_deserializer=Parcel.model_validate_json)  # type: ignore[arg-type]
    async def wrong(record: Record[bytes, Order]) -> None: ...


async def polled(consumer: ShareConsumer[bytes, Any]) -> None:
    for record in await consumer.poll(timeout=1.0, max_records=5):
        assert_type(record, Record[bytes, Any])
        record.accept()


def from_file() -> None:
    arguments = load_properties("client.properties", group_id="g", max_records=7)
    assert_type(ShareConsumer("t", **arguments), ShareConsumer[bytes, bytes])
    decoded = ShareConsumer(
        "t", key_deserializer=bytes.decode, **load_properties({}), handle_signals=True
    )
    assert_type(decoded, ShareConsumer[str, bytes])
    load_properties("client.properties", max_record=7)  # type: ignore[call-arg]
    Producer(security=load_security("client.properties"))


def worker_from_file() -> None:
    worker = ShareWorker("t", of_bytes, **load_properties("client.properties"))
    assert_type(worker, ShareWorker[bytes, bytes])
    decoded = ShareWorker(
        "t", key_deserializer=bytes.decode, concurrency=3, **load_properties({})
    )
    assert_type(decoded, ShareWorker[str, bytes])


def acknowledged(consumer: ShareConsumer[str, bytes]) -> None:
    consumer.acknowledge("t", 0, 0, AcknowledgeType.ACCEPT)
    consumer.on_acknowledged = None
    assert_type(consumer.lock_duration, float | None)


def jsons() -> ShareConsumer[bytes, Any]:
    return ShareConsumer("t", group_id="g", value_deserializer=json.loads)


async def charge(record: Record[str, bytes]) -> None: ...


def charge_in_thread(record: Record[str, bytes]) -> int:
    return record.offset


async def made() -> None:
    record = make_record(b"v", key="k", headers=[("n", None)], topic="orders")
    assert_type(record, MadeRecord[str, bytes])
    assert_type(record.acknowledgement, AcknowledgeType | None)
    assert_type(make_record(b"v"), MadeRecord[bytes, bytes])
    assert_type(make_record(Order(), key="k"), MadeRecord[str, Order])
    assert_type(make_batch([record]), Batch[str, bytes])
    await charge(record)
    await charge(make_record(b"v", key="k"))
    await charge_order(make_record(Order()))
    await write(HandlerBatch([record]))
    make_record(b"v", count=1)  # type: ignore[call-arg]


def misspelled() -> None:
    sharecons.ShareConsumr  # type: ignore[attr-defined]  # noqa: B018
    sharecons.testing.EmbededBroker  # type: ignore[attr-defined]  # noqa: B018


async def write(batch: HandlerBatch[str, bytes]) -> None:
    batch.fail(batch[0], ValueError())
    assert_type(batch[0].key, str | None)
    for record in batch:
        assert_type(record, Record[str, bytes])


async def of_bytes(record: Record[bytes, bytes]) -> None: ...


class Order:
    @classmethod
    def from_json(cls, value: bytes) -> "Order":
        return cls()


async def charge_order(record: Record[bytes, Order]) -> None:
    assert_type(record.value, Order | None)


async def write_orders(batch: HandlerBatch[bytes, Order]) -> None: ...


async def of_json(record: Record[bytes, Any]) -> None: ...
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
    settings: WorkerOptions = {"concurrency": 100, "bootstrap_servers": "a:9092"}
    worker = ShareWorker(
        "t", charge, group_id="g", key_deserializer=bytes.decode, **settings
    )
    assert_type(worker, ShareWorker[str, bytes])
    assert_type(worker.stats, WorkerStats)
    assert_type(worker.assignment, frozenset[TopicPartition])
    assert_type(ShareWorker("t", of_bytes, group_id="g"), ShareWorker[bytes, bytes])
    ShareWorker("t", charge_in_thread, group_id="g", key_deserializer=bytes.decode)
    ShareWorker("t", of_json, group_id="g", value_deserializer=json.loads)
    ShareWorker(
        ["t", "u"],
        BatchHandler(write, max_records=10),
        group_id="g",
        key_deserializer=bytes.decode,
    )
    ShareWorker("t", lambda record: len(record.key or b""), group_id="g")
    orders = ShareWorker(
        "t", charge_order, group_id="g", value_deserializer=Order.from_json
    )
    assert_type(orders, ShareWorker[bytes, Order])
    ShareWorker("t", charge_order, group_id="g")  # type: ignore[arg-type]
    ShareWorker("t", of_bytes, group_id="g", value_deserializer=int)  # type: ignore[misc]
    ShareWorker("t", 3, group_id="g")  # type: ignore[call-overload]
    ShareWorker("t", of_bytes, group_id="g", bootstrap_server="a:9092")  # type: ignore[call-overload]
    ShareWorker("t", of_bytes, group_id="g", retry=3)  # type: ignore[call-overload]
    ShareWorker(
        "t",
        of_bytes,
        group_id="g",
        middleware=[trace, trace_batch],
        on_outcome=report,
    )
    ShareWorker("t", of_bytes, group_id="g", middleware=[not_async])  # type: ignore[list-item]


def handlers_by_topic() -> None:
    worker = ShareWorker(
        {
            "bytes": of_bytes,
            "orders": Handler(charge_order, value_deserializer=Order.from_json),
            "batches": Handler(
                BatchHandler(write_orders), value_deserializer=Order.from_json
            ),
            "keys": Handler(charge, key_deserializer=bytes.decode, concurrency=2),
        },
        group_id="g",
    )
    assert_type(worker, ShareWorker[bytes, bytes])
    assert_type(Handler(of_bytes, retry=RetryPolicy()), Handler[bytes, bytes])
    # With the worker's deserializer.
    ShareWorker(
        {"orders": charge_order, "more": Handler(charge_order, timeout=1.0)},
        group_id="g",
        value_deserializer=Order.from_json,
    )
    ShareWorker({"orders": charge_order}, group_id="g")  # type: ignore[dict-item]
    ShareWorker({"orders": Handler(charge_order)}, group_id="g")  # type: ignore[arg-type]
    Handler(charge_order, value_deserializer=int)  # type: ignore[misc]
    Handler(charge_order, concurrency="2")  # type: ignore[call-overload]
    Handler(charge_order, max_lock_time="1h")  # type: ignore[call-overload]


async def decorated() -> None:
    worker = ShareWorker(group_id="g", retry=RetryPolicy())

    @worker.handler("orders", "more", value_deserializer=Order.from_json)
    async def handle(record: Record[bytes, Order]) -> int:
        return record.offset

    @worker.handler("batches", max_records=10, value_deserializer=Order.from_json)
    def handle_many(batch: HandlerBatch[bytes, Order]) -> None: ...

    @worker.handler("raw", dead_letter="dead")
    async def handle_bytes(record: Record) -> None: ...

    async def call(record: Record[bytes, Order]) -> None:
        assert_type(await handle(record), int)

    @worker.handler("a")  # type: ignore[arg-type]
    async def wrong(record: Record[bytes, Order]) -> None: ...

    @worker.handler("b", value_deserializer=int)  # type: ignore[arg-type]
    async def wrong_too(record: Record[bytes, Order]) -> None: ...

    worker.handler("c", dead_letters="dead")  # type: ignore[call-overload]

    assert_type(worker.handler("d")(BatchHandler(of_batch)), BatchHandler[bytes, bytes])


async def of_batch(batch: HandlerBatch[bytes, bytes]) -> None: ...


async def lifecycle() -> None:
    async with ShareWorker("t", of_bytes, group_id="g") as worker:
        assert_type(worker, ShareWorker[bytes, bytes])
        await worker.wait_stopped()


def not_deserialized(error: DeserializationError) -> None:
    assert_type(error.record, Record[bytes, bytes])
    assert_type(error.record.value, bytes | None)
    error.record.reject()


def version() -> str:
    return sharecons.__version__


def wrong() -> None:
    ShareConsumer("t")  # type: ignore[call-arg]
    ShareConsumer("t", group_id="g", max_wait="1")  # type: ignore[arg-type]
    ShareConsumer("t", group_id="g", max_wiat=1.0)  # type: ignore[call-arg]
    ShareConsumer("t", group_id="g", acknowledgement="maybe")  # type: ignore[arg-type]
