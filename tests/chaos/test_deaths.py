"""Processes that ended by themselves: with which error, and if it is documented."""

import traceback

import anyio
import pytest

from sharecons.errors import AuthorizationError
from tests.chaos.fleet import Death, last_error
from tests.chaos.run import is_denied

LOGGED = "Traceback (most recent call last):\nValueError: of a task\nWARNING later\n"


def test_error_in_an_exception_group_is_a_documented_end() -> None:
    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(denied)

    async def denied() -> None:
        raise AuthorizationError("no READ on orders", code=29, name="DENIED")

    with pytest.raises(BaseExceptionGroup) as raised:
        anyio.run(main)
    log = LOGGED + "".join(traceback.format_exception(raised.value))
    death = Death("journal-0-0", 1, last_error(log))

    assert "of a task" not in death.error
    assert is_denied(death)
    assert "AuthorizationError: no READ on orders" in str(death)


def test_signal_is_no_documented_end_whatever_the_log_has() -> None:
    log = "Traceback (most recent call last):\nAuthorizationError: logged\nFatal\n"

    assert not is_denied(Death("journal-0-0", -11, last_error(log)))


def test_last_line_is_the_error_of_a_log_without_a_traceback() -> None:
    assert "it ends" == last_error("WARNING first\nit ends\n")
