"""The help of all commands: its width, and its examples."""

import argparse
import shlex
from collections.abc import Iterator

import pytest

from sharecons.cli import parser
from sharecons.cli.examples import EXAMPLES

WIDTH = 80


def commands(found: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield found
    for action in found._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from commands(each)


PARSERS = {each.prog: each for each in commands(parser())}


def examples(program: str) -> list[str]:
    """Return the commands of the examples in a help."""
    text = EXAMPLES[program].replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.startswith("  ")]
    return [line.split("| ")[-1].strip() for line in lines]


@pytest.mark.parametrize("program", PARSERS)
def test_help_fits_80_columns(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))

    lines = PARSERS[program].format_help().splitlines()

    assert [line for line in lines if len(line) > WIDTH] == []


def test_each_command_has_examples() -> None:
    # The help of `completion` says where each shell looks for its script.
    assert set(PARSERS) - {"sharecons completion"} == set(EXAMPLES)


@pytest.mark.parametrize("program", EXAMPLES)
def test_examples_are_valid_commands(program: str) -> None:
    assert examples(program)
    for line in examples(program):
        name, *arguments = shlex.split(line)
        assert "sharecons" == name
        assert line.startswith(program) or program == "sharecons"
        assert parser().parse_args(arguments).run
