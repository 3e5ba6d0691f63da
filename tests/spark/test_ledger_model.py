"""A model of the ledger and its store between a share group and Spark.

Drivers are killed at any time. Every offset that the group delivers to the query must
be in exactly one of its committed batches, and replays must have the same rows.
"""

from collections import Counter

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from sharecons.spark.errors import LedgerError, LedgerTakenError
from sharecons.spark.ledger import AcquiredRange
from sharecons.spark.store import Store
from tests.protocol.hypothesis_profile import MACHINE
from tests.spark.memory_storage import Killed, MemoryStorage

TOPIC_ID = bytes(range(16))
PARTITIONS = (0, 1)

counts = st.integers(1, 12)
partitions = st.sampled_from(PARTITIONS)
write_fates = st.sampled_from(
    [None, None, "killed before", "killed after", "failed", "response lost", "repeated"]
)


class Group:
    """A share group: the locks of its members, and the acknowledged offsets."""

    def __init__(self):
        self.produced = Counter()
        self.deliveries = Counter()
        self.holder = {}
        self.acknowledged = {}

    def acquire(self, session, partition, count, scattered):
        """Lock available offsets in order; every second one if `scattered`."""
        free = [
            (partition, offset)
            for offset in range(self.produced[partition])
            if (partition, offset) not in self.holder
            and (partition, offset) not in self.acknowledged
        ]
        chosen = free[:: 2 if scattered else 1][:count]
        for offset_id in chosen:
            self.holder[offset_id] = session
            self.deliveries[offset_id] += 1
        return [self._range_at(offset_id) for offset_id in chosen]

    def _range_at(self, offset_id):
        partition, offset = offset_id
        count = self.deliveries[offset_id]
        return AcquiredRange("orders", TOPIC_ID, partition, offset, offset, count)

    def accept(self, session, ranges):
        for offset_id in offsets_of(ranges):
            if self.holder.get(offset_id) == session:
                del self.holder[offset_id]
                self.acknowledged[offset_id] = session

    def end_locks(self, session=None):
        for offset_id, holder in list(self.holder.items()):
            if session in (None, holder):
                del self.holder[offset_id]

    def start_offset(self, partition):
        offset = 0
        while (partition, offset) in self.acknowledged:
            offset += 1
        return offset


def offsets_of(ranges):
    return [
        (part.partition, offset)
        for part in ranges
        for offset in range(part.first_offset, part.last_offset + 1)
    ]


class Driver:
    """The memory of a driver, which is lost when its process is killed."""

    def __init__(self, storage, session):
        self.session = session
        self.store = Store(storage)
        self.ledger = self.store.open("billing")
        self.acquired = []
        self.written = []

    def write(self):
        new = self.ledger.select_new(self.acquired)
        self.store.append(new)
        self.ledger.append(new)
        self.written += self.acquired
        self.acquired = []


class QueryAndGroup(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.group = Group()
        self.storage = MemoryStorage()
        self.sessions = 0
        self.members = set()
        # Spark's checkpoint: where its batches end, and how many are committed.
        self.ends = [0]
        self.committed = 0
        self.rows = {}
        self.driver = None
        self.checked = None
        self.start()

    def start(self):
        self.sessions += 1
        self.members.add(self.sessions)
        self.driver = Driver(self.storage, self.sessions)

    def restart(self):
        self.group.end_locks(self.driver.session)
        self.start()

    # Rules: the group.

    @rule(partition=partitions, count=counts)
    def produce(self, partition, count):
        self.group.produced[partition] += count

    @rule(partition=partitions, count=counts, scattered=st.booleans())
    def acquire(self, partition, count, scattered):
        driver = self.driver
        driver.acquired += self.group.acquire(
            driver.session, partition, count, scattered
        )

    @rule()
    def locks_end(self):
        self.group.end_locks()
        # The client skips records whose lock has ended.
        self.driver.acquired = []

    @rule(partition=partitions, count=counts)
    def another_member_accepts(self, partition, count):
        ranges = self.group.acquire(-1, partition, count, scattered=True)
        self.group.accept(-1, ranges)

    # Rules: the driver.

    @rule(fault=write_fates)
    def write(self, fault):
        self.storage.fault = fault
        try:
            self.driver.write()
        except (Killed, LedgerError):
            self.restart()
        self.storage.fault = None

    @rule(fault=st.sampled_from(["ok", "lost before", "lost after", "killed"]))
    def accept(self, fault):
        driver = self.driver
        if fault != "lost before":
            self.group.accept(driver.session, driver.written)
        driver.written = []
        if fault == "killed":
            self.restart()

    @rule(partition=partitions)
    def start_offset_is_read(self, partition):
        start = self.group.start_offset(partition)
        self.driver.ledger.set_start_offset(TOPIC_ID, partition, start)

    @rule()
    def killed(self):
        self.restart()

    @rule()
    def second_driver_starts(self):
        old = self.driver
        self.start()
        old.acquired += self.group.acquire(old.session, 0, 3, scattered=False)
        if old.ledger.select_new(old.acquired):
            with pytest.raises(LedgerTakenError):
                old.write()
        with pytest.raises(LedgerError):
            old.store.check_ownership()
        self.group.end_locks(old.session)

    # Rules: Spark.

    @precondition(lambda self: self.committed == len(self.ends) - 1)
    @rule(limit=st.integers(1, 20))
    def plan(self, limit):
        end = min(self.ends[-1] + limit, self.driver.ledger.end)
        if end > self.ends[-1]:
            self.ends.append(end)

    @precondition(lambda self: self.committed < len(self.ends) - 1)
    @rule(killed=st.booleans())
    def run(self, killed):
        start, end = self.ends[-2:]
        rows = offsets_of(self.driver.ledger.ranges_between(start, end))
        assert end - start == len(rows)
        # A replay reads the same rows.
        assert self.rows.setdefault(end, rows) == rows
        if killed:
            self.restart()
        else:
            self.committed += 1

    @rule(fault=write_fates)
    def commit(self, fault):
        self.storage.fault = fault
        try:
            self.driver.ledger.trim(self.ends[self.committed])
            self.driver.store.trim(self.driver.ledger)
        except (Killed, LedgerError):
            self.restart()
        self.storage.fault = None

    @rule(removals_left=st.sampled_from([None, None, 0, 1, 2]))
    def remove_old_entries(self, removals_left):
        self.storage.removals_left = removals_left
        try:
            self.driver.store.remove_old_entries()
        except Killed:
            self.restart()
        self.storage.removals_left = None

    @rule(count=counts, limit=st.integers(1, 20), end_first=st.booleans())
    def batch_without_faults(self, count, limit, end_first):
        for partition in PARTITIONS:
            self.acquire(partition, count, scattered=False)
        self.write(None)
        if end_first:
            self.locks_end()
        self.accept("ok")
        self.batch(limit)

    def batch(self, limit):
        """Finish the planned batches, as Spark would, and run one more."""
        while self.committed < len(self.ends) - 1:
            self.run(killed=False)
        self.plan(limit)
        while self.committed < len(self.ends) - 1:
            self.run(killed=False)
        self.commit(None)

    # Invariants.

    def in_batches(self):
        done = self.ends[1 : self.committed + 1]
        return [offset_id for end in done for offset_id in self.rows[end]]

    def not_in_batches(self):
        ledger = self.driver.ledger
        return offsets_of(ledger.ranges_between(self.ends[self.committed], ledger.end))

    @invariant()
    def no_offset_is_in_two_batches(self):
        known = Counter(self.in_batches() + self.not_in_batches())

        assert not [offset_id for offset_id, times in known.items() if times > 1]

    @invariant()
    def accepted_offsets_are_in_a_batch_or_in_the_ledger(self):
        known = {*self.in_batches(), *self.not_in_batches()}

        for offset_id, session in self.group.acknowledged.items():
            assert session == -1 or offset_id in known

    @invariant()
    def restarted_driver_has_the_same_ledger(self):
        ledger = self.driver.ledger
        state = (set(self.storage.files), ledger.begin, ledger.end, self.sessions)
        if state == self.checked:
            return  # neither the files nor the ledger have changed since
        self.checked = state
        store = Store(Copy(self.storage))
        again = store.open("billing")

        assert self.driver.store.member_id == store.member_id
        assert ledger.end == again.end
        assert again.begin <= ledger.begin
        assert ledger.ranges_between(ledger.begin, ledger.end) == again.ranges_between(
            ledger.begin, again.end
        )

    def teardown(self):
        if not hasattr(self, "group"):
            return
        self.locks_end()
        for partition in PARTITIONS:
            self.acquire(partition, 10**6, scattered=False)
        self.write(None)
        self.accept("ok")
        while self.ends[self.committed] < self.driver.ledger.end:
            self.batch(5)
        for partition in PARTITIONS:
            self.start_offset_is_read(partition)
        while self.driver.store.remove_old_entries():
            pass
        assert not [f for f in self.storage.files.values() if b'"acquired"' in f]

        everything = {
            (partition, offset)
            for partition in PARTITIONS
            for offset in range(self.group.produced[partition])
        }
        delivered = [p for p in everything if self.group.acknowledged[p] != -1]
        rows = Counter(self.in_batches())
        assert not [offset_id for offset_id in delivered if rows[offset_id] != 1]
        assert set(rows) <= everything
        assert 0 == len(self.driver.ledger)
        assert {} == self.driver.ledger.redeliverable


class Copy(MemoryStorage):
    """A copy for reading what a restart would find."""

    def __init__(self, storage):
        super().__init__()
        self.files = dict(storage.files)


QueryAndGroup.TestCase.settings = MACHINE
TestQueryAndGroup = pytest.mark.slow("a search")(QueryAndGroup.TestCase)
