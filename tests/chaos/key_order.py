"""The verdict about the order of records with one key."""

from collections.abc import Iterable, Sequence
from typing import Final

from tests.chaos.journal import Entry
from tests.chaos.producing import key_of

__all__ = ["out_of_order"]

LOCK: Final = 60.0
"""Seconds after which a record that was delivered before comes again, at the latest."""


def out_of_order(
    entries: Iterable[Entry], moves: Sequence[tuple[float, float]]
) -> list[str]:
    """Return the records that one process has handled after a later one of their key.

    docs/worker-concurrency.md has the rule. A redelivered record can come later. Kafka
    stores a delivery count with the next acknowledgement, so after a partition has
    another leader, a redelivered record can come with the count 1.

    Args:
        moves: the begin and the end of faults that move the leaders of partitions.
    """
    newest: dict[tuple[str, str, int, bytes], Entry] = {}
    found = []
    for entry in sorted(entries):
        key = key_of(entry.number)
        if entry.kind != "handled" or key is None:
            continue
        where = entry.process, entry.topic, entry.partition, key
        last = newest.get(where)
        if last is None or entry.offset > last.offset:
            newest[where] = entry
        elif entry.count == 1 and not _has_moved(last, entry, moves):
            found.append(
                f"{entry.number} was handled after {last.number} of its key, in "
                f"{entry.process}"
            )
    return found


def _has_moved(last: Entry, entry: Entry, moves: Sequence[tuple[float, float]]) -> bool:
    return any(
        first <= entry.seconds and last.seconds - LOCK <= end for first, end in moves
    )
