"""Writes the report of a single run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from sparelane import _native
from sparelane.common.folders import SavedResultsError
from sparelane.common.units import quantity
from sparelane.reports.charts import of_run as charts
from sparelane.reports.charts.panel import with_looks
from sparelane.reports.pages.document import (
    command,
    document,
    facts,
    figures,
    items,
    kept_file,
    listing,
    paragraph,
    section,
    table,
)
from sparelane.simulation import stored, summary

SCENARIO = "scenario.toml"

# The headings of the tables and the units of their numbers.
SCHEMES = {
    "scheme": ("scheme", None),
    "flows": ("flows", None),
    "finished": ("finished", None),
    "mean_s": ("mean", "s"),
    "median_s": ("median", "s"),
    "p95_s": ("p95", "s"),
    "p99_s": ("p99", "s"),
    "p999_s": ("p99.9", "s"),
    "slowdown": ("mean slowdown", ""),
    "p99_slowdown": ("p99 slowdown", ""),
}
SERVICE = {
    "scheme": ("scheme", None),
    "goodput_bps": ("goodput", "bit/s"),
    "retransmitted": ("retransmitted", "%"),
    "timeouts": ("timeouts", None),
    "rtt_s": ("round trip", "s"),
    "queueing_s": ("queueing delay", "s"),
    "jain": ("Jain's index of open flows", ""),
}
DROPS = {
    "class": ("class", None),
    "arrived": ("arrived", None),
    "dropped": ("dropped", None),
    "share": ("share", "%"),
}


def page(folder: Path) -> str:
    """The report as one HTML file.

    Raises:
        SavedResultsError: the run cannot be read.
    """
    # Tables may be in any format; `run.json` has the facts and the scenario.
    about, tables = stored.about(folder), charts.read(folder)
    panels = with_looks(charts.panels([tables]))
    try:
        # A malformed `run.json` raises one of the errors below.
        scenario = str(about["scenario"])
        content = _native.tables(scenario, str(folder))
        title = str(content.get("title") or folder.resolve().name)
        totals = about["totals"]
        pairs = [
            ("seed", str(about["seed"])),
            ("version", f"sparelane {about['version']}"),
            ("digest", str(about["digest"])),
            ("simulated", f"{totals['end_s']:g} s, {totals['flows']} flows, {totals['packet_hops']} packet-hops"),
        ]
        stopped = _stopped(about, content)
        inputs = [*about.get("files", []), *about.get("plugins", [])]
        repeat = [
            *_command(about),
            facts(pairs),
            listing(SCENARIO, scenario),
            *(kept_file(folder, one) for one in inputs),
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise SavedResultsError(f'"{folder}" does not hold a run as this version saves it: {error}') from error
    found = summary.of_tables(tables.flows, tables.links, tables.drops, tables.end_s)
    return document(
        title,
        [
            section(
                "Answer",
                paragraph(stopped, "warning"),
                _table(found.schemes, SCHEMES, "Flows and completion times"),
                _table(found.service, SERVICE, "Goodput, repair and delay"),
                items([f"note: {remark}" for remark in found.remarks]),
                items([f"warning: {text}" for text in about.get("warnings", about.get("notices", []))]),
                _links(tables),
                _table(found.drops, DROPS, "Packets by class, over all queues"),
            ),
            section("Figures", figures(panels)) if panels else "",
            section("How to repeat it", *repeat),
        ],
    )


def _stopped(about: Mapping[str, Any], scenario: Mapping[str, Any]) -> str:
    """A sentence about an interrupted run; empty if it was complete."""
    if not about.get("interrupted"):
        return ""
    return (
        f"This run was interrupted after {about['totals']['end_s']:.6g} s of {scenario['duration']} of simulated time. "
        "All numbers cover only this time."
    )


def _command(about: Mapping[str, Any]) -> list[str]:
    """The command that repeats the run from the files in the page."""
    plugins = "".join(f" --plugin {shlex.quote(one['file'])}" for one in about.get("plugins", []))
    text = "Save the scenario below as scenario.toml; it includes the overrides of this run."
    if about.get("files") or plugins:
        text += " The other files follow, with their names in the scenario. They are also in the folder of the run."
    if about.get("interrupted"):
        text += " The command does not stop where this run was interrupted, so its digest will differ."
    return [command(f"sparelane run {SCENARIO} --seed {about['seed']}{plugins}"), paragraph(text)]


def _table(frame: pl.DataFrame, columns: Mapping[str, tuple[str, str | None]], caption: str) -> str:
    """A table of the summary; empty if it has no rows."""
    if frame.is_empty():
        return ""
    rows = [[_cell(row[name], unit) for name, (_, unit) in columns.items()] for row in frame.to_dicts()]
    return table([heading for heading, _ in columns.values()], rows, left=("scheme", "class"), caption=caption)


def _cell(value: Any, unit: str | None) -> str:
    if value is None:
        return "–"
    if unit is None:
        return f"{value:,}" if isinstance(value, int) else str(value)
    return quantity(100 * value if unit == "%" else float(value), unit)


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
