"""Frames of a connection, the responses of every API, and the records of brokers."""

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.index import load_response_schema

from sharecons.errors import ProtocolError
from sharecons.wire.api_versions import read_versions
from sharecons.wire.codec.api import Api, read_entity
from sharecons.wire.codec.frames import PREALLOCATION_LIMIT, FrameBuffer, body_offset
from sharecons.wire.codec.registry import API_LOCATIONS
from sharecons.wire.consumer_protocol import read_assignment, read_subscription
from sharecons.wire.share_state_records import read_key, read_value
from tests.fuzz.drawing import TOPIC_ID, changed, integers, messages
from tests.fuzz.target import Case, Target
from tests.fuzz.targets.batches import payloads

__all__ = ["TARGETS"]

VERSIONS: Final = "VERSIONS"
"""ApiVersions, whose response is read before any version is known."""


# Responses.


def _apis() -> Iterator[tuple[str, Api[Any, Any]]]:
    for location in API_LOCATIONS.values():
        module, name = location.split(".")
        yield name, getattr(import_module(f"sharecons.wire.{module}"), name)


APIS: Final[Mapping[str, Api[Any, Any]]] = dict(_apis())

SHARE_FETCH: Final = "SHARE_FETCH"
STRICTER: Final = ("ascending", "null")
"""Words of the reasons why ShareFetch rejects a response that is well-formed."""


def _responses() -> SearchStrategy[tuple[str, int, bytes]]:
    versions = [(VERSIONS, 0), (VERSIONS, 3), (VERSIONS, 4)]
    every = [(name, v) for name, api in APIS.items() for v in api.versions]
    # Responses with records have more to read than others.
    every += [each for each in every if "FETCH" in each[0]] * 3
    return st.sampled_from(every + versions).flatmap(
        lambda chosen: st.tuples(
            st.just(chosen[0]), st.just(chosen[1]), _bodies(*chosen)
        )
    )


@cache
def _bodies(name: str, version: int) -> SearchStrategy[bytes]:
    key = 18 if name == VERSIONS else APIS[name].key
    members = changed(st.just(_consumer_protocol()))
    whole = messages(
        load_response_schema(key, version),
        records=payloads(),
        member_metadata=members,
        member_assignment=members,
        first_offset=st.integers(0, 20),
        last_offset=st.integers(0, 60),
    )
    return whole | changed(whole)


def _check_response(case: Case) -> None:
    name, version, body = case
    outcomes = []
    for frame in (body, memoryview(body)):
        try:
            outcomes.append(_read(name, version, frame))
        except ProtocolError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1], "bytes and views have the same response"
    if name == SHARE_FETCH:
        _compare_share_fetch(version, body, outcomes[0])


def _read(name: str, version: int, frame: Any) -> Any:
    if name == VERSIONS:
        return read_versions(frame, 0)
    return APIS[name].read(frame, 0, version)


def _compare_share_fetch(version: int, body: bytes, response: Any) -> None:
    """Compare the own decoder with kio's, which decodes all other responses."""
    try:
        other = read_entity(load_response_schema(78, version), body, 0)
    except ProtocolError:
        return
    if isinstance(response, str):
        assert any(word in response for word in STRICTER), response
        return
    own = [
        (each.share_partition, each.error, bytes(each.records), each.acquired)
        for each in response.partitions
    ]
    assert own == [
        (
            (
                topic.topic_id.bytes if topic.topic_id else bytes(16),
                each.partition_index,
            ),
            each.error_code,
            bytes(each.records or b""),
            tuple(
                (one.first_offset, one.last_offset, one.delivery_count)
                for one in each.acquired_records
            ),
        )
        for topic in other.responses
        for each in topic.partitions
    ]


# Frames.


def _streams() -> SearchStrategy[bytes]:
    contents = st.binary(min_size=4, max_size=60) | st.integers(4, 1 << 18).map(bytes)
    frames = contents.map(lambda content: struct.pack(">i", len(content)) + content)
    return changed(st.lists(frames, max_size=3).map(b"".join))


def _check_frames(case: Case) -> None:
    stream, given, key = case
    cuts = list(given)
    buffer, position, start = FrameBuffer(), 0, 0
    try:
        while position < len(stream):
            cut = cuts.pop(0) if cuts else len(stream)
            writable = buffer.writable()
            assert 0 < len(writable) <= PREALLOCATION_LIMIT
            chunk = stream[position : position + min(cut, len(writable))]
            writable[: len(chunk)] = chunk
            position += len(chunk)
            frame = buffer.advance(len(chunk))
            if frame is None:
                continue
            length = int.from_bytes(stream[start : start + 4], "big")
            assert bytes(frame) == stream[start + 4 : start + 4 + length]
            start += 4 + length
            _read_header(frame, key)
    except ProtocolError:
        pass


def _read_header(frame: Any, key: int) -> None:
    try:
        assert body_offset(frame, key, 0) in (4, 5)
    except ProtocolError:
        pass


# Records of brokers, and bytes of other clients.


def _state_records() -> SearchStrategy[tuple[bytes, bytes]]:
    key = struct.pack(">hh", 0, 7) + b"billing" + TOPIC_ID.bytes + struct.pack(">i", 0)
    batch = struct.pack(">qqbh", 0, 4, 2, 1) + b"\0"
    tail = b"\x02" + batch + b"\0"
    values = (
        struct.pack(">hiiiqqq", 0, 1, 2, 3, 4, 5, 6) + tail,
        struct.pack(">hiiq", 0, 1, 2, 3) + tail,
    )
    kinds = st.binary(min_size=2, max_size=2) | st.sampled_from((b"\0\0", b"\0\1"))
    return st.tuples(
        changed(kinds.map(lambda kind: kind + key[2:])),
        changed(st.sampled_from(values)),
    )


def _consumer_protocol() -> bytes:
    topic = struct.pack(">h", 6) + b"orders"
    return struct.pack(">hi", 0, 1) + topic + struct.pack(">iii", 2, 0, 1) + b"\xff" * 4


def _check_state_records(case: Case) -> None:
    key, value = case
    for kind in (0, 1):
        try:
            read_key(key)
            read_value(kind, value)
        except ProtocolError:
            pass
    for data in (key, value):
        read_subscription(data)
        read_assignment(data)


TARGETS: Final = (
    Target(
        name="responses",
        cases=_responses(),
        check=_check_response,
        modules=("wire",),
        examples=500,
    ),
    Target(
        name="frames",
        cases=st.tuples(
            _streams(), st.lists(st.integers(1, 200), max_size=8), integers(16)
        ),
        check=_check_frames,
        modules=("wire.codec.frames", "wire.codec.frame_memory"),
        # A length alone allocates PREALLOCATION_LIMIT, and FREED_BLOCK.
        memory=64 << 20,
        examples=200,
    ),
    Target(
        name="broker-records",
        cases=_state_records()
        | st.tuples(changed(st.just(_consumer_protocol())), st.binary(max_size=20)),
        check=_check_state_records,
        modules=("wire.share_state_records", "wire.consumer_protocol"),
        examples=300,
    ),
)
