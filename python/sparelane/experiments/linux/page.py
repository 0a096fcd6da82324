"""The table of differences between Linux and us, as a page and a figure."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.linux.paths import RANDOM
from sparelane.experiments.statistics import t_quantile
from sparelane.linux.parameters import CONTROLLERS

# Differences above this want a reason, shares.
WANTS_REASON = 0.05
TARGET = 0.03
# Times that differ by less, as a share, are equal.
EQUAL = 1e-5
NOT_EXPLAINED = "not explained"
SHOWN = ("cubic", "bbr", "westwood", "cdg")


def differences(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per path, controller and size: the means over seeds of both sides, and ours less Linux's, as a share.

    The interval is half the width of that of 95 % for the difference of completion times, as a share, too; null where
    there is one run a side, or all runs take the same time, so that nothing was random.
    """
    both = runs.group_by("path", "controller", "size", "side", maintain_order=True).agg(
        pl.col("completion_s").mean(),
        pl.col("completion_s").std().alias("deviation_s"),
        pl.col("completion_s").median().alias("median_s"),
        pl.col("retransmissions").mean(),
        pl.col("mean_window_bytes").mean(),
        pl.col("mean_queue_bytes").mean(),
        pl.col("link_use").mean(),
        pl.len().alias("runs"),
    )
    keys = ["path", "controller", "size"]
    ours, linux = (both.filter(pl.col("side") == side).drop("side") for side in ("ours", "linux"))
    joined = ours.join(linux, on=keys, suffix="_linux", maintain_order="left")
    names = ("completion_s", "mean_window_bytes", "mean_queue_bytes", "link_use")
    return joined.with_columns(
        *((pl.col(name) / pl.col(f"{name}_linux") - 1).alias(f"{name}_difference") for name in names),
        pl.Series("completion_s_interval", [_interval(row) for row in joined.iter_rows(named=True)], dtype=pl.Float64),
    ).drop("deviation_s", "deviation_s_linux")


def _interval(row: dict[str, Any]) -> float | None:
    """Of the difference of two means, with Welch's degrees of freedom."""
    runs = row["runs"], row["runs_linux"]
    if min(runs) < 2:
        return None
    parts = [row[f"deviation_s{side}"] ** 2 / count for side, count in zip(("", "_linux"), runs, strict=True)]
    # What the kernel's clock rounds is no chance.
    if math.sqrt(sum(parts)) < EQUAL * row["completion_s_linux"]:
        return None
    freedom = sum(parts) ** 2 / sum(part**2 / (count - 1) for part, count in zip(parts, runs, strict=True))
    return t_quantile(max(1, int(freedom))) * math.sqrt(sum(parts)) / float(row["completion_s_linux"])


def write(folder: Path, runs: pl.DataFrame) -> None:
    """The table, the page and the figure of these runs."""
    found = differences(runs)
    if not found.height:
        return
    found.write_csv(folder / "differences.csv", float_precision=6)
    (folder / "README.md").write_text("\n".join([*_page(found), "", *_random(runs)]) + "\n", encoding="utf-8")
    with plots.style():
        _draw(found, folder / "series.csv").savefig(folder / "figure.png", dpi=150)


def _page(found: pl.DataFrame) -> list[str]:
    size = pl.col("completion_s_difference").abs()
    large = found.filter(size > WANTS_REASON)
    unexplained = sum(_why(row) == NOT_EXPLAINED for row in found.filter(size > 0.1).iter_rows(named=True))
    median = found.select(size.median()).item()
    lines = [
        "# Each controller of Linux 6.12 beside ours",
        "",
        f"Flows on {found['path'].n_unique()} paths, one at a time: on the TCP of Linux in virtual time "
        "(`sparelane run --on linux`)",
        'and in the simulator (`preset = "linux"`, `delayed_ack = false`: the hosts of Linux acknowledge nearly every '
        "packet here).",
        "Differences are ours less Linux's, as a share of Linux's; where anything is random, of means over up to "
        f"{int(found['runs_linux'].to_numpy().max())} runs a side,",
        "with the interval of 95 % of the difference (Student's t, by Welch).",
        "",
        f"Median difference of completion time, without its sign: {100 * median:.3f} % of {found.height} "
        f"(target: under {100 * TARGET:.0f} %). Above 5 %: {large.height}; above 10 % and not explained: "
        f"{unexplained}.",
        "",
        "| controller | median | largest | where | window | queue | link use |",
        "|---|---|---|---|---|---|---|",
    ]
    for controller in CONTROLLERS:
        own = found.filter(pl.col("controller") == controller)
        worst = own.sort(size, descending=True).row(0, named=True)
        cells = [f"{100 * own.select(size.median()).item():.2f} %", _signed(worst["completion_s_difference"])]
        cells.append(f"{worst['path']}, {worst['size']}")
        for name in ("mean_window_bytes", "mean_queue_bytes", "link_use"):
            values = own[f"{name}_difference"].drop_nulls()
            values = values.filter(values.is_finite())
            cells.append(f"{100 * float(values.abs().median()):.1f} %" if len(values) else "")  # type: ignore[arg-type]
        lines.append(f"| {controller} | {' | '.join(cells)} |")
    lines += ["", "Window, queue and link use: medians of the differences of means over the largest flow of each path,"]
    lines += ["where it lasts half a second.", "", "![differences and windows](figure.png)", ""]
    lines += [
        "## Differences above 5 %",
        "",
        "| controller | path | size | ours | Linux | difference | interval | reason |",
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in large.iter_rows(named=True):
        times = f"{row['completion_s']:.4f} s | {row['completion_s_linux']:.4f} s"
        place = f"{row['controller']} | {row['path']} | {row['size']}"
        within = "" if row["completion_s_interval"] is None else f"± {100 * row['completion_s_interval']:.1f} %"
        lines.append(f"| {place} | {times} | {_signed(row['completion_s_difference'])} | {within} | {_why(row)} |")
    return lines


def _why(row: dict[str, Any]) -> str:
    """Why a row differs: first of all, whether more than by chance."""
    interval = row["completion_s_interval"]
    if interval is not None and abs(row["completion_s_difference"]) <= interval:
        return "within the interval of the seeds"
    between = abs(row["median_s"] / row["median_s_linux"] - 1)
    if interval is not None and between < WANTS_REASON / 5:
        # Few runs that are far from all others: Student's interval is too narrow for such.
        return f"the medians differ by {100 * between:.2f} %: few runs meet a loss, and are far from the others"
    return NOT_EXPLAINED


def _random(runs: pl.DataFrame) -> list[str]:
    """What is random, and how both sides compare where it is not."""
    lines = ["## What is random", "", _without_losses(runs), ""]
    lines += [
        "TCP-LP in Linux reads delays from timestamps whose beginnings are drawn, in a clock of milliseconds whose",
        "speed it guesses, and CDG draws when it gives way: their flows take one of few times. Ours do the same with",
        '`like = "linux"`, as here. Times over all runs, in seconds, least, median and largest:',
        "",
        "| controller | path | size | ours | Linux |",
        "|---|---|---|---|---|",
    ]
    keys = ["controller", "path", "size"]
    own = runs.filter(pl.col("controller").is_in(RANDOM), ~pl.col("path").str.contains("loss"))
    for (controller, path, size), flows in own.group_by(keys, maintain_order=True):
        cells = []
        for side in ("ours", "linux"):
            times = flows.filter(pl.col("side") == side)["completion_s"].drop_nulls()
            cells.append(_spread(times.to_numpy()))
        lines.append(f"| {controller} | {path} | {size} | {' | '.join(cells)} |")
    return lines


def _spread(times: np.ndarray) -> str:
    if not len(times):
        return ""
    return f"{times.min():.3f}, {float(np.median(times)):.3f}, {times.max():.3f} of {len(times)}"


def _without_losses(runs: pl.DataFrame) -> str:
    """How flows that repeated nothing compare where losses are random: these take the same time each."""
    own = runs.filter(
        pl.col("path").str.contains("loss"), pl.col("retransmissions") == 0, ~pl.col("controller").is_in(RANDOM)
    )
    means = own.group_by("path", "controller", "size", "side").agg(pl.col("completion_s").mean(), pl.len())
    sides = [means.filter(pl.col("side") == side) for side in ("ours", "linux")]
    both = sides[0].join(sides[1], on=["path", "controller", "size"], suffix="_linux")
    if not both.height:
        return ""
    shares = (both["completion_s"] / both["completion_s_linux"] - 1).abs().to_numpy()
    counts = both["len"].sum(), both["len_linux"].sum()
    return (
        f"On the paths with losses the {counts[0]} flows of ours and {counts[1]} of Linux that repeated no segment "
        f"differ by {100 * shares.max():.1f} % at most, and {100 * np.median(shares):.3f} % in the median, "
        "by controller and size: what differs above is which flows lose a packet, and when."
    )


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _draw(found: pl.DataFrame, series: Path) -> Figure:
    drawing, panels = plots.figure(3, width_inches=plots.PAGE_INCHES, rows=2)
    _draw_differences(found, panels[0])
    table = pl.read_csv(series) if series.exists() else None
    for panel, controller in zip(panels[1:], (*SHOWN, "cubic"), strict=True):
        quantity = "backlog_bytes" if panel is panels[-1] else "cwnd_bytes"
        panel.set_title(f"{controller}, {'queue' if quantity == 'backlog_bytes' else 'window'}")
        panel.set_xlabel("time [s]")
        panel.set_ylabel("kB")
        if table is None:
            continue
        for side, look in (("linux", plots.TCP), ("ours", plots.RC3)):
            chosen = table.filter(
                pl.col("controller") == controller, pl.col("side") == side, pl.col("quantity") == quantity
            )
            name = "Linux" if side == "linux" else "ours"
            panel.plot(chosen["time_s"], chosen["value"] / 1000, label=name, color=look.ink, linestyle=look.line)
        panel.legend()
    return drawing


def _draw_differences(found: pl.DataFrame, panel: Axes) -> None:
    for number, controller in enumerate(CONTROLLERS):
        own = found.filter(pl.col("controller") == controller)["completion_s_difference"] * 100
        panel.plot(own, [number] * len(own), "o", markersize=2.5, color=plots.RC3.ink, alpha=0.6)
    panel.set_xscale("symlog", linthresh=1)
    panel.set_yticks(range(len(CONTROLLERS)), list(CONTROLLERS), fontsize=6)
    panel.set_xlabel("completion: ours less Linux [%]")
    panel.set_ylabel("controller")
    panel.axvspan(-5, 5, color="0.9", zorder=0)
