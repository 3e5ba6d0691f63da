"""The ledger and its store between a share group and Spark, while drivers die.

The promise: every offset that the group gives to this query is in exactly one committed
batch of it, and a batch that is read again has the same rows.
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
from tests.protocol.profile import MACHINE
from tests.spark.memory_storage import Killed, MemoryStorage

TOPIC_ID = bytes(range(16))
PARTITIONS = (0, 1)

counts = st.integers(1, 12)
partitions = st.sampled_from(PARTITIONS)
write_fates = st.sampled_from(
    [None, None, "killed before", "killed after", "failed", "answer lost", "repeated"]
)


class Group:
    """A share group, as far as one query sees it: who holds what, and what is done."""

    def __init__(self):
        self.produced = Counter()
        self.deliveries = Counter()
        self.holder = {}
        self.settled = {}

    def acquire(self, session, partition, count, scattered):
        """Lock what is free, in order; every second one if others were quicker."""
        free = [
            (partition, offset)
            for offset in range(self.produced[partition])
            if (partition, offset) not in self.holder
            and (partition, offset) not in self.settled
        ]
        chosen = free[:: 2 if scattered else 1][:count]
        for place in chosen:
            self.holder[place] = session
            self.deliveries[place] += 1
        return [self._taken(place) for place in chosen]

    def _taken(self, place):
        partition, offset = place
        count = self.deliveries[place]
        return AcquiredRange("orders", TOPIC_ID, partition, offset, offset, count)

    def accept(self, session, taken):
        for place in places(taken):
            if self.holder.get(place) == session:
                del self.holder[place]
                self.settled[place] = session

    def end_locks(self, session=None):
        for place, holder in list(self.holder.items()):
            if session in (None, holder):
                del self.holder[place]

    def start_offset(self, partition):
        offset = 0
        while (partition, offset) in self.settled:
            offset += 1
        return offset


def places(taken):
    return [
        (part.partition, offset)
        for part in taken
        for offset in range(part.first_offset, part.last_offset + 1)
    ]


class Driver:
    """A driver's memory; all of it is lost when the process ends."""

    def __init__(self, storage, session):
        self.session = session
        self.store = Store(storage)
        self.ledger = self.store.open("billing")
        self.acquired = []
        self.entered = []

    def enter(self):
        new = self.ledger.select_new(self.acquired)
        self.store.append(new)
        self.ledger.append(new)
        self.entered += self.acquired
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
        self.start()

    def start(self):
        self.sessions += 1
        self.members.add(self.sessions)
        self.driver = Driver(self.storage, self.sessions)

    def restart(self):
        self.group.end_locks(self.driver.session)
        self.start()

    # What the group does.

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
        # The client hands out nothing whose lock has ended.
        self.driver.acquired = []

    @rule(partition=partitions, count=counts)
    def another_member_works(self, partition, count):
        taken = self.group.acquire(-1, partition, count, scattered=True)
        self.group.accept(-1, taken)

    # What the driver does.

    @rule(fate=write_fates)
    def enter(self, fate):
        self.storage.fate = fate
        try:
            self.driver.enter()
        except (Killed, LedgerError):
            self.restart()
        self.storage.fate = None

    @rule(fate=st.sampled_from(["good", "lost before", "lost after", "killed"]))
    def accept(self, fate):
        driver = self.driver
        if fate != "lost before":
            self.group.accept(driver.session, driver.entered)
        driver.entered = []
        if fate == "killed":
            self.restart()

    @rule(partition=partitions)
    def the_start_offset_is_told(self, partition):
        start = self.group.start_offset(partition)
        self.driver.ledger.set_start_offset(TOPIC_ID, partition, start)

    @rule()
    def killed(self):
        self.restart()

    @rule()
    def a_second_driver_comes(self):
        old = self.driver
        self.start()
        old.acquired += self.group.acquire(old.session, 0, 3, scattered=False)
        if old.ledger.select_new(old.acquired):
            with pytest.raises(LedgerTakenError):
                old.enter()
        with pytest.raises(LedgerError):
            old.store.check_ownership()
        self.group.end_locks(old.session)

    # What Spark does.

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
        rows = places(self.driver.ledger.ranges_between(start, end))
        assert end - start == len(rows)
        # Whoever reads it again reads the same.
        assert self.rows.setdefault(end, rows) == rows
        if killed:
            self.restart()
        else:
            self.committed += 1

    @rule(fate=write_fates)
    def commit(self, fate):
        self.storage.fate = fate
        try:
            self.driver.ledger.trim(self.ends[self.committed])
            self.driver.store.trim(self.driver.ledger)
        except (Killed, LedgerError):
            self.restart()
        self.storage.fate = None

    @rule(removals=st.sampled_from([None, None, 0, 1, 2]))
    def remove_old_entries(self, removals):
        self.storage.removals = removals
        try:
            self.driver.store.remove_old_entries()
        except Killed:
            self.restart()
        self.storage.removals = None

    @rule(count=counts, limit=st.integers(1, 20), end_first=st.booleans())
    def all_goes_well_for_a_batch(self, count, limit, end_first):
        for partition in PARTITIONS:
            self.acquire(partition, count, scattered=False)
        self.enter(None)
        if end_first:
            self.locks_end()
        self.accept("good")
        self.batch(limit)

    def batch(self, limit):
        """Finish the batch that was planned before, as Spark would, and one more."""
        while self.committed < len(self.ends) - 1:
            self.run(killed=False)
        self.plan(limit)
        while self.committed < len(self.ends) - 1:
            self.run(killed=False)
        self.commit(None)

    # What must hold.

    def in_batches(self):
        done = self.ends[1 : self.committed + 1]
        return [place for end in done for place in self.rows[end]]

    def yet_to_come(self):
        ledger = self.driver.ledger
        return places(ledger.ranges_between(self.ends[self.committed], ledger.end))

    @invariant()
    def no_offset_is_in_two_batches(self):
        known = Counter(self.in_batches() + self.yet_to_come())

        assert not [place for place, times in known.items() if times > 1]

    @invariant()
    def what_was_accepted_is_in_a_batch_or_will_be(self):
        known = {*self.in_batches(), *self.yet_to_come()}

        for place, session in self.group.settled.items():
            assert session == -1 or place in known

    @invariant()
    def a_restarted_driver_knows_what_this_one_knows(self):
        ledger = self.driver.ledger
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
        self.enter(None)
        self.accept("good")
        while self.ends[self.committed] < self.driver.ledger.end:
            self.batch(5)
        for partition in PARTITIONS:
            self.the_start_offset_is_told(partition)
        while self.driver.store.remove_old_entries():
            pass
        assert not [f for f in self.storage.files.values() if b'"acquired"' in f]

        everything = {
            (partition, offset)
            for partition in PARTITIONS
            for offset in range(self.group.produced[partition])
        }
        given = [p for p in everything if self.group.settled[p] != -1]
        rows = Counter(self.in_batches())
        assert not [place for place in given if rows[place] != 1]
        assert set(rows) <= everything
        assert 0 == len(self.driver.ledger)
        assert {} == self.driver.ledger.redeliverable


class Copy(MemoryStorage):
    """A look at what a restart would find, which leaves no trace."""

    def __init__(self, storage):
        super().__init__()
        self.files = dict(storage.files)


QueryAndGroup.TestCase.settings = MACHINE
TestQueryAndGroup = QueryAndGroup.TestCase
