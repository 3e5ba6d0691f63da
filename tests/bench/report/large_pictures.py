"""Pictures of the measurement `large`: a row per batch size and compression."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.large import Case
from tests.bench.report.charts import draw_bars, panel_grid
from tests.bench.report.large import CASE_LABELS
from tests.bench.report.summary import (
    Measurement,
    Value,
    by_client,
    cpu_per_million,
    distinct,
    ratios,
    records_per_second,
    select,
)
from tests.bench.report.tables import codec_of, is_compressed, size_of

__all__ = ["draw_large_cpu", "draw_large_speed"]

Measurements = Sequence[Measurement]
BASELINE = "confluent"


def draw_large_speed(measurements: Measurements) -> Figure | None:
    return _draw(
        measurements,
        records_per_second,
        "Records per second relative to confluent-kafka-python (more is better)",
        lambda each: f"({each / 1000:,.1f} k/s)",
    )


def draw_large_cpu(measurements: Measurements) -> Figure | None:
    return _draw(
        measurements,
        cpu_per_million,
        "CPU per record relative to confluent-kafka-python (less is better)",
        lambda each: f"({each:.2f} µs)",  # seconds per million records
    )


def _draw(
    measurements: Measurements, value: Value, text: str, note: Callable[[float], str]
) -> Figure | None:
    found = select(measurements, "large")
    if BASELINE not in {each["client"] for each in found}:
        return None
    cases = [Case(*each) for each in distinct(found, *CASE_LABELS)]
    sizes = sorted({case.size for case in cases})
    rows = sorted(
        {(case.batch_size, is_compressed(case.codec), case.codec) for case in cases}
    )
    clients = len({each["client"] for each in found})
    figure, panels = panel_grid(len(rows), len(sizes), clients)
    for panel_row, (batch_size, _, codec) in zip(panels, rows, strict=True):
        for axes, size in zip(panel_row, sizes, strict=True):
            case = Case(size, codec, batch_size)
            if case not in cases:
                axes.set_axis_off()
                continue
            _draw_case(axes, select(found, "large", **case._asdict()), value, note)
            batches = f"batches of {size_of(batch_size)}"
            axes.set_title(f"{size_of(size)}, {codec_of(codec)}, {batches}")
    figure.suptitle(text)
    return figure


def _draw_case(
    axes: Axes, some: Measurements, value: Value, note: Callable[[float], str]
) -> None:
    figures = by_client(some, value)
    compared = ratios(some, value, BASELINE)
    notes = {
        name: f"{each.median:.2f}   {note(figures[name].median)}"
        for name, each in compared.items()
    }
    draw_bars(axes, compared, "", notes)
    axes.axvline(1, color="#222222", linewidth=0.8, linestyle=":", zorder=0)
