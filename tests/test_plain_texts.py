"""Objects whose texts are plain, and copies of exceptions with such texts."""

import contextvars
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator

import pytest

from sharecons.guard import chain_of, type_name
from sharecons.log import get_logger
from sharecons.plain_copy import plain_copy
from sharecons.plain_texts import (
    MAX_UNFINISHED,
    has_ended,
    is_plain,
    is_plain_error,
    keep_texts,
    make_texts,
    start_making,
)
from tests.hostile import NoAttributes, NoText, nested_causes, no_name
from tests.waiting import until_true


class Order:
    pass


class Text(str):
    __slots__ = ()


PLAIN: list[object] = [None, 1, 2.0, True, "text", b"bytes", {"a": [(1, None)]}, []]
NOT_PLAIN: list[object] = [
    Order(),
    Text("a"),
    {"a": [Order()]},
    (Order(),),
    "x" * 70_000,
    {1},
]
LARGE: list[object] = [[0] * 5000, {"a": ["x" * 30_000] * 3}]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_values_of_python_are_plain(value: object) -> None:
    assert is_plain(value)


@pytest.mark.parametrize("value", [*NOT_PLAIN, *LARGE], ids=type_name)
def test_other_values_and_large_ones_are_not_plain(value: object) -> None:
    assert not is_plain(value)


def test_value_that_contains_itself_is_not_plain() -> None:
    value: list[object] = []
    value.append(value)

    assert not is_plain(value)


class OwnText(Exception):
    def __str__(self) -> str:
        return "a text"


class OwnNotes(Exception):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]  # what is tested
        return ["a note"]


def noted(note: object) -> Exception:
    error = ValueError("bad")
    error.__notes__ = [note]  # type: ignore[list-item]  # add_note refuses it
    return error


PLAIN_ERRORS: list[Callable[[], Exception]] = [
    lambda: ValueError("bad"),
    lambda: KeyError("key"),
    lambda: OSError(2, "missing"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    lambda: ExceptionGroup("several", [OwnText()]),
    lambda: noted("a note"),
    NoAttributes,
    no_name,
]


@pytest.mark.parametrize("make", PLAIN_ERRORS)
def test_exceptions_with_texts_of_python_are_plain(
    make: Callable[[], Exception],
) -> None:
    assert is_plain_error(make())


@pytest.mark.parametrize(
    "error",
    [OwnText(), OwnNotes(), NoText(), ValueError(Order()), noted(Order())],
    ids=type_name,
)
def test_exceptions_with_texts_of_the_application_are_not_plain(
    error: Exception,
) -> None:
    assert not is_plain_error(error)


def fail() -> None:
    try:
        try:
            raise OwnText
        except OwnText as error:
            error.add_note("one\nnote")
            raise ValueError("inner") from error
    except ValueError:
        raise ExceptionGroup("several", [KeyError("key"), OwnText()]) from None


def raised(function: Callable[[], None]) -> Exception:
    with pytest.raises(Exception) as caught:
        function()
    return caught.value


def with_texts(error: Exception) -> Exception:
    """Keep the texts of an exception, as the worker does."""
    for each in chain_of(error, 10):
        keep_texts(each, make_texts(each))
    return error


def test_copy_is_formatted_as_the_exception() -> None:
    error = with_texts(raised(fail))

    copied = plain_copy(error)

    assert copied is not error
    assert traceback.format_exception(error) == traceback.format_exception(copied)
    context, copied_context = error.__context__, copied.__context__
    assert context is not None
    assert copied_context is not None
    assert traceback.format_exception(context) == traceback.format_exception(
        copied_context
    )


def test_exception_whose_texts_are_kept_is_pickled_without_this_package() -> None:
    error = with_texts(OwnText())

    assert b"sharecons.plain" not in pickle.dumps(error)


def test_exception_with_plain_texts_is_not_copied() -> None:
    error, deep = ValueError("bad"), nested_causes()

    assert error is plain_copy(error)
    assert deep is plain_copy(deep)


def test_causes_in_a_cycle_are_copied_once() -> None:
    first, second = OwnText(), OwnText()
    first.__cause__, second.__cause__ = second, first

    copied = plain_copy(with_texts(first))

    assert 2 == len(chain_of(copied, 10))
    assert "a text" in "".join(traceback.format_exception(copied))


def test_line_converts_its_exception_once_for_all_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counts: list[int] = []

    class Counted(Exception):
        def __str__(self) -> str:
            counts.append(1)
            return "a text"

    error = with_texts(raised_now(Counted()))
    get_logger("sharecons.tests").error("failed", exc_info=error)

    assert "Counted: a text" in caplog.text
    assert 1 == len(counts)


def raised_now(error: Exception) -> Exception:
    def fail() -> None:
        raise error

    return raised(fail)


@pytest.fixture
def ready() -> Iterator[threading.Event]:
    before = threading.active_count()
    event = threading.Event()
    yield event
    event.set()
    until_true(lambda: threading.active_count() <= before)


def test_texts_that_are_never_made_take_few_threads(ready: threading.Event) -> None:
    class Slow(Exception):
        def __str__(self) -> str:
            ready.wait(60)
            return "a text"

    before = threading.active_count()
    texts = {str(plain_copy(Slow())) for _ in range(2 * MAX_UNFINISHED)}

    assert {"<Slow: its text was not made within 0.01 s>"} == texts
    assert threading.active_count() <= before + MAX_UNFINISHED


def made(function: Callable[[], object]) -> object:
    """Return what a function returns in a thread."""
    future, results = start_making([function])
    assert has_ended(future, 60.0)
    return results[0]


def test_exit_that_a_text_raises_is_raised() -> None:
    def fail() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        made(fail)


def test_context_variables_are_those_of_the_caller() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    tenant.set("acme")

    assert "acme" == made(tenant.get)
