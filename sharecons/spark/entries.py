"""What the files of a ledger say: one entry each, as lines of JSON.

The first line says what the entry is, a line for each range follows, and the last one
holds the checksum of those before it. They can be read with `head`; rows repeat no
name, so a range takes some 25 bytes.

    opened    a driver took the ledger over; nobody before it may write any more
    taken     a segment: what the group gave, from position `at` on
    trimmed   all before `begin` is committed; entries before number `keep` are of no
              use any more. Rows are what may yet be given again
    load      a batch begins to acquire for a `load()` at position `at`, or is complete
              there

Version 2 adds `load`, and the loads in a `trimmed` entry. Entries without loads are
still written as version 1, which older versions of this package read.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from sharecons.protocol.messages import SharePartition, TopicId
from sharecons.spark.errors import LedgerError, LedgerLostError
from sharecons.spark.ledger import AcquiredRange, Remembered
from sharecons.spark.loads import Load, Loads

__all__ = [
    "Entry",
    "Identity",
    "load",
    "opened",
    "parse",
    "taken",
    "trimmed",
]

VERSION: Final = 2
VERSION_WITHOUT_LOADS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Whose ledger it is.

    Attributes:
        ledger_id: made with the ledger; tells two ledgers of one group apart.
        group_id: the share group whose records it lists.
        member_id: under which every driver of this ledger joins the group.
    """

    ledger_id: str
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry whose first line is read; the rows are read when asked for."""

    kind: Literal["opened", "taken", "trimmed", "load"]
    head: Mapping[str, Any]
    lines: Sequence[bytes]

    @property
    def identity(self) -> Identity | None:
        owner = self.head.get("ledger")
        return Identity(**owner) if owner else None

    @property
    def topics(self) -> dict[str, TopicId]:
        return dict(self._pairs)

    @property
    def _pairs(self) -> list[tuple[str, TopicId]]:
        return [(name, bytes.fromhex(spelt)) for name, spelt in self.head["topics"]]

    @property
    def rows(self) -> list[list[int]]:
        rows: list[list[int]] = json.loads(b"[" + b",".join(self.lines) + b"]")
        return rows

    @property
    def segment(self) -> Iterable[AcquiredRange]:
        # One name may stand for two ids, of a topic that was made anew.
        topics = self._pairs
        for topic, partition, first, last, count in self.rows:
            yield AcquiredRange(*topics[topic], partition, first, last, count)

    @property
    def remembered(self) -> Remembered:
        ids = [bytes.fromhex(spelt) for spelt in self.head["ids"]]
        ranges: dict[SharePartition, list[tuple[int, int]]] = {}
        for topic, partition, first, last in self.rows:
            place = SharePartition(ids[topic], partition)
            ranges.setdefault(place, []).append((first, last))
        return ranges

    @property
    def loads(self) -> Loads:
        return Loads(
            {
                load_id: Load(
                    start=start,
                    held=held,
                    spans=tuple((first, end) for first, end in spans),
                    since=since,
                    is_complete=is_complete,
                )
                for load_id, start, held, spans, since, is_complete in self.head.get(
                    "loads", ()
                )
            }
        )


def opened(driver: str, identity: Identity) -> bytes:
    """Say that a driver took the ledger over."""
    return _entry("opened", driver, {"ledger": asdict(identity)}, [])


def taken(driver: str, at: int, segment: Sequence[AcquiredRange]) -> bytes:
    """Say what the group gave."""
    index: dict[tuple[str, TopicId], int] = {}
    rows = [
        (
            index.setdefault((part.topic, part.topic_id), len(index)),
            part.partition,
            part.first_offset,
            part.last_offset,
            part.delivery_count,
        )
        for part in segment
    ]
    return _entry("taken", driver, {"at": at, "topics": _spelt(index)}, rows)


def trimmed(
    driver: str,
    identity: Identity,
    *,
    begin: int,
    keep: int,
    topics: Mapping[str, TopicId],
    remembered: Remembered,
    loads: Loads,
) -> bytes:
    """Say what is done with, and what of it may come back."""
    index: dict[TopicId, int] = {}
    rows = [
        (index.setdefault(place.topic_id, len(index)), place.partition, first, last)
        for place, ranges in remembered.items()
        for first, last in ranges
    ]
    head: dict[str, Any] = {
        "ledger": asdict(identity),
        "begin": begin,
        "keep": keep,
        "topics": _spelt(topics.items()),
        "ids": [topic_id.hex() for topic_id in index],
    }
    if not loads:
        return _entry("trimmed", driver, head, rows)
    head["loads"] = [
        (load_id, each.start, each.held, each.spans, each.since, each.is_complete)
        for load_id, each in loads.items()
    ]
    return _entry("trimmed", driver, head, rows, version=VERSION)


def load(
    driver: str, load_id: str, *, at: int, start: int | None, is_complete: bool
) -> bytes:
    """Record that a `load()` begins to acquire at a position, or is complete there.

    `start` is the first position that it reads, for one that begins.
    """
    head = {"load": load_id, "at": at, "start": start, "is_complete": is_complete}
    return _entry("load", driver, head, [], version=VERSION)


def _spelt(topics: Iterable[tuple[str, TopicId]]) -> list[tuple[str, str]]:
    return [(name, topic_id.hex()) for name, topic_id in topics]


def _entry(
    kind: str,
    driver: str,
    head: Mapping[str, Any],
    rows: Iterable[Sequence[int]],
    *,
    version: int = VERSION_WITHOUT_LOADS,
) -> bytes:
    first = {"version": version, "kind": kind, "driver": driver, **head}
    body = "".join(f"{_json(line)}\n" for line in (first, *rows)).encode()
    return body + f"{_json({'crc32': zlib.crc32(body)})}\n".encode()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def parse(data: bytes, where: str) -> Entry:
    """Read an entry.

    Raises:
        LedgerLostError: it is damaged.
        LedgerError: a newer version wrote it.
    """
    body, line, seal = data.rpartition(b'{"crc32":')
    if not line or seal != b"%d}\n" % zlib.crc32(body):
        raise LedgerLostError(
            f"the ledger's entry {where} is damaged; restore it from a copy, or begin "
            "a new ledger and checkpoint"
        )
    first, *lines = body.splitlines()
    head = json.loads(first)
    if head["version"] not in (VERSION_WITHOUT_LOADS, VERSION):
        raise LedgerError(
            f"the ledger's entry {where} has version {head['version']}, and this "
            f"sharecons reads 1 to {VERSION}; use the version that wrote it, or a "
            "newer one"
        )
    return Entry(kind=head["kind"], head=head, lines=lines)
