"""What `sharecons migrate` shows: a row for each partition, and the account."""

from collections.abc import Iterator, Mapping
from typing import Final

from sharecons._record import TopicPartition
from sharecons.admin import Outcome, Results
from sharecons.cli.output import write_line
from sharecons.cli.tables import Column, Json, Row
from sharecons.cli.tables import write as write_rows
from sharecons.errors import Error
from sharecons.migration import Direction, Migration, Move

__all__ = ["errors", "unplaced", "write"]

Moved = Results[TopicPartition, int]

UNKNOWN: Final = "?"
COLUMNS: Final = (
    Column("topic"),
    Column("partition", right=True),
    Column("source_offset", title="SOURCE", right=True),
    Column("target_offset", title="TARGET", right=True),
    Column("new_offset", title="BEGINS", right=True),
    Column("twice", right=True),
    Column("missed", right=True),
    Column("rewound", right=True),
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


def write(planned: Migration, results: Moved | None, *, as_json: bool) -> None:
    """Write the plan to stdout, with what became of it if it was carried out."""
    rows = [
        _row(planned, key, results) for key in sorted({*planned.moves, *planned.errors})
    ]
    if as_json:
        write_rows(rows, COLUMNS, as_json=True)
        return
    shown = [_shown(row) for row in rows]
    write_rows(shown, COLUMNS, as_json=False)
    if rows:
        write_line()
    for line in (*_notes(planned), *_account(planned, results)):
        write_line(line)


def errors(planned: Migration, results: Moved | None) -> Mapping[TopicPartition, Error]:
    """Give what went wrong, by partition."""
    return {**planned.errors, **(results.errors if results is not None else {})}


def unplaced(planned: Migration) -> Iterator[Error]:
    """Return an error for each partition in which the source has no position."""
    for key, move in sorted(planned.moves.items()):
        if move.source_offset is None:
            yield Error(
                f"{key.topic}-{key.partition} is not moved: the source has no position "
                "in it; give --unplaced leave, earliest or latest"
            )


def _row(planned: Migration, key: TopicPartition, results: Moved | None) -> Row:
    move = planned.moves.get(key)
    where: dict[str, Json] = {"topic": key.topic, "partition": key.partition}
    if move is None:
        nothing = dict.fromkeys(NUMBERS)
        error = str(planned.errors[key])
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
        "result": _result(planned, move, outcome),
        "error": None if outcome is None or outcome.ok else str(outcome.error),
    }


def _result(planned: Migration, move: Move, outcome: Outcome[int] | None) -> str:
    if outcome is not None:
        return "moved" if outcome.ok else "failed"
    if move.offset is None:
        return "left"
    if not move.is_needed:
        return "there"
    return "blocked" if planned.obstacles else "to move"


def _shown(row: Row) -> Row:
    """Numbers that nobody knows, told from numbers that there are none of."""
    if row["log_end_offset"] is None:
        return row
    unknown = {name: UNKNOWN for name in COUNTS if row[name] is None}
    return {**row, **unknown}


def _notes(planned: Migration) -> Iterator[str]:
    for key, move in sorted(planned.moves.items()):
        for note in move.notes:
            yield f"{key.topic}-{key.partition}: {note}."


def _account(planned: Migration, results: Moved | None) -> Iterator[str]:
    kinds = KINDS[planned.direction]
    yield (
        f"From {kinds[0]} {planned.source!r} to {kinds[1]} {planned.target!r}: "
        f"{_number(planned.twice)} offsets are delivered twice, "
        f"{_number(planned.missed)} not at all."
    )
    if planned.rewound != 0:
        yield (
            f"{_number(planned.rewound).capitalize()} offsets that the target itself "
            "settled are delivered again."
        )
    many = len(planned.offsets)
    if results is None or not many:
        yield _what_next(planned, many)
        return
    yield f"Moved: {len(results.found)} of {_partitions(many)}."
    if results.errors:
        yield "It is safe to run this again: what is moved is left as it is."


def _what_next(planned: Migration, many: int) -> str:
    if not planned.moves and not planned.errors:
        return f"Group {planned.source!r} has no place anywhere: nothing to move."
    if planned.obstacles:
        return "Nothing was changed: somebody is at work in a group."
    if not many:
        return "Nothing is to be changed."
    return f"Nothing was changed: --execute moves {_partitions(many)}."


def _partitions(many: int) -> str:
    return f"{many} partition" if many == 1 else f"{many} partitions"


def _number(number: int | None) -> str:
    return "an unknown number of" if number is None else str(number)
