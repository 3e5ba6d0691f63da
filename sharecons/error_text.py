"""Texts of an application's exceptions and reasons: never raised, never too long.

`str()` of these objects can raise, and their text can have any length. All texts for
logs and headers are made here.
"""

import sysconfig
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, cast

from sharecons.guard import (
    cause_of,
    chain_of,
    exceptions_of,
    guarded,
    is_a,
    raw_traceback,
    text_by,
    type_name,
)
from sharecons.plain_copy import plain_copy
from sharecons.plain_texts import MAX_CHAIN, texts_of

__all__ = [
    "Frame",
    "application_line",
    "code_line",
    "error_text",
    "errors_in_text",
    "repr_of",
    "shortened",
    "text_of",
    "traceback_of",
]

Frame = tuple[FrameType, int]
"""A frame and its line, as in `traceback.walk_stack`."""

SHARECONS: Final = str(Path(__file__).parent)

NOT_THE_APPLICATION: Final = (
    "<",  # frozen modules, for example
    SHARECONS,
    *(
        sysconfig.get_path(name)
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    ),
)

MAX_TEXT: Final = 2000
"""Characters of a reason or message."""

MAX_REPR: Final = 200

MAX_TRACEBACK: Final = 4000
"""Characters of a traceback: a dead letter has it in a header."""

FRAMES: Final = 8
"""Frames of a traceback, the last ones of each exception in the chain."""

GROUPED: Final = 3
"""Exceptions of a group that its text contains, and the groups in groups."""


def shortened(text: str) -> str:
    """Return the beginning of a text, up to MAX_TEXT characters."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def text_of(reason: object) -> str:
    """Return the text of an object; of an exception, with its type."""
    if is_a(reason, BaseException):
        return error_text(cast("BaseException", reason))
    return shortened(text_by(str, reason))


def error_text(error: BaseException, depth: int = GROUPED) -> str:
    """Return the type and message of an exception, for example "ValueError: bad".

    Args:
        depth: groups within groups that are read.
    """
    text = shortened(texts_of(error).text)
    if exceptions := exceptions_of(error):
        inner = [error_text(each, depth - 1) for each in exceptions[:GROUPED] if depth]
        if len(exceptions) > GROUPED or not depth:
            inner.append("...")
        text = f"{text} [{'; '.join(inner)}]"
    name = type_name(error)
    return shortened(f"{name}: {text}" if text else name)


def errors_in_text(
    error: BaseException, depth: int = GROUPED
) -> Iterator[BaseException]:
    """Yield the exceptions whose texts `error_text` reads."""
    yield error
    for each in exceptions_of(error)[:GROUPED] if depth else ():
        yield from errors_in_text(each, depth - 1)


def traceback_of(error: BaseException) -> str:
    """Return the last frames of an exception's traceback, up to MAX_TRACEBACK.

    If a library has all of them, the first line is the line of the application.
    """
    text = guarded(
        lambda: _traceback_of(error),
        lambda failure: f"{type_name(error)}: no traceback: {type_name(failure)}",
    )
    text = _end_of(text, MAX_TRACEBACK)
    line = code_line(error)
    if line is None:
        return text
    path, _, number = line.partition(" in ")[0].rpartition(":")
    if f'File "{path}", line {number},' in text:
        return text
    return f"at {line}\n{_end_of(text, MAX_TRACEBACK - len(line) - 4)}"


def _traceback_of(error: BaseException) -> str:
    if len(chain_of(error, MAX_CHAIN)) <= MAX_CHAIN:
        lines = traceback.format_exception(plain_copy(error), limit=-FRAMES)
    else:
        lines = traceback.format_tb(raw_traceback(error), limit=-FRAMES)
        lines.append(f"{error_text(error)} (more than {MAX_CHAIN} exceptions)")
    return "".join(lines).rstrip()


def _end_of(text: str, length: int) -> str:
    return text if len(text) <= length else f"...{text[3 - length :]}"


def code_line(error: BaseException) -> str | None:
    """Return the line of the application that failed: "/srv/app.py:12 in charge".

    This is the innermost frame of the exception, or of its cause, that belongs neither
    to Python nor to an installed package; otherwise the innermost one of these. None
    if there is none, for example because the exception was never raised. Of an
    exception group, the first exception comes before the group itself.
    """
    frames: list[Frame] = []
    while exceptions := exceptions_of(error):
        frames = [*_frames(error), *frames]
        error = exceptions[0]
    return application_line([*_frames(error), *frames])


def application_line(frames: Sequence[Frame]) -> str | None:
    """Return the line of the application in these frames, innermost first."""
    for excluded in (NOT_THE_APPLICATION, SHARECONS):
        for frame, line in frames:
            code = frame.f_code
            if not code.co_filename.startswith(excluded):
                return f"{code.co_filename}:{line} in {code.co_qualname}"
    return None


def _frames(error: BaseException) -> list[Frame]:
    """Return the frames of an exception, then of its cause, innermost first."""
    cause = cause_of(error)
    traces = [raw_traceback(error), None if cause is None else raw_traceback(cause)]
    return [
        frame for trace in traces for frame in reversed([*traceback.walk_tb(trace)])
    ]


def repr_of(value: object) -> str:
    """Return the representation of an object, up to MAX_REPR characters."""
    return text_by(repr, value)[:MAX_REPR]
