"""Pictures of the results, one file each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.report.charts import (
    colour,
    draw_bars,
    draw_lines,
    draw_percentiles,
    hide_spines,
    panel_grid,
    scale,
)
from tests.bench.report.large_pictures import draw_large_cpu, draw_large_speed
from tests.bench.report.summary import (
    Measurement,
    Spread,
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
Spreads = Mapping[str, Spread]


def draw(measurements: Measurements, directory: Path) -> list[Path]:
    """Draw a picture for each kind of measurement and return the paths."""
    pyplot.switch_backend("Agg")  # works without a screen
    pyplot.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.grid": False})
    written = []
    for name, picture in PICTURES.items():
        if (figure := picture(measurements)) is not None:
            path = directory / name
            figure.savefig(path, dpi=130, metadata={"Software": None})
            pyplot.close(figure)
            written.append(path)
    return written


def _throughput(measurements: Measurements) -> Figure | None:
    found = select(measurements, "throughput")
    if (baseline := baseline_of(found)) is None:
        return None

    def panel(axes: Axes, some: Measurements) -> None:
        speeds = by_client(some, records_per_second)
        compared = ratios(some, records_per_second, baseline)
        notes = {
            name: f"{each.median:.2f}   ({speeds[name].median / 1000:,.0f} k/s)"
            for name, each in compared.items()
        }
        draw_bars(axes, compared, f"relative to {title(baseline)}", notes)
        axes.axvline(1, color="#222222", linewidth=0.8, linestyle=":", zorder=0)

    return _of_sizes_and_codecs(found, "Records per second (more is better)", panel)


def _of_sizes_and_codecs(
    found: Measurements, text: str, panel: Callable[[Axes, Measurements], None]
) -> Figure:
    sizes, codecs = distinct(found, "size"), distinct(found, "codec")
    codecs.sort(key=is_compressed)
    clients = len({each["client"] for each in found})
    figure, panels = panel_grid(len(codecs), len(sizes), clients)
    for row, codec in zip(panels, codecs, strict=True):
        for axes, size in zip(row, sizes, strict=True):
            some = [e for e in found if (e["size"], e["codec"]) == (size, codec)]
            panel(axes, some)
            axes.set_title(f"{size_of(size)}, {codec_of(codec)}")
    figure.suptitle(text)
    return figure


def _cpu(measurements: Measurements) -> Figure | None:
    found = select(measurements, "throughput")
    if not found:
        return None

    def panel(axes: Axes, some: Measurements) -> None:
        draw_bars(
            axes, by_client(some, cpu_per_million), "CPU seconds per million records"
        )

    return _of_sizes_and_codecs(found, "The client's CPU (less is better)", panel)


def _first(measurements: Measurements) -> Figure | None:
    found = select(measurements, "first")
    return _single(
        by_client(found, field("first")),
        "First record (less is better)",
        "seconds from the creation of the consumer",
    )


def _redelivery(measurements: Measurements) -> Figure | None:
    found = select(measurements, "redelivery")
    return _single(
        scale(by_client(found, field("p50")), 1000),
        "Redelivery (less is better)",
        "milliseconds from a record's release, p50",
    )


def _memory(measurements: Measurements) -> Figure | None:
    found = select(measurements, "throughput")
    if not found:
        return None
    sizes = distinct(found, "size")
    clients = len({each["client"] for each in found})
    figure, ((*panels,),) = panel_grid(1, len(sizes), clients)
    for axes, size in zip(panels, sizes, strict=True):
        some = [each for each in found if each["size"] == size]
        draw_bars(axes, scale(by_client(some, bytes_above_base), 1 / MIB), "MiB")
        records = max(each["records"] for each in some)
        axes.set_title(f"{records:,} records of {size_of(size)}")
    figure.suptitle("Peak memory above the process after its imports")
    return figure


def _latency(measurements: Measurements) -> Figure | None:
    found = select(measurements, "latency")
    if not found:
        return None
    rates = distinct(found, "wanted_rate")
    clients = len({each["client"] for each in found})
    figure, ((*panels,),) = panel_grid(1, len(rates), 2 * clients)
    for axes, rate in zip(panels, rates, strict=True):
        some = select(found, "latency", wanted_rate=rate)
        half = scale(by_client(some, field("p50")), 1000)
        maximum = scale(by_client(some, field("p99")), 1000)
        draw_percentiles(axes, half, maximum, "milliseconds")
        axes.set_title(f"{rate:,} records/s")
    figure.suptitle("Latency from producer to consumer: p50 (dot) and p99 (square)")
    return figure


def _partitions(measurements: Measurements) -> Figure | None:
    return _growth(measurements, "partitions", "partitions of the topic")


def _consumers(measurements: Measurements) -> Figure | None:
    return _growth(measurements, "consumers", "consumers in one process")


def _growth(measurements: Measurements, what: str, text: str) -> Figure | None:
    """Draw records/s, CPU and memory; a row per size of values."""
    found = select(measurements, what)
    if not found:
        return None
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


def _slow(measurements: Measurements) -> Figure | None:
    found = [each for each in select(measurements, "slow") if settled_samples(each)]
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


def _single(spreads: Spreads, text: str, what: str) -> Figure | None:
    if not spreads:
        return None
    figure, ((axes,),) = panel_grid(1, 1, len(spreads))
    draw_bars(axes, spreads, what)
    axes.set_title(text)
    return figure


PICTURES: Final[Mapping[str, Callable[[Measurements], Figure | None]]] = {
    "throughput.png": _throughput,
    "cpu.png": _cpu,
    "first.png": _first,
    "latency.png": _latency,
    "redelivery.png": _redelivery,
    "memory.png": _memory,
    "partitions.png": _partitions,
    "consumers.png": _consumers,
    "slow.png": _slow,
    "large.png": draw_large_speed,
    "large-cpu.png": draw_large_cpu,
}
