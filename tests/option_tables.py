"""The tables of options in the docs, from their entries in the package.

python -m tests.option_tables     # writes them
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sharecons import cli
from sharecons.config.options import Option, options_of
from sharecons.member.settings import MEMBER_OPTIONS
from sharecons.net.settings import ConnectionSettings
from sharecons.producer.settings import ProducerSettings
from sharecons.worker.machine.settings import HandlerSettings
from sharecons.worker.settings import WorkerSettings

__all__ = ["PAGES", "render", "run_parser"]

DOCS = Path(__file__).parent.parent / "docs"


def run_parser() -> argparse.ArgumentParser:
    """Return the parser of `sharecons run`."""
    (commands,) = (
        action
        for action in cli.parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    parser: argparse.ArgumentParser = commands.choices["run"]
    return parser


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _text(entry: Option) -> str:
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", entry.text)


def _default(entry: Option) -> str:
    is_text = entry.default.isalpha() or " " in entry.default
    return entry.default if is_text else f"`{entry.default}`"


def worker_table() -> str:
    own, of_handler = options_of(WorkerSettings), options_of(HandlerSettings)
    rows = [
        (
            f"`{name}`",
            _text(entry),
            _default(entry),
            "" if name not in of_handler else "its calls" if name in own else "yes",
            _code(entry.flag.name if entry.flag else None),
        )
        for name, entry in {**of_handler, **own}.items()
    ]
    return _table(
        ("option", "meaning", "default", "of a handler", "`sharecons run`"), rows
    )


def member_table() -> str:
    rows = [
        (f"`{name}`", _text(entry), _default(entry), _code(entry.kafka_property))
        for name, entry in MEMBER_OPTIONS.items()
    ]
    return _table(("option", "meaning", "default", "property"), rows)


def _plain_table(*tables: type) -> str:
    rows = [
        (f"`{name}`", _text(entry), _default(entry))
        for table in tables
        for name, entry in options_of(table).items()
    ]
    return _table(("option", "meaning", "default"), rows)


def producer_table() -> str:
    return _plain_table(ConnectionSettings, ProducerSettings)


def taskiq_table() -> str:
    from sharecons.taskiq.settings import BrokerSettings  # needs taskiq

    return _plain_table(BrokerSettings)


def run_table(title: str) -> str:
    """Return the table of a group of options of `sharecons run`."""
    parser = run_parser()
    (group,) = (each for each in parser._action_groups if each.title == title)
    rows = [
        (_code(f"{action.option_strings[0]} {action.metavar or ''}".rstrip()), text)
        for action in group._group_actions
        if (text := _help(parser, action))
    ]
    return _table(("option", "meaning"), rows)


def _help(parser: argparse.ArgumentParser, action: Any) -> str:
    if action.help == argparse.SUPPRESS:
        return ""
    text: str = parser._get_formatter()._expand_help(action)
    return text


PAGES = {
    DOCS / "worker.md": {"worker": worker_table},
    DOCS / "consumer-running.md": {"member": member_table},
    DOCS / "producer.md": {"producer": producer_table},
    DOCS / "taskiq.md": {"taskiq": taskiq_table},
    DOCS / "command-line-run.md": {
        "run worker": lambda: run_table("worker"),
        "run processes": lambda: run_table("processes"),
    },
}


def render(page: Path) -> str:
    """Return the text of a page with its tables as they should be."""
    text = page.read_text()
    for name, table in PAGES[page].items():
        before, begin, rest = text.partition(f"<!-- options: {name} -->\n")
        _, end, after = rest.partition("\n<!-- end of options -->")
        assert end, f"{page.name} has no table {name!r}"
        text = "".join([before, begin, table(), end, after])
    return text


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(render(path))
