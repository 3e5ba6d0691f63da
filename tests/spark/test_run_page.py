"""The page of a run: its points, figures, plots, files and command line."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

pytest.importorskip("pyarrow", reason="needs sharecons[arrow]")

import pyarrow as pa
import pyarrow.parquet as pq

from sharecons.errors import ConfigurationError
from sharecons.spark.pipeline.live_page import INTERVAL, LivePage
from sharecons.spark.pipeline.page import make_page
from sharecons.spark.pipeline.page_command import run_page_command
from sharecons.spark.pipeline.plots import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Line,
    Plot,
    axis_marks,
    draw_plot,
    format_number,
)
from sharecons.spark.pipeline.points import figures_of, points_of
from sharecons.spark.pipeline.run_files import parse_lines, read_batches
from tests.spark.batch_stats import batch_stats, run_of

START = datetime(2026, 11, 28, 10, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def at(seconds):
    return START + timedelta(seconds=seconds)


def series(count, every=10, **more):
    return [batch_stats(n, at=at(n * every), **more) for n in range(count)]


def page_of(batches, title="lake", **more):
    return make_page(batches, title=title, made_at=at(9999), **more)


# Points.


def test_batch_has_the_rate_since_the_batch_before():
    points = points_of(
        [batch_stats(0, at=at(0)), batch_stats(1, at=at(10)), batch_stats(2, at=at(30))]
    )

    assert [point.seconds for point in points] == [10, 10, 20]


def test_only_batch_of_a_run_has_the_rate_of_its_writing():
    (point,) = points_of([batch_stats(0, seconds=4.0)])

    assert point.seconds == 4.0


def test_time_between_two_runs_is_in_no_rate():
    first, last = batch_stats(0, at=at(0)), batch_stats(1, at=at(10))
    restarted = batch_stats(2, at=at(9000), run="other", seconds=3.0)

    points = points_of([first, last, restarted])

    assert [point.seconds for point in points] == [10, 10, 3.0]
    assert [point.starts_run for point in points] == [True, False, True]


def test_batches_are_sorted_by_time():
    batches = series(5)

    assert points_of(batches[::-1]) == points_of(batches)


def test_many_batches_are_240_points_with_all_records():
    batches = series(20_000)
    batches[7_000] = batch_stats(7_000, at=at(70_000), latency_p99=60, backlog=7)

    points = points_of(batches)

    assert len(points) == 240
    assert sum(point.records for point in points) == 20_060_000
    assert sum(point.batches for point in points) == 20_000
    assert max(point.latency_p99 for point in points) == 60
    assert max(point.backlog for point in points) == 7
    assert all(
        point.records / point.seconds == pytest.approx(100.3) for point in points
    )


def test_batches_of_one_moment_are_one_point():
    points = points_of([batch_stats(n, at=START) for n in range(300)])

    assert [point.batches for point in points] == [300]


def test_unknown_values_are_none():
    (point,) = points_of([batch_stats(lag=-1, backlog=-1, rows=0, quarantined=0)])

    assert (point.lag, point.backlog) == (None, None)
    assert (point.latency_p50, point.latency_p99) == (None, None)


def test_records_of_a_requeue_are_not_counted_again():
    again = batch_stats(0, batch="requeue-0", run="again", rows=3, quarantined=1)

    figures = figures_of([*series(2), again])

    assert (figures.batches, figures.runs, figures.records) == (2, 1, 2006)
    assert figures.requeued == 3
    assert len(points_of([*series(2), again])) == 2


def test_figures_are_the_sums_of_all_batches():
    figures = figures_of(
        [
            batch_stats(0, at=at(0), reasons={"no value": 1, "id: missing": 2}),
            batch_stats(1, at=at(10), reasons={"no value": 3}, lag=5, backlog=-1),
        ]
    )

    assert (figures.since, figures.until) == (at(0), at(10))
    assert (figures.rows, figures.quarantined, figures.redelivered) == (2000, 6, 4)
    assert figures.bytes == 200_000
    assert figures.busy == 20
    assert (figures.lag, figures.backlog) == (5, None)
    assert figures.reasons == [("no value", 4), ("id: missing", 2)]


def test_no_batches_have_no_figures():
    assert figures_of([]) is None
    assert points_of([]) == []


# Plots.


ROWS = Plot(title="rows", lines=(Line("rows", "a", lambda p: p.rows),), min_step=1)
BACKLOG = Plot(
    title="wait",
    lines=(
        Line("lag", "a", lambda p: p.lag),
        Line("backlog", "b", lambda p: p.backlog),
    ),
)
BARS = Plot(title="again", lines=(Line("x", "b", lambda p: p.redelivered),), bars=True)


def draw(plot, batches):
    svg = draw_plot(plot, points_of(batches))
    return ElementTree.fromstring(svg.replace("<svg", f'<svg xmlns="{SVG[1:-1]}"', 1))


def path_of(drawn, style):
    return [
        each.attrib["d"]
        for each in drawn.iter(f"{SVG}path")
        if each.attrib["class"] == style
    ]


def numbers(path):
    return [float(each) for each in re.findall(r"-?[\d.]+", path)]


@pytest.mark.parametrize(
    ("highest", "marks"),
    [
        (0, [0, 1]),
        (3, [0, 1, 2, 3]),
        (937, [0, 250, 500, 750, 1000]),
        (41_234, [0, 20_000, 40_000, 60_000]),
    ],
)
def test_axes_have_round_numbers(highest, marks):
    assert axis_marks(highest, 1) == marks


def test_axis_of_seconds_has_fractions():
    assert axis_marks(0.07) == pytest.approx([0, 0.02, 0.04, 0.06, 0.08])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0416, "0.0416"),
        (999.4, "999"),
        (999.6, "1k"),
        (1234, "1.23k"),
        (45_600_000, "45.6M"),
        (2e13, "20T"),
    ],
)
def test_numbers_have_three_digits_and_a_unit(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize("plot", [ROWS, BACKLOG, BARS])
@pytest.mark.parametrize("count", [0, 1, 2, 60, 61, 1000])
def test_everything_is_inside_of_the_plot(plot, count):
    drawn = draw(plot, series(count))

    for path in (*path_of(drawn, "line a"), *path_of(drawn, "line b")):
        found = numbers(path)
        assert all(LEFT <= x <= RIGHT for x in found[::2])
        assert all(TOP <= y <= BOTTOM for y in found[1::2])
    for path in path_of(drawn, "bars b"):
        found = numbers(path)
        assert all(LEFT <= x <= RIGHT for x in found[::3])
        assert all(TOP <= y < BOTTOM for y in found[2::3])
    for circle in drawn.iter(f"{SVG}circle"):
        assert LEFT <= float(circle.attrib["cx"]) <= RIGHT
        assert TOP <= float(circle.attrib["cy"]) <= BOTTOM
    columns = [float(each.attrib["x"]) for each in drawn.iter(f"{SVG}rect")]
    assert columns == sorted(columns)
    assert len(columns) == min(count, 240)


def test_line_has_a_gap_between_two_runs():
    first, other = series(3), series(3, run="other")
    later = [
        batch_stats(n, at=at(5000 + 10 * n), run="other") for n, _ in enumerate(other)
    ]

    drawn = draw(ROWS, [*first, *later])

    (path,) = path_of(drawn, "line a")
    assert path.count("M") == 2
    assert len(path_of(drawn, "restart")) == 1


def test_line_has_a_gap_at_unknown_values():
    batches = series(5, lag=3)
    batches[2] = batch_stats(2, at=at(20), lag=-1)

    (path,) = path_of(draw(BACKLOG, batches), "line a")

    assert path.count("M") == 2
    assert path.count("L") == 2


def test_single_point_between_gaps_is_a_dot():
    runs = [batch_stats(n, at=at(n), run=f"run{n}") for n in range(100)]

    drawn = draw(ROWS, runs)

    assert path_of(drawn, "line a") == []
    assert len(list(drawn.iter(f"{SVG}circle"))) == 100


def test_point_shows_its_time_and_values():
    drawn = draw(BACKLOG, [batch_stats(0, at=at(0), lag=1234, backlog=-1)])

    (title,) = drawn.iter(f"{SVG}title")
    assert title.text == (
        "2026-11-28 10:00:00 UTC, 1 batch: lag 1.23k, backlog unknown"
    )


def test_times_have_dates_if_the_run_is_longer_than_a_day():
    def labels(batches):
        return [each.text for each in draw(ROWS, batches).iter(f"{SVG}text")][-2:]

    assert labels(series(2, every=60)) == ["10:00:00", "10:01:00"]
    assert labels(series(2, every=90_000)) == ["11-28 10:00", "11-29 11:00"]


# The page.


def test_page_without_batches_says_so():
    page = page_of([])

    assert "No batch was written yet." in page
    assert "<svg" not in page


@pytest.mark.parametrize("count", [1, 2, 500])
def test_page_has_six_plots_and_loads_nothing(count):
    page = page_of(series(count))

    assert page.count("<svg ") == 6
    assert not re.search(r"<script|<link|<img|@import|url\(|https?://", page)
    assert "prefers-color-scheme: dark" in page
    assert 'content="width=device-width' in page


def test_texts_of_others_are_escaped():
    hostile = "</title><script>alert(1)</script>\u202e\x1b[2J"
    batch = batch_stats(0, batch=hostile, run=hostile, reasons={hostile: 3})
    other = batch_stats(1, reasons={'" onload="x': 1})

    page = page_of([batch, other], title=hostile, problems=[hostile])

    assert "<script" not in page
    assert 'onload="' not in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;") == 6


def test_reasons_are_sorted_and_the_rest_is_counted():
    reasons = {f"reason {n}": n for n in range(1, 31)}
    page = page_of([batch_stats(0, quarantined=500, reasons=reasons)])

    found = re.findall(r"<tr><td>(.+?)</td><td>(\d+)</td><td class", page)
    assert found[0] == ("reason 30", "30")
    assert len(found) == 21
    assert sum(int(count) for _, count in found) == 500
    assert found[-1][0] == "all other reasons"


def test_quarantine_of_runs_without_reasons_is_unknown():
    assert "<td>unknown reasons</td><td>3</td>" in page_of(series(1))


def test_several_runs_are_listed_latest_first():
    runs = [batch_stats(n, at=at(n * 100), run=f"run{n:02}") for n in range(25)]

    page = page_of(runs)

    assert "The latest 20 runs" in page
    listed = re.findall(r"<code>(run\d+)</code>", page)
    assert listed == [f"run{n:02}" for n in range(24, 4, -1)]
    assert "<h2>Runs" not in page_of(series(3))


# Files.

COLUMNS = [
    ("batch", pa.string()),
    ("number", pa.int64()),
    ("run", pa.string()),
    ("at", pa.timestamp("us", tz="UTC")),
    *((name, pa.int64()) for name in ("rows", "quarantined", "redelivered", "bytes")),
    *((name, pa.int64()) for name in ("lag", "backlog")),
    *((f"latency_p{number}", pa.float64()) for number in (50, 90, 99)),
    ("seconds", pa.float64()),
]
REASONS = ("reasons", pa.map_(pa.string(), pa.int64()))


def write(path, batches, *, columns=(*COLUMNS, REASONS)):
    path.parent.mkdir(parents=True, exist_ok=True)
    names = [name for name, _ in columns]
    rows = [
        {name: each.as_row()[name] for name in names}
        | ({"reasons": list(each.reasons.items())} if "reasons" in names else {})
        for each in batches
    ]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(columns)), path)


def test_all_files_of_runs_are_read(tmp_path):
    batches = series(4, reasons={"no value": 3})
    write(tmp_path / "runs" / "2026-11-28-a.parquet", batches[:2])
    write(tmp_path / "runs" / "2026-11-28-b.parquet", batches[2:])

    stored = read_batches(str(tmp_path))

    assert list(stored.batches) == batches
    assert stored.problems == []


def test_files_of_earlier_versions_have_no_reasons(tmp_path):
    batches = series(2)
    write(tmp_path / "runs" / "a.parquet", batches, columns=COLUMNS)

    assert list(read_batches(str(tmp_path)).batches) == batches


def test_batch_in_two_files_of_a_delta_table_is_read_once(tmp_path):
    batches = series(3)
    write(tmp_path / "runs" / "part-0.snappy.parquet", batches[:2])
    write(tmp_path / "runs" / "part-merged.parquet", batches)
    log = tmp_path / "runs" / "_delta_log"
    write(log / "0.checkpoint.parquet", batches)

    assert list(read_batches(str(tmp_path)).batches) == batches


def test_unfinished_file_is_left_out_and_reported(tmp_path):
    write(tmp_path / "runs" / "a.parquet", series(2))
    whole = (tmp_path / "runs" / "a.parquet").read_bytes()
    for length in (0, 3, 10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "runs" / "b.parquet").write_bytes(whole[:length])

        stored = read_batches(str(tmp_path))

        assert len(stored.batches) == 2
        (problem,) = stored.problems
        assert "b.parquet cannot be read, and is left out: " in problem


def test_file_without_a_column_is_reported(tmp_path):
    write(tmp_path / "runs" / "a.parquet", series(1), columns=COLUMNS[:-1])

    (problem,) = read_batches(str(tmp_path)).problems

    assert problem.endswith("a batch has no seconds")


def test_drafts_are_not_read(tmp_path):
    write(tmp_path / "runs" / ".2026-11-28-a.parquet", series(1))
    (tmp_path / "runs" / ".a.parquet.draft").write_bytes(b"PAR1")

    assert read_batches(str(tmp_path)) == read_batches(f"file://{tmp_path}")
    assert read_batches(str(tmp_path)).batches == []


def test_times_without_a_zone_are_utc():
    line = batch_stats(0, at=START).as_row() | {"at": START.replace(tzinfo=None)}

    (batch,) = parse_lines([line])

    assert batch.at == START


def test_missing_directory_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match="no such directory"):
        read_batches(str(tmp_path / "lakes"))


def test_directory_without_runs_has_no_batches(tmp_path):
    assert read_batches(str(tmp_path)).batches == []


def test_unknown_file_system_is_an_error():
    with pytest.raises(ConfigurationError, match="nowhere://lake: "):
        read_batches("nowhere://lake")


# The command.


def test_command_writes_the_page_into_the_directory(tmp_path, capsys):
    write(tmp_path / "runs" / "a.parquet", series(2))

    assert run_page_command([str(tmp_path)]) == 0

    assert capsys.readouterr().out == f"{tmp_path}/page.html\n"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == 6
    assert [each.name for each in tmp_path.iterdir() if each.name[0] == "."] == []


def test_command_can_select_a_run(tmp_path):
    write(tmp_path / "runs" / "a.parquet", [*series(2), batch_stats(9, run="other")])
    output = tmp_path / "other.html"

    assert run_page_command([str(tmp_path), "--run=other", f"--output={output}"]) == 0

    page = output.read_text(encoding="utf-8")
    assert "0123abcd-9" in page
    assert "0123abcd-1" not in page
    assert f"{tmp_path}, run other" in page


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{}/lakes"], 2, "no such directory"),
        (["{}", "--run", "zzz"], 2, "--run zzz"),
        (["file://{}"], 2, "add --output FILE"),
        (["{}", "--output", "{}/runs"], 1, "cannot be written"),
    ],
)
def test_command_that_fails_prints_one_line(tmp_path, capsys, arguments, code, message):
    write(tmp_path / "runs" / "a.parquet", series(2))

    assert run_page_command([each.format(tmp_path) for each in arguments]) == code

    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_command_shows_what_is_missing(tmp_path, capsys):
    write(tmp_path / "runs" / "a.parquet", series(2))
    (tmp_path / "runs" / "b.parquet").write_bytes(b"PAR1")

    assert run_page_command([str(tmp_path)]) == 0

    assert "b.parquet cannot be read" in capsys.readouterr().err
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<p class="problem">' in page


# The page of the current run.


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_page_of_the_current_run_is_written_every_interval(tmp_path):
    clock, path = Clock(), tmp_path / "run.html"
    page = LivePage(str(path), "orders", clock)
    page.update(run_of([]))
    assert not path.exists()
    page.update(run_of(series(1)))
    assert "0123abcd-0" in path.read_text()
    clock.now += INTERVAL / 2
    page.update(run_of(series(2)))
    assert "0123abcd-1" not in path.read_text()
    clock.now += INTERVAL / 2
    page.update(run_of(series(2)))
    assert "0123abcd-1" in path.read_text()
    path.unlink()
    clock.now += 2 * INTERVAL
    page.update(run_of(series(2)))
    assert not path.exists()  # there are no new batches


def test_page_that_takes_long_is_written_less_often(tmp_path, monkeypatch):
    clock, path = Clock(), tmp_path / "run.html"

    def make_slowly(batches, **_):
        clock.now += 2.0
        return f"{len(batches)} batches"

    monkeypatch.setattr("sharecons.spark.pipeline.live_page.make_page", make_slowly)
    page = LivePage(str(path), "orders", clock)
    page.update(run_of(series(1)))
    clock.now += 39
    page.update(run_of(series(2)))
    assert path.read_text() == "1 batches"
    clock.now += 1
    page.update(run_of(series(2)))
    assert path.read_text() == "2 batches"


def test_page_of_a_long_run_has_its_last_batches_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("sharecons.spark.pipeline.run_stats.KEPT", 2)
    path = tmp_path / "run.html"
    LivePage(str(path), "orders").write(run_of(series(3)))

    page = path.read_text()
    assert "These are the last 2 of 3 batches." in page
    assert "0123abcd-0" not in page
    assert "0123abcd-2" in page


def test_page_that_cannot_be_written_is_reported_once(tmp_path, capsys):
    clock, path = Clock(), tmp_path / "run.html"
    page = LivePage(str(path), "orders", clock)
    path.mkdir()
    page.write(run_of(series(1)))
    page.write(run_of(series(2)))

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_page_in_a_missing_directory_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"--page .* not writable"):
        LivePage(str(tmp_path / "nowhere" / "run.html"), "orders")


@pytest.mark.slow("starts a process")
def test_command_needs_no_spark(tmp_path):
    program = (
        "import sys; from sharecons.spark.pipeline.__main__ import main\n"
        f"code = main(['page', {str(tmp_path)!r}])\n"
        "sys.exit(code or ('pyspark' in sys.modules))"
    )

    done = subprocess.run([sys.executable, "-c", program], check=False)

    assert done.returncode == 0
    assert "No batch was written yet." in (tmp_path / "page.html").read_text()
