"""When the locks of a lease end."""

import math
from typing import final

__all__ = ["LockTimes"]


@final
class LockTimes:
    """When the locks of records end that one response has acquired.

    A broker counts from the acquisition, which is between the request and the response:
    long after the request if the broker was paused, or the client before it could send.

    Attributes:
        duration: the seconds from the acquisition to the end.
        deadline, held_until: the earliest and the latest end, without renewals. Records
            are processed before the first; a broker can hold them until the second.
        given_back_at: when records were given back; -infinity if none was.
        renewed: the deadlines of records that were renewed, by offset.
    """

    __slots__ = ("deadline", "duration", "given_back_at", "held_until", "renewed")

    def __init__(
        self, requested_at: float, received_at: float, duration: float
    ) -> None:
        self.duration = duration
        self.deadline = requested_at + duration
        self.held_until = received_at + duration
        self.given_back_at = -math.inf
        self.renewed: dict[int, float] = {}

    @property
    def requested_at(self) -> float:
        return self.deadline - self.duration

    def of(self, offset: int) -> float:
        """Return the deadline of one record."""
        return self.renewed.get(offset, self.deadline)

    def last(self) -> float:
        """Return the latest deadline."""
        return max([self.deadline, *self.renewed.values()])
