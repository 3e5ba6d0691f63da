"""The events that the package logs, found in its source."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ROOT", "Event", "logged_events"]

ROOT = Path(__file__).parents[1]

NOT_CLIENTS = ("spark", "testing", "demo")
"""Packages with logs of their own."""

METHODS = {
    "debug": "DEBUG",
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "exception": "ERROR",
    "critical": "CRITICAL",
}

MEMBER = "sharecons.member.member_tasks"
BUFFER = "sharecons.member.lease_buffer"
RUNNER = "sharecons.worker.runner"

LOGGERS = {
    "sharecons.cli.run.exit_deadline": "sharecons.cli.run.process",
    "sharecons.cli.run.processes": "sharecons.run",
    "sharecons.cli.run.supervisor": "sharecons.run",
    "sharecons.member.archive_warnings": "sharecons.member.ack_dispatcher",
    "sharecons.member.error_reports": MEMBER,
    "sharecons.member.fetch_problems": MEMBER,
    "sharecons.member.lease_decoder": BUFFER,
    "sharecons.member.member_log": MEMBER,
    "sharecons.member.unassigned_watch": MEMBER,
    "sharecons.member.unprocessed": BUFFER,
    "sharecons.net.io.callbacks": BUFFER,
    "sharecons.net.outages": MEMBER,
    "sharecons.worker.blocked_loop": RUNNER,
    "sharecons.worker.failure_log": RUNNER,
    "sharecons.worker.machine.delivery": RUNNER,
    "sharecons.worker.machine.ends": RUNNER,
    "sharecons.worker.machine.stalls": RUNNER,
    "sharecons.worker.standstills": RUNNER,
    "sharecons.worker.threads": RUNNER,
}
"""The logger of each module that has the logger of another one."""

WITHOUT_TEXT = {
    ("sharecons.net.problem_log", "on_failure"),
    ("sharecons.net.problem_log", "on_success"),
    ("sharecons.net.problem_log", "end_quiet"),
    ("sharecons.worker.failure_log", "warn"),
}
"""Functions that log the text of their callers, which call one of RELAYS."""

RELAYS = {
    ("sharecons.cli.run.exit_deadline", "_report"): "ERROR",
    ("sharecons.cli.run.supervisor", "_fail"): "ERROR",
    ("sharecons.cli.run.supervisor", "_report"): "INFO",
    ("sharecons.cli.run.supervisor", "_warn"): "WARNING",
    ("sharecons.worker.machine.delivery", "Warn"): "WARNING",
    ("sharecons.worker.machine.ends", "Warn"): "WARNING",
    ("sharecons.worker.machine.stalls", "Warn"): "WARNING",
}
"""Calls with the text of an event as their first argument."""

PROBLEM_LEVELS = {"begins": "WARNING", "lasts": "WARNING", "ends": "INFO"}

TEXT_OF_END = ("on_success", "end_quiet")
"""Methods of a `ProblemLog` with the text of an end as their third argument."""


class Event(NamedTuple):
    """An event.

    Attributes:
        logger: the name of its logger.
        level: "INFO", for example.
        text: the event; "…" stands for what differs.
        fields: the names of its fields, as far as the call has them.
        is_open: the call has further fields.
        where: "file:line".
    """

    logger: str
    level: str
    text: str
    fields: frozenset[str]
    is_open: bool
    where: str


def logged_events() -> list[Event]:
    """Return the events of all modules."""
    events: list[Event] = []
    for path in sorted((ROOT / "sharecons").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[1] not in NOT_CLIENTS:
            name = ".".join(parts).removesuffix(".__init__")
            events += _Module(name, path).events()
    return events


class _Module:
    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        self._logger = LOGGERS.get(name, name)

    def events(self) -> Iterator[Event]:
        yield from self._of(ast.parse(self._path.read_text()), "")

    def _of(self, node: ast.AST, function: str) -> Iterator[Event]:
        for child in ast.iter_child_nodes(node):
            inner = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = child.name
            if isinstance(child, ast.Call):
                yield from self._of_call(child, function)
            yield from self._of(child, inner)

    def _of_call(self, call: ast.Call, function: str) -> Iterator[Event]:
        name = _name(call.func)
        if (self._name, function) in WITHOUT_TEXT:
            return
        if name == "ProblemTexts":
            for keyword in call.keywords:
                level = PROBLEM_LEVELS[str(keyword.arg)]
                for text in self._texts(keyword.value):
                    yield self._event(call, level, text, is_open=True)
        elif name in TEXT_OF_END and len(call.args) > 2:
            for text in self._texts(call.args[2]):
                yield self._event(call, "INFO", text, is_open=True)
        elif levels := self._levels(call.func):
            is_open = (self._name, name) in RELAYS
            for text in self._texts(call.args[0]):
                for level in levels:
                    yield self._event(call, level, text, is_open=is_open)

    def _levels(self, function: ast.expr) -> list[str]:
        """Return the levels of a call of this function; none if it does not log."""
        if isinstance(function, ast.IfExp):
            return [*self._levels(function.body), *self._levels(function.orelse)]
        name = _name(function)
        if (self._name, name) in RELAYS:
            return [RELAYS[self._name, name]]
        if isinstance(function, ast.Attribute) and name in METHODS:
            owner = function.value
            if isinstance(owner, ast.Call):  # get_logger(__name__).warning(...)
                return [METHODS[name]] if _name(owner.func) == "get_logger" else []
            if _name(owner).strip("_") in ("log", "logger"):
                return [METHODS[name]]
        return []

    def _event(self, call: ast.Call, level: str, text: str, *, is_open: bool) -> Event:
        names = {keyword.arg for keyword in call.keywords if keyword.arg}
        is_open = is_open or any(keyword.arg is None for keyword in call.keywords)
        fields = frozenset() if is_open and not names else frozenset(names)
        if _name(call.func) == "ProblemTexts":
            fields = frozenset()
        where = f"{self._path.relative_to(ROOT)}:{call.lineno}"
        return Event(
            self._logger, level, text, fields - {"exc_info", "since"}, is_open, where
        )

    def _texts(self, node: ast.expr) -> list[str]:
        """Return the texts that an expression can have."""
        if isinstance(node, ast.IfExp):
            return [*self._texts(node.body), *self._texts(node.orelse)]
        if isinstance(node, ast.JoinedStr):
            return ["".join(map(self._part, node.values))]
        if isinstance(node, ast.Constant):
            return [str(node.value).replace("%s", "…")]
        value = self._constant(node)
        assert isinstance(value, str), (
            f"{self._path}:{node.lineno}: write the text of the event here, or name a "
            "constant"
        )
        return [value]

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.FormattedValue)
        value = self._constant(node.value)
        return value if isinstance(value, str) else "…"

    def _constant(self, node: ast.expr) -> Any:
        """Return the value of a constant of the module; None if it is none."""
        if not isinstance(node, ast.Name) or not node.id.isupper():
            return None
        return getattr(importlib.import_module(self._name), node.id, None)


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
