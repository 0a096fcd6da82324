"""Writes the page and the figure that compare RTCP and RAPID in the running kernel with the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.reports import plots

# The quantities that are compared, by program: their name on each side, and the factor to the unit of the page.
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
# Averages leave out the first seconds.
SETTLED_S = 2.0
# The figure shows this many seconds of RTCP, whose window rises and falls several times per second.
SHOWN_S = 3.0
# The distance of samples in both series.
BIN_S = 0.02
# RAPID's `most_lateness`: after a longer delay, a new p-stream starts.
MAX_LATE_US = 1000.0
LOOKS = {"simulator": plots.RC3, "kernel": plots.THIRD}
SHOWN = (
    ("rtcp", "window (segments)"),
    ("rtcp", "late by (ms)"),
    ("rapid", "rate (Mb/s)"),
    ("rapid", "round trip (ms)"),
)


def kept(program: str, side: str, series: pl.DataFrame) -> pl.DataFrame:
    """Returns a side's quantities in common units, each sampled every 20 ms.

    The kernel reports values at acknowledgments, which are rare if the window is small. On both sides, the last
    reported value holds until the next.
    """
    last_s = float(series["time_s"].max() or 0.0)  # type: ignore[arg-type]
    grid = pl.DataFrame({"time_s": BIN_S * np.arange(1, int(last_s / BIN_S) + 1)})
    parts = []
    for name, sides in KEPT[program].items():
        quantity, scale = sides[side]
        own = series.filter(pl.col("quantity") == quantity, pl.col("value").is_not_null()).sort("time_s")
        held = grid.join_asof(own.select("time_s", pl.col("value") * scale), on="time_s").drop_nulls()
        labels = {"program": program, "side": side, "quantity": name}
        parts.append(held.select(*(pl.lit(text).alias(label) for label, text in labels.items()), "time_s", "value"))
    return pl.concat(parts)


def late_departures_us(reported: pl.DataFrame) -> float:
    """Returns the mean lateness of the kernel's packets, from the differences between intended and kept gaps.

    Latenesses are assumed to be exponential and independent. The difference of two then has a mean absolute value equal
    to their mean. Pauses before a new p-stream are left out.
    """
    own = reported.filter(pl.col("time_s") > SETTLED_S)
    # A gap is kept by the packet after the one that reports it.
    intended_us = own.filter(pl.col("quantity") == "gap_us")["value"].to_numpy()[:-1]
    kept_us = own.filter(pl.col("quantity") == "kept_gap_us")["value"].to_numpy()[1:]
    differences_us = np.abs(kept_us[: len(intended_us)] - intended_us[: len(kept_us)])
    return float(differences_us[differences_us < MAX_LATE_US].mean())


def varied(series: pl.DataFrame) -> pl.DataFrame:
    """Returns means for each variation, over all samples after the start and over the last second."""
    last_s = series["time_s"].max() - 1  # type: ignore[operator]
    parts = []
    for column, since_s in (("mean", SETTLED_S), ("in_last_second", last_s)):
        own = series.filter(pl.col("time_s") > since_s)
        parts.append(own.group_by("what", "quantity", maintain_order=True).agg(pl.col("value").mean().alias(column)))
    return parts[0].join(parts[1], on=["what", "quantity"], maintain_order="left")


def gaps_of_packets(packets: pl.DataFrame) -> pl.DataFrame:
    """Returns the distribution of the gaps between packets of the simulator's sender."""
    sent = packets.filter(pl.col("sent_s") > SETTLED_S)["sent_s"].sort().to_numpy()
    return _gaps("simulator", np.diff(sent) * 1e6)


def gaps_in_kernel(reported: pl.DataFrame) -> pl.DataFrame:
    """Returns the distribution of the gaps that the kernel's sender kept."""
    own = reported.filter(pl.col("quantity") == "kept_gap_us", pl.col("time_s") > SETTLED_S)
    return _gaps("kernel", own["value"].to_numpy())


def _gaps(side: str, values: np.ndarray) -> pl.DataFrame:
    """Returns a distribution as its percentiles."""
    shares = np.arange(0, 101)
    return pl.DataFrame({"side": [side] * 101, "percentile": shares, "gap_us": np.percentile(values, shares)})


def write(folder: Path) -> None:
    """Writes the page and the figure from the tables in a folder."""
    series, gaps = pl.read_csv(folder / "series.csv"), pl.read_csv(folder / "gaps.csv")
    accuracy, costs = pl.read_csv(folder / "accuracy.csv"), pl.read_csv(folder / "costs.csv")
    (folder / "README.md").write_text("\n".join(_page(folder, series, gaps, accuracy, costs)) + "\n", encoding="utf-8")
    with plots.style():
        _draw(series, gaps).savefig(folder / "figure.png", dpi=150)


def _page(
    folder: Path, series: pl.DataFrame, gaps: pl.DataFrame, accuracy: pl.DataFrame, costs: pl.DataFrame
) -> list[str]:
    lines = [
        "# RTCP and RAPID in the running kernel",
        "",
        "Under each BPF program, one connection of 10 s runs between two network namespaces. The path has 10 Mb/s and",
        "40 ms behind an interface of 12 Mb/s; `sparelane emulate` provides it in real time. The same scenario runs in",
        "virtual time. On a busy machine, the real path delivers some packets up to some milliseconds late.",
        "",
        "![Windows, round trips, rates and gaps](figure.png)",
        "",
        f"Means after {SETTLED_S:g} s:",
        "",
        "| program | quantity | simulator | kernel |",
        "|---|---|---|---|",
    ]
    # One line for each quantity, with its mean on both sides, and then percentiles of the gaps.
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
        "RAPID's intended gaps at a constant rate, over a cable without delay, and the gaps that its sender kept by",
        "its own clock.",
        "",
        "| intended gap, us | packets | median kept, us | 90th percentile, us | within 5 us |",
        "|---|---|---|---|---|",
    ]
    for row in accuracy.iter_rows(named=True):
        cells = [f"{row['gap_us']}", f"{row['packets']}", f"{row['median_kept_us']:.1f}", f"{row['p90_kept_us']:.1f}"]
        lines.append(f"| {' | '.join(cells)} | {100 * row['share_within_5_us']:.0f} % |")
    lines += [
        "",
        "## Cost",
        "",
        "The time in a controller's own code per received acknowledgment, from 10,000 samples per second of each",
        "processor (perf). The 95 % intervals follow from the number of samples (Poisson). For BPF programs, the",
        "kernel also counts the time (`kernel.bpf_stats_enabled`); its count includes the cost of its clock.",
        "",
        "| controller | acknowledgments | samples | ns per acknowledgment, sampled | counted by the kernel |",
        "|---|---|---|---|---|",
    ]
    for row in costs.iter_rows(named=True):
        cells = [row["controller"], str(row["acknowledgments"]), str(row["samples"])]
        sampled, counted = row["ns_an_acknowledgment"], row["counted_by_kernel_ns"]
        # The standard deviation of a Poisson count is its square root.
        within = 0.0 if sampled is None else 1.96 * sampled / max(1, row["samples"]) ** 0.5
        cells.append("" if sampled is None else f"{sampled:.0f} ± {within:.0f}")
        cells.append("" if counted is None else f"{counted:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", "To repeat it, as root: `make linux-bpf`."]


def _varied(means: pl.DataFrame) -> list[str]:
    """Returns the section about RAPID's queue in runs with late packets."""
    lines = [
        "",
        "## RAPID's queue and late packets",
        "",
        "RAPID considers a rate available if receive gaps do not grow, and noise in the gaps hides their growth. On a",
        "machine that was busy with other work, the kernel's run had a round trip of 211 ms. The table has runs in",
        f"virtual time, each with one difference of a real path (means of five seeds after {SETTLED_S:g} s). The",
        "kernel's program does not count TCP options, so the link has 9.92 Mb/s in its rates.",
        "",
        "| difference | rate (Mb/s) | estimate (Mb/s) | round trip (ms) | in the last second |",
        "|---|---|---|---|---|",
    ]
    for what in means["what"].unique(maintain_order=True):
        own = {row["quantity"]: row for row in means.filter(pl.col("what") == what).iter_rows(named=True)}
        cells = [f"{own[name]['mean']:.4g}" for name in ("rate (Mb/s)", "estimate (Mb/s)", "round trip (ms)")]
        lines.append(f"| {what} | {' | '.join(cells)} | {own['round trip (ms)']['in_last_second']:.3g} |")
    return [
        *lines,
        "",
        "A queue by itself does not last: after the burst of another flow it drains, because the rate is below that of",
        'the link. The rows "as measured" use two numbers of the kernel\'s run: the lateness of departures, from the',
        "gaps that its sender kept, and the lateness of the emulated path. For the latter, exponential times with the",
        "path's median are assumed.",
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
