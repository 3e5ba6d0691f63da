"""Traces of the client: the functions of the package that a program calls.

    python -m tests.tracing CASE

The cases are the functions below. Each runs on an embedded broker in virtual time, so
that its trace is the same each time. It prints the trace as JSON: the calls in order,
each a file and a qualified name, and the pairs of packages of which one called the
other. Compiled code is not traced.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio

import sharecons
from sharecons import (
    DeadLetterQueue,
    Record,
    Retry,
    RetryPolicy,
    RetryTopic,
    ShareConsumer,
    ShareWorker,
)
from sharecons.records.compression import Codec
from sharecons.records.encoder import NewRecord, encode
from sharecons.testing import EmbeddedBroker
from sharecons.testing.virtual_time import backend
from tests.waiting import until

PACKAGE = f"{Path(sharecons.__file__).parent}/"


class Trace:
    """The calls within the package, without the embedded broker's."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.pairs: set[tuple[str, str]] = set()

    @contextmanager
    def recording(self) -> Iterator[None]:
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        file = _file_of(frame)
        if event != "call" or file is None:
            return
        self.calls.append((file, frame.f_code.co_qualname))
        caller = None if frame.f_back is None else _file_of(frame.f_back)
        if caller is not None and _package(caller) != _package(file):
            self.pairs.add((_package(caller), _package(file)))


def _file_of(frame: FrameType) -> str | None:
    file = frame.f_code.co_filename.removeprefix(PACKAGE)
    is_client = file != frame.f_code.co_filename and not file.startswith("testing/")
    return file if is_client else None


def _package(file: str) -> str:
    return file.rpartition("/")[0]


def consumer_of(broker: EmbeddedBroker, **options: Any) -> ShareConsumer[Any, Any]:
    return ShareConsumer(
        "orders",
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        auto_offset_reset="earliest",
        **options,
    )


async def implicit(broker: EmbeddedBroker, trace: Trace) -> None:
    """Fetch ten records in an implicit loop, once the session is open."""
    broker.produce("orders", [b"x"] * 10)
    async with consumer_of(broker) as consumer:
        loop = aiter(consumer)
        for _ in range(10):
            await anext(loop)
        broker.produce("orders", [b"x"] * 10)
        with trace.recording():
            for _ in range(10):
                await anext(loop)
            await anyio.sleep(0.05)


async def explicit(broker: EmbeddedBroker, trace: Trace) -> None:
    """Accept a compressed record with key and headers, and commit."""
    record = NewRecord(key=b"key", value=b"value", headers=(("name", b"value"),))
    batches = [
        encode([record], base_offset=offset, compression=Codec.ZSTD)
        for offset in range(2)
    ]
    broker.load_log("orders", 0, b"".join(batches))
    async with consumer_of(broker, acknowledgement="explicit") as consumer:
        loop = aiter(consumer)
        (await anext(loop)).accept()
        await consumer.commit()
        with trace.recording():
            (await anext(loop)).accept()
            await consumer.commit()


async def idle(broker: EmbeddedBroker, trace: Trace) -> None:
    """Wait for a record for a second."""
    broker.produce("orders", [b"x"])
    async with consumer_of(broker) as consumer:
        loop = aiter(consumer)
        (await anext(loop)).accept()
        await consumer.commit()
        with trace.recording(), anyio.move_on_after(1.0):
            await anext(loop)


async def failing(broker: EmbeddedBroker, trace: Trace) -> None:
    """Fail for a record three times: in place, in a retry topic, as a dead letter.

    The window of 100 offsets has room for a wait of 0.2 s, not for one of 100 s.
    """
    attempts = 0

    async def handler(record: Record[Any, Any]) -> None:
        nonlocal attempts
        if record.value != b"bad":
            return
        attempts += 1
        raise Retry(after=0.2 if attempts == 1 else 100.0)

    broker.set_group_config("billing", {"share.partition.max.record.locks": 100})
    worker = ShareWorker(
        "orders",
        handler,
        group_id="billing",
        bootstrap_servers=broker.bootstrap_servers,
        network=broker.network,
        auto_offset_reset="earliest",
        retry=RetryPolicy(max_attempts=3, initial=0.2, maximum=100.0, jitter=0.0),
        retry_topics=[RetryTopic("orders.retry", 100.0)],
        dead_letter=DeadLetterQueue("orders.dead"),
        create_topics=True,
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        broker.produce("orders", [b"good"])
        await until(lambda: worker.stats.accepted == 1)
        with trace.recording():
            broker.produce("orders", [b"bad"])
            await until(lambda: len(broker.records("orders.dead")) == 1, 300.0)
            await anyio.sleep(1.0)
        worker.stop()
    assert len(broker.records("orders.retry")) == 1


async def main(case: str) -> None:
    trace = Trace()
    async with EmbeddedBroker(listen=False, topics={"orders": 1}) as broker:
        await globals()[case](broker, trace)
    result = {"calls": trace.calls, "pairs": sorted(trace.pairs)}
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    name, options = backend("asyncio")
    anyio.run(main, sys.argv[1], backend=name, backend_options=options)
