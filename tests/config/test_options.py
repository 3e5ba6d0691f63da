"""Entries of options: checks of keyword arguments, and what `help` shows."""

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from sharecons.config.options import documented, option, read_options
from sharecons.config.validation import check_bool, check_count
from sharecons.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    size: int = option(10, partial(check_count, minimum=1), "how many at a time")
    unit: str = "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    size: int = option(5, partial(check_count, minimum=0), "how long. Not how wide")
    is_open: bool = option(False, check_bool, "whether it is open", shown="closed")


@documented(Pool, Line)
class Shop:
    """Sells."""

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name


def test_value_belongs_to_the_first_table_with_its_name() -> None:
    pool, line = read_options("Shop", {"size": 3, "is_open": True}, Pool, Line)

    assert ({"size": 3}, {"is_open": True}) == (pool, line)
    assert 3 == Pool(**pool).size


def test_invalid_value_is_an_error_with_the_name_of_its_option() -> None:
    with pytest.raises(ConfigurationError, match="^size must be a whole number"):
        read_options("Shop", {"size": "3"}, Pool)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sizes", "Shop has no argument sizes; did you mean size?"),
        ("unit", "Shop has no argument unit"),
        ("colour", "Shop: colour is paint: buy some"),
    ],
)
def test_unknown_name_is_an_error_with_the_reason_or_the_nearest_name(
    name: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_options("Shop", {name: 1}, Pool, reasons={"colour": "is paint: buy some"})

    assert message == str(caught.value)


def test_names_of_others_are_returned_unchecked_after_the_tables() -> None:
    pool, rest = read_options("Shop", {"other": object}, Pool, others=["other"])

    assert ({}, {"other": object}) == (pool, rest)


def test_help_shows_each_option_with_its_text_and_default() -> None:
    assert "size: how many at a time (default: 10)." in (Shop.__doc__ or "")
    assert "is_open: whether it is open (default: closed)." in (Shop.__doc__ or "")
    parameters = inspect.signature(Shop).parameters
    assert ["name", "size", "is_open"] == list(parameters)
    assert 10 == parameters["size"].default
