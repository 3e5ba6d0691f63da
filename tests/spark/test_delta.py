"""Delta tables: each batch once through kills, rows merged by key, and requeueing."""

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.pipeline.__main__ import main
from tests.spark.delta import HAS_DELTA, needs_delta
from tests.spark.pipeline_program import DELTA_POINTS
from tests.spark.pipeline_tables import (
    check_each_once,
    produce,
    read,
    run_until_killed,
)

pytestmark = [
    pytest.mark.slow("a pipeline is killed and runs again", seconds=120),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

SCHEMA = "id BIGINT NOT NULL, amount DOUBLE, country STRING"
RECORDS = 40


@pytest.fixture
def arguments(share_broker, tmp_path):
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config("lake", {"share.auto.offset.reset": "earliest"})
    return [
        *["--bootstrap-servers", share_broker.bootstrap_servers],
        *["--topic", "orders", "--group", "lake", "--schema", SCHEMA],
        *["--into", str(tmp_path / "lake"), "--sink", "delta"],
    ]


def record(number):
    value = {"id": number, "amount": number / 2}
    if number % 2:
        value["country"] = "NO"
    return value


@needs_delta
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(
            point, marks=() if point == "first table" else pytest.mark.thorough
        )
        for point in DELTA_POINTS
    ],
)
def test_killed_batch_is_in_delta_tables_once(
    spark, share_broker, arguments, tmp_path, point
):
    produce(share_broker, map(record, range(RECORDS)))
    run_until_killed(arguments, f"{point}:1", tmp_path)

    # With this schema, half of the records would be in quarantine.
    assert main([*arguments, "--schema", f"{SCHEMA} NOT NULL"]) == 0

    lake = tmp_path / "lake"
    found = check_each_once(spark, lake, RECORDS, sink="delta")
    assert found == (RECORDS // 2 if point == "staged" else 0)
    (run,) = read(spark, lake / "runs", "delta").collect()
    assert (run["rows"], run["quarantined"]) == (RECORDS - found, found)


@needs_delta
@pytest.mark.parametrize(
    "point", [pytest.param("staged", marks=pytest.mark.thorough), "first table"]
)
def test_merged_table_has_the_latest_row_of_each_key(
    spark, share_broker, arguments, tmp_path, point
):
    arguments += ["--merge-by", "id"]
    share_broker.produce(
        "orders", [f'{{"id": {n % 5}, "amount": {n}}}' for n in range(20)]
    )
    run_until_killed(arguments, f"{point}:1", tmp_path)
    assert main(arguments) == 0
    share_broker.produce("orders", ['{"id": 7}', '{"id": 0, "amount": 100}'])
    more = f"{SCHEMA}, name STRING"
    assert main([*arguments, "--schema", more]) == 0

    rows = read(spark, tmp_path / "lake" / "rows", "delta").collect()
    assert {row["id"]: row["amount"] for row in rows} == {
        **{n: 15.0 + n for n in range(1, 5)},
        0: 100.0,
        7: None,
    }
    assert len(rows) == 6


@needs_delta
def test_requeued_records_move_from_quarantine_to_rows(
    spark, share_broker, arguments, tmp_path, capsys
):
    produce(share_broker, map(record, range(RECORDS)))
    share_broker.produce("orders", ["not JSON", "nor this"], partition=0)
    assert main([*arguments, "--schema", f"{SCHEMA} NOT NULL"]) == 0
    into = arguments[-4:-2]
    requeue = ["requeue", *into, "--sink", "delta", "--schema", SCHEMA]
    run_until_killed(requeue, "first table:1", tmp_path)

    assert main(requeue) == 0

    assert "0 records are rows now, 2 stay" in capsys.readouterr().out
    lake = tmp_path / "lake"
    assert read(spark, lake / "rows", "delta").count() == RECORDS
    assert read(spark, lake / "quarantine", "delta").count() == 2
    assert read(spark, lake / "runs", "delta").count() == 2


@pytest.mark.skipif(HAS_DELTA, reason="Spark has Delta")
def test_delta_sink_without_delta_is_one_error(spark, arguments, capsys):
    assert main(arguments) == 2

    error = capsys.readouterr().err
    assert "has no Delta; start the pipeline with --packages" in error
    assert len(error.splitlines()) == 1
