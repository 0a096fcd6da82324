"""The table of differences between Linux and us, as a page and a figure."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sparelane.experiments import plots
from sparelane.experiments.linux.reasons import reason
from sparelane.linux.parameters import CONTROLLERS

# Differences above this want a reason, shares.
WANTS_REASON = 0.05
TARGET = 0.03
SHOWN = ("cubic", "bbr", "westwood", "cdg")


def differences(runs: pl.DataFrame) -> pl.DataFrame:
    """One row per path, controller and size: the means over seeds of both sides, and ours less Linux's, as a share."""
    both = runs.group_by("path", "controller", "size", "side", maintain_order=True).agg(
        pl.col("completion_s").mean(),
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
        *((pl.col(name) / pl.col(f"{name}_linux") - 1).alias(f"{name}_difference") for name in names)
    )


def write(folder: Path, runs: pl.DataFrame) -> None:
    """The table, the page and the figure of these runs."""
    found = differences(runs)
    if not found.height:
        return
    found.write_csv(folder / "differences.csv", float_precision=6)
    (folder / "README.md").write_text("\n".join(_page(found)) + "\n", encoding="utf-8")
    with plots.style():
        _draw(found, folder / "series.csv").savefig(folder / "figure.png", dpi=150)


def _page(found: pl.DataFrame) -> list[str]:
    size = pl.col("completion_s_difference").abs()
    large = found.filter(size > WANTS_REASON)
    unexplained = sum(
        reason(row["controller"], row["path"]).startswith("not explained")
        for row in found.filter(size > 0.1).iter_rows(named=True)
    )
    median = found.select(size.median()).item()
    lines = [
        "# Each controller of Linux 6.12 beside ours",
        "",
        f"Flows on {found['path'].n_unique()} paths, one at a time: on the TCP of Linux in virtual time "
        "(`sparelane run --on linux`)",
        'and in the simulator (`preset = "linux"`, `delayed_ack = false`: the hosts of Linux acknowledge nearly every '
        "packet here).",
        "Differences are ours less Linux's, as a share of Linux's; where packets are lost at random, of means over "
        "seeds.",
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
    lines += ["## Differences above 5 %", "", "| controller | path | size | ours | Linux | difference | reason |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in large.iter_rows(named=True):
        times = f"{row['completion_s']:.4f} s | {row['completion_s_linux']:.4f} s"
        place = f"{row['controller']} | {row['path']} | {row['size']}"
        why = reason(row["controller"], row["path"])
        lines.append(f"| {place} | {times} | {_signed(row['completion_s_difference'])} | {why} |")
    return lines


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
