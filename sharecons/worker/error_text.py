"""Texts of an application's exceptions and reasons: never raised, never too long.

`str()` of these objects can raise, and their text can have any length. All texts for
logs and headers are made here.
"""

import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = [
    "code_line",
    "error_text",
    "repr_of",
    "shortened",
    "text_of",
    "traceback_of",
]

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
    """Return the last frames of an exception's traceback, up to MAX_TRACEBACK."""
    try:
        lines = traceback.format_exception(error, limit=-FRAMES)
    except Exception as failure:  # noqa: BLE001 (code of the application ran)
        return f"{type(error).__name__}: no traceback: {type(failure).__name__}"
    text = "".join(lines).rstrip()
    if len(text) > MAX_TRACEBACK:
        text = f"...{text[3 - MAX_TRACEBACK :]}"
    return text


def code_line(error: BaseException) -> str | None:
    """Return the line of the application that failed: "/srv/app.py:12 in charge".

    This is the innermost frame of the exception, or of its cause, that belongs neither
    to Python nor to an installed package; otherwise the innermost one of these. None
    if there is none, for example because the exception was never raised.
    """
    lines = [*_frames(error), *_frames(error.__cause__)]
    for excluded in (NOT_THE_APPLICATION, SHARECONS):
        for path, line, function in lines:
            if not path.startswith(excluded):
                return f"{path}:{line} in {function}"
    return None


def _frames(error: BaseException | None) -> list[tuple[str, int, str]]:
    """Return path, line and function of the frames, innermost first."""
    found = []
    trace = None if error is None else error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append((code.co_filename, trace.tb_lineno, code.co_qualname))
        trace = trace.tb_next
    return found[::-1]


def repr_of(value: object) -> str:
    """Return the representation of an object, up to MAX_REPR characters."""
    return _text(value, repr)[:MAX_REPR]


def _text(value: object, convert: Callable[[object], str] = str) -> str:
    try:
        text = convert(value)
    except Exception as failure:  # noqa: BLE001 (code of the application ran)
        return f"<{type(value).__name__}: its text raised {type(failure).__name__}>"
    return shortened(text)
