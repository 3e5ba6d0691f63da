"""Pictures of what was measured, readable at a glance; one file each."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.report.charts import bare, bars, colour, dumbbells, grid, lines, times
from tests.bench.report.summary import (
    Measurement,
    Spread,
    Value,
    baseline_of,
    by_client,
    cpu,
    distinct,
    field,
    over_base,
    picked,
    ratios,
    settled,
    speed,
)
from tests.bench.report.tables import MIB, codec_of, is_compressed, size_of, title

__all__ = ["draw"]

Measurements = Sequence[Measurement]
Spreads = Mapping[str, Spread]


def draw(measurements: Measurements, directory: Path) -> list[Path]:
    """Draw whatever there are measurements for, and give the files."""
    pyplot.switch_backend("Agg")  # there may be no screen
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
    found = picked(measurements, "throughput")
    if (baseline := baseline_of(found)) is None:
        return None

    def panel(axes: Axes, some: Measurements) -> None:
        speeds = by_client(some, speed)
        compared = ratios(some, speed, baseline)
        notes = {
            name: f"{each.median:.2f}   ({speeds[name].median / 1000:,.0f} k/s)"
            for name, each in compared.items()
        }
        bars(axes, compared, f"times those of {title(baseline)}", notes)
        axes.axvline(1, color="#222222", linewidth=0.8, linestyle=":", zorder=0)

    return _of_sizes_and_codecs(found, "Records a second (more is better)", panel)


def _of_sizes_and_codecs(
    found: Measurements, text: str, panel: Callable[[Axes, Measurements], None]
) -> Figure:
    sizes, codecs = distinct(found, "size"), distinct(found, "codec")
    codecs.sort(key=is_compressed)
    clients = len({each["client"] for each in found})
    figure, panels = grid(len(codecs), len(sizes), clients)
    for row, codec in zip(panels, codecs, strict=True):
        for axes, size in zip(row, sizes, strict=True):
            some = [e for e in found if (e["size"], e["codec"]) == (size, codec)]
            panel(axes, some)
            axes.set_title(f"{size_of(size)}, {codec_of(codec)}")
    figure.suptitle(text)
    return figure


def _cpu(measurements: Measurements) -> Figure | None:
    found = picked(measurements, "throughput")
    if not found:
        return None

    def panel(axes: Axes, some: Measurements) -> None:
        bars(axes, by_client(some, cpu), "CPU seconds for a million records")

    return _of_sizes_and_codecs(found, "The client's CPU (less is better)", panel)


def _first(measurements: Measurements) -> Figure | None:
    found = picked(measurements, "first")
    return _single(
        by_client(found, field("first")),
        "The first record (less is better)",
        "seconds from the making of the consumer",
    )


def _redelivery(measurements: Measurements) -> Figure | None:
    found = picked(measurements, "redelivery")
    return _single(
        times(by_client(found, field("p50")), 1000),
        "Redelivery (less is better)",
        "milliseconds from a record's release, p50",
    )


def _memory(measurements: Measurements) -> Figure | None:
    found = picked(measurements, "throughput")
    if not found:
        return None
    sizes = distinct(found, "size")
    clients = len({each["client"] for each in found})
    figure, ((*panels,),) = grid(1, len(sizes), clients)
    for axes, size in zip(panels, sizes, strict=True):
        some = [each for each in found if each["size"] == size]
        bars(axes, times(by_client(some, over_base), 1 / MIB), "MiB")
        records = max(each["records"] for each in some)
        axes.set_title(f"{records:,} records of {size_of(size)}")
    figure.suptitle("Memory at most, over the process with its imports")
    return figure


def _latency(measurements: Measurements) -> Figure | None:
    found = picked(measurements, "latency")
    if not found:
        return None
    rates = distinct(found, "wanted_rate")
    clients = len({each["client"] for each in found})
    figure, ((*panels,),) = grid(1, len(rates), 2 * clients)
    for axes, rate in zip(panels, rates, strict=True):
        some = picked(found, "latency", wanted_rate=rate)
        half = times(by_client(some, field("p50")), 1000)
        most = times(by_client(some, field("p99")), 1000)
        dumbbells(axes, half, most, "milliseconds")
        axes.set_title(f"{rate:,} records/s")
    figure.suptitle("Latency from producer to consumer: p50 (dot) and p99 (square)")
    return figure


def _partitions(measurements: Measurements) -> Figure | None:
    return _growth(measurements, "partitions", "partitions of the topic")


def _consumers(measurements: Measurements) -> Figure | None:
    return _growth(measurements, "consumers", "consumers in one process")


def _growth(measurements: Measurements, what: str, text: str) -> Figure | None:
    found = picked(measurements, what)
    if not found:
        return None
    wanted: Mapping[str, tuple[Value, float]] = {
        "thousand records/s": (speed, 1e-3),
        "CPU seconds per million": (cpu, 1),
        "peak memory, MiB": (field("peak"), 1 / MIB),
    }
    figure, panels = pyplot.subplots(
        1, len(wanted), figsize=(4.2 * len(wanted), 3.6), layout="constrained"
    )
    for axes, (name, (value, factor)) in zip(panels, wanted.items(), strict=True):
        lines(axes, found, what, _scaled(value, factor))
        axes.set_xlabel(text)
        axes.set_ylabel(name)
    panels[0].legend(frameon=False)
    return figure


def _scaled(value: Value, factor: float) -> Value:
    def scaled(measurement: Measurement) -> float | None:
        figure = value(measurement)
        return None if figure is None else figure * factor

    return scaled


def _slow(measurements: Measurements) -> Figure | None:
    found = [each for each in picked(measurements, "slow") if settled(each)]
    if not found:
        return None
    figure, axes = pyplot.subplots(figsize=(8, 3.4), layout="constrained")
    most = max(max(settled(each)) for each in found) / MIB
    for each in found:
        samples = [size / MIB for size in settled(each)]
        name = each["client"]
        axes.plot(samples, color=colour(name), label=title(name))
        text = f"{samples[0]:.1f} MiB at first, {samples[-1]:.1f} MiB at last"
        axes.annotate(
            text,
            (len(samples) - 1, samples[-1]),
            xytext=(0, 8),
            textcoords="offset points",
            ha="right",
        )
    axes.set_ylim(0, 1.25 * most)
    axes.set_xlim(left=0)
    axes.set_ylabel("resident memory, MiB")
    axes.set_xlabel(f"seconds of {found[0]['pause'] * 1000:g} ms at each record")
    axes.legend(frameon=False, loc="lower right")
    bare(axes)
    return figure


def _single(spreads: Spreads, text: str, what: str) -> Figure | None:
    if not spreads:
        return None
    figure, ((axes,),) = grid(1, 1, len(spreads))
    bars(axes, spreads, what)
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
}
