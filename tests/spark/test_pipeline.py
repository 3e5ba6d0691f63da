"""The pipeline: valid rows to Parquet, the others to quarantine, figures of the run."""

import json
import shutil
from datetime import UTC, datetime
from xml.etree import ElementTree

import pyarrow.dataset
import pytest

pytest.importorskip("pyspark", reason="needs sharecons[spark]")

from sharecons.spark.pipeline import __main__ as program
from sharecons.spark.pipeline.figures import BatchFigures, table
from sharecons.spark.pipeline.picture import picture
from sharecons.spark.pipeline.settings import parse

SCHEMA = "id BIGINT NOT NULL, amount DOUBLE, country STRING"
NEEDED = ["--topic", "orders", "--group", "lake", "--schema", SCHEMA, "--into", "/x"]


def figures(batch=0, **more):
    return BatchFigures(
        **{
            "batch": batch,
            "at": datetime.now(UTC),
            "rows": 1000,
            "quarantined": 3,
            "redelivered": 2,
            "lag": 0,
            "latency_p50": 0.5,
            "latency_p90": 0.9,
            "latency_p99": 1.5,
            "seconds": 0.25,
        }
        | more
    )


# The command line.


def test_what_is_needed_is_enough():
    settings = parse(NEEDED)

    assert settings.topics == ("orders",)
    assert settings.every is None
    assert settings.partition_by == ("day",)
    assert settings.place("rows") == "/x/rows"


def test_schema_may_lie_in_a_file(tmp_path):
    (tmp_path / "orders.sql").write_text(SCHEMA)
    arguments = [*NEEDED[:4], "--schema", f"@{tmp_path}/orders.sql", "--into", "/x"]

    assert parse(arguments).schema == SCHEMA


@pytest.mark.parametrize(
    "arguments",
    [NEEDED[2:], NEEDED[:-2], [*NEEDED, "--option", "x"], ["--schema", "@/nowhere"]],
)
def test_command_line_that_makes_no_sense_ends_the_program(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(arguments)

    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err


# Figures.


def test_table_has_a_line_for_each_batch_and_one_for_all():
    lines = table([figures(0), figures(1, rows=500)]).splitlines()

    assert len(lines) == 4
    assert lines[1].split()[:2] == ["0", "1,000"]
    assert lines[-1].split() == ["all", "1,500", "6", "4"]
    assert table([]) == "nothing was there\n"


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_picture_has_a_point_for_each_batch_in_each_line(count):
    drawn = ElementTree.fromstring(
        picture([figures(n, rows=n * 10) for n in range(count)])
    )

    circles = drawn.findall(".//{http://www.w3.org/2000/svg}circle")
    assert len(circles) == 4 * count
    heights = [float(circle.attrib["cy"]) for circle in circles]
    assert all(0 <= y <= 430 for y in heights)


@pytest.mark.parametrize(
    ("rows", "marks"),
    [
        (0, ["0", "1"]),
        (3, ["0", "1", "2", "3"]),
        (937, ["0", "250", "500", "750", "1,000"]),
        (41_234, ["0", "20,000", "40,000", "60,000"]),
    ],
)
def test_axes_go_by_round_numbers_and_say_what_they_show(rows, marks):
    batches = [figures(7, rows=rows, quarantined=0), figures(8, rows=1, quarantined=0)]
    drawn = ElementTree.fromstring(picture(batches))

    texts = [text.text for text in drawn.findall(".//{http://www.w3.org/2000/svg}text")]
    assert texts[1 : 1 + len(marks)] == marks
    assert texts[1 + len(marks) :][:2] == ["7", "8"]
    assert texts[-1] == "batch"


# The whole of it.


@pytest.fixture
def arguments(share_broker, tmp_path):
    share_broker.create_topic("orders", partitions=2)
    share_broker.set_group_config("lake", {"share.auto.offset.reset": "earliest"})
    return [
        *["--bootstrap-servers", share_broker.bootstrap_servers],
        *["--topic", "orders", "--group", "lake", "--schema", SCHEMA],
        *["--into", str(tmp_path / "lake"), "--picture", str(tmp_path / "run.svg")],
    ]


def read(place):
    return pyarrow.dataset.dataset(str(place), partitioning="hive").to_table()


slow = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore"),
]


def slowly(test):
    for mark in slow:
        test = mark(test)
    return test


@slowly
def test_valid_rows_are_kept_and_the_others_quarantined_with_the_reason(
    spark, share_broker, arguments, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(program, "_stop_on_signal", lambda query: None)
    good = [
        json.dumps({"id": n, "amount": n / 2, "country": "NO" if n % 2 else "SE"})
        for n in range(200)
    ]
    bad = ["not json", '{"amount": 1.0}', '{"id": "seven"}', None]
    share_broker.produce("orders", [*good, *bad], partition=0)

    code = program.main([*arguments, "--partition-by", "country"])

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
        b"not json": "not JSON of this schema",
        b'{"amount": 1.0}': "id is missing",
        b'{"id": "seven"}': "not JSON of this schema",
        None: "no value",
    }
    (run,) = read(tmp_path / "lake" / "runs").to_pylist()
    assert (run["rows"], run["quarantined"], run["redelivered"]) == (200, 4, 0)
    assert 0 <= run["latency_p50"] <= run["latency_p99"] < 300
    assert "all       200" in capsys.readouterr().out
    ElementTree.parse(tmp_path / "run.svg")


@slowly
def test_next_run_adds_what_is_new(
    spark, share_broker, arguments, tmp_path, monkeypatch
):
    monkeypatch.setattr(program, "_stop_on_signal", lambda query: None)
    share_broker.produce("orders", ['{"id": 1}'])
    program.main(arguments)
    share_broker.produce("orders", ['{"id": 2}'])
    program.main(arguments)
    # A new account of the same group, as some errors advise.
    for place in ("checkpoint", "ledger"):
        shutil.rmtree(tmp_path / "lake" / place)
    share_broker.produce("orders", ['{"id": 3}'])
    program.main(arguments)

    rows = read(tmp_path / "lake" / "rows")
    assert sorted(rows["id"].to_pylist()) == [1, 2, 3]
    assert "day" in rows.column_names
    assert len(set(read(tmp_path / "lake" / "runs")["run"].to_pylist())) == 3


@slowly
@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--schema", "id WHATEVER"], "no list of columns"),
        (["--partition-by", "colour"], "no such column"),
    ],
)
def test_settings_that_make_no_sense_are_told_in_a_sentence(
    spark, arguments, capsys, more, words
):
    code = program.main([*arguments, *more])

    assert code == 2
    assert words in capsys.readouterr().err
