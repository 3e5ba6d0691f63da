"""CSV files of `reset-offsets --from-file` and `--export`.

A line is TOPIC,PARTITION,OFFSET, without a header. As in kafka-share-groups.sh, it may
begin with the group: GROUP,TOPIC,PARTITION,OFFSET.
"""

from collections.abc import Mapping
from typing import Final, TextIO

from sharecons._record import TopicPartition

__all__ = ["OffsetsFileError", "csv_of", "read_offsets"]

FORM: Final = "TOPIC,PARTITION,OFFSET"
HEADERS: Final = ("topic", "group")
MAX_PARTITION: Final = 2**31 - 1
MAX_OFFSET: Final = 2**63 - 1


class OffsetsFileError(Exception):
    """The file cannot be read, or a line is wrong; the message says what to do."""


class _LineError(Exception):
    """What is wrong with a line."""


def read_offsets(path: str, group: str) -> dict[TopicPartition, int]:
    """Read the offsets of a file.

    Raises:
        OffsetsFileError: the file cannot be read, or a line is not as above.
    """
    try:
        # Excel begins UTF-8 files with a byte order mark.
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _offsets(path, file, group)
    except OSError as error:
        raise OffsetsFileError(f"cannot read {path!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise OffsetsFileError(
            f"{path!r} is not UTF-8 at byte {error.start}: save it as UTF-8"
        ) from None


def csv_of(offsets: Mapping[TopicPartition, int]) -> str:
    """Return offsets as the lines of a file."""
    return "".join(
        f"{topic},{partition},{offset}\n"
        for (topic, partition), offset in sorted(offsets.items())
    )


def _offsets(path: str, file: TextIO, group: str) -> dict[TopicPartition, int]:
    import csv  # of use to no other command

    lines = csv.reader(file, skipinitialspace=True)
    offsets: dict[TopicPartition, int] = {}
    numbers: dict[TopicPartition, int] = {}
    try:
        for fields in lines:
            values = [value.strip() for value in fields]
            if not any(values):
                continue
            place, offset = _offset(values, group)
            if place in offsets:
                raise _LineError(
                    f"{place.topic}-{place.partition} has an offset in line "
                    f"{numbers[place]} already: remove one of the lines"
                )
            offsets[place], numbers[place] = offset, lines.line_num
    except (_LineError, csv.Error) as error:
        raise OffsetsFileError(f"{path!r}, line {lines.line_num}: {error}") from None
    if not offsets:
        raise OffsetsFileError(f"{path!r} has no offsets: write {FORM} lines into it")
    return offsets


def _offset(values: list[str], group: str) -> tuple[TopicPartition, int]:
    """Return what a line says."""
    if len(values) not in (3, 4):
        raise _LineError(f"{len(values)} values instead of 3: write {FORM}")
    if values[0].lower() in HEADERS and not values[-1].lstrip("-").isdecimal():
        raise _LineError("this is a header: remove the line")
    if len(values) == 4:
        if values[0] != group:
            raise _LineError(
                f"the first of 4 values is group {values[0]!r}, but the group to reset "
                f"is {group!r}: write {FORM}"
            )
        values = values[1:]
    topic, partition, offset = values
    if not topic:
        raise _LineError(f"the topic is missing: write {FORM}")
    number = _number("partition", partition, MAX_PARTITION)
    return TopicPartition(topic, number), _number("offset", offset, MAX_OFFSET)


def _number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > most:
        raise _LineError(f"{name} {text!r} is not a number from 0 to {most}")
    return int(text)
