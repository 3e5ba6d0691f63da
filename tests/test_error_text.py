"""Texts of exceptions and reasons for logs and headers."""

import asyncio
import json

import pytest

from sharecons import DeadLetter, Reject
from sharecons.error_text import (
    code_line,
    error_text,
    repr_of,
    text_of,
    traceback_of,
)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


UNREADABLE = "<Unreadable: its text raised RuntimeError>"


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_text_of_an_exception_has_its_type() -> None:
    assert "ValueError: bad" == error_text(ValueError("bad"))
    assert "ValueError" == error_text(ValueError())


def test_text_that_raises_is_replaced() -> None:
    assert f"Unreadable: {UNREADABLE}" == error_text(Unreadable())
    assert UNREADABLE == repr_of(Unreadable())
    assert f"Unreadable: {UNREADABLE}" == DeadLetter(Unreadable()).reason
    assert "Unreadable" in traceback_of(raised(Unreadable()))


def test_text_of_an_exception_group_has_its_exceptions() -> None:
    errors = [ValueError("a"), ExceptionGroup("inner", [KeyError("b")])]

    assert (
        "ExceptionGroup: tasks (2 sub-exceptions) [ValueError: a; "
        "ExceptionGroup: inner (1 sub-exception) [KeyError: 'b']]"
    ) == error_text(ExceptionGroup("tasks", errors))


@pytest.mark.parametrize(
    ("reason", "text"),
    [(400, "400"), (None, "None"), (ValueError("x"), "ValueError: x"), ("", "")],
)
def test_reason_of_a_decision_can_be_any_object(reason: object, text: str) -> None:
    assert text == DeadLetter(reason).reason == Reject(reason).reason


def test_long_texts_are_shortened() -> None:
    error = raised(ValueError("x" * 10_000_000))

    assert 2000 == len(error_text(error)) == len(text_of("x" * 10_000_000))
    assert 4000 == len(traceback_of(error))
    assert 200 == len(repr_of("x" * 10_000_000))


@pytest.mark.parametrize("value", [{1}, {1: [[[[[[[[[[[[{1}]]]]]]]]]]]]}])
def test_traceback_has_the_line_of_the_application_at_any_depth(value: object) -> None:
    with pytest.raises(TypeError) as caught:
        json.JSONEncoder(indent=1).encode(value)

    text = traceback_of(caught.value)

    assert 1 == text.count("test_error_text.py")
    assert "TypeError: Object of type set is not JSON serializable" in text


def test_long_traceback_begins_with_the_line_of_the_application() -> None:
    error = raised(ValueError("x" * 10_000))

    text = traceback_of(error)

    assert text.startswith("at ")
    assert "test_error_text.py:" in text.splitlines()[0]
    assert "in raised" in text.splitlines()[0]
    assert len(text) == 4000


def test_code_line_is_the_innermost_line_of_the_application() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")

    line = code_line(caught.value)

    assert line is not None
    path, _, function = line.rpartition(" in ")
    assert "tests/test_error_text.py:" in path
    assert "test_code_line_is_the_innermost_line_of_the_application" == function


async def wait_forever() -> None:
    await asyncio.Event().wait()


def test_code_line_of_a_timeout_is_where_the_handler_waited() -> None:
    async def run() -> BaseException:
        task = asyncio.ensure_future(wait_forever())
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError as error:
            return error
        raise AssertionError("it was cancelled")

    timeout = TimeoutError("slow")
    timeout.__cause__ = asyncio.run(run())

    line = code_line(timeout)

    assert line is not None
    assert line.endswith("in wait_forever")


def test_exception_that_was_never_raised_has_no_code_line() -> None:
    assert code_line(ValueError()) is None


def test_code_line_of_a_group_is_the_line_of_its_first_exception() -> None:
    def charge() -> None:
        raise KeyError("no such customer")

    with pytest.raises(KeyError) as caught:
        charge()
    inner = ExceptionGroup("inner", [caught.value, ValueError()])

    line = code_line(raised(ExceptionGroup("outer", [inner])))

    assert line is not None
    assert line.endswith(".charge")


def test_code_line_of_a_group_without_raised_exceptions_is_its_own() -> None:
    line = code_line(raised(ExceptionGroup("group", [ValueError()])))

    assert line is not None
    assert line.endswith(" in raised")
