"""The table of many runs."""

from dataclasses import asdict
from typing import Any

from tests.chaos.collected import collected
from tests.chaos.histories import history_of
from tests.chaos.ledger import Verdict
from tests.chaos.plan import Fault
from tests.chaos.run import ClientResult, RunOptions, RunResult


def result(seed: int, silence: float, **verdict: Any) -> dict[str, Any]:
    clients = [
        ClientResult(
            name,
            Verdict(
                silence=seconds,
                silences=[(10.0, 10.0 + seconds), (60.0, 61.0)],
                recoveries=[seconds],
                **verdict,
            ),
            problems=[],
            memory=0.0,
            lines=0.0,
        )
        for name, seconds in (("sharecons", silence), ("confluent", 2 * silence))
    ]
    options = RunOptions(seed=seed, seconds=180.0, history=history_of(seed))
    fault = Fault(10.0, "cut", "leader", 1, 0.0)
    return asdict(RunResult(options, [(fault, 1.0, 2.0)], clients, []))


def test_each_run_has_a_row_and_all_have_medians() -> None:
    loops = [result(0, 3.0, produced=1000), result(8, 5.0, unexplained=[7, 8])]
    keeps = "kept ids" if history_of(0).keeps_ids else "new ids"
    assert history_of(0).keeps_ids == history_of(8).keeps_ids

    lines = list(collected(loops))

    assert f"| 0 | loop, {keeps}" in lines[2]
    assert lines[2].endswith("| cut | 1,000 | 0 / 0 | 0 | 3.0 / 6.0 | 3.0 / 6.0 |")
    assert "| 0; **2 unexplained** |" in lines[3]
    assert "| cut | 2 | 4.0 | 8.0 |" in lines
    assert f"| sharecons, {keeps} | 2 | 4.0 | 0.0 | 0.0 | 4.0 |" in lines
    assert f"| confluent, {keeps} | 2 | 8.0 | 4.0 | 0.0 | 8.0 |" in lines
