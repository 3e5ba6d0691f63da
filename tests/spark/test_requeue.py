"""Records in quarantine that are decoded again after a correction."""

import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.pipeline.__main__ import main
from tests.spark.pipeline_tables import (
    check_each_once,
    produce,
    read,
    run_until_killed,
)

pytestmark = [
    pytest.mark.slow("Spark runs the pipeline several times", seconds=120),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore"),
]

WRONG = "id BIGINT NOT NULL, amount DOUBLE NOT NULL"
CORRECT = "id BIGINT NOT NULL, amount DOUBLE"
RECORDS = 40


@pytest.fixture
def lake(spark, share_broker, tmp_path):
    """A directory with 20 rows, and 20 records in quarantine: 10 lack an id."""
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config("lake", {"share.auto.offset.reset": "earliest"})
    values = [{"id": n, "amount": n / 2} for n in range(RECORDS)]
    for value in values[:20]:
        del value["amount"]
    for value in values[:10]:
        del value["id"]
    produce(share_broker, values)
    servers = ["--bootstrap-servers", share_broker.bootstrap_servers]
    topic = ["--topic", "orders", "--group", "lake"]
    into = ["--into", str(tmp_path / "lake")]
    assert main([*servers, *topic, *into, "--schema", WRONG]) == 0
    assert check_each_once(spark, tmp_path / "lake", RECORDS) == 20
    return tmp_path / "lake"


def requeue(lake, schema=CORRECT):
    return ["requeue", "--into", str(lake), "--schema", schema]


def test_requeued_records_become_rows_if_they_are_valid_now(spark, lake, capsys):
    assert main(requeue(lake, WRONG)) == 0
    assert main(requeue(lake)) == 0
    assert main(requeue(lake)) == 0

    assert capsys.readouterr().out.splitlines()[-3:] == [
        "0 records are rows now, 20 stay in quarantine",
        "10 records are rows now, 10 stay in quarantine",
        "0 records are rows now, 10 stay in quarantine",
    ]
    assert check_each_once(spark, lake, RECORDS) == 10
    quarantine = read(spark, lake / "quarantine").collect()
    assert {row["reason"] for row in quarantine} == {"id: missing"}
    runs = read(spark, lake / "runs").orderBy("batch").collect()
    assert [(run["rows"], run["quarantined"]) for run in runs] == [(20, 20), (10, 10)]


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("staged", marks=pytest.mark.thorough),
        pytest.param("committed", marks=pytest.mark.thorough),
        "first file visible",
        pytest.param("files visible", marks=pytest.mark.thorough),
        pytest.param("published", marks=pytest.mark.thorough),
    ],
)
def test_killed_requeue_is_finished_by_the_next_one(spark, lake, tmp_path, point):
    run_until_killed(requeue(lake), f"{point}:1", tmp_path)

    assert main(requeue(lake)) == 0

    assert check_each_once(spark, lake, RECORDS) == 10
    assert read(spark, lake / "runs").count() == 2
