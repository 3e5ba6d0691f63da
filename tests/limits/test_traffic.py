"""Counting requests and bytes in streams that are divided anywhere."""

import pytest

from tests.limits.traffic import ConnectionTraffic, Traffic


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def request(key: int, size: int) -> bytes:
    """Return a request of `size` bytes with its length."""
    return frame(key.to_bytes(2, "big") + bytes(size - 6))


FETCH, HEARTBEAT, OTHER = request(78, 60), request(76, 40), request(999, 20)
STREAM = FETCH + HEARTBEAT + FETCH + OTHER
RESPONSES = frame(bytes(96)) + frame(bytes(6)) + frame(bytes(196)) + frame(bytes(4))


@pytest.mark.parametrize("size", [1, 2, 5, 7, 59, 60, 61, 1000])
def test_frames_are_counted_by_api_wherever_the_stream_is_divided(size: int) -> None:
    traffic = Traffic.none()
    connection = ConnectionTraffic(traffic)

    for at in range(0, len(STREAM), size):
        connection.on_bytes(STREAM[at : at + size], False)
    for at in range(0, len(RESPONSES), size):
        connection.on_bytes(RESPONSES[at : at + size], True)

    names = {"ShareFetch": 2, "ShareGroupHeartbeat": 1, "API 999": 1}
    assert names == traffic.requests
    assert {"ShareFetch": 120, "ShareGroupHeartbeat": 40, "API 999": 20} == traffic.sent
    received = {"ShareFetch": 300, "ShareGroupHeartbeat": 10, "API 999": 8}
    assert received == traffic.received


def test_traffic_since_a_copy_is_the_traffic_after_it() -> None:
    traffic = Traffic.none()
    connection = ConnectionTraffic(traffic)
    connection.on_bytes(FETCH, False)
    before = traffic.copy()

    connection.on_bytes(FETCH + HEARTBEAT, False)

    later = traffic.since(before)
    assert {"ShareFetch": 1, "ShareGroupHeartbeat": 1} == later.requests
    assert 2 == later.total
    assert 0.1 == pytest.approx(later.kilobytes)
