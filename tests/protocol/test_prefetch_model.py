"""The prefetch with a reader that calls it in any order."""

import math

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sharecons.protocol.fetch.prefetch import (
    Prefetch,
)
from tests.protocol.hypothesis_profile import MACHINE, search


class PrefetchOfAReader(RuleBasedStateMachine):
    """A reader and its fetches; the reader waits only if nothing is buffered."""

    def __init__(self) -> None:
        super().__init__()
        self.prefetch = Prefetch(100)
        self.now = 0.0
        self.ready: list[int] = []
        self.is_processing = False

    @rule(seconds=st.sampled_from([0.0, 0.001, 0.05, 0.3, 2.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def read(self) -> None:
        if not self.prefetch.waiting_readers:
            if self.is_processing:
                self.is_processing = False
                self.prefetch.on_requested(self.now)
            self.deliver()
            if not self.is_processing:
                self.prefetch.on_requested(self.now)
                self.prefetch.waiting_readers = 1

    @rule()
    def cancel_read(self) -> None:
        self.prefetch.waiting_readers = 0

    @precondition(lambda self: self.prefetch.next_due(self.now) <= self.now)
    @rule(extra=st.integers(0, 50), empty=st.booleans())
    def fetch(self, extra: int, empty: bool) -> None:
        if not empty:
            count = self.prefetch.record_limit(1, partitions=9) + extra
            self.ready.append(count)
            self.prefetch.on_acquired(count)
            if self.prefetch.waiting_readers:
                self.deliver()

    @rule()
    def drop_ready(self) -> None:
        for count in self.ready:
            self.prefetch.on_dropped(count)
        self.ready.clear()

    def deliver(self) -> None:
        if self.ready:
            self.prefetch.waiting_readers = 0
            self.is_processing = True
            self.prefetch.on_delivered(self.ready.pop(0), self.now)

    @invariant()
    def buffered_count_is_correct(self) -> None:
        assert sum(self.ready) == self.prefetch.buffered

    @invariant()
    def fetch_is_due_for_a_waiting_reader(self) -> None:
        if self.prefetch.waiting_readers:
            assert self.now == self.prefetch.next_due(self.now)

    @invariant()
    def fetch_is_due_at_its_announced_time(self) -> None:
        due = self.prefetch.next_due(self.now)
        if self.now < due < math.inf:
            assert self.prefetch.next_due(due) <= due


PrefetchOfAReader.TestCase.settings = MACHINE
TestPrefetchOfAReader = search(PrefetchOfAReader.TestCase)
