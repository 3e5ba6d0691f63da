"""Pictures of the results, one file each."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.large import Case
from tests.bench.report.charts import (
    colour,
    draw_bars,
    draw_lines,
    draw_percentiles,
    hide_spines,
    panel_grid,
    save,
    scale,
)
from tests.bench.report.large import case_title
from tests.bench.report.summary import (
    Measurement,
    Value,
    baseline_of,
    by_client,
    bytes_above_base,
    cpu_per_million,
    distinct,
    field,
    label_of,
    ratios,
    records_per_second,
    select,
    settled_samples,
)
from tests.bench.report.tables import MIB, codec_of, is_compressed, size_of, title

__all__ = ["draw"]

Measurements = Sequence[Measurement]
Panels = Sequence[Sequence[tuple[str, Measurements]]]
"""Rows of titles with their measurements; a panel without measurements is empty."""

Draw = Callable[[Axes, Measurements], None]


def draw(measurements: Measurements, directory: Path) -> list[Path]:
    """Draw a picture for each kind of measurement and return the paths."""
    written = []
    for name, (what, picture) in PICTURES.items():
        found = select(measurements, what)
        if found and (figure := picture(found)) is not None:
            written.append(save(figure, directory / name))
    return written


def _figure(panels: Panels, text: str, draw_panel: Draw, bars: int = 1) -> Figure:
    """Draw each panel, with room for a number of bars per client."""
    every = [*chain(*panels)]
    clients = len({each["client"] for _, some in every for each in some})
    figure, axes = panel_grid(len(panels), len(panels[0]), bars * clients)
    for each, (heading, some) in zip(axes.flat, every, strict=True):
        if some:
            draw_panel(each, some)
            each.set_title(heading)
        else:
            each.set_axis_off()
    figure.suptitle(text)
    return figure


def _by_size_and_codec(found: Measurements) -> Panels:
    codecs = sorted(distinct(found, "codec"), key=is_compressed)
    return [
        [
            (
                f"{size_of(size)}, {codec_of(codec)}",
                [e for e in found if (e["size"], e["codec"]) == (size, codec)],
            )
            for size in distinct(found, "size")
        ]
        for codec in codecs
    ]


def _by_case(found: Measurements) -> Panels:
    """Return a row per batch size and compression, a column per size."""
    rows = sorted(
        distinct(found, "batch_size", "codec"),
        key=lambda row: (row[0], is_compressed(row[1]), row[1]),
    )
    cases = [
        [Case(size, codec, batch_size) for size in distinct(found, "size")]
        for batch_size, codec in rows
    ]
    return [
        [(case_title(case), select(found, "large", **case._asdict())) for case in row]
        for row in cases
    ]


def _draw_ratios(
    axes: Axes,
    some: Measurements,
    value: Value,
    baseline: str,
    note: Callable[[float], str],
    label: str = "",
) -> None:
    """Draw a figure beside the baseline's, which has a line; notes have the figure."""
    figures = by_client(some, value)
    compared = ratios(some, value, baseline)
    notes = {
        name: f"{each.median:.2f}   {note(figures[name].median)}"
        for name, each in compared.items()
    }
    draw_bars(axes, compared, label, notes)
    axes.axvline(1, color="#222222", linewidth=0.8, linestyle=":", zorder=0)


def _throughput(found: Measurements) -> Figure | None:
    if (baseline := baseline_of(found)) is None:
        return None
    panel = partial(
        _draw_ratios,
        value=records_per_second,
        baseline=baseline,
        note=lambda each: f"({each / 1000:,.0f} k/s)",
        label=f"relative to {title(baseline)}",
    )
    text = "Records per second (more is better)"
    return _figure(_by_size_and_codec(found), text, panel)


def _cpu(found: Measurements) -> Figure:
    def panel(axes: Axes, some: Measurements) -> None:
        label = "CPU seconds per million records"
        draw_bars(axes, by_client(some, cpu_per_million), label)

    text = "The client's CPU (less is better)"
    return _figure(_by_size_and_codec(found), text, panel)


def _large(
    found: Measurements, value: Value, text: str, note: Callable[[float], str]
) -> Figure | None:
    if "confluent" not in {each["client"] for each in found}:
        return None
    panel = partial(_draw_ratios, value=value, baseline="confluent", note=note)
    text = text.format("relative to confluent-kafka-python")
    return _figure(_by_case(found), text, panel)


def _memory(found: Measurements) -> Figure:
    def panel(axes: Axes, some: Measurements) -> None:
        draw_bars(axes, scale(by_client(some, bytes_above_base), 1 / MIB), "MiB")

    panels = []
    for size in distinct(found, "size"):
        some = [each for each in found if each["size"] == size]
        records = max(each["records"] for each in some)
        panels.append((f"{records:,} records of {size_of(size)}", some))
    return _figure([panels], "Peak memory above the process after its imports", panel)


def _latency(found: Measurements) -> Figure:
    def panel(axes: Axes, some: Measurements) -> None:
        half, maximum = (
            scale(by_client(some, field(name)), 1000) for name in ("p50", "p99")
        )
        draw_percentiles(axes, half, maximum, "milliseconds")

    panels = [
        (f"{rate:,} records/s", select(found, "latency", wanted_rate=rate))
        for rate in distinct(found, "wanted_rate")
    ]
    text = "Latency from producer to consumer: p50 (dot) and p99 (square)"
    return _figure([panels], text, panel, bars=2)


def _single(
    found: Measurements, value: Value, factor: float, text: str, label: str
) -> Figure:
    spreads = scale(by_client(found, value), factor)
    figure, ((axes,),) = panel_grid(1, 1, len(spreads))
    draw_bars(axes, spreads, label)
    axes.set_title(text)
    return figure


def _growth(found: Measurements, what: str, text: str) -> Figure:
    """Draw records/s, CPU and memory; a row per size of values."""
    wanted: Mapping[str, tuple[Value, float]] = {
        "thousand records/s": (records_per_second, 1e-3),
        "CPU seconds per million": (cpu_per_million, 1),
        "peak memory, MiB": (field("peak"), 1 / MIB),
    }
    sizes = sorted(
        {label_of(each, "size") for each in found}, key=lambda size: size or 0
    )
    figure, rows = pyplot.subplots(
        len(sizes),
        len(wanted),
        figsize=(4.2 * len(wanted), 3.6 * len(sizes)),
        squeeze=False,
        layout="constrained",
    )
    for panels, size in zip(rows, sizes, strict=True):
        some = [each for each in found if label_of(each, "size") == size]
        for axes, (name, (value, factor)) in zip(panels, wanted.items(), strict=True):
            draw_lines(axes, some, what, _scaled(value, factor))
            axes.set_xlabel(text)
            axes.set_ylabel(name)
        if len(sizes) > 1:
            panels[0].set_title(f"values of {size_of(size)}")
    rows[0][0].legend(frameon=False)
    return figure


def _scaled(value: Value, factor: float) -> Value:
    def scaled(measurement: Measurement) -> float | None:
        figure = value(measurement)
        return None if figure is None else figure * factor

    return scaled


def _slow(found: Measurements) -> Figure | None:
    found = [each for each in found if settled_samples(each)]
    if not found:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 3.4), layout="constrained")
    maximum = max(max(settled_samples(each)) for each in found) / MIB
    for each in found:
        samples = [size / MIB for size in settled_samples(each)]
        name = each["client"]
        axes.plot(samples, color=colour(name), label=title(name))
        text = f"{samples[0]:.1f} MiB first, {samples[-1]:.1f} MiB last"
        axes.annotate(
            text,
            (len(samples) - 1, samples[-1]),
            xytext=(0, 8),
            textcoords="offset points",
            ha="right",
        )
    axes.set_ylim(0, 1.25 * maximum)
    axes.set_xlim(left=0)
    axes.set_ylabel("resident memory, MiB")
    axes.set_xlabel(f"seconds, with {found[0]['pause'] * 1000:g} ms per record")
    axes.legend(frameon=False, loc="lower right")
    hide_spines(axes)
    return figure


PICTURES: Final[Mapping[str, tuple[str, Callable[[Measurements], Figure | None]]]] = {
    "throughput.png": ("throughput", _throughput),
    "cpu.png": ("throughput", _cpu),
    "first.png": (
        "first",
        lambda found: _single(
            found,
            field("first"),
            1,
            "First record (less is better)",
            "seconds from the creation of the consumer",
        ),
    ),
    "latency.png": ("latency", _latency),
    "redelivery.png": (
        "redelivery",
        lambda found: _single(
            found,
            field("p50"),
            1000,
            "Redelivery (less is better)",
            "milliseconds from a record's release, p50",
        ),
    ),
    "memory.png": ("throughput", _memory),
    "partitions.png": (
        "partitions",
        lambda found: _growth(found, "partitions", "partitions of the topic"),
    ),
    "consumers.png": (
        "consumers",
        lambda found: _growth(found, "consumers", "consumers in one process"),
    ),
    "slow.png": ("slow", _slow),
    "large.png": (
        "large",
        lambda found: _large(
            found,
            records_per_second,
            "Records per second {} (more is better)",
            lambda each: f"({each / 1000:,.1f} k/s)",
        ),
    ),
    "large-cpu.png": (
        "large",
        lambda found: _large(
            found,
            cpu_per_million,
            "CPU per record {} (less is better)",
            lambda each: f"({each:.2f} µs)",  # seconds per million records
        ),
    ),
}
