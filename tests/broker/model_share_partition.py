"""A model of a share partition: a dict with an entry for each offset.

It does not predict which records a fetch acquires, but checks them by the rules.
"""

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = 0, 1, 2, 4
FINAL = {0: ARCHIVED, 1: ACKNOWLEDGED, 3: ARCHIVED}


class Model:
    def __init__(self, limit=5, locks=100, duration=10.0):
        self.limit, self.locks, self.duration = limit, locks, duration
        self.known = {}  # offset -> [state, count, member, locked until]
        self.written = {}  # offset -> (count, state)
        self.log_start = 0

    @property
    def start(self):
        """The first offset that is not final."""
        offset = self.log_start
        while self.known.get(offset, [None])[0] in (ACKNOWLEDGED, ARCHIVED):
            offset += 1
        return offset

    def acquired(self, member, ranges, now):
        for first, last, count in ranges:
            for offset in range(first, last + 1):
                state, before, *_ = self.known.get(offset, [AVAILABLE, 0])
                assert state == AVAILABLE, f"{offset} is not available"
                assert count == before + 1, f"{offset} was delivered {before} times"
                assert count <= self.limit, f"{offset} has had its last delivery"
                assert offset >= self.log_start
                self.known[offset] = [ACQUIRED, count, member, now + self.duration]

    def can_acknowledge(self, member, batches):
        return all(
            offset < self.start
            or self.known.get(offset, [None] * 4)[::2] == [ACQUIRED, member]
            for first, last, _ in batches
            for offset in range(first, last + 1)
        )

    def acknowledged(self, batches, now):
        start = self.start
        for first, last, types in batches:
            for offset in range(first, last + 1):
                if offset < start:
                    continue
                kind = types[0] if len(types) == 1 else types[offset - first]
                if kind == 4:
                    self.known[offset][3] = now + self.duration
                elif kind == 2:
                    self._release(offset)
                else:
                    self._write(offset, FINAL[kind])

    def released(self, member):
        self._release_where(lambda held: held[2] == member)

    def passed(self, now):
        self._release_where(lambda held: held[3] <= now)

    def leader_moved(self):
        """Keep only the written state, as the next leader does."""
        self.known = {
            offset: [state, count, "", None]
            for offset, (count, state) in self.written.items()
            if offset >= self.log_start
        }

    def held_by(self, member):
        return {
            offset: held[1]
            for offset, held in self.known.items()
            if held[0] == ACQUIRED and held[2] == member
        }

    def _release_where(self, condition):
        for offset, held in list(self.known.items()):
            if held[0] == ACQUIRED and condition(held):
                self._release(offset)

    def _release(self, offset):
        spent = self.known[offset][1] >= self.limit
        self._write(offset, ARCHIVED if spent else AVAILABLE)

    def _write(self, offset, state):
        count = self.known[offset][1]
        self.known[offset] = [state, count, "", None]
        self.written[offset] = max(self.written.get(offset, (0, 0)), (count, state))
