"""Tables and files of runs."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from tests.chaos.histories import History
from tests.chaos.ledger import Verdict
from tests.chaos.run import ClientResult, RunResult

__all__ = ["save", "summary", "table"]


def table(result: RunResult) -> Iterator[str]:
    """Yield the lines about one run."""
    options, history = result.options, result.options.history
    kinds = Counter(fault.kind for fault, _, _ in result.faults)
    yield (
        f"seed {options.seed} ({_description(history)}"
        f"{', TLS' if options.has_tls else ''}): "
        f"{'ok' if result.is_good else 'FAILED'}; "
        + ", ".join(f"{count} x {kind}" for kind, count in kinds.most_common())
    )
    for client in result.clients:
        yield f"  {_line(client)}"
        yield from (f"    broken: {text}" for text in client.verdict.broken)
        yield from (f"    {text}" for text in client.verdict.notes)
    for error in result.errors:
        yield f"  fault not carried out: {error}"


def _description(history: History) -> str:
    handler = f": {history.handler}" if history.handler != history.kind else ""
    return (
        f"{history.kind}{handler}, {'kept' if history.keeps_ids else 'new'} ids"
        f"{', retry topic' if history.has_retry_topic else ''}"
        f"{'' if history.has_dead_letters else ', no dead letters'}"
    )


def _line(client: ClientResult) -> str:
    verdict = client.verdict
    duplicates = ", ".join(f"{n} {why}" for why, n in verdict.duplicates.items())
    recovery = median(verdict.recoveries) if verdict.recoveries else 0.0
    return (
        f"{client.name:10} {verdict.produced} produced, {len(verdict.lost)} lost"
        f" {verdict.lost[:5] or ''}, {verdict.written_off} written off,"
        f" {verdict.dead} dead letters,"
        f" duplicates: {duplicates or 0}, unexplained {len(verdict.unexplained)}"
        f" {verdict.unexplained[:5] or ''}, silence {verdict.silence:.1f} s, of a"
        f" partition {verdict.partition_silence:.1f} s, longest delay"
        f" {verdict.delay:.1f} s, median recovery {recovery:.1f} s, memory"
        f" +{client.memory:.0f} MiB, {client.lines:.0f} log lines/min"
        + "".join(f"; {problem}" for problem in client.problems)
    )


def save(result: RunResult, path: Path) -> None:
    path.write_text(json.dumps(asdict(result), indent=1, default=str))


def summary(results: Sequence[RunResult]) -> Iterator[str]:
    """Yield the medians of all runs, by client."""
    names = {client.name for result in results for client in result.clients}
    for name in sorted(names, reverse=True):
        for keeps in (False, True):
            found = [
                client.verdict
                for result in results
                if result.options.history.keeps_ids is keeps
                for client in result.clients
                if client.name == name
            ]
            if found:
                yield _medians(name, keeps, found)


def _medians(name: str, keeps: bool, verdicts: Sequence[Verdict]) -> str:
    recoveries = [each for v in verdicts for each in v.recoveries]
    return (
        f"{name:10} {'kept' if keeps else 'new '} ids, {len(verdicts)} runs: "
        f"{sum(len(v.lost) for v in verdicts)} lost, "
        f"{sum(sum(v.duplicates.values()) for v in verdicts)} duplicates, "
        f"{sum(len(v.unexplained) for v in verdicts)} unexplained; medians: silence "
        f"{median(v.silence for v in verdicts):.1f} s, of a partition "
        f"{median(v.partition_silence for v in verdicts):.1f} s, delay "
        f"{median(v.delay for v in verdicts):.1f} s, recovery "
        f"{median(recoveries) if recoveries else 0.0:.1f} s"
    )
