"""Texts of an application's exceptions and reasons: never raised, never too long.

`str()` of these objects can raise, and their text can have any length. All texts for
logs and headers are made here.
"""

import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

__all__ = [
    "Frame",
    "application_line",
    "code_line",
    "error_text",
    "repr_of",
    "shortened",
    "text_of",
    "traceback_of",
]

Frame = tuple[FrameType, int]
"""A frame and its line, as in `traceback.walk_stack`."""

SHARECONS: Final = str(Path(__file__).parent.parent)

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
"""Exceptions of a group that its text contains."""


def shortened(text: str) -> str:
    """Return the beginning of a text, up to MAX_TEXT characters."""
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3]}..."


def text_of(reason: object) -> str:
    """Return the text of an object; of an exception, with its type."""
    if isinstance(reason, BaseException):
        return error_text(reason)
    return _text(reason)


def error_text(error: BaseException) -> str:
    """Return the type and message of an exception, for example "ValueError: bad"."""
    text = _text(error)
    if isinstance(error, BaseExceptionGroup):
        inner = [error_text(each) for each in error.exceptions[:GROUPED]]
        if len(error.exceptions) > GROUPED:
            inner.append("...")
        text = f"{text} [{'; '.join(inner)}]"
    name = type(error).__name__
    return shortened(f"{name}: {text}" if text else name)


def traceback_of(error: BaseException) -> str:
    """Return the last frames of an exception's traceback, up to MAX_TRACEBACK.

    If a library has all of them, the first line is the line of the application.
    """
    try:
        lines = traceback.format_exception(error, limit=-FRAMES)
    except Exception as failure:  # noqa: BLE001 (code of the application ran)
        return f"{type(error).__name__}: no traceback: {type(failure).__name__}"
    text = _end_of("".join(lines).rstrip(), MAX_TRACEBACK)
    line = code_line(error)
    if line is None:
        return text
    path, _, number = line.partition(" in ")[0].rpartition(":")
    if f'File "{path}", line {number},' in text:
        return text
    return f"at {line}\n{_end_of(text, MAX_TRACEBACK - len(line) - 4)}"


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
    while isinstance(error, BaseExceptionGroup):
        frames = [*_frames(error), *frames]
        error = error.exceptions[0]
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
    cause = error.__cause__
    traces = [error.__traceback__, None if cause is None else cause.__traceback__]
    return [
        frame for trace in traces for frame in reversed([*traceback.walk_tb(trace)])
    ]


def repr_of(value: object) -> str:
    """Return the representation of an object, up to MAX_REPR characters."""
    return _text(value, repr)[:MAX_REPR]


def _text(value: object, convert: Callable[[object], str] = str) -> str:
    try:
        text = convert(value)
    except Exception as failure:  # noqa: BLE001 (code of the application ran)
        return f"<{type(value).__name__}: its text raised {type(failure).__name__}>"
    return shortened(text)
