"""A minimal simulated leader of share partitions, to check the client against.

It shares only the message types with the client. It asserts that requests are valid,
and returns the responses that the KIP allows.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from sharecons.protocol.codes import Code
from sharecons.protocol.partitions import PartitionLeader, SharePartition
from sharecons.protocol.share_messages import (
    Acknowledgements,
    PartitionResponse,
    Range,
    ShareAcknowledge,
    ShareAcknowledgeResponse,
    ShareFetch,
    ShareFetchResponse,
)

__all__ = ["LOCK", "Broker", "Fault", "Partition"]

LOCK: Final = 10.0
WINDOW: Final = 30
BATCH: Final = 4
RECORD_SIZE: Final = 170
DELIVERY_LIMIT: Final = 5
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "available", "acquired", "done", "gone"
FINAL: Final = (ACKNOWLEDGED, ARCHIVED)
NO_LEADER: Final = PartitionLeader(-1, -1)

Request = ShareFetch | ShareAcknowledge
Response = ShareFetchResponse | ShareAcknowledgeResponse


@dataclass(frozen=True)
class Fault:
    """A fault in the handling of a request.

    `error` is an error of the whole request, which is not applied; if `counted`, the
    session epoch advances. `fetch_error` and `acknowledge_error` are errors of each
    partition. With `missing_in_response` the acknowledgements are applied.
    """

    error: int = 0
    counted: bool = False
    fetch_error: int = 0
    acknowledge_error: int = 0
    missing_in_response: bool = False
    extra_partition: bool = False


@dataclass
class Offset:
    state: str = AVAILABLE
    count: int = 0
    until: float = 0.0

    def release(self) -> None:
        self.state = ARCHIVED if self.count >= DELIVERY_LIMIT else AVAILABLE


@dataclass
class Partition:
    """Share partition state: offsets from 0, each with its state and lock."""

    offsets: list[Offset] = field(default_factory=list)
    applied: Counter[tuple[int, int]] = field(default_factory=Counter)
    """How often each offset was acknowledged, by type."""

    @property
    def start(self) -> int:
        for number, offset in enumerate(self.offsets):
            if offset.state not in FINAL:
                return number
        return len(self.offsets)

    def produce(self, count: int) -> None:
        self.offsets += [Offset() for _ in range(count)]

    def expire(self, now: float) -> None:
        for offset in self.offsets:
            if offset.state == ACQUIRED and offset.until <= now:
                offset.release()

    def release(self) -> None:
        for offset in self.offsets:
            if offset.state == ACQUIRED:
                offset.release()

    def acquire(self, limit: int, now: float, *, whole: bool) -> list[int]:
        numbers: list[int] = []
        start = self.start
        for number in range(start, min(len(self.offsets), start + WINDOW)):
            full = len(numbers) >= limit
            if full and not (whole and number % BATCH and number - 1 in numbers):
                break
            offset = self.offsets[number]
            if offset.state == AVAILABLE:
                offset.state = ACQUIRED
                offset.count += 1
                offset.until = now + LOCK
                numbers.append(number)
        return numbers

    def acknowledge(self, ranges: Iterable[Range], now: float) -> int:
        """Apply all ranges, or none if one is invalid; return the error code."""
        acknowledged = {
            number: kinds[0] if len(kinds) == 1 else kinds[number - first]
            for first, last, kinds in ranges
            for number in range(first, last + 1)
        }
        start = self.start
        for number in acknowledged:
            if number >= start and self.offsets[number].state != ACQUIRED:
                return Code.INVALID_RECORD_STATE
        for number, kind in acknowledged.items():
            self.applied[number, kind] += 1
            if number >= start:
                self._apply(self.offsets[number], kind, now)
        return 0

    def _apply(self, offset: Offset, kind: int, now: float) -> None:
        if kind == ACCEPT:
            offset.state = ACKNOWLEDGED
        elif kind in (GAP, REJECT):
            offset.state = ARCHIVED
        elif kind == RELEASE:
            offset.release()
        else:
            offset.until = now + LOCK

    def spans(self, numbers: list[int]) -> tuple[tuple[int, int, int], ...]:
        spans: list[tuple[int, int, int]] = []
        for number in numbers:
            count = self.offsets[number].count
            if spans and spans[-1][1:] == (number - 1, count):
                spans[-1] = (spans[-1][0], number, count)
            else:
                spans.append((number, number, count))
        return tuple(spans)


class Broker:
    """One leader and its one member.

    Attributes:
        epoch: the session epoch of the next request; None without a session.
        epochs_may_differ: a fault can have put the client's epoch out of step.
    """

    def __init__(self, partitions: Iterable[SharePartition]) -> None:
        self.partitions = {p: Partition() for p in partitions}
        self.epoch: int | None = None
        self.session: set[SharePartition] = set()
        self.epochs_may_differ = False

    # Faults.

    def expire(self, now: float) -> None:
        for partition in self.partitions.values():
            partition.expire(now)

    def disconnected(self) -> None:
        self.forget_session()
        self.epochs_may_differ = False

    def forget_session(self) -> None:
        self.epoch, self.session, self.epochs_may_differ = None, set(), True
        for partition in self.partitions.values():
            partition.release()

    def miscount(self) -> None:
        if self.epoch is not None:
            self.epoch += 1
            self.epochs_may_differ = True

    # Requests.

    def handle(self, request: Request, now: float, fault: Fault) -> Response:
        self.expire(now)
        self._check(request)
        if fault.error:
            self.epochs_may_differ = True
            if fault.counted and self.epoch is not None:
                self.epoch += 1
            return self._error_response(request, fault.error)
        code = self._enter_session(request)
        if code:
            assert self.epochs_may_differ, f"{Code(code).name}, and no fault caused it"
            return self._error_response(request, code)
        parts = self._acknowledge(request.acknowledgements, now, fault)
        if isinstance(request, ShareFetch):
            self._fetch(request, parts, now, fault)
        elif request.share_session_epoch == -1:
            self.forget_session()
        return self._response(
            request, 0, () if fault.missing_in_response else parts.values()
        )

    def _check(self, request: Request) -> None:
        """Check that Kafka would not reject the request as invalid."""
        assert ("billing", "AAAAAAAAAAAAAAAAAAAAAA") == (
            request.group_id,
            request.member_id,
        )
        acknowledged = request.acknowledgements
        for ranges in acknowledged.values():
            after = -1
            assert ranges, "a partition has no acknowledgements"
            for first, last, kinds in ranges:
                assert after < first <= last, "ranges ascend and do not overlap"
                assert len(kinds) in (1, last - first + 1)
                after = last
        renews = any(
            RENEW in r.kinds for ranges in acknowledged.values() for r in ranges
        )
        if isinstance(request, ShareAcknowledge):
            assert renews == request.is_renew_ack
            assert request.share_session_epoch != 0
            assert not (renews and request.share_session_epoch == -1)
            return
        assert not renews, "a fetch must not renew"
        assert request.share_session_epoch != -1
        assert not request.added & request.forgotten
        if request.share_session_epoch == 0:
            assert not acknowledged, "an opening fetch must not acknowledge"

    def _enter_session(self, request: Request) -> int:
        if isinstance(request, ShareFetch) and request.share_session_epoch == 0:
            self.epoch, self.session, self.epochs_may_differ = 1, set(), False
            return 0
        if self.epoch is None:
            return Code.SHARE_SESSION_NOT_FOUND
        if request.share_session_epoch not in (-1, self.epoch):
            return Code.INVALID_SHARE_SESSION_EPOCH
        self.epoch += 1
        return 0

    def _acknowledge(
        self, acknowledged: Acknowledgements, now: float, fault: Fault
    ) -> dict[SharePartition, PartitionResponse]:
        parts = {}
        for share_partition, ranges in acknowledged.items():
            code = fault.acknowledge_error
            if not code:
                code = self.partitions[share_partition].acknowledge(ranges, now)
            parts[share_partition] = _part(share_partition, acknowledge_error=code)
        return parts

    def _fetch(
        self,
        request: ShareFetch,
        parts: dict[SharePartition, PartitionResponse],
        now: float,
        fault: Fault,
    ) -> None:
        assert request.forgotten <= self.session | request.acknowledgements.keys()
        self.session |= request.added | request.acknowledgements.keys()
        self.session -= request.forgotten
        left = request.max_records if request.max_bytes else 0
        for share_partition in sorted(self.session):
            part = parts.get(share_partition, _part(share_partition))
            if fault.fetch_error:
                parts[share_partition] = replace(part, error=fault.fetch_error)
            elif left > 0:
                partition = self.partitions[share_partition]
                whole = not request.record_limit
                numbers = partition.acquire(left, now, whole=whole)
                left -= len(numbers)
                if numbers:
                    acquired = partition.spans(numbers)
                    records = bytes(len(numbers) * RECORD_SIZE)
                    parts[share_partition] = replace(
                        part, acquired=acquired, records=records
                    )
        if fault.extra_partition:
            for share_partition in self.partitions.keys() - parts.keys():
                if share_partition not in self.session:
                    acquired = ((0, 0, 1),)
                    parts[share_partition] = _part(share_partition, acquired=acquired)

    def _error_response(self, request: Request, code: int) -> Response:
        return self._response(request, code, ())

    def _response(
        self, request: Request, code: int, parts: Iterable[PartitionResponse]
    ) -> Response:
        if isinstance(request, ShareFetch):
            return ShareFetchResponse(
                error=code,
                message=None,
                lock_timeout=LOCK,
                renewable=True,
                partitions=tuple(parts),
                endpoints={},
                throttle=0.0,
            )
        return ShareAcknowledgeResponse(
            error=code,
            message=None,
            lock_timeout=LOCK,
            partitions=tuple(parts),
            endpoints={},
            throttle=0.0,
        )


def _part(
    share_partition: SharePartition,
    *,
    acknowledge_error: int = 0,
    acquired: tuple[tuple[int, int, int], ...] = (),
) -> PartitionResponse:
    return PartitionResponse(
        share_partition=share_partition,
        error=0,
        message=None,
        acknowledge_error=acknowledge_error,
        acknowledge_message=None,
        leader=NO_LEADER,
        records=b"",
        acquired=acquired,
    )
