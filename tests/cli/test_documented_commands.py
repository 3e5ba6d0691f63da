"""Each command line of the pages is accepted by the parser of `sharecons`."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from sharecons import cli
from tests.guides import DOCS

ROOT = DOCS.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in DOCS.rglob("*.md"))]

COMMAND = re.compile(
    r"^(?: {4,})?(?:\$ )?sharecons (?!\S+( \S+)?: )((?:.*\\\n)*.*)", re.M
)
"""A line of a block that begins with the command; others are messages of it."""

OPERATORS = {"|", ">", ">>", "<", "&&", "&", ";", "||", "2>&1", "2>"}


def command_lines(page: str) -> Iterator[str]:
    for block in code_blocks((ROOT / page).read_text()):
        for match in COMMAND.finditer(block):
            yield match[2].replace("\\\n", " ")


def code_blocks(text: str) -> list[str]:
    """Return the blocks of a page: fenced ones of shells, and indented ones."""
    fenced = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"(?:^ {4,}.*\n)+", rest, re.MULTILINE)
    return [body for kind, body in fenced if kind in ("sh", "console")] + indented


def words_of(line: str) -> list[str]:
    """Return the words of a command, up to a comment or an operator of the shell."""
    words = shlex.split(line, comments=True)
    ends = [number for number, word in enumerate(words) if word in OPERATORS]
    return words[: min(ends, default=len(words))]


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return cli.parser()


@pytest.mark.parametrize("page", [p for p in PAGES if any(command_lines(p))])
def test_commands_of_a_page_are_accepted(
    page: str, parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = []
    for line in command_lines(page):
        try:
            parser.parse_args(words_of(line))
        except SystemExit as error:
            if error.code:
                refused.append(f"sharecons {line}: {capsys.readouterr().err}")

    assert refused == []
