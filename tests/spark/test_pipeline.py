"""The pipeline program: rows, quarantine, statistics, exit codes and signals."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from datetime import date, datetime
from decimal import Decimal

import pyarrow.dataset
import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.backlog import BacklogReader
from sharecons.spark.pipeline.__main__ import main
from sharecons.spark.pipeline.measuring import (
    MAX_REASONS,
    OTHER_REASONS,
    measure_batch,
)
from sharecons.spark.pipeline.session import qualify_location
from sharecons.spark.pipeline.settings import parse_arguments
from sharecons.spark.pipeline.stats import UNKNOWN
from sharecons.spark.store import Store
from sharecons.testing.kafka.ports import free_ports
from tests.spark.spark_session import environment
from tests.waiting import until_true

SCHEMA = "id BIGINT NOT NULL, amount DOUBLE, country STRING"
NEEDED = ["--topic", "orders", "--group", "lake", "--schema", SCHEMA, "--into", "/x"]


# The command line.


def test_required_options_are_sufficient():
    settings = parse_arguments(NEEDED)

    assert settings.topics == ("orders",)
    assert settings.every is None
    assert settings.partition_by == ()
    assert settings.framing is None
    assert settings.path("rows") == "/x/rows"


def test_schema_is_read_from_a_file(tmp_path):
    (tmp_path / "orders.sql").write_text(SCHEMA)
    arguments = [*NEEDED[:4], "--schema", f"@{tmp_path}/orders.sql", "--into", "/x"]

    assert parse_arguments(arguments).schema == SCHEMA


@pytest.mark.parametrize(
    "arguments",
    [
        NEEDED[2:],
        NEEDED[:-2],
        [*NEEDED, "--option", "x"],
        ["--schema", "@/nowhere"],
        [*NEEDED, "--schema-id", "7"],
        [*NEEDED, "--timestamp-unit", "h"],
    ],
)
def test_invalid_command_line_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        parse_arguments(arguments)

    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err


# Whole runs.


@pytest.fixture
def arguments(share_broker, tmp_path):
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config("lake", {"share.auto.offset.reset": "earliest"})
    return [
        *["--bootstrap-servers", share_broker.bootstrap_servers],
        *["--topic", "orders", "--group", "lake", "--schema", SCHEMA],
        *["--into", str(tmp_path / "lake"), "--page", str(tmp_path / "run.html")],
    ]


def read(directory):
    return pyarrow.dataset.dataset(str(directory), partitioning="hive").to_table()


slow = [
    pytest.mark.slow("Spark starts processes"),
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore"),
]


def spark_test(test):
    for mark in slow:
        test = mark(test)
    return test


@spark_test
def test_valid_records_are_rows_and_others_are_quarantined(
    spark, share_broker, arguments, tmp_path, capsys
):
    good = [
        json.dumps({"id": n, "amount": n / 2, "country": "NO" if n % 2 else "SE"})
        for n in range(200)
    ]
    bad = ["not json", '{"amount": 1.0}', '{"id": "seven"}', None]
    share_broker.produce("orders", [*good, *bad], partition=0)

    code = main([*arguments, "--partition-by", "country"])

    assert code == 0
    rows = read(tmp_path / "lake" / "rows")
    assert sorted(rows["id"].to_pylist()) == list(range(200))
    assert set(rows["country"].to_pylist()) == {"NO", "SE"}
    assert set(rows["_topic"].to_pylist()) == {"orders"}
    quarantine = read(tmp_path / "lake" / "quarantine")
    reasons = dict(
        zip(
            quarantine["value"].to_pylist(),
            quarantine["reason"].to_pylist(),
            strict=True,
        )
    )
    assert reasons == {
        b"not json": "not JSON: expecting value",
        b'{"amount": 1.0}': "id: missing",
        b'{"id": "seven"}': "id: a string, expected an integer",
        None: "no value",
    }
    (run,) = read(tmp_path / "lake" / "runs").to_pylist()
    assert (run["rows"], run["quarantined"], run["redelivered"]) == (200, 4, 0)
    assert 0 <= run["latency_p50"] <= run["latency_p99"] < 300
    assert "all       200" in capsys.readouterr().out
    assert dict(run["reasons"]) == dict.fromkeys(reasons.values(), 1)
    page = (tmp_path / "run.html").read_text()
    assert f"<title>orders to {tmp_path}/lake (group lake)</title>" in page
    assert "id: a string, expected an integer</td><td>1</td>" in page
    # Spark does not wait for the end of the source's process.
    backlog = BacklogReader(str(tmp_path / "lake" / "ledger"))
    until_true(lambda: not backlog.read().offsets, what="the query has no backlog")
    assert main(["page", str(tmp_path / "lake")]) == 0
    page = (tmp_path / "lake" / "page.html").read_text()
    assert "id: a string, expected an integer</td><td>1</td>" in page


@spark_test
def test_next_run_adds_new_records(spark, share_broker, arguments, tmp_path):
    share_broker.produce("orders", ['{"id": 1}'])
    main(arguments)
    share_broker.produce("orders", ['{"id": 2}'])
    main(arguments)
    # A new ledger for the same group, as some errors advise.
    for name in ("checkpoint", "ledger"):
        shutil.rmtree(tmp_path / "lake" / name)
    share_broker.produce("orders", ['{"id": 3}'])
    main(arguments)

    rows = read(tmp_path / "lake" / "rows")
    assert sorted(rows["id"].to_pylist()) == [1, 2, 3]
    assert "day" in rows.column_names
    assert len(set(read(tmp_path / "lake" / "runs")["run"].to_pylist())) == 3


@spark_test
def test_framed_avro_is_decoded_and_own_columns_are_prefixed(
    spark, share_broker, arguments, tmp_path
):
    schema = json.dumps(
        {
            "type": "record",
            "name": "Order",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "Batch", "type": ["null", "string"]},
            ],
        }
    )
    framed = bytes.fromhex("00 00000007 02 02 04 4e4f")
    share_broker.produce("orders", [framed, framed[5:], b"\xff\xff", b""])
    more = ["--framing", "confluent", "--prefix", "k_", "--partition-by", "batch"]

    code = main([*arguments, *more, "--format", "avro", "--schema", schema])

    assert code == 0
    (row,) = read(tmp_path / "lake" / "rows").to_pylist()
    assert (row["id"], row["Batch"], row["k_topic"]) == (1, "NO", "orders")
    assert "k_batch" in row
    quarantine = read(tmp_path / "lake" / "quarantine").to_pylist()
    assert {row["reason"] for row in quarantine} == {"no Confluent framing"}


@spark_test
def test_values_of_all_types_are_unchanged_in_any_time_zone(
    spark, share_broker, arguments, tmp_path
):
    schema = (
        "id BIGINT NOT NULL, small TINYINT, amount DECIMAL(9,3), price DOUBLE, "
        "ratio FLOAT, ok BOOLEAN, data BINARY, born DATE, at TIMESTAMP, "
        "local TIMESTAMP_NTZ, name VARCHAR(3), address STRUCT<city: STRING NOT NULL>, "
        "tags ARRAY<STRING>, counts MAP<STRING, INT>"
    )
    sent = {
        "id": 1 << 62,
        "small": -128,
        "amount": 12.345,
        "price": 1e300,
        "ratio": 0.5,
        "ok": False,
        "data": "AP8=",
        "born": "9999-12-31",
        "at": "2026-07-31T12:00:00.000001",
        "local": "2026-07-31T12:00:00",
        "name": "æøå",
        "address": {"city": "Oslo"},
        "tags": ["a", None],
        "counts": {"k": 5},
    }
    share_broker.produce("orders", [json.dumps(sent)])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Oslo")
    try:
        assert main([*arguments, "--schema", schema]) == 0
        rows = str(tmp_path / "lake" / "rows")
        (row,) = (
            spark.read.parquet(rows).selectExpr("*", "string(at) AS text").collect()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)

    found = row.asDict(recursive=True)
    assert found["text"] == "2026-07-31 12:00:00.000001"
    assert found["local"] == datetime(2026, 7, 31, 12)
    assert found["born"] == date(9999, 12, 31)
    assert found["amount"] == Decimal("12.345")
    assert found["data"] == b"\0\xff"
    same = ("id", "small", "price", "ratio", "ok", "name", "address", "tags", "counts")
    assert {name: found[name] for name in same} == {name: sent[name] for name in same}


@spark_test
def test_batch_counts_its_most_frequent_reasons(spark):
    validated = spark.sql(
        "SELECT timestamp'2026-11-28' AS timestamp, 1 AS deliveryCount, "
        "cast('x' AS BINARY) AS value, CASE WHEN id < 3 THEN null "
        "WHEN id < 8 THEN repeat('y', 300 + id) ELSE concat('reason ', id) END "
        "AS reason FROM range(40)"
    )

    stats = measure_batch(
        validated, waiting=UNKNOWN, batch="0123abcd-0", number=0, run="first"
    )

    assert (stats.rows, stats.quarantined) == (3, 37)
    assert len(stats.reasons) == MAX_REASONS + 1
    assert next(iter(stats.reasons.items())) == ("y" * 200, 5)
    assert stats.reasons[OTHER_REASONS] == 37 - 5 - (MAX_REASONS - 1)


@spark_test
def test_invalid_settings_print_one_line_and_exit_with_2(spark, arguments, capsys):
    for more, message in [
        (["--schema", "id WHATEVER"], "is not a list of columns"),
        (["--partition-by", "colour"], "no such column"),
        (["--schema", "id INT, BATCH STRING"], "column BATCH, and so has the pipeline"),
        (["--schema", "_offset INT"], "column _offset, and so has the pipeline"),
        (["--schema", "id INT, Id INT"], "id and Id, which are the same"),
        (["--schema", "a STRUCT<x: INT, X: INT>"], "a has the columns x and X"),
        (["--schema", "id INT, Day DATE"], "--partition-by Day"),
        (["--schema", "id INT, a ARRAY<INT>", "--partition-by", "a"], "of type ARRAY"),
        (["--schema", "id INTERVAL DAY"], "cannot read INTERVAL"),
        (["--every", "soon"], "not an interval"),
        (["--into", "nowhere://x"], 'No FileSystem for scheme "nowhere"'),
        (["--option", "colour=red"], "colour"),
        (["--prefix", "a b"], "--prefix 'a b'"),
        (["--page", "/nowhere/run.html"], "--page /nowhere/run.html"),
    ]:
        code = main([*arguments, *more])

        assert code == 2, message
        error = capsys.readouterr().err
        assert message in error
        assert len(error.splitlines()) == 1, error


@spark_test
def test_failures_print_one_line_and_exit_with_their_code(
    spark, share_broker, arguments, tmp_path, capsys
):
    share_broker.produce("orders", ['{"id": 1}'])
    store = Store(f"{tmp_path}/lake/ledger")
    store.open("lake")
    try:
        code = main(arguments)
    finally:
        store.close()

    assert code == 1
    error = capsys.readouterr().err
    assert error.startswith("pipeline: the ledger in ")
    assert len(error.splitlines()) == 1
    (port,) = free_ports(1)
    code = main([*arguments, "--bootstrap-servers", f"127.0.0.1:{port}"])
    assert code == 3
    assert "Connection refused" in capsys.readouterr().err


@spark_test
def test_locations_are_qualified_by_hadoop_configuration(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))

    assert qualify_location(spark, "~/lake") == f"file:{tmp_path}/lake"
    assert qualify_location(spark, "/data/lake") == "file:/data/lake"
    hadoop = spark._jsc.hadoopConfiguration()
    hadoop.set("fs.defaultFS", "viewfs://cluster/")
    hadoop.set("fs.viewfs.mounttable.cluster.link./data", f"file:{tmp_path}")
    try:
        assert qualify_location(spark, "/data/lake") == "viewfs://cluster/data/lake"
        assert qualify_location(spark, "~/lake") == f"file:{tmp_path}/lake"
    finally:
        hadoop.unset("fs.defaultFS")


# As a service.

START_TIMEOUT = 200.0
"""Seconds for Spark to start and write a batch, on a busy machine."""


@contextmanager
def service(arguments, tmp_path):
    """Run the program in a process of its own, as a service."""
    command = [sys.executable, "-m", "sharecons.spark.pipeline", *arguments]
    process = subprocess.Popen(
        [*command, "--every", "1 seconds"],
        env=os.environ | environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_file(path, process):
    """Wait until a running service has created a file."""

    def exists():
        assert process.poll() is None, process.communicate()
        return path.exists()

    until_true(exists, START_TIMEOUT, what=f"{path} exists", pause=0.05)


@spark_test
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("number", "when"),
    [
        pytest.param(signal.SIGTERM, "idle", marks=pytest.mark.thorough),
        (signal.SIGINT, "in a batch"),
        pytest.param(signal.SIGTERM, "starting", marks=pytest.mark.thorough),
    ],
)
def test_signal_stops_the_service_without_loss(
    spark, share_broker, arguments, tmp_path, number, when
):
    base = tmp_path / "lake"
    share_broker.produce("orders", [json.dumps({"id": n}) for n in range(1000)])
    file = {
        "idle": base / "checkpoint" / "commits" / "0",
        "in a batch": base / "rows",
        "starting": base / "ledger",
    }[when]
    with service(arguments, tmp_path) as process:
        wait_for_file(file, process)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)

    assert process.returncode == 0, error
    assert len(error.splitlines()) < 10, error
    # The next run writes what is missing, and nothing again.
    assert main(arguments) == 0
    assert sorted(read(base / "rows")["id"].to_pylist()) == list(range(1000))
