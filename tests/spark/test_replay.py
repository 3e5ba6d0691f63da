"""A killed pipeline that runs again with other settings: each record is there once."""

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.pipeline.__main__ import main
from tests.spark.pipeline_program import POINTS
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

SCHEMA = "id BIGINT NOT NULL, at TIMESTAMP, country STRING"
RECORDS = 40

# Options of the second run, and the number of records that it quarantines.
CHANGES = {
    "time zone": ([], 0),
    "schema": (["--schema", f"{SCHEMA}, amount DOUBLE"], RECORDS // 4),
    "NOT NULL": (["--schema", f"{SCHEMA} NOT NULL"], RECORDS // 2),
    "partition-by": (["--partition-by", "country"], 0),
    "prefix": (["--prefix", "k_"], 0),
}
FIXED = ("partition-by", "prefix")
"""Settings that later runs cannot change."""

QUICK = {("staged", "schema"), ("files visible", "partition-by")}


def matrix():
    for point in POINTS:
        for change in CHANGES:
            marks = () if (point, change) in QUICK else pytest.mark.thorough
            yield pytest.param(point, change, marks=marks, id=f"{point}-{change}")


@pytest.fixture
def arguments(share_broker, tmp_path):
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config("lake", {"share.auto.offset.reset": "earliest"})
    return [
        *["--bootstrap-servers", share_broker.bootstrap_servers],
        *["--topic", "orders", "--group", "lake"],
        *["--into", str(tmp_path / "lake"), "--schema", SCHEMA],
    ]


def record(number):
    value = {"id": number, "at": f"2026-07-31T{number % 24:02}:30:00"}
    if number % 2:
        value["country"] = "NO"
    if number % 4 == 3:
        value["amount"] = "a string"
    return value


@pytest.mark.parametrize(("point", "change"), list(matrix()))
def test_replay_with_other_settings_has_each_record_once(
    spark, share_broker, arguments, tmp_path, point, change
):
    produce(share_broker, map(record, range(RECORDS)))
    zone = "Europe/Oslo" if change == "time zone" else "UTC"
    run_until_killed(arguments, f"{point}:1", tmp_path, zone)
    changed, quarantined = CHANGES[change]
    is_new = point == "staged"

    code = main([*arguments, *changed])

    if change in FIXED and not is_new:
        assert code == 2
        code = main(arguments)
    assert code == 0
    prefix = "k_" if change == "prefix" and is_new else "_"
    lake = tmp_path / "lake"
    found = check_each_once(spark, lake, RECORDS, prefix)
    assert found == (quarantined if is_new else 0)
    (run,) = read(spark, lake / "runs").collect()
    assert (run["rows"], run["quarantined"]) == (RECORDS - found, found)
    if change == "time zone":
        rows = read(spark, lake / "rows").where("id = 0")
        (row,) = rows.selectExpr("string(at) AS at").collect()
        assert row["at"] == f"2026-07-{'31 00' if is_new else '30 22'}:30:00"
