"""The exit code of a process that a handler has ended, for example by SystemExit."""

from collections.abc import Iterator

from sharecons.cli.exit_codes import ExitCode
from sharecons.cli.run import restarts

__all__ = ["exit_code_after"]


def exit_code_after(error: BaseException, *, is_supervised: bool) -> int:
    """Return the exit code of a process that `error` has ended, alone or in a group.

    SystemExit keeps its code, and several have the highest. But 0 and 2 tell a
    supervisor that the process has finished, or that no process can work, neither of
    which a handler decides: they become 1, and the process is started again.
    """
    code = max(_exit_code(each) for each in _leaves(error))
    if is_supervised and code in (restarts.SUCCESS, restarts.USAGE):
        return ExitCode.FAILED
    return code


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _exit_code(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if not isinstance(error, SystemExit):
        return ExitCode.FAILED
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF  # as the system does
    return ExitCode.FAILED  # a text
