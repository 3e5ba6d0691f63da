"""The requests and bytes of connections to a broker, by API."""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["ConnectionTraffic", "Traffic"]

APIS: Final = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    9: "OffsetFetch",
    10: "FindCoordinator",
    15: "DescribeGroups",
    16: "ListGroups",
    18: "ApiVersions",
    19: "CreateTopics",
    32: "DescribeConfigs",
    60: "DescribeCluster",
    69: "ConsumerGroupDescribe",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    84: "ReadShareGroupState",
    87: "ReadShareGroupStateSummary",
    90: "DescribeShareGroupOffsets",
}
"""Names of requests by their keys, for tables."""

LENGTH: Final = 4
HEADER: Final = LENGTH + 2
"""Bytes of a request until the end of its API key."""


class Traffic(NamedTuple):
    """Requests, and bytes in both directions, by the names of APIs."""

    requests: Counter[str]
    sent: Counter[str]
    received: Counter[str]

    @classmethod
    def none(cls) -> "Traffic":
        return cls(Counter(), Counter(), Counter())

    def copy(self) -> "Traffic":
        # In one step, as a thread counts.
        return Traffic(*(Counter(dict(each)) for each in self))

    def since(self, earlier: "Traffic") -> "Traffic":
        """Return the traffic after a copy was made."""
        pairs = zip(self, earlier, strict=True)
        return Traffic(*(now - before for now, before in pairs))

    @property
    def total(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def kilobytes(self) -> float:
        """All bytes, in both directions, in kB."""
        return (sum(self.sent.values()) + sum(self.received.values())) / 1000


class ConnectionTraffic:
    """Counts the frames of one connection; brokers respond in order.

    Args:
        traffic: of all connections; it is updated.
    """

    def __init__(self, traffic: Traffic) -> None:
        requests, sent, received = traffic
        self._in_flight: list[str] = []

        def on_request(header: bytes, size: int) -> None:
            key = int.from_bytes(header[LENGTH:HEADER], "big")
            name = APIS.get(key, f"API {key}")
            requests[name] += 1
            sent[name] += size
            self._in_flight.append(name)

        def on_response(header: bytes, size: int) -> None:
            received[self._in_flight.pop(0)] += size

        self._requests = _Frames(HEADER, on_request)
        self._responses = _Frames(LENGTH, on_response)

    def on_bytes(self, data: bytes, is_response: bool) -> None:
        """Count the frames that begin in these bytes, in the order of the stream."""
        (self._responses if is_response else self._requests).feed(data)


class _Frames:
    """Finds the beginnings of frames, wherever the stream is divided."""

    def __init__(self, header: int, on_frame: Callable[[bytes, int], None]) -> None:
        self._header_size = header
        self._on_frame = on_frame
        self._header = b""
        self._left = 0  # bytes of the frame after its header

    def feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            skipped = min(self._left, len(data) - at)
            self._left -= skipped
            at += skipped
            if self._left or at == len(data):
                return
            part = data[at : at + self._header_size - len(self._header)]
            self._header += part
            at += len(part)
            if len(self._header) == self._header_size:
                self._begin_frame()

    def _begin_frame(self) -> None:
        size = LENGTH + int.from_bytes(self._header[:LENGTH], "big")
        header, self._header = self._header, b""
        self._left = size - len(header)
        self._on_frame(header, size)
