"""Checks of a consumers' history: records lost, handled twice, or accepted wrongly."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sharecons.copies.dead_letter_headers import read_origin
from sharecons.testing.broker.share.deliveries import AcknowledgeType
from tests.scenarios.audit_consumers import TOPICS, ConsumerHistory
from tests.scenarios.audit_events import ARCHIVE
from tests.scenarios.audit_journal import Delivery
from tests.scenarios.audit_network import Sent
from tests.scenarios.share_workers import Position

__all__ = ["ConsumerFindings"]

FAULT_LASTS: Final = 65.0
"""Seconds after which an injected fault has no effect any more, in most cases."""


class ConsumerFindings:
    """The checks of one history, after its end.

    Attributes:
        lost: numbers of the group that no application has processed or rejected.
        archived: numbers whose deliveries were all used up.
    """

    def __init__(self, history: ConsumerHistory) -> None:
        self._history = history
        journal = history.journal
        numbers = _numbers(history)
        done = {*journal.done.values(), *journal.rejected.values()}
        self.lost = sorted({*range(history.first, history.produced)} - done)
        rejected = {*journal.rejected.values()}
        self.archived = sorted({numbers[at] for at in _archived(history)} - rejected)

    def early(self) -> list[Sent]:
        """Return the accepts of records that were not processed."""
        done, rejected = self._history.journal.done, self._history.journal.rejected
        return [
            each
            for each in self._history.sent
            if each.held
            and (
                (each.kind is AcknowledgeType.ACCEPT and each.delivery not in done)
                or (
                    each.kind in (AcknowledgeType.REJECT, AcknowledgeType.GAP)
                    and each.delivery not in rejected
                )
            )
        ]

    def twice(self) -> list[tuple[int, Delivery, Delivery]]:
        """Return the numbers that were processed twice without a reason."""
        journal, times = self._history.journal, defaultdict(list)
        for delivery, seconds in journal.done_at.items():
            times[journal.done[delivery]].append((seconds, delivery))
        return [
            (number, first, second)
            for number, each in times.items()
            for (begin, first), (end, second) in pairwise(sorted(each))
            if first not in journal.lost and not self._is_disturbed(begin, end)
        ]

    def wasted(self) -> list[Delivery]:
        """Return deliveries that a consumer had and no application received.

        Those are left out beside which something happened.
        """
        return [
            delivery
            for life in self._history.lives
            for delivery, arrived in life.network.arrived.items()
            if delivery not in self._history.journal.seen
            and not self._is_disturbed(arrived, arrived + FAULT_LASTS)
        ]

    def _is_disturbed(self, begin: float, end: float) -> bool:
        history = self._history
        times = [*history.happened, *history.journal.blocks]
        times += [each for life in history.lives for each in life.network.losses]
        return any(begin - FAULT_LASTS <= each <= end for each in times)


def _numbers(history: ConsumerHistory) -> dict[Position, int]:
    return {
        Position(topic, record.partition, record.offset): int(record.value or b"")
        for topic in TOPICS
        for record in history.broker.records(topic)
    }


def _archived(history: ConsumerHistory) -> Iterator[Position]:
    for record in history.broker.records(ARCHIVE):
        origin = read_origin(record.headers)
        assert origin is not None
        yield Position(*origin[:3])
