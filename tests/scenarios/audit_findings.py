"""Checks of a history: records lost, handled twice, or acknowledged wrongly."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing.broker.share.deliveries import AcknowledgeType
from tests.net.embedded import LATENCY
from tests.scenarios.audit_events import ARCHIVE
from tests.scenarios.audit_history import RECORDS, History
from tests.scenarios.audit_journal import Delivery
from tests.scenarios.audit_lives import DEAD, SOURCE
from tests.scenarios.audit_network import Sent
from tests.scenarios.share_workers import Position

__all__ = ["Findings"]

NOTICED: Final = 0.01
"""Seconds from the end of a delivery until the broker has noted it as archived."""

UNSENT: Final = 0.6
"""Seconds for which an acknowledgement is unsent: behind a fetch that waits 0.5 s."""

LIMIT_IS_READ: Final = 61.0
"""Seconds after which a worker knows the group's delivery limit."""


class Copy(NamedTuple):
    """A record of the dead-letter topic or of a retry topic."""

    at: Position
    origin: Position
    number: int
    key: bytes | None


class Archived(NamedTuple):
    """A record that the broker has archived; the time is in milliseconds."""

    at: Position
    delivery_count: int
    timestamp: int


class Findings:
    """The checks of one history, after its end.

    Attributes:
        lost: numbers that were neither handled nor rejected, and are no dead letters.
        killed: the same, but their last delivery was in progress at a kill.
        not_received: the same, but the response with their last delivery was lost, or
            the connection was lost or closed before a worker took them.
        lowered: the same, but the group's delivery limit was lowered less than a minute
            before: workers read it once a minute.
        reported: the same, but a worker has logged that it could not write their dead
            letter before it ended.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._copies = list(_copies(history))
        self._numbers = _numbers(history)
        self._keys = {
            Position(SOURCE, record.partition, record.offset): record.key
            for record in history.broker.records(SOURCE)
        }
        self._origins = {each.at: each.origin for each in self._copies}
        self._copies_of: defaultdict[Position, list[Position]] = defaultdict(list)
        for each in self._copies:
            self._copies_of[each.origin].append(each.at)
        numbers = self._numbers
        missing = {*range(RECORDS)} - self._done()
        self.killed = missing & {numbers[at] for at in history.killed}
        missing -= self.killed
        self.reported = missing & {numbers[at] for at in history.reported}
        missing -= self.reported
        archived = list(self._archived())
        self.not_received = missing & self._not_received(archived)
        missing -= self.not_received
        self.lowered = missing & self._after_lowering(archived)
        self.lost = sorted(missing - self.lowered)

    def _archived(self) -> Iterator[Archived]:
        for record in self._history.broker.records(ARCHIVE):
            origin = read_origin(record.headers)
            assert origin is not None
            at = Position(*origin[:3])
            yield Archived(at, origin.delivery_count, record.timestamp)

    def _not_received(self, archived: Sequence[Archived]) -> set[int]:
        """Return the numbers of records that are archived without a worker's doing."""
        received = {each[1:] for each in self._history.journal.received}
        return {
            self._numbers[each.at]
            for each in archived
            if each[:2] not in received and self._is_cut_off(each)
        }

    def _is_cut_off(self, archived: Archived) -> bool:
        """Return whether no life has had the delivery until it was archived.

        A life has it from the response until its connection is lost or closed.
        """
        ended = archived.timestamp / 1000 - self._history.started
        for life in self._history.lives:
            network = life.network
            began = network.arrived.get(Delivery(life.number, *archived[:2]))
            if began is not None and not any(
                began <= each <= ended + NOTICED for each in network.losses
            ):
                return False
        return True

    def _after_lowering(self, archived: Sequence[Archived]) -> set[int]:
        """Return the numbers of records that are archived by a limit not yet read."""
        return {
            self._numbers[each.at]
            for each in archived
            for lowered_at, limit in self._history.lowered
            if 0 <= each.timestamp - lowered_at <= 1000 * LIMIT_IS_READ
            and each.delivery_count < limit
        }

    def _done(self) -> set[int]:
        journal = self._history.journal
        swallowed = {
            n for each, n in journal.swallowed.items() if each in journal.accepted
        }
        dead = {each.number for each in self._copies if each.at.topic == DEAD}
        returned, rejected = journal.returned.values(), journal.rejected.values()
        return {*returned, *rejected, *swallowed, *dead}

    def explain(self) -> Iterator[str]:
        """Yield a line for each lost record: where and when its last delivery was."""
        history = self._history
        archived = {each.at: each for each in self._archived()}
        at_of = {number: at for at, number in self._numbers.items()}
        for number in self.lost[:20]:
            at = at_of[number]
            each = archived.get(at)
            ended = each and round(each.timestamp / 1000 - history.started, 3)
            lives = {
                life.number: life.network.arrived[key]
                for life in history.lives
                if each is not None
                for key in [Delivery(life.number, at, each.delivery_count)]
                if key in life.network.arrived
            }
            yield f"lost {number}: {each}, archived at {ended}, arrived at {lives}"

    def not_held(self) -> list[Sent]:
        """Return the acknowledgements of locks that the worker knew to be lost.

        One that is made in time can be late when it is sent, behind another request.
        Renewals are left out: a broker rejects them, and they settle nothing. So are
        rejected releases of locks whose loss the worker had not noticed: a run that
        ends releases what it holds in steps, and a block can have ended these locks.
        """
        decided, lost = self._history.journal.decided, self._history.journal.lost
        return [
            each
            for each in self._history.sent
            if each.kind is not AcknowledgeType.RENEW
            and (
                each.seconds > lost.get(each.delivery, math.inf)
                or (
                    not each.held
                    and each.kind is not AcknowledgeType.RELEASE
                    and not decided.get(each.delivery, True)
                )
            )
            and (each.held or not self._is_of_earlier(each))
        ]

    def _is_of_earlier(self, sent: Sent) -> bool:
        """Return whether an earlier delivery to this life had an outcome in time.

        Its acknowledgement can wait, behind a block, until the record was delivered and
        lost again; the broker rejects it. `sent` has the broker's delivery count.
        """
        journal, delivery = self._history.journal, sent.delivery
        return any(
            journal.decided.get(earlier) or earlier in journal.copying
            for count in range(1, delivery.delivery_count)
            for earlier in [delivery._replace(delivery_count=count)]
        )

    def early(self) -> list[Sent]:
        """Return the acknowledgements without a handler's result, or a copy."""
        return [
            each
            for each in self._history.sent
            if each.held and not self._is_allowed(each)
        ]

    def wrong_copies(self) -> list[Copy]:
        """Return the copies whose origin is not the record that they contain."""
        return [
            each
            for each in self._copies
            if each.origin.topic != SOURCE
            or self._numbers.get(each.origin) != each.number
            or each.key != self._keys[each.origin]
        ]

    def twice(self) -> list[tuple[int, Delivery, Delivery]]:
        """Return the numbers that were handled twice without a documented reason.

        Reasons (docs/worker-concurrency.md) are a lock that the worker has lost, and
        what can lose the acknowledgement: of the first call, or of a delivery that was
        copied.
        """
        journal = self._history.journal
        done: defaultdict[int, list[tuple[float, Delivery]]] = defaultdict(list)
        for delivery, seconds in journal.done_at.items():
            done[journal.returned[delivery]].append((seconds, delivery))
        copied: defaultdict[int, list[Delivery]] = defaultdict(list)
        for delivery in journal.copying:
            copied[self._numbers[delivery.at]].append(delivery)
        excused = self._late() | journal.lost_copies
        return [
            (number, first, second)
            for number, times in done.items()
            for (_, first), (end, second) in pairwise(sorted(times))
            if first not in journal.lost
            and excused.isdisjoint((first, *copied[number]))
            and not any(self._is_disturbed(x, end) for x in (first, *copied[number]))
        ]

    def _late(self) -> set[Delivery]:
        """Return deliveries whose locks ended before their accept could be sent.

        Locks that are not renewed can end a moment after the handler.
        """
        decided_at = self._history.journal.decided_at
        in_time = {
            sent.delivery
            for sent in self._history.sent
            if sent.kind is AcknowledgeType.ACCEPT
            and sent.delivery in decided_at
            and sent.seconds + LATENCY < decided_at[sent.delivery][1]
        }
        return {
            delivery
            for delivery, (decided, lock_ends) in decided_at.items()
            if lock_ends - decided <= UNSENT and delivery not in in_time
        }

    def _is_disturbed(self, delivery: Delivery, end: float) -> bool:
        """Return whether an acknowledgement of a delivery can be lost until `end`.

        The connection of its life was lost or closed, an event loop was blocked, or a
        broker had a fault or lost a leader or coordinator.
        """
        history = self._history
        network = history.lives[delivery.life].network
        begin = network.arrived[delivery]
        times = [*history.journal.blocks, *network.losses]
        return any(begin <= each <= end for each in times) or any(
            begin <= last and first <= end for first, last in history.disturbed
        )

    def wrong_starts(self) -> list[str]:
        """Return the lives that did not start without a reason, or that had to refuse.

        A worker refuses a copy topic that takes no copies or loses them, except a
        dead-letter topic with a short retention, of which it warns. It goes on if
        brokers do not respond (docs/worker-running.md).
        """
        found = []
        for life in self._history.lives:
            taken = min(life.network.arrived.values(), default=math.inf)
            reasons = [
                each.text
                for each in self._history.odd
                if each.overlaps(life.began, life.ended_at)
            ]
            if life.start_error and not any(
                each in life.start_error for each in reasons
            ):
                found.append(f"life {life.number}: {life.start_error}")
            if taken < math.inf and not any(
                life.began <= each <= taken for each in life.network.losses
            ):
                found += [
                    f"life {life.number} has started with {each}"
                    for each in self._history.odd
                    if each.since < life.began
                    and each.until > taken
                    and (each.topic, each.config) != (DEAD, "retention.ms")
                ]
        return found

    def _is_allowed(self, sent: Sent) -> bool:
        journal, delivery = self._history.journal, sent.delivery
        if sent.kind is AcknowledgeType.ACCEPT:
            return (
                delivery in journal.returned
                or delivery in journal.swallowed
                or self._is_copied(sent)
            )
        if sent.kind in (AcknowledgeType.REJECT, AcknowledgeType.GAP):
            return delivery in journal.rejected
        return True

    def _is_copied(self, sent: Sent) -> bool:
        """Return whether the record had a copy when it was acknowledged."""
        at = sent.delivery.at
        return any(
            copy.offset < sent.ends[copy.topic, copy.partition]
            for copy in self._copies_of[self._origins.get(at, at)]
            if copy != at
        )


def _copies(history: History) -> list[Copy]:
    found = []
    for topic in (DEAD, *history.retry_topics):
        for record in history.broker.records(topic):
            origin = read_origin(record.headers)
            assert origin is not None
            assert record.value is not None
            at = Position(topic, record.partition, record.offset)
            number = int(record.value)
            found.append(Copy(at, Position(*origin[:3]), number, record.key))
    return found


def _numbers(history: History) -> dict[Position, int]:
    """Return the number of each record of the source and of the retry topics."""
    return {
        Position(topic, record.partition, record.offset): int(record.value or b"")
        for topic in (SOURCE, *history.retry_topics)
        for record in history.broker.records(topic)
    }
