"""A model of a share partition: a dict with an entry for each offset.

It does not predict which records a fetch acquires, but checks them by the rules.

The start offset moves with the next change of a delivery. It does not move into or past
the batch in which a gap begins that the leader has read: the state that it wrote lacks
records that were acquired and neither settled nor released. The gap begins after the
last acquired record, even if that is before the first missing one (4.3.0, 4.4.0).
"""

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
FINAL = {0: ARCHIVED, 1: ACKNOWLEDGED, 3: ARCHIVED}


class Model:
    def __init__(self, limit=5, locks=100, duration=10.0, start=0):
        self.limit, self.locks, self.duration = limit, locks, duration
        self.known = {}  # offset -> [state, count, member, locked until]
        self.batches = {}  # offset -> first offset of its batch in flight
        self.written = {}  # offset -> (count, state)
        self.start = self.written_start = start
        self.gap = None  # the offset at which a gap begins
        self.gap_end = None

    def acquired(self, member, ranges, now, left=()):
        """Acquire ranges; batches that were new also have the offsets `left`."""
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                state, before, *_ = self.known.get(offset, [AVAILABLE, 0])
                assert state == AVAILABLE, f"{offset} is not available"
                assert count == before + 1, f"{offset} was delivered {before} times"
                assert count <= self.limit, f"{offset} has had its last delivery"
                assert offset >= self.start
                self.known[offset] = [ACQUIRED, count, member, now + self.duration]
                self.batches.setdefault(offset, first)
        for offset in left:
            if offset not in self.known:
                self.known[offset] = [AVAILABLE, 0, "", None]
                self.batches[offset] = self.batches[offset - 1]
        if ranges and self.gap is not None:
            following = ranges[-1][1] + 1
            self.gap = following if following <= self.gap_end else None

    def can_acknowledge(self, member, batches):
        return all(
            offset < self.start
            or self.known.get(offset, [None] * 4)[::2] == [ACQUIRED, member]
            for first, last, _ in batches
            for offset in range(first, last + 1)
        )

    def acknowledged(self, batches, now):
        start, changed = self.start, False
        for first, last, types in batches:
            for offset in range(first, last + 1):
                if offset < start:
                    continue
                kind = types[0] if len(types) == 1 else types[offset - first]
                if kind == 4:
                    self.known[offset][3] = now + self.duration
                    continue
                changed = True
                if kind == 2:
                    self._release(offset)
                else:
                    self._write(offset, FINAL[kind])
        if changed:
            self._advance()

    def released(self, member):
        self._release_where(lambda held: held[2] == member)

    def passed(self, now):
        locks = {held[3] for held in self.known.values() if held[0] == ACQUIRED}
        for due in sorted(lock for lock in locks if lock <= now):
            self._release_where(lambda held, due=due: held[3] == due)

    def leader_moved(self):
        """Keep only the written state, as the next leader does."""
        self.start = self.written_start
        self.known = {
            offset: [state, count, "", None]
            for offset, (count, state) in self.written.items()
            if offset >= self.start
        }
        self.batches = {}
        for offset in sorted(self.known):
            is_joined = self.known[offset] == self.known.get(offset - 1)
            self.batches[offset] = self.batches[offset - 1] if is_joined else offset
        self.gap_end = max(self.known, default=self.start)
        whole = range(self.start, self.gap_end)
        self.gap = next((each for each in whole if each not in self.known), None)
        self._advance()

    def held_by(self, member):
        return {
            offset: held[1]
            for offset, held in self.known.items()
            if held[0] == ACQUIRED and held[2] == member
        }

    def _release_where(self, condition):
        changed = [
            offset
            for offset, held in self.known.items()
            if held[0] == ACQUIRED and condition(held)
        ]
        for offset in changed:
            self._release(offset)
        if changed:
            self._advance()

    def _release(self, offset):
        spent = self.known[offset][1] >= self.limit
        self._write(offset, ARCHIVED if spent else AVAILABLE)

    def _advance(self):
        start = self.start
        while self.known.get(start, [None])[0] in (ACKNOWLEDGED, ARCHIVED):
            start += 1
        if self.gap in self.batches:
            start = min(start, self.batches[self.gap])
        self.start = max(self.start, start)

    def _write(self, offset, state):
        count = self.known[offset][1]
        self.known[offset] = [state, count, "", None]
        self.written[offset] = max(self.written.get(offset, (0, 0)), (count, state))
        self.written_start = self.start  # from before the change
