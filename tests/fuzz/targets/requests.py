"""Requests to the embedded broker: of every API and version, and nonsense.

A request gets a response, or the end of its connection. Other connections are served,
and the broker logs no traceback.
"""

import logging
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import anyio
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sharecons.testing import EmbeddedBroker, virtual_time
from sharecons.testing.broker.apis import APIS
from sharecons.testing.broker.codec import load_request_schema
from tests.broker.async_client import Client
from tests.broker.messages import VERSIONS, decode_response
from tests.fuzz.drawing import TOPIC_ID, changed, messages
from tests.fuzz.target import Case, Target
from tests.fuzz.targets.batches import payloads

__all__ = ["TARGETS"]

LOG: Final = "sharecons.testing.broker"
WAIT: Final = 30.0
"""Seconds to wait for a response, in virtual time: some requests wait, and Produce with
acks=0 has none."""

STRICT: Final = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "compact",
    "compression.type": "gzip",
}
"""The config of a topic whose batches are checked and rewritten."""

HEADER_ONE: Final = 17
"""SaslHandshake, whose header has no tagged fields."""


def _frames() -> SearchStrategy[bytes]:
    versions = [(key, v) for key, api in APIS.items() for v in api.versions]
    valid = st.sampled_from(versions).flatmap(lambda each: _requests(*each))
    return valid | changed(valid, max_changes=2)


def _requests(key: int, version: int) -> SearchStrategy[bytes]:
    kind = load_request_schema(key, version)
    flexible = kind.__flexible__ and key != HEADER_ONE
    header = struct.pack(">hhih", key, version, 1, 4) + b"fuzz" + b"\0" * flexible
    counts = st.integers(-2, 3) | st.sampled_from((2**31 - 1, 1 << 20))
    bodies = messages(
        kind,
        records=payloads(),
        partition_index=st.integers(-1, 2),
        index=st.integers(-1, 2),
        share_session_epoch=st.integers(-1, 1),
        member_epoch=st.integers(-1, 1),
        num_partitions=counts,
        replication_factor=st.integers(-2, 3),
    )
    return bodies.map(lambda body: header + body)


def _check(case: Case) -> None:
    _, options = virtual_time.backend("asyncio")
    with _no_tracebacks():
        anyio.run(_send_all, case, backend="asyncio", backend_options=options)


async def _send_all(frames: Sequence[bytes]) -> None:
    async with EmbeddedBroker(listen=False, topics={"orders": 2}) as broker:
        broker.create_topic("billing", config=STRICT)
        topic_id = broker.cluster.topics.get("orders").topic_id.bytes
        for frame in frames:
            frame = frame.replace(TOPIC_ID.bytes, topic_id)
            await _send(broker, frame)
        with anyio.fail_after(5):
            other = Client(broker.connect(1))
            assert 0 == (await other.request(VERSIONS)).error_code


async def _send(broker: EmbeddedBroker, frame: bytes) -> None:
    client = Client(broker.connect(1))
    try:
        with anyio.move_on_after(WAIT):
            await client.stream.send(struct.pack(">i", len(frame)) + frame)
            response = await client.frame()
            assert response[:4] == frame[4:8], "the correlation id"
            key, version = struct.unpack_from(">hh", frame)
            if version in APIS[key].versions:
                decode_response(response, key, version)
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        pass
    finally:
        await client.stream.aclose()


@contextmanager
def _no_tracebacks() -> Iterator[None]:
    """Raise the first exception that the broker logs."""
    handler = _Tracebacks()
    log = logging.getLogger(LOG)
    propagates, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = propagates
    if handler.errors:
        raise handler.errors[0]


class _Tracebacks(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.errors: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.errors.append(record.exc_info[1])


TARGETS: Final = (
    Target(
        name="requests",
        cases=st.lists(_frames(), min_size=1, max_size=4),
        check=_check,
        modules=("testing.broker",),
        seconds=5.0,
        memory=96 << 20,
        traces=False,
        examples=80,
    ),
)
