"""Pauses between fetches: after errors, early empty responses, and throttled ones."""

import math
from collections import deque
from collections.abc import Collection
from typing import Final, final

from sharecons.protocol import error_actions
from sharecons.protocol.backoff import Backoff
from sharecons.protocol.codes import Code
from sharecons.protocol.error_actions import ErrorAction, action_for
from sharecons.protocol.fetch.retried_errors import RetriedPartitions
from sharecons.protocol.messages import (
    PartitionResponse,
    ShareFetch,
    SharePartition,
    TopicId,
)

__all__ = [
    "REOPEN",
    "STALLED",
    "WITHOUT_PAUSE",
    "EmptyResponses",
    "FetchPauses",
    "FetchablePartitions",
    "Quota",
]

_OF_TOPIC: Final = (Code.TOPIC_AUTHORIZATION_FAILED, Code.GROUP_AUTHORIZATION_FAILED)
"""Errors that a leader returns for every partition of a topic, before reading."""

_Scope = TopicId | SharePartition


@final
class _Pause:
    __slots__ = ("backoff", "until")

    def __init__(self, spread: float) -> None:
        self.backoff = Backoff(spread)
        self.until = -math.inf


@final
class FetchPauses:
    """The partitions whose last fetch failed, with their pauses.

    A partition with an error that is raised in the application is not fetched until a
    pause has passed. The leaders of a member share one `FetchPauses`: a topic's
    authorization is the same at all of them, and a partition's error outlives a change
    of its leader.

    Attributes:
        codes: the error of each of them.
        changes: how often they have changed.
        retried: the partitions whose errors are only repeated.
    """

    def __init__(self, spread: float = 1.0) -> None:
        self.retried = RetriedPartitions()
        self.codes: dict[SharePartition, int] = {}
        self.changes = 0
        self._spread = spread
        self._pauses: dict[_Scope, _Pause] = {}

    def on_error(self, share_partition: SharePartition, code: int, now: float) -> None:
        """Begin a pause, if the error is raised in the application.

        A topic's partitions that fail together share one.
        """
        if action_for(error_actions.FETCH_PARTITION, code) is not ErrorAction.REPORT:
            return
        self.codes[share_partition] = code
        self.changes += 1
        scope = _scope(share_partition, code)
        pause = self._pauses.get(scope)
        if pause is None:
            pause = self._pauses[scope] = _Pause(self._spread)
        if now >= pause.until:
            pause.until = now + pause.backoff.next_delay()

    def take_recovered(
        self,
        requested: Collection[SharePartition],
        responses: Collection[PartitionResponse],
    ) -> list[SharePartition]:
        """Forget the partitions that a response shows to be fetched again.

        Leaders check a topic's authorization even without records, so the absence of
        the error is enough. Other errors come from reading, and end with a record.
        """
        if not self.codes:
            return []
        failed = {each.share_partition for each in responses if each.error}
        brought = {each.share_partition for each in responses if each.acquired}
        recovered = [
            each
            for each, code in self.codes.items()
            if each in requested
            and each not in failed
            and (code in _OF_TOPIC or each in brought)
        ]
        for each in recovered:
            # This ends the pause of the whole topic.
            self._pauses.pop(_scope(each, self.codes.pop(each)), None)
            self.changes += 1
        return recovered

    def unpaused_errors(
        self, responses: Collection[PartitionResponse], now: float
    ) -> list[PartitionResponse]:
        """Return the partitions whose errors did not start a pause."""
        return [
            p
            for p in responses
            if p.error and self.paused_until(p.share_partition) <= now
        ]

    def keep_only(self, partitions: Collection[SharePartition]) -> None:
        """Drop all other partitions, as they are no longer assigned."""
        self.retried.keep_only(partitions)
        for each in self.codes.keys() - partitions:
            del self.codes[each]
        scopes = {_scope(each, code) for each, code in self.codes.items()}
        for scope in self._pauses.keys() - scopes:
            del self._pauses[scope]
        self.changes += 1

    def paused_until(self, share_partition: SharePartition) -> float:
        """Return when the partition can be fetched."""
        code = self.codes.get(share_partition)
        if code is None:
            return -math.inf
        pause = self._pauses.get(_scope(share_partition, code))
        return -math.inf if pause is None else pause.until


@final
class FetchablePartitions:
    """The partitions of one leader that are not paused.

    While they do not change, `select` returns the same object, so that the session can
    compare by identity.
    """

    def __init__(self, pauses: FetchPauses) -> None:
        self._pauses = pauses
        self._partitions: frozenset[SharePartition] = frozenset()
        self._changes = -1
        self._next_end = -math.inf
        self._fetchable = self._partitions

    def select(
        self, partitions: frozenset[SharePartition], now: float
    ) -> frozenset[SharePartition]:
        """Return the partitions that can be fetched now."""
        if not self._pauses.codes:
            return partitions
        changes = self._pauses.changes
        if (
            partitions is self._partitions
            and changes == self._changes
            and now < self._next_end
        ):
            return self._fetchable
        paused = {
            each: until
            for each in self._pauses.codes
            if each in partitions and (until := self._pauses.paused_until(each)) > now
        }
        found = partitions.difference(paused) if paused else partitions
        self._partitions, self._changes = partitions, changes
        self._next_end = min(paused.values(), default=math.inf)
        if found != self._fetchable or not paused:
            self._fetchable = found
        return self._fetchable

    def next_pause_end(
        self, partitions: frozenset[SharePartition], now: float
    ) -> float:
        """Return when the next pause ends."""
        at = self.select(partitions, now)
        return math.inf if at is partitions else self._next_end


def _scope(share_partition: SharePartition, code: int) -> _Scope:
    return share_partition.topic_id if code in _OF_TOPIC else share_partition


WITHOUT_PAUSE: Final = 2
"""The number of early empty responses in a row that cause no pause."""

REOPEN: Final = 8
STALLED: Final = 12
"""With a `max_wait` of 0.5 s: after about 0.6 and 2.5 seconds."""

FIRST_PAUSE: Final = 0.01
MIN_MAX_PAUSE: Final = 0.05
"""Seconds: the first pause, and the longest one where `max_wait` is shorter."""

EARLY_FRACTION: Final = 0.5
"""A response is early if it took less than this fraction of the allowed time."""

MIN_COUNTED_WAIT: Final = 0.002
"""Seconds; fetches with a shorter wait do not count: brokers use milliseconds."""

GROWTH: Final[tuple[int, ...]] = (1, 1, 1, 4, 16, 64, 256)
"""The factor for the requested records, by the number of responses in a row."""

LAST_GROWTH: Final = len(GROWTH) - 1


@final
class EmptyResponses:
    """The early empty responses of one leader, and the pauses after them.

    A broker that has no records waits as long as the fetch allows. If a response is
    empty much earlier, another member was faster, or the records belong to an aborted
    transaction. But a broker can also return such responses forever: Kafka 4.3.0 and
    4.4.0 do so if the log start offset passes records that are held.

    The first WITHOUT_PAUSE of these responses in a row change nothing. After each one
    more the next fetch is sent later and requests more records, so that aborted
    transactions are passed over as fast as before. After REOPEN in a row the session is
    reopened; after STALLED the member joins again: the broker loads the state of a
    group without members again, which ends the fault above if this is the only member.

    Records, or a response after half of the allowed time, end the row.

    Attributes:
        in_a_row: the number of early empty responses in a row.
        due: no fetch is sent before this time.
        must_reopen: the session must be closed and opened again.
    """

    def __init__(self, spread: float, max_wait: float) -> None:
        self.in_a_row = 0
        self.due = -math.inf
        self.must_reopen = False
        self._never_waits = max_wait <= 0.0
        limit = max(max_wait, MIN_MAX_PAUSE)
        self._backoff = Backoff(spread, first=FIRST_PAUSE, limit=limit)

    @property
    def growth(self) -> int:
        """The factor for the records that the next fetch requests."""
        return 1 if self._never_waits else GROWTH[min(self.in_a_row, LAST_GROWTH)]

    @property
    def is_stalled(self) -> bool:
        """True if only leaving the group can end the empty responses."""
        return self.in_a_row >= STALLED and not self._never_waits

    def on_empty_response(
        self, request: ShareFetch, sent_at: float, now: float
    ) -> None:
        """Note an empty response to a fetch that did not change its session."""
        allowed = request.max_wait
        if allowed < MIN_COUNTED_WAIT and not self._never_waits:
            return
        if now - sent_at >= allowed * EARLY_FRACTION and not self._never_waits:
            self.reset()
            return
        self.in_a_row += 1
        if self.in_a_row > WITHOUT_PAUSE:
            self.due = now + self._backoff.next_delay()
        if self.in_a_row == REOPEN and not self._never_waits:
            self.must_reopen = True

    def end_pause(self) -> None:
        """End the pause, as something has changed at the broker."""
        self.due = -math.inf

    def on_reopened(self) -> None:
        """Note that the session is being closed."""
        self.must_reopen = False
        self.end_pause()

    def reset(self) -> None:
        """Start a new row."""
        if self.in_a_row:
            self.in_a_row = 0
            self.on_reopened()
            self._backoff.reset()


SPAN: Final = 10.0
"""Seconds over which a broker averages, at least."""

WINDOW: Final = 11.1
"""Seconds after the last response of a sample until its bytes count no more; with a
tenth to spare. A sample begins with a response and lasts SAMPLE seconds."""

SAMPLE: Final = 1.0

HOLD: Final = 60.0
MAX_HOLD: Final = 600.0

MAX_PAUSE: Final = 120.0
"""The maximum seconds between fetches while none of them returns records."""


@final
class Quota:
    """How many bytes a broker sends before its quota throttles, as estimated here.

    A response that exceeds the quota is empty, but its records were acquired: they stay
    locked, and use up a delivery. So no fetch is sent that is expected to exceed it.

    A broker adds up the bytes of the last eleven samples of one second, divides the sum
    by ten to eleven seconds, and throttles while the result exceeds the quota. So the
    quota follows from a throttled response: `received + lost` bytes took as long as the
    samples and the wait together. An estimate is kept for HOLD seconds, then for twice
    as long each time that it proves right again: a quota can be raised, or removed.

    Attributes:
        failures: throttled responses since the last one that brought something,
            without anything else received in the window before.
    """

    def __init__(self) -> None:
        self.failures = 0
        self._budget = 0
        self._samples: deque[tuple[float, float, int]] = deque()  # first, last, bytes
        self._sum = 0
        self._hold = HOLD
        self._known_until = -math.inf
        self._pause_until = -math.inf

    def is_known(self, now: float) -> bool:
        """Return whether a response was throttled recently."""
        return now < self._known_until

    def on_received(self, size: int, now: float) -> None:
        """Count a response that brought records."""
        self.failures = 0
        self._expire(now)
        self._sum += size
        if self._samples and now - self._samples[-1][0] < SAMPLE:
            first, _, before = self._samples[-1]
            self._samples[-1] = (first, now, before + size)
        else:
            self._samples.append((now, now, size))
        self._budget = max(self._budget, self._sum)

    def on_throttled(self, seconds: float, lost: int, now: float) -> None:
        """Learn from an empty response, which was throttled for `seconds`.

        Args:
            lost: the expected bytes of the response without throttling.
        """
        self._expire(now)
        if not self.is_known(now):
            self._hold = self._next_hold(now)
            self._known_until = now + self._hold
        self._budget = max(self._sum, self._estimate(seconds, lost))
        if not self._sum:
            self.failures += 1
            pause = WINDOW * 2.0 ** min(self.failures - 1, 10)
            self._pause_until = now + max(seconds, min(pause, MAX_PAUSE))

    def next_due(self, batch_size: int, now: float) -> float:
        """Return when a fetch of one batch with `batch_size` bytes fits the quota."""
        if not self.is_known(now):
            return now
        self._expire(now)
        excess = self._sum + min(batch_size, self._budget) - self._budget
        due = now
        for _, last, size in self._samples:
            if excess <= 0:
                break
            excess -= size
            due = last + WINDOW
        return max(due, self._pause_until)

    def limit_bytes(self, max_bytes: int, now: float) -> int:
        """Return how many bytes a fetch can request, `max_bytes` at most."""
        if not self.is_known(now):
            return max_bytes
        self._expire(now)
        return min(max_bytes, max(1, self._budget - self._sum))

    def _estimate(self, seconds: float, lost: int) -> int:
        """Return how many bytes fit in SPAN seconds."""
        estimate = (self._sum + lost) * SPAN / (SPAN + seconds)
        if lost > estimate and self._sum:
            # A broker reads at most the quota of SPAN, so less than that was lost.
            estimate = self._sum * SPAN / seconds
        return int(estimate)

    def _next_hold(self, now: float) -> float:
        if now - self._known_until > self._hold:
            return HOLD
        return min(2 * self._hold, MAX_HOLD)

    def _expire(self, now: float) -> None:
        while self._samples and now >= self._samples[0][1] + WINDOW:
            self._sum -= self._samples.popleft()[2]
