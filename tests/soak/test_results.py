"""The verdict and the table of a run."""

import asyncio
import dataclasses

from tests.chaos.ledger import Verdict
from tests.soak.minutes import Latency, Minute
from tests.soak.report import table
from tests.soak.results import (
    GroupResult,
    RunOptions,
    RunResult,
    new_group_result,
    series,
)
from tests.soak.sample import Sample, read_samples, take_sample, write_sample


def sample(minute: int, **other: float) -> Sample:
    given = {"rss": 80.0, "objects": 90_000 + 10 * minute, "types": {"dict": minute}}
    fixed = {"garbage": 5, "descriptors": 12, "tasks": 9, "threads": 3}
    return Sample(seconds=1000.0 + 60 * minute, **{**given, **fixed, **other})  # type: ignore[arg-type]


def group(minutes: int, verdict: Verdict | None = None) -> GroupResult:
    samples = [sample(minute) for minute in range(minutes)]
    rates = [
        Minute(60.0 * n, 100.0, Latency(8.0, 20.0), None) for n in range(1, minutes)
    ]
    lines = [(1000.0 + 60 * n, n // 10) for n in range(minutes)]
    end = 1000.0 + 60 * minutes
    measured = series(samples, rates, lines, begin=1000.0, end=end)
    return new_group_result(
        "worker",
        verdict or Verdict(produced=6),
        [],
        0,
        measured,
        samples,
        seconds=end - 1000.0,
        begin=1000.0,
    )


def result(*groups: GroupResult, minutes: int) -> RunResult:
    kills = [("leader", 600.0)]
    return RunResult(RunOptions(hours=8), 60.0 * minutes, kills, [], groups)


def test_growth_of_objects_fails_a_long_run_and_names_types() -> None:
    run = result(group(480), minutes=480)

    assert not run.is_good
    lines = [*table(run)]
    assert "FAILED: 8.00 h; killed: leader at 600 s" == lines[0]
    (objects,) = (line for line in lines if line.strip().startswith("objects"))
    assert "+600.00" in objects
    assert objects.endswith("EXCEEDED")
    assert "  +419 dict" in lines


def test_slopes_of_a_short_run_do_not_decide() -> None:
    run = result(group(30), minutes=30)

    assert run.is_good
    assert "mean little" in [*table(run)][1]


def test_lost_record_fails_a_short_run() -> None:
    lost = group(30, Verdict(produced=6, lost=[4]))

    assert not result(lost, minutes=30).is_good


def test_dead_process_fails_a_short_run() -> None:
    died = dataclasses.replace(group(30), problems=["journal-0-0: 1"])

    assert not result(died, minutes=30).is_good


def test_sample_of_this_process_is_read_as_it_was_written(tmp_path) -> None:
    path = tmp_path / "samples"
    made = sample(3)

    write_sample(made, path)

    assert [made] == [*read_samples(path)]


async def _take() -> Sample:
    return take_sample()


def test_sample_counts_the_tasks_and_objects_of_the_process() -> None:
    taken = asyncio.run(_take())

    assert 1 == taken.tasks
    assert taken.threads >= 1
    assert taken.descriptors >= 3
    assert taken.objects > taken.types["builtins.dict"] > 20
    assert taken.rss > 5.0
