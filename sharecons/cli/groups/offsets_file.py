"""CSV files of `reset-offsets --from-file` and `--export`.

Each line is TOPIC,PARTITION,OFFSET; there is no header. As in kafka-share-groups.sh, a
line can start with the group: GROUP,TOPIC,PARTITION,OFFSET.
"""

from collections.abc import Mapping
from typing import Final, TextIO

from sharecons._record import TopicPartition
from sharecons.escaping import to_file_name

__all__ = ["OffsetsFileError", "read_offsets", "to_csv"]

LINE_FORMAT: Final = "TOPIC,PARTITION,OFFSET"
HEADERS: Final = ("topic", "group")
MAX_PARTITION: Final = 2**31 - 1
MAX_OFFSET: Final = 2**63 - 1
MAX_DIGITS: Final = 19


class OffsetsFileError(Exception):
    """A file cannot be read or a line is invalid; the message says what to do."""


class _LineError(Exception):
    """A line is invalid."""


def read_offsets(path: str, group: str) -> dict[TopicPartition, int]:
    """Read the offsets of a file.

    Raises:
        OffsetsFileError: the file cannot be read, or a line is invalid.
    """
    try:
        # Excel starts UTF-8 files with a byte order mark.
        with open(to_file_name(path), encoding="utf-8-sig", newline="") as file:
            return _parse_file(path, file, group)
    except OSError as error:
        raise OffsetsFileError(f"cannot read {path!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise OffsetsFileError(
            f"{path!r} is not UTF-8 at byte {error.start}: save it as UTF-8"
        ) from None


def to_csv(offsets: Mapping[TopicPartition, int]) -> str:
    """Return offsets as the lines of a file."""
    return "".join(
        f"{topic},{partition},{offset}\n"
        for (topic, partition), offset in sorted(offsets.items())
    )


def _parse_file(path: str, file: TextIO, group: str) -> dict[TopicPartition, int]:
    import csv  # only needed here

    lines = csv.reader(file, skipinitialspace=True)
    offsets: dict[TopicPartition, int] = {}
    line_numbers: dict[TopicPartition, int] = {}
    try:
        for fields in lines:
            values = [value.strip() for value in fields]
            if not any(values):
                continue
            partition, offset = _parse_line(values, group)
            if partition in offsets:
                raise _LineError(
                    f"{partition.topic}-{partition.partition} already has an offset in "
                    f"line {line_numbers[partition]}: remove one of the lines"
                )
            offsets[partition], line_numbers[partition] = offset, lines.line_num
    except (_LineError, csv.Error) as error:
        raise OffsetsFileError(f"{path!r}, line {lines.line_num}: {error}") from None
    if not offsets:
        raise OffsetsFileError(
            f"{path!r} has no offsets: write lines of the form {LINE_FORMAT}"
        )
    return offsets


def _parse_line(values: list[str], group: str) -> tuple[TopicPartition, int]:
    """Return the partition and the offset of a line."""
    if len(values) not in (3, 4):
        raise _LineError(f"{len(values)} values instead of 3: write {LINE_FORMAT}")
    if values[0].lower() in HEADERS and not values[-1].lstrip("-").isdecimal():
        raise _LineError("this is a header: remove the line")
    if len(values) == 4:
        if values[0] != group:
            raise _LineError(
                f"the first of 4 values is group {values[0]!r}, but the group to reset "
                f"is {group!r}: write {LINE_FORMAT}"
            )
        values = values[1:]
    topic, partition, offset = values
    if not topic:
        raise _LineError(f"the topic is missing: write {LINE_FORMAT}")
    number = _parse_number("partition", partition, MAX_PARTITION)
    return TopicPartition(topic, number), _parse_number("offset", offset, MAX_OFFSET)


def _parse_number(name: str, text: str, maximum: int) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS
    if not is_number or int(text) > maximum:
        raise _LineError(f"{name} {text!r} is not a number from 0 to {maximum}")
    return int(text)
