"""Each option has one entry: types, command line and docs have the same options."""

import inspect
from pathlib import Path

import pytest

from sharecons import (
    Handler,
    HandlerOptions,
    Producer,
    ShareConsumer,
    ShareWorker,
    WorkerOptions,
)
from sharecons.config.options import options_of
from sharecons.member.settings import MEMBER_OPTIONS, MemberOptions
from sharecons.net.settings import ConnectionSettings
from sharecons.producer.settings import ProducerOptions, ProducerSettings
from sharecons.worker.health_policy import HealthPolicy
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.retry_policy import RetryPolicy
from sharecons.worker.settings import WorkerSettings
from tests.option_tables import PAGES, render, run_parser

DESERIALIZERS = {"key_deserializer", "value_deserializer"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_a_page_are_those_of_the_entries(page: Path) -> None:
    expected = render(page)

    assert expected == page.read_text(), "run python -m tests.option_tables"


@pytest.mark.parametrize(
    ("types", "entries"),
    [
        (HandlerOptions, {*options_of(HandlerSettings)} - DESERIALIZERS),
        (MemberOptions, {*MEMBER_OPTIONS}),
        (
            ProducerOptions,
            {*options_of(ConnectionSettings), *options_of(ProducerSettings)},
        ),
        (
            WorkerOptions,
            {
                *options_of(WorkerSettings),
                *options_of(HandlerSettings),
                *MEMBER_OPTIONS,
            }
            - DESERIALIZERS,
        ),
    ],
)
def test_each_entry_has_a_type_for_type_checkers(
    types: type, entries: set[str]
) -> None:
    assert entries == {*types.__annotations__}


@pytest.mark.parametrize(
    ("client", "types"),
    [
        (ShareConsumer, MemberOptions),
        (ShareWorker, WorkerOptions),
        (Handler, HandlerOptions),
        (Producer, ProducerOptions),
    ],
)
def test_signature_of_a_client_has_each_option_with_its_type(
    client: type, types: type
) -> None:
    parameters = inspect.signature(client).parameters

    shown = {name: parameters[name].annotation for name in types.__annotations__}
    assert types.__annotations__ == shown


def test_each_flag_is_an_option_of_the_command_line() -> None:
    known = {name for action in run_parser()._actions for name in action.option_strings}
    tables = (WorkerSettings, HandlerSettings, RetryPolicy, HealthPolicy)
    flags = {
        entry.flag.name
        for table in tables
        for entry in options_of(table).values()
        if entry.flag is not None
    }

    assert "--max-lock-time" in flags
    assert flags <= known
