"""An application with a leader's records in its hands, that keeps its own books.

For each record of each lease it knows what it said last of it, and what must become
of that: exactly one result, a success only if the broker heard it, a failure only if
there is an excuse for it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from sharecons.errors import LockLostError, RecordStateError
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.ranges import GAP, runs_of
from sharecons.protocol.acknowledge.result_log import AcknowledgeResult
from sharecons.protocol.acknowledge.results import CommitWaiter
from sharecons.protocol.messages import Acknowledgements, SharePartition
from sharecons.record import RELEASE, RENEW, AcknowledgeType
from tests.protocol.simulated_broker import Broker

__all__ = ["Application", "Held", "gap", "unfit"]

MARGIN = 0.01
"""A renewal is believed for a round trip longer than the broker does."""


def unfit(offset: int) -> bool:
    return offset % 11 == 5


def gap(offset: int) -> bool:
    return offset % 7 == 3 and not unfit(offset)


def spans(offsets: list[int]) -> list[tuple[int, int]]:
    return [(offset, offset) for offset in offsets]


@dataclass(eq=False)
class Held:
    """A lease, and what was said of it.

    Attributes:
        last: the last settling word said of each offset, by us or by the client.
        renewals: how often each was renewed.
        excused: offsets of which a word may have failed.
    """

    lease: Lease
    offsets: list[int]
    last: dict[int, AcknowledgeType] = field(default_factory=dict)
    renewals: Counter[int] = field(default_factory=Counter)
    excused: set[int] = field(default_factory=set)

    @property
    def where(self) -> SharePartition:
        return self.lease.share_partition

    def acquired(self) -> list[int]:
        return [
            o for first, last, _ in self.lease.acquired for o in range(first, last + 1)
        ]


class Application:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.held: list[Held] = []
        self.bereft: list[Lease] = []  # not unpacked yet, and their locks are gone
        self.tickets: list[CommitWaiter] = []
        self.settled: Counter[tuple[SharePartition, int, int]] = Counter()
        self.succeeded: Counter[tuple[SharePartition, int, int]] = Counter()
        self.renewed: Counter[tuple[SharePartition, int]] = Counter()
        self.spent: Counter[tuple[SharePartition, int]] = Counter()

    # What it does.

    def unpack(self, lease: Lease) -> None:
        held = Held(lease, [])
        for offset in held.acquired():
            if unfit(offset):
                held.last[offset] = RELEASE
            elif not gap(offset):
                held.offsets.append(offset)
        gaps = [offset for offset in held.acquired() if gap(offset)]
        lease.set_offsets(
            held.offsets,
            gaps=spans(gaps),
            undeliverable=spans([*held.last]),
        )
        self._hold(held)

    def say(self, held: Held, index: int, kind: AcknowledgeType) -> None:
        offset = held.offsets[index]
        try:
            held.lease.acknowledge(offset, kind)
        except LockLostError:
            assert held.lease.lock_scope.ended
            return
        except RecordStateError:
            assert held.last.get(offset, kind) != kind, "nothing else was said before"
            return
        if kind == RENEW:
            # The last word counts: what was not sent before is withdrawn.
            held.last.pop(offset, None)
            held.renewals[offset] += 1
        else:
            held.last[offset] = kind

    def say_all(self, held: Held, start: int, stop: int, kind: AcknowledgeType) -> None:
        try:
            held.lease.acknowledge_open(start, stop, kind)
        except LockLostError:
            assert held.lease.lock_scope.ended
            held.lease.acknowledge_implicitly(start, stop, kind)
        for offset in held.offsets[start:stop]:
            if offset not in held.last:
                if kind == RENEW:
                    held.renewals[offset] += 1
                else:
                    held.last[offset] = kind

    def let_go(self, held: Held) -> None:
        held.lease.release_remaining()
        for offset in held.offsets[held.lease.cursor :]:
            held.last.setdefault(offset, RELEASE)

    def let_go_packed(self, lease: Lease) -> None:
        held = Held(lease, [])
        lease.release_remaining()
        held.last = dict.fromkeys(held.acquired(), RELEASE)
        self._hold(held)

    def _hold(self, held: Held) -> None:
        if held.lease in self.bereft:
            held.excused.update(held.acquired())
        self.held.append(held)

    # What it sees go out, and what it is told.

    def sees(self, said: Acknowledgements) -> None:
        """Nothing goes out but what was asked for, and nothing twice."""
        for where, ranges in said.items():
            for first, last, kind in runs_of(ranges):
                for offset in range(first, last + 1):
                    self._sees_one(where, offset, kind)

    def _sees_one(self, where: SharePartition, offset: int, kind: int) -> None:
        holders = self._holders(where, offset)
        assert holders, "an offset of no lease of ours"
        if kind == GAP:
            assert gap(offset)
        elif kind == RENEW:
            assert any(held.renewals[offset] for held in holders)
        else:
            asked = [held for held in holders if held.last.get(offset) == kind]
            assert asked, "nobody asked for this"
            done = self.spent[where, offset]
            assert done < len([h for h in holders if offset in h.last]), "said twice"

    def outcome(self, said: Acknowledgements, *, excuse: bool) -> None:
        """What went out was applied, or nobody knows (then there is an excuse)."""
        for where, ranges in said.items():
            for first, last, kind in runs_of(ranges):
                for offset in range(first, last + 1):
                    if kind not in (GAP, RENEW):
                        self.spent[where, offset] += 1
                    if excuse:
                        for held in self._holders(where, offset):
                            held.excused.add(offset)

    def excuse_all(self, packed: Iterable[Lease]) -> None:
        """The locks are gone, and the client cannot know it yet."""
        self.bereft += packed
        for held in self.held:
            held.excused.update(held.acquired())

    def told(self, results: list[AcknowledgeResult], now: float) -> None:
        for _, partition, first, last, kind, error in results:
            where = next(p for p in self.broker.partitions if p.partition == partition)
            for offset in range(first, last + 1):
                if error is None:
                    self.succeeded[where, offset, kind] += 1
                    heard = self.broker.partitions[where].heard[offset, kind]
                    assert self.succeeded[where, offset, kind] <= heard
                elif kind != RENEW:
                    self._check_excuse(where, offset, kind, now)
                if kind == RENEW:
                    self.renewed[where, offset] += 1
                else:
                    self.settled[where, offset, kind] += 1

    def _check_excuse(
        self, where: SharePartition, offset: int, kind: int, now: float
    ) -> None:
        holders = self._holders(where, offset)
        asked = [held for held in holders if held.last.get(offset) == kind]
        assert asked
        assert any(
            offset in held.excused
            or held.lease.lock_scope.ended
            or held.lease.deadline_of(offset) - MARGIN <= now
            or len(holders) > 1
            for held in asked
        ), f"{offset} failed without an excuse"

    def _holders(self, where: SharePartition, offset: int) -> list[Held]:
        return [h for h in self.held if h.where == where and offset in h.acquired()]

    # What must hold when nothing is left to be sent.

    def check_all_settled(self) -> None:
        expected: Counter[tuple[SharePartition, int, int]] = Counter()
        for held in self.held:
            expected.update((held.where, o, int(kind)) for o, kind in held.last.items())
        assert expected == +self.settled
        assert all(ticket.is_done for ticket in self.tickets)
        for ticket in self.tickets:
            assert ticket.outstanding == 0

    def check_renewals(self) -> None:
        asked: Counter[tuple[SharePartition, int]] = Counter()
        for held in self.held:
            for offset, count in held.renewals.items():
                asked[held.where, offset] += count
        assert self.renewed <= asked
