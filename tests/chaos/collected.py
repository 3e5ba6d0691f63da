"""A table of many runs, in Markdown, from the files that they have saved.

python -m tests.chaos.collected DIRECTORY
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

__all__ = ["collected", "read_results"]

ENDING: Final = ("crash", "spark")
"""Kinds of runs in which records end processes of sharecons, and none of its peers."""

Result = Mapping[str, Any]
"""A `RunResult`, as `report.save` has written it."""


def read_results(directory: Path) -> list[Result]:
    """Return the results of all runs, in the order of their seeds."""
    found = [json.loads(path.read_text()) for path in directory.rglob("result.json")]
    return sorted(found, key=lambda each: each["options"]["seed"])


def collected(results: Sequence[Result]) -> Iterator[str]:
    """Yield a row for each run, and medians of the runs that can be compared."""
    yield "| seed | run | faults | records | lost | repeated | silence | recovery |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from map(_row, results)
    equal = [
        each
        for each in results
        if _peers(each) and each["options"]["history"]["kind"] not in ENDING
    ]
    yield ""
    yield (
        "| medians, s | runs | silence | alone | silence of a partition | recovery |"
    )
    yield "|---|---|---|---|---|---|"
    groups = [
        (title, [x for x in equal if x["options"]["history"]["keeps_ids"] is keeps])
        for title, keeps in (("new ids", False), ("kept ids", True))
    ]
    for title, some in groups:
        if some:
            yield from _medians(some, title)
    for title, some in groups:
        if some:
            yield ""
            yield from _recoveries(some, title)


def _recoveries(results: Sequence[Result], title: str) -> Iterator[str]:
    """Yield the median recovery from each kind of fault, by client."""
    found: defaultdict[str, list[Sequence[float]]] = defaultdict(list)
    for result in results:
        seconds = [client["verdict"]["recoveries"] for client in result["clients"]]
        for fault, each in zip(
            result["faults"], zip(*seconds, strict=True), strict=True
        ):
            found[fault[0]["kind"]].append(each)
    names = [client["name"] for client in results[0]["clients"]]
    yield f"| recovery from, s, {title} | faults | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for kind, recoveries in sorted(found.items()):
        cells = " | ".join(
            f"{median(values):.1f}" for values in zip(*recoveries, strict=True)
        )
        yield f"| {kind} | {len(recoveries)} | {cells} |"


def _row(result: Result) -> str:
    own = result["clients"][0]
    verdict = own["verdict"]
    kinds = Counter(fault["kind"] for fault, *_ in result["faults"])
    faults = ", ".join(
        f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items()
    )
    twice = ", ".join(f"{n} {why}" for why, n in verdict["duplicates"].items())
    bad = [
        *(
            [f"{len(verdict['unexplained'])} unexplained"]
            * bool(verdict["unexplained"])
        ),
        *verdict["broken"],
        *own["problems"],
        *(error.splitlines()[0] for error in result["errors"]),
    ]
    cells = (
        result["options"]["seed"],
        _history(result),
        faults,
        f"{verdict['produced']:,}",
        " / ".join(str(len(each["verdict"]["lost"])) for each in result["clients"]),
        "; ".join([twice or "0", *(f"**{each}**" for each in bad)]),
        _figures(result, lambda client: client["verdict"]["silence"]),
        _figures(result, lambda client: _middle(client["verdict"]["recoveries"])),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _history(result: Result) -> str:
    history = result["options"]["history"]
    kind, handler = history["kind"], history["handler"]
    parts = [kind if kind == handler else f"{kind} ({handler})"]
    parts.append("kept ids" if history["keeps_ids"] else "new ids")
    parts += ["retry topic"] * history["has_retry_topic"]
    parts += ["no dead letters"] * (not history["has_dead_letters"])
    parts += ["TLS"] * bool(result["options"]["is_secure"] and not _peers(result))
    return ", ".join(parts)


def _peers(result: Result) -> Sequence[Any]:
    peers: Sequence[Any] = result["clients"][1:]
    return peers


def _figures(result: Result, figure: Any) -> str:
    return " / ".join(f"{figure(client):.1f}" for client in result["clients"])


def _alone(result: Result, client: Mapping[str, Any]) -> float:
    """Return how long others handled records in the longest silence of a client."""
    silences = client["verdict"]["silences"]
    longest = max(silences, key=lambda each: each[1] - each[0], default=(0.0, 0.0))
    silent = [longest]
    for other in result["clients"]:
        if other is not client:
            silent = [*_common(silent, other["verdict"]["silences"])]
    return longest[1] - longest[0] - sum(last - first for first, last in silent)


def _common(
    some: Sequence[Sequence[float]], others: Sequence[Sequence[float]]
) -> Iterator[Sequence[float]]:
    """Yield the times that are in one of both."""
    for first, last in some:
        for begin, end in others:
            if max(first, begin) < min(last, end):
                yield max(first, begin), min(last, end)


def _middle(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def _medians(results: Sequence[Result], title: str) -> Iterator[str]:
    names = [client["name"] for client in results[0]["clients"]]
    for name in names:
        runs = [
            (result, client)
            for result in results
            for client in result["clients"]
            if client["name"] == name
        ]
        verdicts = [client["verdict"] for _, client in runs]
        recoveries = [each for verdict in verdicts for each in verdict["recoveries"]]
        figures = (
            median(each["silence"] for each in verdicts),
            median(_alone(*run) for run in runs),
            median(each["partition_silence"] for each in verdicts),
            _middle(recoveries),
        )
        cells = " | ".join(f"{figure:.1f}" for figure in figures)
        yield f"| {name}, {title} | {len(runs)} | {cells} |"


if __name__ == "__main__":
    lines = collected(read_results(Path(sys.argv[1])))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
