"""The benchmark's options, and what its report computes from results."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.bench.clients.common import Limit, Meter, Tally
from tests.bench.large import CASES, DEFAULT_BATCH, LARGE_BATCH, Case, case_records
from tests.bench.memory import memory_bound, memory_settings
from tests.bench.options import parse_options
from tests.bench.record_values import block_size, json_value
from tests.bench.report.document import document
from tests.bench.report.goals import goal_table
from tests.bench.report.summary import failure_reason, select
from tests.bench.roster import SHARECONS_MAX_BYTES
from tests.bench.segments import count_batches

CASE = Case(10240, "none", DEFAULT_BATCH)
MIB = 1 << 20


def measurement(client: str, **fields: Any) -> dict[str, Any]:
    """Return a measurement of 1,000 records in one second."""
    return {
        "session": 0,
        "what": "large",
        "client": client,
        "round": 0,
        "records": 1000,
        "wanted": 1000,
        "seconds": 1.0,
        "cpu": 1.0,
        "base": 0,
        "peak": MIB,
        "unacknowledged": 0,
        "stored": 10312,
        "per_batch": 1.0,
        **CASE._asdict(),
        **fields,
    }


def consumers(client: str, **fields: Any) -> dict[str, Any]:
    found = measurement(client, what="consumers", consumers=10, **fields)
    del found["codec"], found["batch_size"]
    return found


def memory(client: str, **fields: Any) -> dict[str, Any]:
    settings = memory_settings(500)
    found = measurement(client, what="memory", pause=0.01, pause_every=1, **settings)
    return {**found, "stored": 10240, **fields}


def verdicts(*measurements: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the result of each goal by its name."""
    rows = [cells(line) for line in goal_table(measurements) if line.startswith("|")]
    return {row[0]: row[3] for row in rows[2:]}


def page(*measurements: Mapping[str, Any], **settings: Any) -> str:
    settings = {"rounds": 1, **settings}
    session = {"begun": "2026-11-28T01:00", "machine": {}, "settings": settings}
    return document({"sessions": [session], "measurements": measurements}, [])


# Options.


def test_options_standard_scenario_has_no_large_records() -> None:
    options = parse_options([])

    assert "large" not in options.what
    assert "throughput" in options.what
    assert options.consumer_sizes == [100]


def test_options_large_scenario_has_six_rounds_of_its_measurements() -> None:
    options = parse_options(["--scenario", "large"])

    assert options.what == ["large", "consumers", "memory"]
    assert options.rounds == 6
    assert options.large_cases == list(CASES)
    assert options.consumer_counts == [10, 100]


def test_options_quick_large_scenario_has_one_round_of_all_clients() -> None:
    options = parse_options(["--scenario", "large", "--quick"])

    assert options.rounds == 1
    assert options.clients is None


def test_options_what_selects_from_the_scenario() -> None:
    assert parse_options(["--scenario", "large", "--what", "memory"]).what == ["memory"]


def test_sharecons_max_bytes_is_its_default() -> None:
    assert SHARECONS_MAX_BYTES == memory_settings(500)["max_bytes"]


def test_options_case_without_batch_size_is_rejected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse_options(["--large-cases", "10240:lz4"])

    assert "--large-cases" in capsys.readouterr().err


def test_options_cases_are_parsed() -> None:
    options = parse_options(["--large-cases", "10240:lz4:16384, 1024:none:1048576"])

    assert options.large_cases == [
        Case(10240, "lz4", DEFAULT_BATCH),
        Case(1024, "none", LARGE_BATCH),
    ]


# Topics.


def test_cases_have_every_size_and_codec_in_large_batches() -> None:
    large = {(case.size, case.codec) for case in CASES if case.batch_size > 1e6}

    assert large == {
        (size, codec)
        for size in (1024, 10240, 102400)
        for codec in ("none", "lz4", "zstd")
    }


def test_case_records_follow_the_size() -> None:
    assert case_records(Case(10240, "none", LARGE_BATCH), 1_024_000) == 100
    assert case_records(Case(102400, "none", LARGE_BATCH), 1_024_000) == 10
    assert case_records(Case(102400, "none", LARGE_BATCH), 1) == 1


@pytest.mark.parametrize(
    ("size", "expected"), [(100, 200), (10240, 200), (102400, 39), (8_000_000, 1)]
)
def test_block_size_of_large_values_is_small(size: int, expected: int) -> None:
    assert block_size(size) == expected


def test_json_value_has_exactly_its_size() -> None:
    assert len(json_value(random.Random(1), 102400)) == 102400


def test_count_batches_follows_the_lengths(tmp_path: Path) -> None:
    def batch(length: int) -> bytes:
        return bytes(8) + length.to_bytes(4, "big") + bytes(length)

    segment = tmp_path / "0.log"
    segment.write_bytes(batch(61) + batch(10240) + batch(70))

    assert count_batches(segment) == 3


# Measuring several consumers.


def test_meter_restarted_counts_only_the_records_after_it() -> None:
    meter, tally = Meter(), Tally(10)
    meter.on_first_record()
    before = meter.report(tally)
    meter.restart(4, 400)
    tally.add(10, 1000)

    report = meter.report(tally)

    assert (report["records"], report["bytes"], report["skipped"]) == (6, 600, 4)
    assert before["skipped"] == 0
    assert report["first"] == before["first"]


def test_meter_without_a_record_reports_no_time() -> None:
    report = Meter().report(Tally(10))

    assert (report["seconds"], report["first"]) == (0.0, None)


def test_limit_restarts_the_meter_and_then_ends_once() -> None:
    meter, tally, ended = Meter(), Tally(100), list[str]()
    limit = Limit(100, meter, lambda: ended.append("end"))

    assert limit.count == 20
    limit.reached(25, 2500)
    tally.add(25, 2500)
    assert (limit.count, ended) == (100, [])
    assert meter.report(tally)["skipped"] == 25
    limit.reached(100, 10_000)

    assert ended == ["end"]
    assert limit.count > 1e9


def test_failure_reason_counts_records_before_the_measurement() -> None:
    complete = consumers("sharecons", records=900, skipped=100)
    partial = consumers("sharecons", records=900, skipped=99)

    assert failure_reason(complete) is None
    assert failure_reason(partial) == "read 999 of 1,000 records"


def test_select_consumers_without_a_size_have_100_bytes() -> None:
    earlier = consumers("sharecons")
    del earlier["size"]

    assert select([earlier], "consumers", size=100) == [earlier]
    assert select([earlier], "consumers", size=10240) == []


# Goals.


@pytest.mark.parametrize(
    ("cpu", "crcs", "expected"),
    [(1.0, "reached", "reached"), (1.1, "**not reached**", "reached")],
)
def test_goals_large_records_are_beside_both_settings_of_confluent(
    cpu: float, crcs: str, expected: str
) -> None:
    found = verdicts(
        measurement("sharecons", cpu=cpu),
        measurement("confluent"),
        measurement("confluent-crcs"),
    )

    scope = "async for, 10 KiB, uncompressed, batches of 16 KiB"
    assert found == {
        f"{scope}: records/s, relative to confluent": "reached",
        f"{scope}: CPU per record, relative to confluent": expected,
        f"{scope}: CPU per record, relative to confluent with check.crcs=true": crcs,
    }


def test_goals_compare_within_a_case_only() -> None:
    other = Case(10240, "none", LARGE_BATCH)._asdict()

    assert verdicts(measurement("sharecons"), measurement("confluent", **other)) == {}


def test_goals_compressed_records_have_a_bound_of_their_own() -> None:
    labels = Case(10240, "zstd", LARGE_BATCH)._asdict()
    found = verdicts(
        measurement("sharecons", cpu=1.1, **labels), measurement("confluent", **labels)
    )

    scope = "async for, 10 KiB, zstd, batches of 1 MiB"
    assert found[f"{scope}: CPU per record, relative to confluent"] == "reached"


def test_goals_ten_consumers_are_beside_confluent_and_franz() -> None:
    found = verdicts(
        consumers("sharecons", seconds=1.05),
        consumers("confluent"),
        consumers("franz"),
    )

    scope = "async for, 10 consumers, 10 KiB"
    assert found == {
        f"{scope}: records/s, relative to confluent": "**not reached**",
        f"{scope}: records/s, relative to franz-go": "reached",
        f"{scope}: CPU per record, relative to confluent": "reached",
    }


def test_goals_memory_one_measurement_above_the_bound_is_not_reached() -> None:
    below, above = memory("sharecons"), memory("sharecons", peak=28 * MIB)
    name = "sharecons, large records: memory, relative to its bound"

    assert verdicts(below, below)[name] == "reached"
    assert verdicts(below, below, above)[name] == "**not reached**"


def test_memory_bound_of_a_slow_handler_is_three_responses() -> None:
    assert memory_bound(memory("sharecons")) == 3 * 9 * MIB


def test_memory_bound_of_a_handler_that_stops_has_the_records_ahead() -> None:
    slow = memory("sharecons")
    stopping = memory("sharecons", pause_every=2000)

    assert memory_bound(stopping) - memory_bound(slow) == 1000 * 10240


def test_memory_bound_of_a_worker_has_the_records_that_it_holds() -> None:
    difference = memory_bound(memory("sharecons-worker")) - memory_bound(
        memory("sharecons")
    )

    assert difference == 64 * MIB


# The page.


def test_page_large_records_have_ratios_to_each_baseline() -> None:
    text = page(
        measurement("sharecons", cpu=3.0),
        measurement("confluent", cpu=2.0),
        measurement("confluent-crcs", cpu=2.5),
        measurement("raw-8mib", cpu=1.0),
    )

    (row,) = [line for line in text.splitlines() if line.startswith("| sharecons: a")]
    assert "### 10 KiB, uncompressed, batches of 16 KiB" in text
    assert cells(row)[4:7] == ["1.50", "1.20", "3.00"]


def test_page_names_the_command_of_its_scenario() -> None:
    assert "`tox -e bench`" in page(measurement("sharecons"))
    assert "`tox -e bench -- --scenario large`" in page(
        measurement("sharecons"), scenario="large"
    )


def test_page_settings_show_cases_as_on_the_command_line() -> None:
    text = page(measurement("sharecons"), large_cases=[[10240, "lz4", 16384]])

    assert "large_cases 10240:lz4:16384" in text


def test_page_consumers_have_a_table_per_size() -> None:
    text = page(consumers("sharecons", size=100), consumers("sharecons"))

    assert "### Consumers: 100 bytes, uncompressed" in text
    assert "### Consumers: 10 KiB, uncompressed" in text


def test_page_memory_shows_the_bound_beside_the_figure() -> None:
    text = page(memory("sharecons"), memory("sharecons-worker", pause_every=2000))

    assert "10 ms at each record" in text
    assert "27.0" in text


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]
