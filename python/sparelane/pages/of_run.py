"""The report of a single run."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl

from sparelane.charts import of_run as charts
from sparelane.charts.panel import with_looks
from sparelane.folders import SavedResultsError
from sparelane.pages.document import command, document, facts, figures, listing, paragraph, section, table
from sparelane.units import quantity


def page(folder: Path) -> str:
    """The report as one HTML file.

    Raises:
        SavedResultsError: the run cannot be read.
    """
    about, tables = charts.about(folder), charts.read(folder)
    panels = with_looks(charts.panels([tables]))
    try:
        scenario = str(about["scenario"])
        title = str(tomllib.loads(scenario).get("title") or folder.resolve().name)
        totals = about["totals"]
        pairs = [
            ("seed", str(about["seed"])),
            ("version", f"sparelane {about['version']}"),
            ("digest", str(about["digest"])),
            ("simulated", f"{totals['end_s']:g} s, {totals['flows']} flows, {totals['packet_hops']} packet-hops"),
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise SavedResultsError(f'"{folder}" does not hold a run as this version saves it: {error}') from error
    unfinished = totals["flows"] - totals["finished_flows"]
    note = f"Times are those of flows that finished; {unfinished} of {totals['flows']} did not." if unfinished else ""
    return document(
        title,
        [
            section("Answer", _schemes(tables.flows, tables.end_s), paragraph(note, "note"), _links(tables)),
            section("Figures", figures(panels)) if panels else "",
            section(
                "How to repeat it",
                command(f"sparelane run scenario.toml --seed {about['seed']}"),
                paragraph("with the scenario below in scenario.toml: it holds the overrides of this run."),
                facts(pairs),
                listing("scenario.toml", scenario),
            ),
        ],
    )


def _schemes(flows: pl.DataFrame, end_s: float) -> str:
    """A line for each scheme."""
    completion = pl.col("completion_s")
    grouped = (
        flows.with_columns(pl.col("scheme").cast(pl.String))
        .group_by("scheme", maintain_order=True)
        .agg(
            flows=pl.len(),
            finished=completion.count(),
            mean=completion.mean(),
            median=completion.median(),
            p99=completion.quantile(0.99, "linear"),
            slowdown=(completion / pl.col("ideal_s")).mean(),
            goodput=8 * pl.col("delivered_bytes").sum() / end_s if end_s else pl.lit(None),
            retransmissions=pl.col("retransmissions").sum(),
            timeouts=pl.col("timeouts").sum(),
        )
    )
    headings = (
        "scheme",
        "flows",
        "finished",
        "mean",
        "median",
        "99th percentile",
        "mean slowdown",
        "goodput",
        "retransmissions",
        "timeouts",
    )
    units = {"mean": "s", "median": "s", "p99": "s", "slowdown": "", "goodput": "bit/s"}
    rows = [
        [
            "–" if value is None else quantity(float(value), units[name]) if name in units else str(value)
            for name, value in row.items()
        ]
        for row in grouped.to_dicts()
    ]
    return table(headings, rows, left=("scheme",), caption="Flows and completion times")


def _links(run: charts.Tables) -> str:
    """The busiest directions of cables."""
    if not run.end_s or run.links.is_empty():
        return ""
    use = 800 * pl.col("sent_bytes") / (pl.col("rate_bps") * run.end_s)
    busiest = run.links.with_columns(use=use).sort("use", descending=True, maintain_order=True).head(5)
    rows = [
        (
            f"{one['from']} → {one['to']}",
            quantity(one["rate_bps"], "bit/s"),
            quantity(one["use"], "%"),
            quantity(one["peak_backlog_bytes"], "B"),
            str(one["dropped_packets"]),
        )
        for one in busiest.to_dicts()
    ]
    headings = ("link", "rate", "use", "largest backlog", "dropped packets")
    return table(headings, rows, left=("link",), caption="Busiest links")
