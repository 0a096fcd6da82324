"""The page and the figure of RTCP's testbed on Linux."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from sparelane.charts.draw import plain_numbers
from sparelane.experiments import plots

NAMES = {"cubic": "Cubic", "dctcp": "DCTCP", "bbr": "BBR", "rtcp": "RTCP"}
QUANTITIES = {
    "urgent 99th": "urgent, 99th completion (ms)",
    "high-volume 99th": "high-volume, 99th completion (ms)",
    "goodput": "goodput (Mb/s)",
}
SIDES = {"linux": plots.TCP, "ours": plots.RC3}
CALLED = {"linux": "Linux", "ours": "simulator"}


def means(runs: pl.DataFrame) -> pl.DataFrame:
    """Means over seeds, both sides in a row, and ours less Linux's as a share of Linux's."""
    keys = ["setting", "scheme", "quantity"]
    both = runs.group_by(*keys, "side", maintain_order=True).agg(
        pl.col("value").mean(), pl.col("count").sum(), pl.col("seed").n_unique().alias("seeds")
    )
    ours, linux = (both.filter(pl.col("side") == side).drop("side") for side in ("ours", "linux"))
    joined = linux.join(ours.drop("count", "seeds"), on=keys, suffix="_ours", maintain_order="left")
    return joined.with_columns((pl.col("value_ours") / pl.col("value") - 1).alias("difference"))


def write(folder: Path, runs: pl.DataFrame, settings: Sequence[str]) -> None:
    """The page and the figure of these runs, of all settings in their order."""
    order = {name: number for number, name in enumerate([*settings, *NAMES])}
    places = [pl.col(name).replace_strict(order, return_dtype=pl.Int64) for name in ("setting", "scheme")]
    found = means(runs.sort(places, maintain_order=True))
    left = [name for name in settings if name not in found["setting"].to_list()]
    lines = _page(found)
    if left:
        lines += ["", f"Not run yet: {'; '.join(left)}."]
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with plots.style():
        _draw(found).savefig(folder / "figure.png", dpi=150)


def _page(found: pl.DataFrame) -> list[str]:
    lines = [
        "# RTCP's testbed on Linux",
        "",
        "Figs. 4 to 7 of the RTCP paper: a client fetches flows from one server or four, over 1 Gb/s and 200 us. The",
        "same flows, with the sizes and starts that the simulator's experiments draw, on the TCP of Linux 6.12 in",
        "virtual time (`run --on linux`) and in the simulator. RTCP there is the source of the BPF program, built into",
        "the kernel; Cubic, DCTCP and BBR are the kernel's own. Linux has no PCC.",
        "",
        "Flows below 30 kB are urgent, and weigh 24,000 bytes, others 12,000; delta = 125; alpha is the paper's for",
        "each figure; the least window is two segments. Each flow has its own connection. The switch's queue holds",
        "4.5 MB, and marks for DCTCP what is behind 20 packets (on Linux what has waited for as long as 20 packets",
        "take). Hosts have no bound on the receive window, and acknowledge nearly every packet. Requests of Fig. 7",
        "take as long as the last of their flows.",
        "",
        "Values are means over seeds of each run's own percentile or mean; a run has 2 s of requests, so that a 99th",
        "percentile is close to the largest of its values. Differences are ours less Linux's, as a share of Linux's.",
        "",
        "| setting | scheme | quantity | values | seeds | Linux | simulator | difference |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found.iter_rows(named=True):
        if row["quantity"] == "unfinished":
            continue
        numbers = [_number(row["value"]), _number(row["value_ours"])]
        share = row["difference"]
        numbers.append("" if share is None or not math.isfinite(share) else f"{100 * share:+.1f} %")
        unit = "Mb/s" if row["quantity"] == "goodput" else "ms"
        cells = [row["setting"], NAMES[row["scheme"]], f"{row['quantity']} ({unit})", str(row["count"])]
        lines.append(f"| {' | '.join([*cells, str(row['seeds']), *numbers])} |")
    left = found.filter(pl.col("quantity") == "unfinished").select(pl.col("value").sum(), pl.col("value_ours").sum())
    lines += ["", f"Flows that did not finish: on Linux {left.item(0, 0):g}, in the simulator {left.item(0, 1):g}."]
    lines += [
        "",
        "Cubic hardly differs, but for one median of eleven values. RTCP doubles or halves its window with each",
        "acknowledgment, so that a single one more or less moves the largest times. DCTCP's marks are by waiting time",
        "on Linux, and by the queue here.",
        "BBR's window has room for three chunks of 64 kB on Linux, whether or not the host sends chunks: here some",
        "seven bandwidth-delay products, which wait in the queue. The simulator's has it by the preset",
        '(`like = "linux"`); with the draft\'s room of three segments, its medians of small flows were 3 to 62 % below',
        "Linux's, and its goodput 5 to 14 % above. At which phase BBR begins to probe is drawn on both sides, which",
        "moves the largest times.",
        "",
        *_orders(found),
        "",
        "![Completion times and goodput](figure.png)",
        "",
        "To repeat it: `make linux-rtcp`.",
    ]
    return lines


def _orders(found: pl.DataFrame) -> list[str]:
    """What the paper says of RTCP's place among the schemes, on both sides."""
    lines = [
        "What the paper says of RTCP, whether it holds on Linux, and whether in the simulator:",
        "",
        "| setting | statement | Linux | simulator |",
        "|---|---|---|---|",
    ]
    for setting in found["setting"].unique(maintain_order=True):
        for quantity, words, sign in (
            ("urgent 99th", "RTCP's urgent flows are the fastest", 1),
            ("high-volume 99th", "RTCP's high-volume flows are slower than Cubic's", -1),
        ):
            if sign < 0 and "Fig. 7" in setting:
                words, sign = "RTCP's high-volume requests are faster than Cubic's", 1
                others = ["cubic"]
            else:
                others = [name for name in NAMES if name != "rtcp"] if sign > 0 else ["cubic"]
            rows = found.filter(pl.col("setting") == setting, pl.col("quantity") == quantity)
            held = []
            for column in ("value", "value_ours"):
                own = rows.filter(pl.col("scheme") == "rtcp")[column].to_list()
                there = [v for v in rows.filter(pl.col("scheme").is_in(others))[column].to_list() if v is not None]
                is_known = own and own[0] is not None and there
                held.append("" if not is_known else "yes" if sign * own[0] < sign * min(there) else "no")
            lines.append(f"| {setting} | {words} | {' | '.join(held)} |")
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _draw(found: pl.DataFrame) -> Figure:
    """A column for each setting, a row for each quantity; two bars a scheme."""
    settings = found["setting"].unique(maintain_order=True).to_list()
    drawing = Figure(figsize=(2.1 * len(settings), 6.4), layout="constrained")
    panels = drawing.subplots(len(QUANTITIES), len(settings), squeeze=False)
    for column, setting in enumerate(settings):
        for at, (quantity, words) in enumerate(QUANTITIES.items()):
            axes = panels[at][column]
            rows = found.filter(pl.col("setting") == setting, pl.col("quantity") == quantity)
            names = [name for name in NAMES if name in rows["scheme"].to_list()]
            for offset, (side, value) in zip((-0.2, 0.2), (("linux", "value"), ("ours", "value_ours")), strict=True):
                heights = [rows.filter(pl.col("scheme") == name)[value][0] or 0.0 for name in names]
                look = SIDES[side]
                places = [number + offset for number in range(len(names))]
                axes.bar(
                    places, heights, 0.4, color=look.colour, edgecolor=look.ink, hatch=look.hatch, label=CALLED[side]
                )
            axes.set_xticks(range(len(names)), [NAMES[name] for name in names])
            if quantity.startswith("urgent"):
                axes.set_yscale("log")
                plain_numbers(axes.yaxis, axes.get_ylim())
            if column == 0:
                axes.set_ylabel(words)
            if at == 0:
                axes.set_title(setting.replace(", ", "\n", 1), fontsize=7)
    drawing.legend(*panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return drawing
