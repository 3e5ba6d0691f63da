"""`sharecons groups inspect`: a share group from inside, offset by offset."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sharecons.cli import client_options, tables

if TYPE_CHECKING:
    from sharecons._record import TopicPartition
    from sharecons.admin import ShareGroupAdmin
    from sharecons.cli.exit_codes import Exit
    from sharecons.inspection import GroupInspection

    # A class for annotations only: at run time it cannot be subscripted.
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

__all__ = ["add_parser", "run"]

PROGRAM: Final = "sharecons groups inspect"
WORDS: Final = "show what has become of each offset, and why a group stands still"


def add_parser(subparsers: "Subparsers") -> argparse.ArgumentParser:
    """Add the command; gives its parser."""
    parser = subparsers.add_parser(
        "inspect",
        help=WORDS,
        description=f"{WORDS.capitalize()}: which offsets above the start offset are "
        "acknowledged, archived, or still to be settled, how often they were "
        "delivered, and how long the oldest has stood. Reading disturbs nobody. Locks "
        "are kept by partitions' leaders in memory alone, so that what is not settled "
        "shows as available or locked.",
    )
    parser.add_argument("name", metavar="GROUP", help="a share group")
    parser.add_argument(
        "--topic",
        action="append",
        metavar="TOPIC[:0,1,2]",
        help="these alone; give it again for more (all that the group reads)",
    )
    parser.add_argument(
        "--source",
        choices=("auto", "coordinator", "records"),
        default="auto",
        help="ask the share coordinator, which takes CLUSTER_ACTION; or read the "
        "records of __share_group_state, which takes READ on it (auto: the first that "
        "is allowed)",
    )
    _add_shown(parser)
    tables.add_options(parser)
    client_options.add_options(parser)
    parser.set_defaults(run=run)
    return parser


def _add_shown(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--offsets", action="store_true", help="list the offsets that stand alike")
    add(
        "--watch",
        type=_interval,
        nargs="?",
        const=2.0,
        metavar="SECONDS",
        help="look again and again, until Ctrl-C (every 2 s)",
    )
    add("--png", type=Path, metavar="FILE", help="draw it; needs sharecons[plot]")
    add("--html", type=Path, metavar="FILE", help="draw it as a page")
    add(
        "--check",
        action="store_true",
        help="exit with 1 if a partition stands still",
    )


def run(options: argparse.Namespace) -> int:
    """Look, and show; gives the exit code."""
    from sharecons.cli.exit_codes import Exit, ask, complain

    if options.watch is not None and (options.png or options.html):
        complain(PROGRAM, ["--watch draws nothing: leave out --png and --html"])
        return Exit.USAGE
    return ask(PROGRAM, options, lambda admin: _inspect(admin, options))


async def _inspect(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Exit":
    if options.watch is not None:
        return await _watch(admin, options)
    from sharecons.cli import inspect_text
    from sharecons.cli.exit_codes import complain, exit_of

    seen = await _look(admin, options, None)
    _draw(seen, options)
    inspect_text.write(seen, as_json=options.json, offsets=options.offsets)
    complain(PROGRAM, (*seen.partitions.errors.values(), *seen.unread))
    code = exit_of(*seen.partitions.errors.values())
    return max(code, _checked(seen)) if options.check else code


def _checked(seen: "GroupInspection") -> "Exit":
    from sharecons.cli.exit_codes import Exit
    from sharecons.inspection import Severity

    stalled = any(
        found[0].severity is Severity.STALLED for found in seen.findings.values()
    )
    return Exit.REFUSED if stalled else Exit.DONE


def _draw(seen: "GroupInspection", options: argparse.Namespace) -> None:
    from sharecons.errors import ConfigurationError

    try:
        if options.html is not None:
            from sharecons.inspection.html import page

            options.html.write_text(page(seen), encoding="utf-8")
        if options.png is not None:
            from sharecons.inspection.png import draw

            draw(seen, options.png)
    except OSError as error:
        raise ConfigurationError(f"cannot write the picture: {error}") from error


async def _watch(admin: "ShareGroupAdmin", options: argparse.Namespace) -> "Exit":
    from sharecons.cli import inspect_watch

    async def look(before: "GroupInspection | None") -> "GroupInspection":
        return await _look(admin, options, before)

    return await inspect_watch.watch(look, options.watch, as_json=options.json)


async def _look(
    admin: "ShareGroupAdmin",
    options: argparse.Namespace,
    before: "GroupInspection | None",
) -> "GroupInspection":
    from sharecons.inspection import Source, inspect_group

    topics, partitions = _chosen(options.topic or ())
    return await inspect_group(
        admin,
        options.name,
        topics=topics,
        partitions=partitions or None,
        source=Source(options.source),
        before=before,
    )


def _chosen(texts: Sequence[str]) -> "tuple[list[str], list[TopicPartition]]":
    from sharecons._record import TopicPartition
    from sharecons.errors import ConfigurationError

    topics: list[str] = []
    partitions: list[TopicPartition] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            topics.append(topic)
            continue
        for number in numbers.split(","):
            if not number.strip().isdecimal():
                raise ConfigurationError(
                    f"--topic {text!r} is neither TOPIC nor TOPIC:0,1,2"
                )
            partitions.append(TopicPartition(topic, int(number)))
    if topics and partitions:
        raise ConfigurationError(
            "--topic names partitions of each topic, or of none of them"
        )
    return topics, partitions


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no time from 0.1 to 3600 s")
    return seconds
