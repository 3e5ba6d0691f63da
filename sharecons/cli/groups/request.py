"""The request that the options describe.

Combinations of options that kafka-share-groups.sh rejects are rejected here, before any
request is sent.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from sharecons.cli.groups.arguments import ACTION_FLAGS, DATETIME_FORMAT
from sharecons.cli.groups.offsets_file import OffsetsFileError, read_offsets
from sharecons.cli.groups.targets import Target, ToCurrent, ToFile, ToOffset, ToSpec
from sharecons.cli.option_values import parse_topic
from sharecons.protocol.admin.models import OffsetSpec
from sharecons.similar_names import did_you_mean

__all__ = ["Request", "TopicSelection", "UsageError", "parse_request"]

STATES: Final = ("Empty", "Stable", "Dead")
TYPES: Final = ("share", "consumer", "classic", "streams")
ALL_TYPES: Final = "all"
VIEWS: Final = ("offsets", "members", "state")
SINGLE_GROUP_ACTIONS: Final = ("reset-offsets", "delete-offsets")
TARGETS: Final = (
    "to_earliest",
    "to_latest",
    "to_current",
    "to_datetime",
    "to_offset",
    "from_file",
)


class UsageError(Exception):
    """An option is missing or invalid, or options exclude each other."""


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """A topic, or some of its partitions."""

    topic: str
    partitions: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An action and its parameters; `groups` and `topics` are None for all."""

    action: str
    groups: tuple[str, ...] | None = ()
    topics: tuple[TopicSelection, ...] | None = ()
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
        assert self.groups is not None, "this action does not allow --all-groups"
        return self.groups[0]


def parse_request(options: argparse.Namespace) -> Request:
    """Return the request that the options describe.

    Raises:
        UsageError: an option is missing or invalid, or options exclude each other.
    """
    action = _parse_action(options)
    groups = _parse_groups(options, action)
    target = _parse_target(options, groups) if action == "reset-offsets" else None
    topics = _parse_topics(options, action, target)
    return Request(
        action=action,
        groups=groups,
        topics=topics,
        as_json=options.json,
        verbose=options.verbose,
        dry_run=options.dry_run,
        with_states=options.state is not None,
        states=_parse_states(options, action),
        types=_parse_types(options),
        target=target,
        export=action == "reset-offsets" and _parse_export(options),
        configs=_parse_configs(options),
    )


def _parse_action(options: argparse.Namespace) -> str:
    flags = [name for name in ACTION_FLAGS if getattr(options, name)]
    if options.command is not None:
        if flags:
            raise UsageError(
                f"the command {options.command} cannot be combined with {_flags(flags)}"
            )
        command: str = options.command
        return _parse_view(options, "describe") if command == "describe" else command
    if not flags:
        raise UsageError(
            f"give a command, or one of {_flags(ACTION_FLAGS)}; "
            "see sharecons groups --help"
        )
    if len(flags) > 1:
        raise UsageError(f"give only one of {_flags(flags)}")
    if flags == ["describe"]:
        return _parse_view(options, "offsets")
    _reject_describe_options(options, flags[0])
    return flags[0].replace("_", "-")


def _parse_view(options: argparse.Namespace, default: str) -> str:
    given = [name for name in VIEWS if getattr(options, name) not in (False, None)]
    if len(given) > 1:
        raise UsageError(f"describe allows only one of {_flags(VIEWS)}")
    return given[0] if given else default


def _reject_describe_options(options: argparse.Namespace, action: str) -> None:
    """Reject options that only --describe allows."""
    views = ("offsets", "members", "verbose")
    extra = [name for name in views if getattr(options, name)]
    if options.state is not None and action != "list":
        extra.append("state")
    if extra:
        raise UsageError(f"{_flags(extra)} requires --describe, not {_flags([action])}")


def _parse_groups(options: argparse.Namespace, action: str) -> tuple[str, ...] | None:
    given = tuple(dict.fromkeys([*(options.names or ()), *(options.group or ())]))
    if action == "list":
        if given or options.all_groups:
            raise UsageError("list takes no group; use describe to show one")
        return None
    if given and options.all_groups:
        raise UsageError("--all-groups cannot be combined with a group")
    if action in SINGLE_GROUP_ACTIONS and (len(given) != 1 or options.all_groups):
        raise UsageError(f"{action} needs exactly one group")
    if not given and not options.all_groups:
        raise UsageError(f"{action} needs a group, or --all-groups")
    return given or None


def _parse_topics(
    options: argparse.Namespace, action: str, target: Target | None
) -> tuple[TopicSelection, ...] | None:
    given: Sequence[str] = options.topic or ()
    if action == "delete-offsets":
        if not given:
            raise UsageError("delete-offsets needs --topic")
        return tuple(TopicSelection(name) for name in dict.fromkeys(given))
    if isinstance(target, ToFile):
        if given or options.all_topics:
            raise UsageError(
                "--from-file already names the topics and cannot be combined with "
                "--topic or --all-topics"
            )
        return _topics_in_file(target)
    if action == "reset-offsets":
        if not given and not options.all_topics:
            raise UsageError("reset-offsets needs --topic, --all-topics or --from-file")
        if given and options.all_topics:
            raise UsageError("--topic cannot be combined with --all-topics")
        return tuple(_parse_topic(text) for text in given) or None
    if given or options.all_topics:
        raise UsageError(f"{action} takes no --topic or --all-topics")
    return ()


def _parse_topic(text: str) -> TopicSelection:
    try:
        return TopicSelection(*parse_topic(text))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--topic {error}") from None


def _topics_in_file(target: ToFile) -> tuple[TopicSelection, ...]:
    partitions: dict[str, list[int]] = {}
    for topic, partition in sorted(target.offsets):
        partitions.setdefault(topic, []).append(partition)
    return tuple(TopicSelection(name, tuple(each)) for name, each in partitions.items())


def _parse_target(
    options: argparse.Namespace, groups: tuple[str, ...] | None
) -> Target:
    values = {name: getattr(options, name) for name in TARGETS}
    # An offset of 0 counts as given.
    given = [
        name for name, each in values.items() if each is not None and each is not False
    ]
    if len(given) != 1:
        raise UsageError(f"reset-offsets needs exactly one of {_flags(TARGETS)}")
    if options.dry_run == options.execute:
        raise UsageError("reset-offsets needs either --dry-run or --execute")
    match given[0]:
        case "to_earliest":
            return ToSpec(OffsetSpec.EARLIEST)
        case "to_latest":
            return ToSpec(OffsetSpec.LATEST)
        case "to_datetime":
            return ToSpec(OffsetSpec.at(_parse_time(options.to_datetime)))
        case "to_offset":
            return ToOffset(options.to_offset)
        case "to_current":
            return ToCurrent()
    try:
        return ToFile(read_offsets(options.from_file, (groups or ("",))[0]))
    except OffsetsFileError as error:
        raise UsageError(str(error)) from None


def _parse_export(options: argparse.Namespace) -> bool:
    if options.export and options.json:
        raise UsageError("--export writes CSV and cannot be combined with --json")
    return bool(options.export)


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--to-datetime {text!r} is not a time of the form {DATETIME_FORMAT}"
        ) from None
    # Kafka's tool also takes a time without a zone as UTC.
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _parse_states(options: argparse.Namespace, action: str) -> tuple[str, ...]:
    if not options.state or not isinstance(options.state, str):
        return ()
    if action != "list":
        raise UsageError(
            "--state takes a value only with list; describe takes it without"
        )
    return _parse_choices("--state", options.state, STATES)


def _parse_types(options: argparse.Namespace) -> tuple[str, ...] | None:
    if options.type is None:
        return None
    chosen = _parse_choices("--type", options.type, (*TYPES, ALL_TYPES))
    return TYPES if ALL_TYPES in chosen else chosen


def _parse_choices(option: str, text: str, choices: Sequence[str]) -> tuple[str, ...]:
    known = {choice.lower(): choice for choice in choices}
    names = _split_lists([text])
    for name in names:
        if name.lower() not in known:
            hint = did_you_mean(name, choices)
            raise UsageError(
                f"{option} {name!r} is not one of {', '.join(choices)}{hint}"
            )
    return tuple(known[name.lower()] for name in names)


def _parse_configs(options: argparse.Namespace) -> dict[str, str | None]:
    configs: dict[str, str | None] = dict.fromkeys(_split_lists(options.unset or ()))
    for text in _split_lists(options.set or ()):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise UsageError(f"--set {text!r} is not NAME=VALUE")
        if name in configs:
            raise UsageError(
                f"config {name!r} is given more than once in --set and --unset"
            )
        configs[name] = value
    return configs


def _split_lists(texts: Iterable[str]) -> list[str]:
    """Split comma-separated lists; drop empty and repeated items."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    return [part for part in dict.fromkeys(parts) if part]


def _flags(names: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)
