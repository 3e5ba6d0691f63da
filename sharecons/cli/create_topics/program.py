"""Creates the missing topics, and writes a line for each topic."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sharecons.admin import ConfigEntry, NewTopic, Results, ShareGroupAdmin, Topic
from sharecons.cli import output, tables
from sharecons.cli.create_topics.plan import (
    Difference,
    TopicNames,
    differences,
    differing_numbers,
    new_topic,
)
from sharecons.cli.exit_codes import ExitCode, exit_code_of, write_errors
from sharecons.cli.name_hints import lines_about_topics
from sharecons.copies.topic_configs import SourceTopic, replicas_of
from sharecons.errors import Error
from sharecons.protocol.admin.broker_errors import is_code
from sharecons.protocol.codes import Code
from sharecons.worker.copy_topics import is_missing

__all__ = ["create_copy_topics", "create_named_topics"]

PROGRAM: Final = "sharecons create-topics"
NAMED: Final = "topic"
"""The role of a topic that the user names, and not a worker."""

Configs = Results[str, Mapping[str, ConfigEntry]]


@dataclass(slots=True)
class _Line:
    """The result for one topic.

    Attributes:
        role: "topic", "retry topic" or "dead-letter topic".
        action: "created", "would create", "exists" or "failed".
        replication_factor: None if it is not known.
    """

    role: str
    wanted: NewTopic
    action: str = ""
    replication_factor: int | None = None
    differing: list[Difference] = field(default_factory=list)
    error: Error | None = None


async def create_named_topics(
    admin: ShareGroupAdmin, topics: Sequence[NewTopic], options: argparse.Namespace
) -> ExitCode:
    """Create the missing topics, and compare the numbers of the others.

    Raises:
        Error: no broker was reached.
    """
    described = await admin.describe_topics(*(topic.name for topic in topics))
    return await _create(
        admin,
        [
            _line(NAMED, topic, described, partial(differing_numbers, topic))
            for topic in topics
        ],
        options,
    )


async def create_copy_topics(
    admin: ShareGroupAdmin, names: TopicNames, options: argparse.Namespace
) -> ExitCode:
    """Create the missing topics of a worker, and compare the others.

    Raises:
        Error: no broker was reached.
    """
    copies = [copy.name for copy in names.copies]
    described = await admin.describe_topics(*names.sources, *copies)
    unusable = {
        name: error for name, error in described.errors.items() if name in names.sources
    }
    if unusable:
        write_errors(PROGRAM, await lines_about_topics(admin, unusable))
        return exit_code_of(*unusable.values())
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
        values = _values(configs, copy.name)
        compare = partial(differences, copy, wanted, configs=values, sources=sources)
        lines.append(_line(copy.role, wanted, described, compare))
    return await _create(admin, lines, options)


def _line(
    role: str,
    wanted: NewTopic,
    described: Results[str, Topic],
    compare: Callable[[Topic], list[Difference]],
) -> _Line:
    """Return the line of an existing topic, or one without an action yet."""
    outcome = described[wanted.name]
    if is_missing(outcome):
        return _Line(role, wanted)
    if outcome.error is not None:
        return _Line(role, wanted, "failed", error=outcome.error)
    return _Line(role, wanted, "exists", differing=compare(outcome.value))


async def _create(
    admin: ShareGroupAdmin, lines: Sequence[_Line], options: argparse.Namespace
) -> ExitCode:
    """Create the topics of lines without an action; write all lines."""
    await _send(admin, [line for line in lines if not line.action], options.dry_run)
    _write(lines, as_json=options.json)
    return _exit_code(lines)


async def _send(admin: ShareGroupAdmin, lines: Sequence[_Line], dry_run: bool) -> None:
    results = await admin.create_topics(
        *(line.wanted for line in lines), validate_only=dry_run
    )
    for line in lines:
        outcome = results[line.wanted.name]
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
    head = f"{line.action} {line.role} {line.wanted.name}"
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
        "topic": line.wanted.name,
        "role": line.role,
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
    differs = any(
        line.role == NAMED or each.loses_records
        for line in lines
        for each in line.differing
    )
    return max(failed, ExitCode.FAILED if differs else ExitCode.SUCCESS)
