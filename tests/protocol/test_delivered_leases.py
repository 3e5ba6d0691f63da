"""Finding the lease of a delivered record by its offset."""

from sharecons.protocol.acknowledge.delivered_leases import (
    KEPT,
    MIN_LIMIT,
    DeliveredLeases,
)
from sharecons.protocol.acknowledge.leases import Lease
from sharecons.protocol.acknowledge.lock_times import LockTimes
from sharecons.record import ACCEPT
from tests.protocol.lease_factories import (
    lease_of,
    lose_locks,
    settle,
    sparse_lease,
    take_runs,
)
from tests.protocol.message_factories import P0, TOPIC

PARTITION = P0.partition


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.leases = DeliveredLeases(lambda: self.now)

    def add(self, lease: Lease, *, delivered: int | None = None) -> Lease:
        """Add a lease of which the first records were delivered."""
        self.leases.add(lease)
        lease.cursor = lease.count if delivered is None else delivered
        return lease

    def find(self, offset: int) -> Lease | None:
        return self.leases.find(TOPIC, PARTITION, offset)


def accept_all(lease: Lease) -> None:
    lease.acknowledge_open(0, lease.count, ACCEPT)
    settle(lease, take_runs(lease))


def test_only_delivered_records_are_found() -> None:
    bench = Bench()
    lease = bench.add(lease_of(5, 6, 7), delivered=2)

    found = [bench.find(offset) for offset in range(4, 9)]
    assert found == [None, lease, lease, None, None]
    assert bench.leases.find(TOPIC, PARTITION + 1, 5) is None
    assert bench.leases.find("other", PARTITION, 5) is None


def test_offsets_without_a_record_are_not_found() -> None:
    bench = Bench()
    lease = bench.add(sparse_lease(), delivered=4)

    found = [offset for offset in range(11) if bench.find(offset) is lease]
    assert found == [0, 1, 4, 5]


def test_latest_delivery_of_a_record_is_found() -> None:
    bench = Bench()
    bench.add(lease_of(0, 1))
    again = bench.add(lease_of(0))

    assert bench.find(0) is again
    assert bench.find(1) is not again


def test_settled_leases_are_removed_and_others_stay() -> None:
    bench = Bench()
    open_lease = bench.add(lease_of(0))
    lost = bench.add(lease_of(1))
    lose_locks(lost)
    for offset in range(2, 10 * MIN_LIMIT):
        accept_all(bench.add(lease_of(offset)))

    found = [offset for offset in range(10 * MIN_LIMIT) if bench.find(offset)]
    assert found[:2] == [0, 1]
    assert bench.find(0) is open_lease
    assert KEPT <= len(found) - 2 <= MIN_LIMIT


def test_lost_leases_are_removed_after_their_locks_would_have_ended() -> None:
    bench = Bench()
    lose_locks(bench.add(lease_of(0)))
    bench.now = 31.0
    for offset in range(1, 2 * MIN_LIMIT):
        accept_all(bench.add(lease_of(offset)))

    assert bench.find(0) is None


def test_leases_that_are_never_acknowledged_are_removed_a_lock_duration_later() -> None:
    bench = Bench()
    kept = []
    for number in range(200):
        bench.now = 30.0 * number
        lease = bench.add(lease_of(number))
        lease.locks = LockTimes(bench.now, bench.now, 30.0)
        assert bench.find(number) is lease
        kept.append(sum(bench.find(each) is not None for each in range(number)))

    assert max(kept) <= MIN_LIMIT
    assert bench.find(198) is not None


def test_only_leases_of_former_topics_that_are_not_settled_are_kept() -> None:
    bench = Bench()
    accept_all(bench.add(lease_of(1)))
    bench.leases.keep_only([TOPIC])
    kept = bench.find(1)
    bench.leases.keep_only(["other"])
    forgotten = bench.find(1)
    open_lease = bench.add(lease_of(2))
    bench.leases.keep_only(["other"])

    assert kept is not None
    assert forgotten is None
    assert bench.find(2) is open_lease
