"""The exit code of a process that a handler has ended, for example by SystemExit."""

from typing import Any, Final

from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.run import restarts
from sharecons.guard import exceptions_of, flattened, is_a

__all__ = ["exit_code_after"]

_CODE: Final[Any] = SystemExit.__dict__["code"]  # a subclass can have another one


def exit_code_after(error: BaseException, *, is_supervised: bool) -> int:
    """Return the exit code of a process that `error` has ended, alone or in a group.

    SystemExit keeps its code, and several have the highest. But 0 and 2 tell a
    supervisor that the process has finished, or that no process can work, neither of
    which a handler decides: they become 1, and the process is started again.
    """
    alone = [each for each in flattened(error) if not exceptions_of(each)]
    code = max(map(_exit_code, alone))
    if is_supervised and code in (restarts.SUCCESS, restarts.USAGE):
        return ExitCode.FAILED
    return code


def _exit_code(error: BaseException) -> int:
    if is_a(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if not is_a(error, SystemExit):
        return ExitCode.FAILED
    code = _CODE.__get__(error)
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF  # as the system does
    return ExitCode.FAILED  # a text
