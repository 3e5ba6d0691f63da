"""What the options ask for, once it is seen that they make sense together.

What kafka-share-groups.sh refuses is refused here, before anybody is asked.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from sharecons.cli.groups.arguments import ACTIONS, DATETIME
from sharecons.cli.groups.offsets_file import OffsetsFileError, read_offsets
from sharecons.cli.groups.targets import Target, ToCurrent, ToFile, ToOffset, ToSpec
from sharecons.protocol.admin.models import OffsetSpec

__all__ = ["Request", "TopicChoice", "UsageError", "read"]

STATES: Final = ("Empty", "Stable", "Dead")
TYPES: Final = ("share", "consumer", "classic", "streams")
ALL: Final = "all"
VIEWS: Final = ("offsets", "members", "state")
ONE_GROUP: Final = ("reset-offsets", "delete-offsets")
TARGETS: Final = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_datetime",
    "to_offset",
    "from_file",
)


class UsageError(Exception):
    """The options make no sense together; one line says which."""


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """A topic, or some of its partitions."""

    topic: str
    partitions: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be done. `groups` is None for all, as `topics` is."""

    action: str
    groups: tuple[str, ...] | None = ()
    topics: tuple[TopicChoice, ...] | None = ()
    as_json: bool = False
    verbose: bool = False
    dry_run: bool = False
    with_states: bool = False
    states: tuple[str, ...] = ()
    types: tuple[str, ...] | None = None
    target: Target | None = None
    export: bool = False
    configs: dict[str, str | None] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The one group of an action that takes one."""
        assert self.groups is not None, "such an action takes no --all-groups"
        return self.groups[0]


def read(options: argparse.Namespace) -> Request:
    """Make a request of the options.

    Raises:
        UsageError: they make no sense together.
    """
    action = _action(options)
    groups = _groups(options, action)
    target = _target(options, groups) if action == "reset-offsets" else None
    topics = _topics(options, action, target)
    return Request(
        action=action,
        groups=groups,
        topics=topics,
        as_json=options.json,
        verbose=options.verbose,
        dry_run=options.dry_run,
        with_states=options.state is not None,
        states=_states(options, action),
        types=_types(options),
        target=target,
        export=action == "reset-offsets" and _export(options),
        configs=_configs(options),
    )


def _action(options: argparse.Namespace) -> str:
    flags = [name for name in ACTIONS if getattr(options, name)]
    if options.command is not None:
        if flags:
            raise UsageError(f"the command {options.command} takes no {_flag(flags)}")
        command: str = options.command
        return _view(options, "describe") if command == "describe" else command
    if len(flags) != 1:
        raise UsageError(
            f"give a command, or one of {_flag(ACTIONS)}; --help tells of each"
        )
    if flags == ["describe"]:
        return _view(options, "offsets")
    _only_described(options, flags[0])
    return flags[0].replace("_", "-")


def _view(options: argparse.Namespace, default: str) -> str:
    given = [name for name in VIEWS if getattr(options, name) not in (False, None)]
    if len(given) > 1:
        raise UsageError(f"describe takes at most one of {_flag(VIEWS)}")
    return given[0] if given else default


def _only_described(options: argparse.Namespace, action: str) -> None:
    """Refuse what goes with --describe alone."""
    views = ("offsets", "members", "verbose")
    extra = [name for name in views if getattr(options, name)]
    if options.state is not None and action != "list":
        extra.append("state")
    if extra:
        raise UsageError(f"{_flag(extra)} goes with --describe, not {_flag([action])}")


def _groups(options: argparse.Namespace, action: str) -> tuple[str, ...] | None:
    given = tuple(dict.fromkeys([*(options.names or ()), *(options.group or ())]))
    if action == "list":
        if given or options.all_groups:
            raise UsageError("list takes no group; describe does")
        return None
    if given and options.all_groups:
        raise UsageError("--all-groups goes with no other group")
    if action in ONE_GROUP and (len(given) != 1 or options.all_groups):
        raise UsageError(f"{action} takes one group")
    if not given and not options.all_groups:
        raise UsageError(f"{action} takes a group, or --all-groups")
    return given or None


def _topics(
    options: argparse.Namespace, action: str, target: Target | None
) -> tuple[TopicChoice, ...] | None:
    given: Sequence[str] = options.topic or ()
    if action == "delete-offsets":
        if not given:
            raise UsageError("delete-offsets takes --topic")
        return tuple(TopicChoice(name) for name in dict.fromkeys(given))
    if isinstance(target, ToFile):
        if given or options.all_topics:
            raise UsageError("--from-file has the topics: it takes no topic beside it")
        return _of_file(target)
    if action == "reset-offsets":
        if not given and not options.all_topics:
            raise UsageError("reset-offsets takes --topic, --all-topics or --from-file")
        # With both the topics count, as in Kafka's own tool.
        return tuple(_topic(text) for text in given) or None
    if given or options.all_topics:
        raise UsageError(f"{action} takes no topic")
    return ()


def _topic(text: str) -> TopicChoice:
    topic, colon, numbers = text.partition(":")
    if not colon:
        return TopicChoice(topic)
    parts = [part.strip() for part in numbers.split(",")]
    if not topic or not all(part.isdecimal() and part.isascii() for part in parts):
        raise UsageError(f"--topic {text!r} is neither TOPIC nor TOPIC:0,1,2")
    return TopicChoice(topic, tuple(dict.fromkeys(int(part) for part in parts)))


def _of_file(target: ToFile) -> tuple[TopicChoice, ...]:
    partitions: dict[str, list[int]] = {}
    for topic, partition in sorted(target.offsets):
        partitions.setdefault(topic, []).append(partition)
    return tuple(TopicChoice(name, tuple(each)) for name, each in partitions.items())


def _target(options: argparse.Namespace, groups: tuple[str, ...] | None) -> Target:
    values = {name: getattr(options, name) for name in TARGETS}
    # An offset of 0 is given, too.
    given = [
        name for name, each in values.items() if each is not None and each is not False
    ]
    if len(given) != 1:
        raise UsageError(f"reset-offsets takes one of {_flag(TARGETS)}")
    if options.dry_run == options.execute:
        raise UsageError("reset-offsets takes either --dry-run or --execute")
    match given[0]:
        case "to_earliest":
            return ToSpec(OffsetSpec.EARLIEST)
        case "to_latest":
            return ToSpec(OffsetSpec.LATEST)
        case "to_datetime":
            return ToSpec(OffsetSpec.at(_time(options.to_datetime)))
        case "to_offset":
            return ToOffset(options.to_offset)
        case "to_current":
            return ToCurrent()
    try:
        return ToFile(read_offsets(options.from_file, (groups or ("",))[0]))
    except OffsetsFileError as error:
        raise UsageError(str(error)) from None


def _export(options: argparse.Namespace) -> bool:
    if options.export and options.json:
        raise UsageError("--export writes CSV: it takes no --json beside it")
    return bool(options.export)


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--to-datetime {text!r} is not {DATETIME}") from None
    # No zone is UTC for Kafka's own tool, wherever it runs.
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _states(options: argparse.Namespace, action: str) -> tuple[str, ...]:
    if not options.state or not isinstance(options.state, str):
        return ()
    if action != "list":
        raise UsageError("describe takes --state without a value")
    return _chosen("--state", options.state, STATES)


def _types(options: argparse.Namespace) -> tuple[str, ...] | None:
    if options.type is None:
        return None
    chosen = _chosen("--type", options.type, (*TYPES, ALL))
    return TYPES if ALL in chosen else chosen


def _chosen(option: str, text: str, choices: Sequence[str]) -> tuple[str, ...]:
    known = {choice.lower(): choice for choice in choices}
    names = _listed([text])
    for name in names:
        if name.lower() not in known:
            raise UsageError(f"{option}: {name!r} is none of {', '.join(choices)}")
    return tuple(known[name.lower()] for name in names)


def _configs(options: argparse.Namespace) -> dict[str, str | None]:
    configs: dict[str, str | None] = dict.fromkeys(_listed(options.unset or ()))
    for text in _listed(options.set or ()):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise UsageError(f"--set {text!r} is not NAME=VALUE")
        if name in configs:
            raise UsageError(f"{name} is given twice")
        configs[name] = value
    return configs


def _listed(texts: Iterable[str]) -> list[str]:
    """Take lists with commas apart."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    return [part for part in dict.fromkeys(parts) if part]


def _flag(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
