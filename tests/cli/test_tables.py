"""Tables on wide and narrow terminals and in pipes."""

import io
import json
import re

import pytest
from rich.cells import cell_len

from sharecons.cli import tables
from sharecons.cli.tables import Column
from tests.cli.run_cli import parse_tables

COLUMNS = (
    Column("group", is_section=True),
    Column("member_id"),
    Column("lag", align_right=True),
    Column("assignment", can_fold=True),
)
LONG = ",".join(f"partition{number}" for number in range(12))
ROWS = [
    {"group": "g", "member_id": "one", "lag": 7, "assignment": LONG},
    {"group": "g", "member_id": "another", "lag": None, "assignment": "a"},
]


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def shown(monkeypatch):
    def show(width, rows=ROWS, columns=COLUMNS):
        terminal = Terminal()
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr("sys.stdout", terminal)
        tables.write(rows, columns, as_json=False)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
        return [line.rstrip() for line in plain.splitlines()]

    return show


def test_wide_terminal_shows_one_row_per_line(shown):
    assert [
        "GROUP  MEMBER-ID  LAG  ASSIGNMENT",
        f"g      one          7  {LONG}",
        "g      another      -  a",
    ] == shown(200)


def test_lists_break_after_commas(shown):
    lines = shown(60)

    assert "GROUP  MEMBER-ID  LAG  ASSIGNMENT" == lines[0]
    assert all(line.endswith(",") for line in lines[1:-2])
    assert LONG == "".join(line.split()[-1] for line in lines[1:-1])


def test_section_columns_move_above_their_rows(shown):
    lines = shown(44)

    assert ["GROUP g", "MEMBER-ID  LAG  ASSIGNMENT"] == lines[:2]


def test_narrow_terminal_shows_rows_as_blocks(shown):
    lines = shown(30)

    assert ["GROUP       g", "MEMBER-ID   one", "LAG         7"] == lines[:3]
    assert "GROUP       g" in lines[4:]
    assert LONG in "".join(line[12:] for line in lines)


@pytest.mark.parametrize("width", range(28, 120, 7))
def test_lines_fit_the_terminal_and_keep_all_text(shown, width):
    lines = shown(width)

    assert max(cell_len(line) for line in lines) <= width
    text = "".join("".join(lines).split())
    for word in (*LONG.split(","), "another"):
        assert word in text


def test_wide_characters_are_aligned(shown):
    rows = [{"member_id": "日本"}, {"member_id": "abcde"}]

    lines = shown(80, rows, (Column("member_id"), Column("lag")))

    assert ["日本       -", "abcde      -"] == lines[1:]


def test_escape_sequences_in_names_are_escaped(shown):
    rows = [{"member_id": "\x1b[31m[bold]\n:smile:"}]

    assert r"\x1b[31m[bold]\n:smile:" == shown(80, rows, (Column("member_id"),))[1]


def test_pipe_gets_one_line_per_row(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    tables.write(ROWS, COLUMNS, as_json=False)

    first, second = parse_tables(capsys.readouterr().out)
    assert (LONG, "-") == (first["ASSIGNMENT"], second["LAG"])


def test_json_has_all_keys_of_a_row(capsys):
    tables.write(ROWS, COLUMNS[:1], as_json=True)

    assert ROWS == json.loads(capsys.readouterr().out)


def test_no_rows_write_no_table_but_empty_json_list(capsys):
    tables.write([], COLUMNS, as_json=False)
    tables.write([], COLUMNS, as_json=True)

    assert "[]\n" == capsys.readouterr().out
