"""Commands without the packages of extras."""

import sys

import pytest

from sharecons.cli import tables
from sharecons.cli.exit_codes import ExitCode
from tests.cli.run_cli import run_cli
from tests.cli.test_tables import COLUMNS, ROWS, Terminal

RUN = ("run", "app:handle", "--topic", "orders", "--group", "billing")


@pytest.fixture
def hide(monkeypatch):
    def hide(package):
        # None in sys.modules makes the import of a module fail.
        monkeypatch.setitem(sys.modules, package, None)

    return hide


@pytest.mark.parametrize(
    ("command", "needing", "package", "extra"),
    [
        (("demo",), "demo", "rich", "cli"),
        (("demo", "--plain"), "demo", "rich", "cli"),
        (("demo", "--open"), "demo --open", "uvicorn", "dashboard"),
        (("groups", "inspect", "g"), "groups inspect", "rich", "cli"),
        (("groups", "inspect", "g", "--watch"), "groups inspect", "rich", "cli"),
        (
            ("groups", "inspect", "g", "--json", "--svg", "g.svg"),
            *("groups inspect", "rich", "cli"),
        ),
        (("completion", "bash"), "completion", "shtab", "cli"),
        (("dashboard",), "dashboard", "starlette", "dashboard"),
        (("dashboard",), "dashboard", "rich", "dashboard"),
        (("exporter",), "exporter", "prometheus_client", "exporter"),
        (
            (*RUN, "--health-port", "0"),
            "run --health-port",
            "prometheus_client",
            "exporter",
        ),
        ((*RUN, "--reload"), "run --reload", "watchfiles", "reload"),
    ],
)
def test_command_without_a_package_names_the_extra_in_one_line(
    hide, command, needing, package, extra
):
    hide(package)

    result = run_cli(*command)

    assert 2 == result.code
    name = package.replace("_", "-")
    install = f"pip install 'sharecons[{extra}]'"
    assert [f"sharecons {needing} needs {name}: {install}"] == result.lines
    assert "" == result.out


def test_table_without_rich_is_the_one_of_a_pipe(hide, monkeypatch):
    hide("rich")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    tables.write(ROWS, COLUMNS, as_json=False)

    assert "GROUP  MEMBER-ID  LAG  ASSIGNMENT" == terminal.getvalue().splitlines()[0]
    assert "\x1b" not in terminal.getvalue()


@pytest.mark.parametrize(
    "command", [("groups", "inspect", "billing", "--json"), ("groups", "list")]
)
def test_command_without_a_picture_needs_no_rich(hide, broker, command):
    hide("rich")

    result = run_cli(*command, "--bootstrap-server", broker.bootstrap_servers)

    assert "rich" not in result.err
    assert result.code in (ExitCode.SUCCESS, ExitCode.FAILED)
