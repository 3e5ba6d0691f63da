"""The output of `sharecons migrate`: a row for each partition, and a summary."""

from collections.abc import Iterator, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import Result, Results
from sharecons.cli.output import write_line
from sharecons.cli.tables import Column, Json, Row
from sharecons.cli.tables import write as write_rows
from sharecons.errors import Error
from sharecons.migration import Direction, Migration, Move

__all__ = ["missing_position_errors", "partition_errors", "write"]

MoveResults = Results[TopicPartition, int]

UNKNOWN_COUNT: Final = "?"
COLUMNS: Final = (
    Column("topic"),
    Column("partition", align_right=True),
    Column("source_offset", title="SOURCE", align_right=True),
    Column("target_offset", title="TARGET", align_right=True),
    Column("new_offset", title="BEGINS", align_right=True),
    Column("twice", align_right=True),
    Column("missed", align_right=True),
    Column("rewound", align_right=True),
    Column("result"),
)
NUMBERS: Final = (
    "source_offset",
    "target_offset",
    "new_offset",
    "log_start_offset",
    "log_end_offset",
    "twice",
    "acknowledged",
    "archived",
    "rewound",
    "missed",
)
COUNTS: Final = ("twice", "missed", "rewound")
KINDS: Final = {
    Direction.TO_SHARE_GROUP: ("consumer group", "share group"),
    Direction.TO_CONSUMER_GROUP: ("share group", "consumer group"),
}


def write(migration: Migration, results: MoveResults | None, *, as_json: bool) -> None:
    """Write a plan to stdout, with the results if it was executed."""
    rows = [
        _row(migration, key, results)
        for key in sorted({*migration.moves, *migration.errors})
    ]
    if as_json:
        write_rows(rows, COLUMNS, as_json=True)
        return
    shown = [_with_unknown_counts(row) for row in rows]
    write_rows(shown, COLUMNS, as_json=False)
    if rows:
        write_line()
    for line in (*_notes(migration), *_summary(migration, results)):
        write_line(line)


def partition_errors(
    migration: Migration, results: MoveResults | None
) -> Mapping[TopicPartition, Error]:
    """Return the errors by partition."""
    return {**migration.errors, **(results.errors if results is not None else {})}


def missing_position_errors(migration: Migration) -> Iterator[Error]:
    """Return an error for each partition for which the source has no offset."""
    for key, move in sorted(migration.moves.items()):
        if move.source_offset is None:
            yield Error(
                f"{key.topic}-{key.partition} is not migrated: the source has no "
                "offset for it; pass --missing leave, earliest or latest"
            )


def _row(migration: Migration, key: TopicPartition, results: MoveResults | None) -> Row:
    move = migration.moves.get(key)
    where: dict[str, Json] = {"topic": key.topic, "partition": key.partition}
    if move is None:
        nothing = dict.fromkeys(NUMBERS)
        error = str(migration.errors[key])
        return {**where, **nothing, "notes": [], "result": "failed", "error": error}
    outcome = None if results is None else results.get(key)
    return {
        **where,
        "source_offset": move.source_offset,
        "target_offset": move.target_offset,
        "new_offset": move.offset,
        "log_start_offset": move.log.start,
        "log_end_offset": move.log.end,
        "twice": move.twice,
        "acknowledged": move.acknowledged,
        "archived": move.archived,
        "rewound": move.rewound,
        "missed": move.missed,
        "notes": list(move.notes),
        "result": _result(migration, move, outcome),
        "error": None if outcome is None or outcome.ok else str(outcome.error),
    }


def _result(migration: Migration, move: Move, outcome: Result[int] | None) -> str:
    if outcome is not None:
        return "moved" if outcome.ok else "failed"
    if move.offset is None:
        return "left"
    if not move.is_needed:
        return "there"
    return "blocked" if migration.obstacles else "to move"


def _with_unknown_counts(row: Row) -> Row:
    """Replace unknown counts by a question mark; a missing value stays a dash."""
    if row["log_end_offset"] is None:
        return row
    unknown = {name: UNKNOWN_COUNT for name in COUNTS if row[name] is None}
    return {**row, **unknown}


def _notes(migration: Migration) -> Iterator[str]:
    for key, move in sorted(migration.moves.items()):
        for note in move.notes:
            yield f"{key.topic}-{key.partition}: {note}."


def _summary(migration: Migration, results: MoveResults | None) -> Iterator[str]:
    kinds = KINDS[migration.direction]
    yield (
        f"From {kinds[0]} {migration.source!r} to {kinds[1]} {migration.target!r}: "
        f"{_offset_count(migration.twice)} offsets are delivered twice, "
        f"{_offset_count(migration.missed)} never."
    )
    if migration.rewound != 0:
        yield (
            f"{_offset_count(migration.rewound).capitalize()} offsets that the target "
            "group has already processed are delivered again."
        )
    count = len(migration.offsets)
    if results is None or not count:
        yield _next_step(migration, count)
        return
    yield f"Moved: {len(results.found)} of {_partitions(count)}."
    if results.errors:
        yield "It is safe to run this again: migrated partitions do not change."


def _next_step(migration: Migration, count: int) -> str:
    if not migration.moves and not migration.errors:
        return f"Group {migration.source!r} has no offsets: nothing to migrate."
    if migration.obstacles:
        return "Nothing was changed: both groups must be without members."
    if not count:
        return "Nothing needs to be changed."
    return f"Nothing was changed: --execute moves {_partitions(count)}."


def _partitions(count: int) -> str:
    return f"{count} partition" if count == 1 else f"{count} partitions"


def _offset_count(number: int | None) -> str:
    return "an unknown number of" if number is None else str(number)
