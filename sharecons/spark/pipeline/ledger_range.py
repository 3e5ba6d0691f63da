"""The range of a batch in the ledger, which Spark's checkpoint has.

The number of a batch does not identify its records: a checkpoint that was restored, or
lost its newest files, counts from an older batch, and plans other records under numbers
that were used before. Positions of a ledger always stand for the same records.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from sharecons.spark.pipeline.errors import CommitError
from sharecons.spark.pipeline.files import Files

__all__ = ["CHECKPOINT", "LedgerRange", "read_range"]

CHECKPOINT: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class LedgerRange:
    """The positions of a batch, `end` excluded.

    Attributes:
        ledger: the id of the ledger.
        start: None for the first batch of a checkpoint, which does not have it.
    """

    ledger: str
    start: int | None
    end: int

    def is_same(self, other: "LedgerRange") -> bool:
        """Return whether both have the same records, as far as that is known."""
        return (self.ledger, self.end) == (other.ledger, other.end) and (
            None in (self.start, other.start) or self.start == other.start
        )

    def overlaps(self, other: "LedgerRange") -> bool:
        """Return whether both are known to have a record in common."""
        # Of two ranges that overlap, one has the last position of the other.
        return self.ledger == other.ledger and (
            self.has(other.end - 1) or other.has(self.end - 1)
        )

    def has(self, position: int) -> bool:
        """Return whether a position is known to be in the range."""
        first = self.end - 1 if self.start is None else self.start
        return first <= position < self.end

    def __str__(self) -> str:
        first = "?" if self.start is None else self.start
        return f"positions {first} to {self.end - 1} of the ledger {self.ledger}"


def read_range(files: Files, number: int) -> LedgerRange:
    """Read the range of a batch from Spark's checkpoint.

    Raises:
        CommitError: the checkpoint has no offsets that the source has written.
    """
    ledger, end = _read_offset(files, number)
    start = None
    if number > 0:
        earlier, start = _read_offset(files, number - 1)
        if earlier != ledger:
            raise CommitError(
                f"{files.url(_name(number))} is of the ledger {ledger}, and the batch "
                f"before it of {earlier}; use the checkpoint of one ledger"
            )
    return LedgerRange(ledger, start, end)


def _name(number: int) -> str:
    return f"{CHECKPOINT}/offsets/{number}"


def _read_offset(files: Files, number: int) -> tuple[str, int]:
    """Return the ledger and the position at which a batch ends."""
    for line in (files.read(_name(number)) or b"").splitlines():
        offset = _parse(line)
        if "ledger" in offset and isinstance(offset.get("position"), int):
            return str(offset["ledger"]), offset["position"]
    raise CommitError(
        f"{files.url(_name(number))} has no position of the source, so the records of "
        f"batch {number} are unknown; restore the checkpoint"
    )


def _parse(line: bytes) -> dict[str, Any]:
    # The first line is a version, and others have metadata.
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
