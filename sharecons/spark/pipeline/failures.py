"""Explains why a run failed: one sentence, and the exit code.

Spark wraps an exception of the source's Python process in a Java exception whose text
contains the Python traceback. Its last line has the class and the message.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.errors import PySparkException

from sharecons import errors
from sharecons.errors import Error
from sharecons.spark import errors as spark_errors
from sharecons.spark.pipeline import errors as pipeline_errors

__all__ = ["FAILED", "INVALID", "Failure", "explain"]

FAILED: Final = 1
INVALID: Final = 2
"""The command line or an option is invalid; nothing was read."""
UNREACHABLE: Final = 3
FORBIDDEN: Final = 4
TOO_OLD: Final = 5

MAX_LENGTH: Final = 500
"""Characters to show of an error that is not from sharecons."""

_CODES: Final[Mapping[type[Error], int]] = {
    errors.ConfigurationError: INVALID,
    errors.ConnectionFailedError: UNREACHABLE,
    errors.AuthenticationError: FORBIDDEN,
    errors.AuthorizationError: FORBIDDEN,
    errors.UnsupportedVersionError: TOO_OLD,
}

_SHARECONS_ERROR: Final = re.compile(
    r"^[ \t]*sharecons(?:\.\w+)*\.(\w+): (.+)$", re.MULTILINE
)
_CLASS: Final = re.compile(r"^[\w.$]+(?:Exception|Error): ")
_PYTHON: Final = re.compile(r"^(\w+(?:\.\w+)*(?:Error|Exception): .+)$", re.MULTILINE)
_CAUSE: Final = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed.

    Attributes:
        sentence: the message for the user.
        code: the exit code.
        is_known: sharecons raised it; --verbose shows other errors in full.
    """

    sentence: str
    code: int
    is_known: bool = True


def explain(error: BaseException) -> Failure:
    """Return the sentence and the exit code for an exception."""
    if isinstance(error, Error):
        return Failure(str(error), _code(type(error)))
    text = str(error)
    if found := _SHARECONS_ERROR.findall(text):
        name, message = found[-1]
        if name in _CLASSES:
            return Failure(message, _code(_CLASSES[name]))
    return Failure(_first_line(error, text), FAILED, is_known=False)


def _code(kind: type[Error]) -> int:
    return next((code for known, code in _CODES.items() if issubclass(kind, known)), 1)


def _first_line(error: BaseException, text: str) -> str:
    kind = "Spark" if isinstance(error, PySparkException) else type(error).__name__
    if (java := getattr(error, "java_exception", None)) is not None:
        kind, text = "Spark", _CLASS.sub("", str(java.toString()))
    causes = _PYTHON.findall(text) or _CAUSE.findall(text)
    lines = [line for line in text.splitlines() if line.strip()]
    shown = causes[-1] if causes else lines[0] if lines else "no message"
    return f"{kind}: {shown.strip()[:MAX_LENGTH]}"


_CLASSES: Final = {
    name: kind
    for module in (errors, spark_errors, pipeline_errors)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Error)
}
