"""The steps of a history, and the choice of acknowledgements."""

from dataclasses import dataclass

__all__ = [
    "Acknowledge",
    "Close",
    "Cut",
    "Fetch",
    "Produce",
    "Reopen",
    "Trim",
    "Wait",
    "choose_acknowledgements",
    "forget",
    "with_waits",
]

POLL = 0.1  # the maximum wait of a fetch, in seconds, while a leader reads its state


@dataclass(frozen=True)
class Produce:
    """Write batches of these numbers of records."""

    sizes: tuple
    partition: int = 0


@dataclass(frozen=True)
class Fetch:
    member: int
    max_records: int = 500
    record_limit: bool = False
    batch_size: int = 500
    max_bytes: int = 1 << 20
    acknowledge: int | None = None
    """The seed of acknowledgements in the same request."""


@dataclass(frozen=True)
class Acknowledge:
    member: int
    seed: int
    is_honest: bool = True
    """Otherwise also acknowledge records that the member has not acquired."""


@dataclass(frozen=True)
class Wait:
    """Wait until all locks have expired."""


@dataclass(frozen=True)
class Close:
    member: int


@dataclass(frozen=True)
class Reopen:
    """Open a session in place of the present one."""

    member: int


@dataclass(frozen=True)
class Cut:
    member: int


@dataclass(frozen=True)
class Trim:
    """Delete the first part of the log."""

    part: float
    partition: int = 0


def with_waits(steps, seconds):
    """Insert waits for all locks, so that no lock expires in between."""
    passed, history = 0.0, []
    for step in steps:
        passed += POLL if isinstance(step, Produce | Acknowledge | Trim) else 2.5 * POLL
        if passed > seconds:
            history.append(Wait())
        if passed > seconds or step == Wait():
            passed = 0.0
        history.append(step)
    return history


def choose_acknowledgements(held, random, may_renew=False):
    """Choose acknowledgements of acquired records: ranges of one type or several."""
    acknowledgements = {}
    for partition in sorted({partition for partition, _ in held}):
        offsets = sorted({offset for where, offset in held if where == partition})
        if batches := choose_for_partition(offsets, random, may_renew):
            acknowledgements[partition] = batches
    return acknowledgements


def choose_for_partition(offsets, random, may_renew):
    kinds = [0, 1, 2, 2, 2, 3] + [4] * may_renew
    share = random.choice([0.3, 0.7, 1.0])
    mixed = random.random() < 0.3
    alike = random.choice(kinds)
    batches = []
    for offset in (o for o in offsets if random.random() <= share):
        kind = random.choice(kinds) if mixed else alike
        last = batches[-1] if batches else None
        if last and last[1] == offset - 1 and (mixed or last[2][0] == kind):
            last[1] = offset
            last[2].append(kind)
        else:
            batches.append([offset, offset, [kind]])
    return tuple(
        (first, last, tuple(types) if mixed else tuple(types[:1]))
        for first, last, types in batches
    )


def forget(held, partition, batches):
    for first, last, types in batches:
        for offset in range(first, last + 1):
            kind = types[0] if len(types) == 1 else types[offset - first]
            if kind != 4 and (partition, offset) in held:
                held.remove((partition, offset))
