"""Compare queue sizes of the switches in RAPID's testbed with all of the paper's tables at once.

Usage: python benches/rapid_buffers.py [--jobs N] [--seeds N] [--seconds N] [--only QUEUE ...] [--markdown FILE]

The paper only says "fairly shallow-buffered". For each queue, RAPID, New Reno, CUBIC and Scalable run with cross
traffic of three levels of burstiness (Tables I and V) and with web users at a round trip of 5 and 30 ms (Tables VII
and VIII), and full RAPID runs with web users (Table II). The deviation is the geometric mean, over schemes, of the
ratios to the printed numbers (or their inverses, if smaller than 1). Runs are cached in
`benches/work/rapid_buffers.json`; delete it after a change of the simulator. The tables of the project's own runs are
in `rapid_buffers.md`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sparelane.papers import rapid
from sparelane.papers.engine import declared
from sparelane.papers.engine.base import Effort, Outcome
from sparelane.papers.engine.cells import Cell
from sparelane.papers.engine.rows import Key
from sparelane.papers.engine.simulations import to_outcome
from sparelane.papers.rapid import testbed, transfers
from sparelane.papers.rapid.testbed import LINK_USE, LOSS, MEDIAN, THROUGHPUT, WEB_FLOW
from sparelane.scenario import library
from sparelane.simulation.simulate import run

WORK = Path(__file__).parent / "work" / "rapid_buffers.json"

# The queues of the switches, as overrides of the scenario.
QUEUES: Mapping[str, tuple[str, ...]] = {
    **{f"{packets} packets": (f"queue.limit={packets}packets",) for packets in (170, 300, 400, 500, 700, 1000, 2000)},
    **{size: (f"queue.limit={size}",) for size in ("500KB", "1.5MB", "3MB")},
    **{
        f"{size} in cells of 2048 bytes": ("queue.kind=cells", "queue.cell=2048B", f"queue.limit={size}")
        for size in ("1.5MB", "3MB")
    },
    "9MB shared by all ports": ('switch={memory="9MB"}', "queue.limit=9MB"),
}
SCHEMES = ("RAPID", "New Reno", "CUBIC", "Scalable", "full RAPID")
# The minimum loss in percent for ratios, because the paper prints three digits.
MIN_LOSS_PERCENT = 0.001
# The files of the tables.
TABLES: Mapping[str, str] = {
    "V": "table5-burstiness.toml",
    "VII": "table7-web5ms.toml",
    "VIII": "table8-web30ms.toml",
    "II": "table2-mechanisms.toml",
}
# The capacity left by the unresponsive cross traffic, in Gb/s.
LEFT_GBPS = testbed.CAPACITY_BPS / 1e9 - 2.5


@dataclass(frozen=True, slots=True)
class Numbers:
    """The throughput of a transfer in Gb/s, its loss in percent, and the median duration of web flows in ms."""

    gbps: float
    loss: float
    median_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One printed cell of a table.

    Attributes:
        table: The number of the table in the paper.
        scheme: The scheme of the transfer.
        printed: The numbers of the paper.
        cell: The corresponding cell.
    """

    table: str
    scheme: str
    printed: Numbers
    cell: Cell

    def numbers(self, outcome: Outcome) -> Numbers:
        """Return the numbers of a run."""
        found = Numbers(transfers.gbps(outcome, self.cell), transfers.loss_percent(outcome))
        median = None if self.printed.median_ms is None else transfers.durations_ms(outcome, self.cell).quantile(0.5)
        return found if median is None else replace(found, median_ms=float(median))


def main() -> int:
    """Parse the command line, run the comparison and print it."""
    parser = argparse.ArgumentParser(description="Compare queue sizes of RAPID's testbed with all tables.")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--only", action="append", default=[], choices=list(QUEUES), metavar="QUEUE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables to this file")
    arguments = parser.parse_args()
    effort = Effort("full", seeds=arguments.seeds, stop_s=arguments.seconds)
    text = show(measure(arguments.only or list(QUEUES), effort, arguments.jobs), effort)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    return 0


def points(queue: str, effort: Effort) -> Iterator[Point]:
    """Yield all cells of the tables with one queue."""
    for table, file in TABLES.items():
        declaration = declared.read(Path(rapid.__path__[0]) / file, transfers.METRICS)
        runs = [one for one in transfers.read_runs(declaration.rest) if one.label in SCHEMES]
        # Only settings with other traffic have a queue.
        for setting in dict.fromkeys(one.setting for one in runs if one.traffic):
            for one in runs:
                if one.setting == setting and not one.variant:
                    cell = replace(one, overrides=(*one.overrides, *QUEUES[queue])).cell(effort)
                    level = f", {setting.removeprefix('beside ')}" if table == "V" else ""
                    scheme = one.label.removeprefix("full ")
                    yield Point(f"{table}{level}", scheme, _printed(declaration.printed, cell), cell)


def _printed(numbers: Mapping[Key, float], cell: Cell) -> Numbers:
    """Return the paper's numbers of a cell. Table V has the use of the remaining capacity instead of throughput."""
    use = numbers.get(cell.key(LINK_USE))
    gbps = numbers[cell.key(THROUGHPUT)] if use is None else use / 100 * LEFT_GBPS
    return Numbers(gbps, numbers[cell.key(LOSS)], numbers.get(cell.key(WEB_FLOW, MEDIAN)))


def measure(queues: Sequence[str], effort: Effort, jobs: int) -> dict[str, list[tuple[Point, Numbers]]]:
    """Return our numbers, as means over seeds, for every cell and queue."""
    known: dict[str, list[float | None]] = json.loads(WORK.read_text()) if WORK.exists() else {}

    def one(seed: int, point: Point) -> Numbers:
        simulation = point.cell.simulation(seed)
        key = json.dumps([simulation.scenario, simulation.settings, simulation.seed])
        if key not in known:
            outcome = to_outcome(run(library.find(simulation.scenario), seed=simulation.seed, set=simulation.settings))
            found = point.numbers(outcome)
            known[key] = [found.gbps, found.loss, found.median_ms]
            WORK.parent.mkdir(exist_ok=True)
            WORK.write_text(json.dumps(dict(known)))
        gbps, loss, median_ms = known[key]
        return Numbers(gbps or 0.0, loss or 0.0, median_ms)

    result = {}
    with ThreadPoolExecutor(jobs) as pool:
        for queue in queues:
            cells = list(points(queue, effort))
            found = [list(pool.map(partial(one, seed), cells)) for seed in effort.seed_numbers()]
            result[queue] = [(point, _mean([seed[place] for seed in found])) for place, point in enumerate(cells)]
            print(f"{queue} is done", file=sys.stderr, flush=True)
    return result


def _mean(numbers: Sequence[Numbers]) -> Numbers:
    medians = [one.median_ms for one in numbers if one.median_ms is not None]
    return Numbers(
        statistics.fmean(one.gbps for one in numbers),
        statistics.fmean(one.loss for one in numbers),
        statistics.fmean(medians) if medians else None,
    )


def factor(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the geometric mean of the ratios in either direction; 1 if all pairs agree."""
    return math.exp(statistics.fmean(abs(math.log(max(ours, 1e-9) / paper)) for ours, paper in pairs))


def show(found: Mapping[str, Sequence[tuple[Point, Numbers]]], effort: Effort) -> str:
    """Return the deviation of each queue, in total and per table, and all numbers."""
    tables = list(dict.fromkeys(point.table for rows in found.values() for point, _ in rows))
    lines = [
        f"Runs of {effort.stop_s:g} s, seeds 1 to {effort.seeds}. Mean ratio to the paper's numbers in either "
        "direction (1 is agreement): throughput of all schemes, of RAPID and of the others; loss; median web flow; and "
        "throughput per table.",
        "",
        f"| queue | throughput | RAPID | others | loss | web flow | {' | '.join(tables)} |",
        "| --- |" + " --- |" * (5 + len(tables)),
    ]
    for queue, rows in found.items():
        rates = {
            name: factor([(ours.gbps, point.printed.gbps) for point, ours in rows if keep(point)])
            for name, keep in CHOICES.items()
        }
        losses = [(max(ours.loss, MIN_LOSS_PERCENT), max(point.printed.loss, MIN_LOSS_PERCENT)) for point, ours in rows]
        medians = [
            (ours.median_ms, point.printed.median_ms)
            for point, ours in rows
            if ours.median_ms is not None and point.printed.median_ms is not None
        ]
        each = [
            factor([(ours.gbps, point.printed.gbps) for point, ours in rows if point.table == table])
            for table in tables
        ]
        numbers = [*rates.values(), factor(losses), factor(medians), *each]
        lines.append(f"| {queue} | {' | '.join(f'{number:.2f}' for number in numbers)} |")
    lines += [
        "",
        "Throughput in Gb/s and loss in percent: the paper's, and ours with each queue.",
        "",
        f"| table | scheme | paper | {' | '.join(found)} |",
        "| --- | --- | --- |" + " --- |" * len(found),
    ]
    for place, (point, _) in enumerate(next(iter(found.values()))):
        ours = [rows[place][1] for rows in found.values()]
        cells = [f"{one.gbps:.2f}, {one.loss:.3f}" for one in (point.printed, *ours)]
        lines.append(f"| {point.table} | {point.scheme} | {' | '.join(cells)} |")
    return "\n".join(lines)


CHOICES: Mapping[str, Callable[[Point], bool]] = {
    "all": lambda _: True,
    "RAPID": lambda point: point.scheme == "RAPID",
    "others": lambda point: point.scheme != "RAPID",
}

if __name__ == "__main__":
    sys.exit(main())
