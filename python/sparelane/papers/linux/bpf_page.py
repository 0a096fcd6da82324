"""The page and the figure of RTCP and RAPID in the kernel that runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.reports import plots

# What is kept of each program: how both sides call it, and how much one of theirs is in the unit of the page.
KEPT = {
    "rtcp": {
        "window (segments)": {"simulator": ("cwnd_bytes", 1 / 1448), "kernel": ("cwnd_bytes", 1 / 1448)},
        "late by (ms)": {"simulator": ("delay_ms", 1.0), "kernel": ("delay_ms", 1.0)},
        "counter (kB)": {"simulator": ("counter_bytes", 1e-3), "kernel": ("counter_bytes", 1e-3)},
        "congestion (kB)": {"simulator": ("congestion_kb", 1.0), "kernel": ("congestion_kb", 1.0)},
    },
    "rapid": {
        "rate (Mb/s)": {"simulator": ("rate_bps", 1e-6), "kernel": ("rate_bps", 1e-6)},
        "estimate (Mb/s)": {"simulator": ("estimate_bps", 1e-6), "kernel": ("estimate_bps", 1e-6)},
        "round trip (ms)": {"simulator": ("srtt_s", 1e3), "kernel": ("rtt_ms", 1.0)},
    },
}
# Averages are of what comes after so long, seconds, over means of so long.
SETTLED_S = 2.0
# So long RTCP's windows are shown, seconds: they go up and down several times in each.
SHOWN_S = 3.0
BIN_S = 0.02
# RAPID's most_lateness, beyond which a new p-stream begins.
MOST_LATE_US = 1000.0
LOOKS = {"simulator": plots.RC3, "kernel": plots.THIRD}
SHOWN = (
    ("rtcp", "window (segments)"),
    ("rtcp", "late by (ms)"),
    ("rapid", "rate (Mb/s)"),
    ("rapid", "round trip (ms)"),
)


def kept(program: str, side: str, series: pl.DataFrame) -> pl.DataFrame:
    """A side's quantities in common units, as each stands every 20 ms.

    The kernel tells at acknowledgments, of which few come where the window is small: what was told last holds until the
    next, on both sides.
    """
    last_s = float(series["time_s"].max() or 0.0)  # type: ignore[arg-type]
    grid = pl.DataFrame({"time_s": BIN_S * np.arange(1, int(last_s / BIN_S) + 1)})
    parts = []
    for name, sides in KEPT[program].items():
        quantity, scale = sides[side]
        own = series.filter(pl.col("quantity") == quantity, pl.col("value").is_not_null()).sort("time_s")
        held = grid.join_asof(own.select("time_s", pl.col("value") * scale), on="time_s").drop_nulls()
        said = {"program": program, "side": side, "quantity": name}
        parts.append(held.select(*(pl.lit(text).alias(label) for label, text in said.items()), "time_s", "value"))
    return pl.concat(parts)


def late_departures_us(told: pl.DataFrame) -> float:
    """How late the kernel's packets left on average, by how the gaps that it kept differ from those that were set.

    Times by which packets are late are taken for exponential and independent: the difference of two has a mean absolute
    value of their mean. A silence, where a new p-stream begins, does not count.
    """
    own = told.filter(pl.col("time_s") > SETTLED_S)
    meant = own.filter(pl.col("quantity") == "gap_us")["value"].to_numpy()[:-1]
    kept_us = own.filter(pl.col("quantity") == "kept_gap_us")["value"].to_numpy()[1:]
    apart = np.abs(kept_us[: len(meant)] - meant[: len(kept_us)])
    return float(apart[apart < MOST_LATE_US].mean())


def varied(series: pl.DataFrame) -> pl.DataFrame:
    """Means by what was varied, after the start and in the last second."""
    last_s = series["time_s"].max() - 1  # type: ignore[operator]
    parts = []
    for column, since_s in (("mean", SETTLED_S), ("in_last_second", last_s)):
        own = series.filter(pl.col("time_s") > since_s)
        parts.append(own.group_by("what", "quantity", maintain_order=True).agg(pl.col("value").mean().alias(column)))
    return parts[0].join(parts[1], on=["what", "quantity"], maintain_order="left")


def gaps_of_packets(packets: pl.DataFrame) -> pl.DataFrame:
    """Gaps between packets as the simulator's sender lets them go."""
    sent = packets.filter(pl.col("sent_s") > SETTLED_S)["sent_s"].sort().to_numpy()
    return _gaps("simulator", np.diff(sent) * 1e6)


def gaps_told(told: pl.DataFrame) -> pl.DataFrame:
    """Gaps that the kernel's sender kept."""
    own = told.filter(pl.col("quantity") == "kept_gap_us", pl.col("time_s") > SETTLED_S)
    return _gaps("kernel", own["value"].to_numpy())


def _gaps(side: str, values: np.ndarray) -> pl.DataFrame:
    """A distribution by its percentiles."""
    shares = np.arange(0, 101)
    return pl.DataFrame({"side": [side] * 101, "percentile": shares, "gap_us": np.percentile(values, shares)})


def write(folder: Path) -> None:
    """The page and the figure of the tables in a folder."""
    series, gaps = pl.read_csv(folder / "series.csv"), pl.read_csv(folder / "gaps.csv")
    accuracy, costs = pl.read_csv(folder / "accuracy.csv"), pl.read_csv(folder / "costs.csv")
    (folder / "README.md").write_text("\n".join(_page(folder, series, gaps, accuracy, costs)) + "\n", encoding="utf-8")
    with plots.style():
        _draw(series, gaps).savefig(folder / "figure.png", dpi=150)


def _page(
    folder: Path, series: pl.DataFrame, gaps: pl.DataFrame, accuracy: pl.DataFrame, costs: pl.DataFrame
) -> list[str]:
    lines = [
        "# RTCP and RAPID in the kernel that runs",
        "",
        "One connection of 10 s between two network namespaces, under each BPF program, over 10 Mb/s and 40 ms behind",
        "an interface of 12 Mb/s, which `sparelane emulate` carries in real time; and the same scenario in virtual",
        "time. The real path is late by up to some milliseconds now and then, where the machine is busy with other",
        "work; the other never is.",
        "",
        "![Windows, round trips, rates and gaps](figure.png)",
        "",
        f"Means after {SETTLED_S:g} s:",
        "",
        "| program | quantity | simulator | kernel |",
        "|---|---|---|---|",
    ]
    settled = series.filter(pl.col("time_s") > SETTLED_S)
    for program, quantities in KEPT.items():
        for name in quantities:
            own = settled.filter(pl.col("program") == program, pl.col("quantity") == name)
            values = [own.filter(pl.col("side") == side)["value"].to_numpy().mean() for side in ("simulator", "kernel")]
            lines.append(f"| {program} | {name} | {' | '.join(f'{value:.3g}' for value in values)} |")
    for share in (10, 50, 90):
        at = gaps.filter(pl.col("percentile") == share)
        values = [at.filter(pl.col("side") == side)["gap_us"][0] for side in ("simulator", "kernel")]
        lines.append(f"| rapid | gap, {share}th percentile (us) | {values[0]:.4g} | {values[1]:.4g} |")
    lines += _varied(pl.read_csv(folder / "varied.csv"))
    lines += [
        "",
        "## Gaps",
        "",
        "A rate that stays, over a cable without delay: gaps that were set, and kept, at the sender's own clock.",
        "",
        "| gap, us | packets | median kept, us | 90th percentile, us | within 5 us |",
        "|---|---|---|---|---|",
    ]
    for row in accuracy.iter_rows(named=True):
        cells = [f"{row['gap_us']}", f"{row['packets']}", f"{row['median_kept_us']:.1f}", f"{row['p90_kept_us']:.1f}"]
        lines.append(f"| {' | '.join(cells)} | {100 * row['share_within_5_us']:.0f} % |")
    lines += [
        "",
        "## Cost",
        "",
        "Time in a controller's own code for each acknowledgment that came, by samples of all processors (perf),",
        "10,000 a second, with intervals of 95 % by the number of samples (Poisson); and for programs also as the",
        "kernel counts it (`kernel.bpf_stats_enabled`), which includes its clock.",
        "",
        "| controller | acknowledgments | samples | ns an acknowledgment, sampled | as the kernel counts |",
        "|---|---|---|---|---|",
    ]
    for row in costs.iter_rows(named=True):
        cells = [row["controller"], str(row["acknowledgments"]), str(row["samples"])]
        sampled, counted = row["ns_an_acknowledgment"], row["counted_by_kernel_ns"]
        within = 0.0 if sampled is None else 1.96 * sampled / max(1, row["samples"]) ** 0.5
        cells.append("" if sampled is None else f"{sampled:.0f} ± {within:.0f}")
        cells.append("" if counted is None else f"{counted:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", "To repeat it, as root: `make linux-bpf`."]


def _varied(means: pl.DataFrame) -> list[str]:
    """What late packets do to RAPID's queue."""
    lines = [
        "",
        "## What late packets do to RAPID's queue",
        "",
        "RAPID takes a rate for free where receive gaps do not grow, and noise in the gaps hides that they do. On a",
        "machine that was busy with other work the kernel's run had a round trip of 211 ms. In virtual time, with one",
        f"thing after the other that a real run has more of (means of five seeds after {SETTLED_S:g} s; the kernel's",
        "program leaves TCP's options out, and the link has 9.92 Mb/s by its count):",
        "",
        "| what differs | rate (Mb/s) | estimate (Mb/s) | round trip (ms) | in the last second |",
        "|---|---|---|---|---|",
    ]
    for what in means["what"].unique(maintain_order=True):
        own = {row["quantity"]: row for row in means.filter(pl.col("what") == what).iter_rows(named=True)}
        cells = [f"{own[name]['mean']:.4g}" for name in ("rate (Mb/s)", "estimate (Mb/s)", "round trip (ms)")]
        lines.append(f"| {what} | {' | '.join(cells)} | {own['round trip (ms)']['in_last_second']:.3g} |")
    return [
        *lines,
        "",
        "A queue alone does not last: after the burst of another flow it drains, as the rate is below that of the",
        "link. What is measured of the kernel's run is how late its packets left, by the gaps that its sender kept,",
        "and by how much the emulated path was late (the mean of exponential times with the median that the path",
        "counted).",
    ]


def _draw(series: pl.DataFrame, gaps: pl.DataFrame) -> Figure:
    drawing = Figure(figsize=(plots.PAGE_INCHES, 5.6), layout="constrained")
    panels = drawing.subplots(3, 2).flatten()
    for axes, (program, name) in zip(panels, SHOWN, strict=False):
        for side, look in LOOKS.items():
            own = series.filter(pl.col("program") == program, pl.col("side") == side, pl.col("quantity") == name)
            axes.plot(own["time_s"], own["value"], color=look.ink, linestyle=look.line, linewidth=0.8, label=side)
        axes.set(title=program.upper(), xlabel="time (s)", ylabel=name)
        axes.set_ylim(bottom=0)
        if program == "rtcp":
            axes.set_xlim(0, SHOWN_S)
    _draw_gaps(panels[4], gaps)
    panels[5].set_axis_off()
    panels[5].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=9)
    return drawing


def _draw_gaps(axes: Axes, gaps: pl.DataFrame) -> None:
    for side, look in LOOKS.items():
        own = gaps.filter(pl.col("side") == side, pl.col("percentile").is_between(1, 99))
        axes.plot(own["gap_us"], own["percentile"], color=look.ink, linestyle=look.line, label=side)
    axes.set(title="RAPID", xlabel="gap between packets (us)", ylabel="packets (%)")
