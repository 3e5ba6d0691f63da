"""The commands and programs of docs/start.md, followed one by one."""

import os
import sys
from pathlib import Path

import pytest

from sharecons.testing.kafka.ports import free_ports
from tests import first_day
from tests.first_day import ROOT, Command, Page, follow

INSTALLING = ("python3 -m venv", ". ", "pip ", "sharecons demo", "python -m sharecons")


def test_page_is_read_with_its_commands_output_and_programs() -> None:
    page = Page(
        "In a terminal of its own, run\na broker:\n\n```sh\nsharecons broker\n```\n\n"
        "Save this as `a.py`:\n\n```python\nprint(1)\n```\n\n"
        "```sh\npip list\npython a.py\n```\n\n```text\n1 … 3\n```\n\n"
        "End it with Ctrl-C.\n\nStop the broker.\n\n```sh\nls\n```\n",
        port=1234,
    )

    assert page.files == {"a.py": "print(1)\n"}
    assert page.commands == [
        Command("sharecons broker --port 1234", is_service=True),
        Command("pip list"),
        Command("python a.py", ["1 … 3"], ends_by_signal=True),
        Command("ls", ends_services=True),
    ]
    assert page.commands[2].missing("0\n1  2   3 4") == []
    assert page.commands[2].missing("1 2\n3") == ["1 … 3"]


@pytest.mark.slow("starts processes")
def test_commands_of_the_start_page_print_its_lines(tmp_path: Path) -> None:
    """Leave out the commands that install, and the demo, which have other tests."""
    (port,) = free_ports(1)
    page = Page((ROOT / "docs" / "start.md").read_text(), port)
    page.commands = [
        each for each in page.commands if not each.line.startswith(INSTALLING)
    ]
    environment = first_day.environment_of_a_stranger(tmp_path, port)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    clone = tmp_path / "clone"
    clone.mkdir()
    followed: list[str] = []

    follow(page, clone, environment, lambda _, __, line: followed.append(line))

    left = [each.line for each in page.commands if each.line.startswith("cd ")]
    assert left == ["cd ../first", "cd -"]
    assert followed == [each.line for each in page.commands if each.line not in left]
    assert len(followed) == 8


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_stranger_can_follow_the_pages(capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)

    first_day.main(["--port", str(port)])

    assert "pip install" in capsys.readouterr().out
