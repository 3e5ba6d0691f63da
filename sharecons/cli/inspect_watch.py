"""`sharecons groups inspect --watch`: a live screen, or lines without a terminal."""

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime

import anyio

from sharecons.cli import inspect_json, output
from sharecons.cli.columns import cell_text
from sharecons.cli.exit_codes import ExitCode, write_errors
from sharecons.errors import ConnectionFailedError, RequestTimedOutError
from sharecons.inspection import GroupInspection
from sharecons.inspection.partition_rows import columns_of, numbers_of, oldest_of
from sharecons.inspection.picture import GroupPicture, remarks_of

__all__ = ["watch"]

PROGRAM = "sharecons groups inspect"

InspectOnce = Callable[[GroupInspection | None], Awaitable[GroupInspection]]


async def watch(
    inspect_once: InspectOnce, interval: float, *, as_json: bool
) -> ExitCode:
    """Inspect every `interval` seconds until Ctrl-C or until the group is deleted.

    After the first inspection, connection errors and timeouts do not end the loop.
    """
    if as_json or not sys.stdout.isatty():
        show: Callable[[GroupInspection], None] = (
            _write_json if as_json else _write_lines
        )
        return await _repeat(inspect_once, interval, show)
    from rich.live import Live

    from sharecons.cli import inspect_text

    console = inspect_text.terminal()
    with Live(
        console=console,
        screen=True,
        auto_refresh=False,
        # Rich's replacement of stdout has no encoding, so bars would be in ASCII.
        redirect_stdout=False,
    ) as live:

        def update(inspection: GroupInspection) -> None:
            picture = _picture(inspection, interval, console.height)
            live.update(picture, refresh=True)

        return await _repeat(inspect_once, interval, update)


async def _repeat(
    inspect_once: InspectOnce, interval: float, show: Callable[[GroupInspection], None]
) -> ExitCode:
    previous: GroupInspection | None = None
    while True:
        try:
            previous = await inspect_once(previous)
        except (ConnectionFailedError, RequestTimedOutError) as error:
            if previous is None:
                raise
            write_errors(PROGRAM, [error])
        else:
            show(previous)
        await anyio.sleep(interval)


def _write_json(group: GroupInspection) -> None:
    for each in inspect_json.objects(group):
        output.write_json({"at": round(group.at, 3), **each})
    output.flush()


def _write_lines(group: GroupInspection) -> None:
    at = _time_of(group)
    columns = columns_of(group)[2:]
    for key, partition in group.partitions.found.items():
        numbers = numbers_of(key, partition)
        cells = [f"{each.name}={cell_text(numbers[each.name])}" for each in columns]
        cells.append(f"oldest={oldest_of(partition, group.at)}")
        output.write_line(f"{at} {key.topic}-{key.partition} {' '.join(cells)}")
    for subject, severity, text in remarks_of(group):
        output.write_line(f"{at} {subject}: {severity.name}: {text}")
    output.flush()


def _picture(group: GroupInspection, interval: float, height: int) -> GroupPicture:
    return GroupPicture(
        group=group,
        title=f"{_time_of(group)}, every {interval:g} s.",
        encoding=output.encoding(),
        height=height,
    )


def _time_of(group: GroupInspection) -> str:
    return datetime.fromtimestamp(group.at).strftime("%H:%M:%S")
