"""What was delivered to the application, and what is ready to be.

The one place between the member's tasks, which put leases in, and the loops of
the application, which take records out. Decisions on it are plain calls, with no
await inside: a cancelled asker loses nothing.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, Protocol

from sharecons.deserializers import Deserializers
from sharecons.errors import (
    ClosedError,
    ConsumerStateError,
    Error,
    NotSubscribedError,
)
from sharecons.hands import Hand
from sharecons.log import get_logger
from sharecons.metrics import Counters
from sharecons.net.callbacks import called_back, log_unraised
from sharecons.net.clock import Clock
from sharecons.net.waiting import Waiter
from sharecons.protocol.acknowledgements import AcknowledgeResult
from sharecons.protocol.leases import Lease
from sharecons.protocol.pace import Pace
from sharecons.protocol.results import lock_overrun, summarize
from sharecons.unpacking import unpack
from sharecons.untyped import Record

__all__ = ["SLICE", "Asker", "Deliveries"]

SLICE: Final = 0.005
"""How long a loop may run without letting others run; acknowledgements of what it
has passed leave at the same pace."""

Acknowledged = Callable[[list[AcknowledgeResult]], object]


class Asker(Protocol):
    """Who asks for records: a loop, or poll(). One at a time has the records.

    `passes` says that it goes record by record: what it handed out before the last
    one is worked off, though it did not ask us.
    """

    passes: bool

    def interrupt(self) -> None:
        """What you believe to have may be gone: look again at the next asking."""


class Deliveries:
    """Leases on their way to the application; the member's `Listener`.

    Attributes:
        lease: what the present asker is being served from; its cursor says where.
        records: the records of that lease; what types they have is for who asks.
        closed: nothing is handed out any more.
        subscribed: there are topics to wait for.
    """

    def __init__(
        self,
        *,
        implicit: bool,
        clock: Clock,
        waiter: Waiter,
        counters: Counters,
        deserializers: Deserializers,
        delivery_limit: int,
        on_acknowledged: Acknowledged | None,
        check_caller: Callable[[], None] = lambda: None,  # may raise WrongThreadError
    ) -> None:
        self.clock = clock
        self.lease: Lease | None = None
        self.records: list[Any] = []
        self.closed = False
        self.subscribed = False
        self.deserializers = deserializers
        self.on_acknowledged = on_acknowledged
        self._delivery_limit = delivery_limit
        self._counters = counters
        self._asker: Asker | None = None
        self._hand = Hand(implicit=implicit)
        self._ready: deque[Lease] = deque()
        self._errors: deque[Exception] = deque()
        self._refusal: BaseException | None = None
        self._waiter = waiter
        self._pause_at = clock()
        self._check_caller = check_caller
        self._log = get_logger(__name__)

    def attach(self, pace: Pace, wake: Callable[[], None]) -> None:
        """Name the pace to keep, and what to call when it changed."""
        self._pace = pace
        self._wake = wake

    # What the member tells.

    def acquired(self, leases: Sequence[Lease], here: bool = False) -> bool:
        if self.closed:
            # They were under way when we closed; the session's end lets them go.
            self._count_unworked(leases)
            return False
        # A record that may be on its last delivery is worked first: if it is let go
        # it is archived. Most are on their first, so the scan is short.
        for lease in leases:
            count = lease.highest_delivery_count
            place = len(self._ready)
            while place and self._ready[place - 1].highest_delivery_count < count:
                place -= 1
            self._ready.insert(place, lease)
        if here:
            return self._waiter.resume()
        self._waiter.wake()
        return False

    def lost(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            if lease in self._ready:
                self._ready.remove(lease)
                self._pace.dropped(lease.count)
        if self._asker is not None:
            self._asker.interrupt()
        self._counters.add("locks-lost-total", sum(lease.count for lease in leases))
        self._waiter.wake()

    def troubled(self, error: Error) -> None:
        self._errors.append(error)
        self._waiter.wake()

    def refused(self, error: BaseException) -> None:
        self._refusal = self._refusal or error
        self._waiter.wake()

    @property
    def calls_back(self) -> bool:
        return self.on_acknowledged is not None

    def acknowledged(self, results: list[AcknowledgeResult]) -> None:
        failed = [result for result in results if result.error is not None]
        if failed:
            self._log.warning("acknowledgements failed", **summarize(failed))
        if self.on_acknowledged is None:
            return
        error = called_back("on_acknowledged", self.on_acknowledged, results)
        if error is None:
            return
        if self.closed:
            log_unraised(error)
        else:
            self.troubled(error)

    # What askers do.

    def take_over(self, asker: Asker) -> None:
        """Serve this asker from now on; the one before asks in vain."""
        if self._asker is not asker:
            # What the one before has passed is worked off; its last is not.
            self.pass_by()
            if self._asker is not None:
                self._asker.interrupt()
            self._asker = asker
            if not self.closed:
                self._hand.put_down(accept=False)

    def check(self, asker: Asker) -> None:
        """See that an asker may be served.

        Raises:
            ClosedError, NotSubscribedError, ConsumerStateError, WrongThreadError.
            Error: what ended the consumer.
        """
        self._check_caller()
        if self.closed:
            raise ClosedError("the consumer is closed")
        self.raise_refusal()
        if asker is not self._asker:
            raise ConsumerStateError(
                "another loop or poll() has taken over this consumer's records; use "
                "one at a time, or a consumer for each task"
            )
        if self._waiter.waits:
            raise ConsumerStateError(
                "another task is waiting for this consumer's records already; use a "
                "consumer for each task"
            )
        if not (self.subscribed or self.lease or self._ready or self._errors):
            raise NotSubscribedError("no topic to consume: subscribe() first")

    def raise_refusal(self) -> None:
        """Raise what ended the consumer, if anything did."""
        if self._refusal is not None:
            raise self._refusal

    def ask(self, asker: Asker) -> None:
        """Settle what the asker was given before; `asking.ask` goes on from here.

        Raises: as `check`.
        """
        self.check(asker)
        self._hand.put_down(accept=True)

    @property
    def is_pause_due(self) -> bool:
        """True if the loops have run for SLICE without letting other tasks run."""
        return self.clock() >= self._pause_at

    def paused(self) -> None:
        """Note that other tasks have run."""
        self._pause_at = self.clock() + SLICE

    def wait(self, deadline: float) -> Awaitable[bool]:
        """Wait for a change, as `Waiter.wait`; call `waited` afterwards."""
        self._pace.asked(self.clock())
        self._pace.waiting += 1
        self._wake()
        return self._waiter.wait(deadline)

    def waited(self) -> None:
        """Note that the wait has ended, in whatever way."""
        self._pace.waiting -= 1
        self._waiter.ended()

    def serve(self) -> bool:
        """Find the next records; raises errors once those before were handed out."""
        while not self._is_live():
            self._leave_lease()
            if self._errors:
                raise self._errors.popleft()
            if not self._ready:
                return False
            self._unpack(self._ready.popleft())
        return True

    def hand(self) -> None:
        """What is handed out of `lease` from its cursor on is in the asker's hand."""
        assert self.lease is not None, "served"
        self._hand.take(self.lease)

    def take(self, most: int | None, *, first: bool = True) -> tuple[int, list[Any]]:
        """Hand out records of `lease` together; gives the first's index, and them.

        Raises:
            DeserializationError: for the first of them; it is in hand then. Unless
                `first`, no records are returned, and the next call raises.
        """
        assert self.lease is not None, "served"
        lease, start = self.lease, self.lease.cursor
        stop = len(self.records)
        if most is not None:
            stop = min(stop, start + most)
        self.hand()
        if self.deserializers:
            stop, failure = self.deserializers.apply_all(self.records, start, stop)
            if failure is not None and first and stop == start:
                lease.cursor = start + 1
                self._hand.cannot_use(lease, self.records[start])
                raise failure
        lease.cursor = stop
        return start, self.records[start:stop]

    def take_more(self) -> bool:
        """Turn to the next lease if it is here, and no error is to be raised before."""
        if self._errors and not self._is_live():
            return False
        return self.serve()

    def deserialize(self, lease: Lease, record: Record) -> Any:
        """Deserialize one record that is in hand; raises DeserializationError."""
        try:
            return self.deserializers.apply(record)
        except BaseException:
            self._hand.cannot_use(lease, record)
            if self._asker is not None:
                self._asker.interrupt()
            raise

    def take_back(self) -> None:
        """Release what is in hand: the application did not get it."""
        if not self.closed:
            self._hand.put_down(accept=False)

    @property
    def in_hand(self) -> bool:
        """True while somebody was given records that asking again will settle."""
        return self._hand.is_full

    def pass_by(self) -> bool:
        """Accept what a loop over records has passed; tells whether there was any."""
        passing = self._asker is not None and self._asker.passes
        return passing and not self.closed and self._hand.pass_by()

    def remaining(self) -> int:
        """Records of the present lease that were not handed out."""
        return len(self.records) - self.lease.cursor if self.lease else 0

    def keep_only(self, topics: Collection[str]) -> None:
        """Hand out records of these topics only; release the others that are here."""
        for lease in [lease for lease in self._unworked() if lease.topic not in topics]:
            lease.let_go()
            if lease is self.lease:
                self._drop_lease()
            else:
                self._ready.remove(lease)
                self._pace.dropped(lease.count)
        if self._asker is not None:
            self._asker.interrupt()

    def close(self) -> None:
        """Hand out nothing more; the session's end lets go what is open.

        In implicit mode a record in hand is not accepted by this.
        """
        self.closed = True
        for error in self._errors:
            log_unraised(error)
        self._count_unworked(self._unworked())
        self._forget_unworked()
        self._waiter.wake()

    # Small things.

    def _is_live(self) -> bool:
        lease = self.lease
        if lease is None or lease.cursor >= len(self.records):
            return False
        if lease.term.over:
            return False
        if self.clock() < lease.deadline:
            return True
        self._counters.add("locks-expired-total", self.remaining())
        self._log.warning(
            "acquisition locks ended before the records were handed out",
            topic=lease.topic,
            partition=lease.share_partition.partition,
            records=self.remaining(),
            reason=lock_overrun(lease, lease.deadline, self.clock()),
        )
        return False

    def _leave_lease(self) -> None:
        if self.lease is not None:
            self._pace.asked(self.clock(), unworked=self.remaining())
            self._drop_lease()

    def _drop_lease(self) -> None:
        self.lease = None
        self.records = []

    def _unpack(self, lease: Lease) -> None:
        if lease.term.over or self.clock() >= lease.deadline:
            self._pace.dropped(lease.count)
            if not lease.term.over:
                self._counters.add("locks-expired-total", lease.count)
            return
        self.records, errors = unpack(lease)
        self._errors += errors
        self.lease = lease
        self._counters.add("records-consumed-total", len(self.records))
        self._pace.handed_out(lease.count, self.clock())
        self._wake()

    def _unworked(self) -> list[Lease]:
        present = [self.lease] if self.lease is not None and self.remaining() else []
        return [*present, *self._ready]

    def _count_unworked(self, unworked: Sequence[Lease]) -> None:
        count = sum(self._count_left(lease) for lease in unworked)
        last = sum(self._count_last(lease) for lease in unworked)
        self._counters.add("records-released-unworked-total", count)
        self._counters.add("last-deliveries-unworked-total", last)
        if last:
            self._log.warning(
                "records let go unworked on what may be their last delivery",
                records=last,
                delivery_limit=self._delivery_limit,
            )

    def _count_left(self, lease: Lease) -> int:
        return self.remaining() if lease is self.lease else lease.count

    def _forget_unworked(self) -> None:
        self._pace.dropped(sum(lease.count for lease in self._ready))
        self._ready.clear()
        self._drop_lease()
        if self._asker is not None:
            self._asker.interrupt()

    def _count_last(self, lease: Lease) -> int:
        if lease is self.lease:
            rest = self.records[lease.cursor :]
            return sum(record.delivery_count >= self._delivery_limit for record in rest)
        return sum(
            last - first + 1
            for first, last, count in lease.acquired
            if count >= self._delivery_limit
        )
