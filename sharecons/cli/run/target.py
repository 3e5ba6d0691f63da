"""Imports the handler that the command line names as MODULE:HANDLER."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from sharecons.config.callables import is_generator
from sharecons.error_text import error_text, repr_of, traceback_of
from sharecons.errors import ConfigurationError
from sharecons.guard import guarded, is_a, raw_traceback
from sharecons.worker.handler import Handler
from sharecons.worker.handlers import BatchHandler
from sharecons.worker.share_worker import ShareWorker

__all__ = ["AnyHandler", "TargetError", "import_target"]

Worker = ShareWorker[Any, Any]
AnyHandler = Callable[[Any], Any] | BatchHandler[Any, Any] | Handler[Any, Any]

MAX_NAMES: Final = 12
EXAMPLE: Final = "MODULE:HANDLER, such as app:handle"
EXIT_HINT: Final = "; put what ends a program below `if __name__ == '__main__':`"


class TargetError(ConfigurationError):
    """The target cannot be imported, or is neither a handler nor a worker.

    Attributes:
        details: lines of a traceback, if the module raised.
    """

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


def import_target(target: str) -> Worker | AnyHandler:
    """Return the worker or the handler that `target` names.

    The working directory becomes the first on the module search path.

    Raises:
        TargetError: there is none; the message says what was looked for, and where.
    """
    name, colon, path = target.partition(":")
    if not colon or not name or not path:
        raise TargetError(f"{target!r} is not {EXAMPLE}{_hint(name, path)}")
    if name.endswith(".py") or "/" in name:
        raise TargetError(
            f"{name!r} is not a module but a file: give {EXAMPLE}{_hint(name, path)}"
        )
    try:
        found: Any = _import_module(name)
        for part in path.split("."):
            found = _attribute(found, part, target)
        return _checked(found, target)
    except (TargetError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _failed(f"{target} cannot be used", error) from error


def _hint(name: str, path: str) -> str:
    module = name.removesuffix(".py").strip("./").replace("/", ".")
    if not path:
        module, _, path = module.rpartition(".")
    return f"; did you mean {f'{module}:{path}'!r}?" if module and path else ""


def _import_module(name: str) -> ModuleType:
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.insert(0, directory)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = error.name if type(error) is ModuleNotFoundError else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise TargetError(_not_found(name, missing)) from None
        raise _failed(f"module {name!r} cannot be imported", error) from error


def _not_found(name: str, missing: str) -> str:
    here = Path.cwd()
    known = [path.stem for path in here.glob("*.py")]
    known += [path.parent.name for path in here.glob("*/__init__.py")]
    close = get_close_matches(name, sorted(known), n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    what = repr(name) if missing == name else f"{missing!r} (for {name!r})"
    searched = ", ".join(path or str(here) for path in sys.path)
    return f"there is no module {what}; {hint}searched: {searched}"


def _failed(what: str, error: BaseException) -> TargetError:
    """Return the error for an exception that code of the application has raised."""
    _trim_traceback(error)
    details = guarded(
        lambda: "".join(traceback.format_exception(error)),
        lambda _: traceback_of(error),
    )
    hint = EXIT_HINT if is_a(error, SystemExit) else ""
    return TargetError(f"{what}: {error_text(error)}{hint}", details)


def _trim_traceback(error: BaseException) -> None:
    """Let the traceback begin in the imported module."""
    trace = raw_traceback(error)
    while trace is not None and (
        trace.tb_frame.f_code.co_filename == __file__
        or "importlib" in trace.tb_frame.f_code.co_filename
    ):
        trace = trace.tb_next
    BaseException.with_traceback(error, trace)


def _attribute(parent: Any, name: str, target: str) -> Any:
    try:
        return getattr(parent, name)
    except AttributeError:
        raise TargetError(_no_attribute(parent, name, target)) from None


def _no_attribute(parent: Any, name: str, target: str) -> str:
    is_module = inspect.ismodule(parent)
    where = f"module {parent.__name__!r}" if is_module else repr_of(parent)
    file = getattr(parent, "__file__", None)
    place = f" ({file})" if file else ""
    names = [each for each in dir(parent) if _is_candidate(parent, each)]
    close = get_close_matches(name, names, n=1)
    hint = f" did you mean {close[0]!r}?" if close else ""
    some = ", ".join(names[:MAX_NAMES]) + (", …" if len(names) > MAX_NAMES else "")
    has = some or "no function and no worker"
    return f"{target}: {where}{place} has no {name!r};{hint} it has {has}"


def _is_candidate(parent: Any, name: str) -> bool:
    """Return whether an attribute could be the target: defined here, and callable."""
    found = getattr(parent, name, None)
    if name.startswith("_") or inspect.isclass(found) or inspect.ismodule(found):
        return False
    if isinstance(found, ShareWorker | BatchHandler | Handler):
        return True
    origin = getattr(found, "__module__", None)
    return callable(found) and origin == getattr(parent, "__name__", origin)


def _checked(found: Any, target: str) -> Worker | AnyHandler:
    if isinstance(found, ShareWorker | BatchHandler | Handler):
        return found
    if inspect.isclass(found):
        raise TargetError(f"{target} is a class; name a function, or an instance of it")
    if not callable(found):
        raise TargetError(
            f"{target} is {repr_of(found)}, which is neither callable nor a ShareWorker"
        )
    if is_generator(found):
        raise TargetError(f"{target} is a generator function: calling it runs nothing")
    count = _required_arguments(found)
    if count == 0:
        return _made_by(found, target)
    if count is not None and count > 1:
        raise TargetError(
            f"{target} requires {count} arguments; a handler has one, the record"
        )
    handler: AnyHandler = found
    return handler


def _required_arguments(found: Callable[..., Any]) -> int | None:
    """Return how many arguments a call must have at least; None if unknown.

    One for a function with any number of arguments, as it can be a handler.
    """
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return None
    required = [p for p in parameters if p.default is p.empty]
    named = [p for p in required if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    has_any = any(p.kind is p.VAR_POSITIONAL for p in required)
    return max(len(named), int(has_any))


def _made_by(found: Callable[[], object], target: str) -> Worker:
    try:
        made = found()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _failed(f"{target}() failed", error) from error
    if inspect.iscoroutine(made):
        made.close()
        raise TargetError(
            f"{target} is async and has no argument: a handler has one, the record, "
            "and a function that makes a ShareWorker is not async"
        )
    if not isinstance(made, ShareWorker):
        raise TargetError(
            f"{target} has no argument and returned {repr_of(made)}; a handler has "
            "one, the record, or it must return a ShareWorker"
        )
    return made
