"""The format of a ledger's files: one entry each, as lines of JSON.

The first line is the header, each following line is a range, and the last line is the
checksum of the lines before it. Ranges refer to topics by number, so that each takes
some 25 bytes. The kinds of entries are:

    opened    a driver has opened the ledger; older drivers must not write any more
    acquired  a segment: acquired ranges, `position` is the first
    trimmed   a snapshot: positions before `begin` are committed, and entries before
              number `first_kept` are no longer needed. The rows are committed offsets
              that the group can deliver again
    load      a batch starts to acquire for a `load()` at `position`, or is complete
              there

Version 2 adds `load`, and the loads in a `trimmed` entry. Entries without loads are
written as version 1.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from sharecons.protocol.partitions import SharePartition, TopicId
from sharecons.spark.errors import LedgerError, LedgerLostError
from sharecons.spark.ledger import AcquiredRange, Redeliverable
from sharecons.spark.loads import Load, Loads

__all__ = [
    "Entry",
    "Identity",
    "encode_acquired",
    "encode_load",
    "encode_opened",
    "encode_trimmed",
    "parse_entry",
]

VERSION: Final = 2
VERSION_WITHOUT_LOADS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of a ledger.

    Attributes:
        ledger_id: a unique id; two ledgers of one group differ in it.
        group_id: the share group that delivered the records.
        member_id: the member id with which each driver of the ledger joins the group.
    """

    ledger_id: str
    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A decoded header, and the lines of the ranges, which are decoded on access."""

    kind: Literal["opened", "acquired", "trimmed", "load"]
    identity: Identity | None
    header: Mapping[str, Any]
    lines: Sequence[bytes]

    @property
    def topics(self) -> dict[str, TopicId]:
        return dict(self._topic_ids)

    @property
    def _topic_ids(self) -> list[tuple[str, TopicId]]:
        return [
            (name, bytes.fromhex(topic_id)) for name, topic_id in self.header["topics"]
        ]

    @property
    def rows(self) -> list[list[int]]:
        rows: list[list[int]] = json.loads(b"[" + b",".join(self.lines) + b"]")
        return rows

    @property
    def segment(self) -> Iterable[AcquiredRange]:
        # A recreated topic occurs with two ids.
        topics = self._topic_ids
        for topic, partition, first, last, count in self.rows:
            yield AcquiredRange(*topics[topic], partition, first, last, count)

    @property
    def redeliverable(self) -> Redeliverable:
        ids = [bytes.fromhex(each) for each in self.header["ids"]]
        ranges: dict[SharePartition, list[tuple[int, int]]] = {}
        for topic, partition, first, last in self.rows:
            share_partition = SharePartition(ids[topic], partition)
            ranges.setdefault(share_partition, []).append((first, last))
        return ranges

    @property
    def loads(self) -> Loads:
        rows = self.header.get("loads", ())
        return Loads(
            {
                load_id: Load(
                    start=start,
                    ledger_end=ledger_end,
                    spans=tuple((first, end) for first, end in spans),
                    open_since=open_since,
                    is_complete=is_complete,
                )
                for load_id, start, ledger_end, spans, open_since, is_complete in rows
            }
        )


def encode_opened(driver: str, identity: Identity) -> bytes:
    """Encode that a driver has opened the ledger."""
    return _encode("opened", driver, {"ledger": asdict(identity)}, [])


def encode_acquired(
    driver: str, position: int, segment: Sequence[AcquiredRange]
) -> bytes:
    """Encode acquired ranges."""
    index: dict[tuple[str, TopicId], int] = {}
    rows = [
        (
            index.setdefault((each.topic, each.topic_id), len(index)),
            each.partition,
            each.first_offset,
            each.last_offset,
            each.delivery_count,
        )
        for each in segment
    ]
    return _encode(
        "acquired", driver, {"position": position, "topics": _hex_ids(index)}, rows
    )


def encode_trimmed(
    driver: str,
    identity: Identity,
    *,
    begin: int,
    first_kept: int,
    topics: Mapping[str, TopicId],
    redeliverable: Redeliverable,
    loads: Loads,
) -> bytes:
    """Encode a snapshot of a trimmed ledger."""
    index: dict[TopicId, int] = {}
    rows = [
        (
            index.setdefault(share_partition.topic_id, len(index)),
            share_partition.partition,
            first,
            last,
        )
        for share_partition, ranges in redeliverable.items()
        for first, last in ranges
    ]
    header: dict[str, Any] = {
        "ledger": asdict(identity),
        "begin": begin,
        "first_kept": first_kept,
        "topics": _hex_ids(topics.items()),
        "ids": [topic_id.hex() for topic_id in index],
    }
    if not loads:
        return _encode("trimmed", driver, header, rows)
    header["loads"] = [
        (
            load_id,
            each.start,
            each.ledger_end,
            each.spans,
            each.open_since,
            each.is_complete,
        )
        for load_id, each in loads.items()
    ]
    return _encode("trimmed", driver, header, rows, version=VERSION)


def encode_load(
    driver: str, load_id: str, *, position: int, start: int | None, is_complete: bool
) -> bytes:
    """Encode that a `load()` starts to acquire at a position, or is complete there.

    Args:
        start: the first position that it reads; None if it is complete.
    """
    header = {
        "load": load_id,
        "position": position,
        "start": start,
        "is_complete": is_complete,
    }
    return _encode("load", driver, header, [], version=VERSION)


def _hex_ids(topics: Iterable[tuple[str, TopicId]]) -> list[tuple[str, str]]:
    return [(name, topic_id.hex()) for name, topic_id in topics]


def _encode(
    kind: str,
    driver: str,
    header: Mapping[str, Any],
    rows: Iterable[Sequence[int]],
    *,
    version: int = VERSION_WITHOUT_LOADS,
) -> bytes:
    first = {"version": version, "kind": kind, "driver": driver, **header}
    body = "".join(f"{_json(line)}\n" for line in (first, *rows)).encode()
    return body + f"{_json({'crc32': zlib.crc32(body)})}\n".encode()


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def parse_entry(data: bytes, name: str) -> Entry:
    """Decode an entry; `name` is for messages.

    Raises:
        LedgerLostError: the entry is damaged.
        LedgerError: a newer version of sharecons wrote it.
    """
    body, line, seal = data.rpartition(b'{"crc32":')
    if not line or seal != b"%d}\n" % zlib.crc32(body):
        raise LedgerLostError(
            f"the ledger's entry {name} is damaged; restore it from a copy, or start "
            "with a new ledger and checkpoint"
        )
    first, *lines = body.splitlines()
    header = json.loads(first)
    if header["version"] not in (VERSION_WITHOUT_LOADS, VERSION):
        raise LedgerError(
            f"the ledger's entry {name} has version {header['version']}, and this "
            f"sharecons reads 1 to {VERSION}; use the sharecons that wrote it, or a "
            "newer one"
        )
    owner = header.get("ledger")
    identity = Identity(**owner) if owner else None
    return Entry(kind=header["kind"], identity=identity, header=header, lines=lines)
