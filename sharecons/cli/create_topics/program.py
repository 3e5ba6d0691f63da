"""Creates the missing topics of a worker, and writes a line for each topic."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sharecons.admin import ConfigEntry, NewTopic, Results, ShareGroupAdmin, Topic
from sharecons.cli import output, tables
from sharecons.cli.create_topics.plan import (
    Difference,
    TopicNames,
    differences,
    new_topic,
)
from sharecons.cli.exit_codes import ExitCode, exit_code_of, write_errors
from sharecons.copies.topic_configs import CopyTopic, SourceTopic, replicas_of
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code
from sharecons.worker.copy_topics import is_missing

__all__ = ["create_copy_topics"]

PROGRAM: Final = "sharecons create-topics"

Configs = Results[str, Mapping[str, ConfigEntry]]


@dataclass(slots=True)
class _Line:
    """The result for one topic.

    Attributes:
        action: "created", "would create", "exists" or "failed".
        replication_factor: None if it is not known.
    """

    topic: CopyTopic
    wanted: NewTopic
    action: str
    replication_factor: int | None = None
    differing: list[Difference] = field(default_factory=list)
    error: Error | None = None


async def create_copy_topics(
    admin: ShareGroupAdmin, names: TopicNames, options: argparse.Namespace
) -> ExitCode:
    """Create the missing topics, and compare the others.

    Raises:
        BrokerError: a topic that the worker consumes does not exist.
        Error: no broker was reached.
    """
    copies = [copy.name for copy in names.copies]
    described = await admin.describe_topics(*names.sources, *copies)
    for name in names.sources:
        _ = described[name].value  # raises if it cannot be described
    found = tuple(described.found)
    configs = await admin.describe_topic_configs(*found)
    _warn(configs)
    sources = [
        SourceTopic(
            topic.name,
            len(topic.partitions),
            _values(configs, topic.name),
            replicas_of(topic),
        )
        for topic in (described[name].value for name in names.sources)
    ]
    lines = []
    for copy in names.copies:
        wanted = new_topic(
            copy, sources, options.partitions, options.replication_factor
        )
        lines.append(_line(copy, wanted, described, configs, sources))
    await _create(admin, [line for line in lines if not line.action], options.dry_run)
    _write(lines, as_json=options.json)
    return _exit_code(lines)


def _line(
    copy: CopyTopic,
    wanted: NewTopic,
    described: Results[str, Topic],
    configs: Configs,
    sources: Sequence[SourceTopic],
) -> _Line:
    """Return the line of an existing topic, or one without an action yet."""
    outcome = described[copy.name]
    if is_missing(outcome):
        return _Line(copy, wanted, "")
    if outcome.error is not None:
        return _Line(copy, wanted, "failed", error=outcome.error)
    values = _values(configs, copy.name)
    differing = differences(copy, wanted, outcome.value, values, sources)
    return _Line(copy, wanted, "exists", differing=differing)


async def _create(
    admin: ShareGroupAdmin, lines: Sequence[_Line], dry_run: bool
) -> None:
    results = await admin.create_topics(
        *(line.wanted for line in lines), validate_only=dry_run
    )
    for line in lines:
        outcome = results[line.topic.name]
        if is_code(outcome.error, Code.TOPIC_ALREADY_EXISTS):
            line.action = "exists"  # a lost response, or another program was faster
        elif outcome.error is not None:
            line.action, line.error = "failed", outcome.error
        else:
            line.action = "would create" if dry_run else "created"
            line.replication_factor = outcome.value.replication_factor


def _values(configs: Configs, name: str) -> dict[str, str]:
    entries = configs.found.get(name, {})
    return {key: one.value for key, one in entries.items() if one.value is not None}


def _warn(configs: Configs) -> None:
    """Warn about configs that cannot be read: they are neither copied nor compared."""
    for name, error in configs.errors.items():
        text = f"warning: the configs of topic {name!r} are not used: {error}"
        output.write_error(f"{PROGRAM}: {text}")


def _write(lines: Sequence[_Line], *, as_json: bool) -> None:
    if as_json:
        tables.write([_row(line) for line in lines], (), as_json=True)
    else:
        for line in lines:
            if line.error is None:
                output.write_line(_text(line))
    write_errors(PROGRAM, [line.error for line in lines if line.error is not None])


def _text(line: _Line) -> str:
    head = f"{line.action} {line.topic.role} {line.topic.name}"
    if line.action == "exists":
        if not line.differing:
            return head
        return f"{head}, with {', '.join(map(str, line.differing))}"
    replicas = line.replication_factor or line.wanted.replication_factor
    numbers = {"partitions": line.wanted.partitions, "replication.factor": replicas}
    settings = {**numbers, **line.wanted.configs}
    shown = [f"{key}={value}" for key, value in settings.items() if value is not None]
    return f"{head}: {', '.join(shown)}"


def _row(line: _Line) -> tables.Row:
    return {
        "topic": line.topic.name,
        "role": line.topic.role,
        "action": line.action,
        "partitions": line.wanted.partitions,
        "replication_factor": (
            line.replication_factor or line.wanted.replication_factor
        ),
        "configs": {key: str(value) for key, value in line.wanted.configs.items()},
        "differences": [
            {
                "name": each.name,
                "found": each.found,
                "wanted": each.wanted,
                "loses_records": each.loses_records,
            }
            for each in line.differing
        ],
        "error": None if line.error is None else str(line.error),
    }


def _exit_code(lines: Sequence[_Line]) -> ExitCode:
    failed = exit_code_of(*[line.error for line in lines if line.error is not None])
    risky = any(each.loses_records for line in lines for each in line.differing)
    return max(failed, ExitCode.FAILED if risky else ExitCode.SUCCESS)
