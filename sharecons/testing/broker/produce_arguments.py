"""Checks of the arguments of `EmbeddedBroker.produce`, before anything is written."""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from sharecons.testing.broker.batch_writer import Header

__all__ = ["check_produce"]

Content: TypeAlias = bytes | str | None

MAX_INT64: Final = 2**63 - 1


def check_produce(
    values: Iterable[Content],
    *,
    partition: int | None,
    keys: Sequence[Content] | None,
    headers: Sequence[Header],
    batch: int | None,
    timestamp: int,
) -> list[Content]:
    """Return the values as a list.

    Raises:
        TypeError: an argument has a type that records cannot have.
        ValueError: a number is out of range, or keys and values differ in number.
    """
    found = _contents("values", values)
    if keys is not None and len(_contents("keys", keys)) != len(found):
        raise ValueError(f"{len(found)} values have {len(keys)} keys")
    if not isinstance(headers, Sequence) or not all(map(_is_header, headers)):
        raise TypeError("headers must be a sequence of (str, bytes or None) pairs")
    if partition is not None and not isinstance(partition, int):
        raise TypeError(f"partition must be an int, not {partition!r}")
    _check_number("timestamp", timestamp, 0, "milliseconds since the epoch")
    if batch is not None:
        _check_number("batch", batch, 1, "records")
    return found


def _contents(name: str, contents: Iterable[Content]) -> list[Content]:
    if isinstance(contents, bytes | str) or not isinstance(contents, Iterable):
        raise TypeError(f"{name} must be an iterable of bytes, str or None")
    found = list(contents)
    for index, each in enumerate(found):
        if not isinstance(each, bytes | str | None):
            kind = type(each).__name__
            raise TypeError(f"{name}[{index}] must be bytes, str or None, not {kind}")
    return found


def _is_header(header: object) -> bool:
    match header:
        case (str(), bytes() | None):
            return True
    return False


def _check_number(name: str, number: int, least: int, unit: str) -> None:
    if not isinstance(number, int):
        raise TypeError(f"{name} must be an int, in {unit}, not {number!r}")
    if not least <= number <= MAX_INT64:
        raise ValueError(
            f"{name} must be from {least} to {MAX_INT64}, in {unit}, not {number}"
        )
