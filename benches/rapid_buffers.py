"""Judge what the switches of RAPID's testbed may hold over all of its tables at once.

Usage: python benches/rapid_buffers.py [--jobs N] [--seeds N] [--seconds N] [--only QUEUE ...] [--markdown FILE]

The paper says "fairly shallow-buffered", and no more. For each queue: RAPID, New Reno, CUBIC and Scalable beside
cross traffic of three levels of burstiness (Tables I and V), beside web users with a round trip of 5 and of 30 ms
(Tables VII and VIII), and full RAPID beside web users (Table II). Numbers are judged by their ratio to the printed
ones: the mean, over schemes, of the absolute logarithm, as a factor. Runs are kept in `benches/work/rapid_buffers.json`
by what they depend on; delete it when the simulator has changed. The table of the project's own runs is
`rapid_buffers.md`.
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
from pathlib import Path

from sparelane.papers import rapid
from sparelane.papers.engine import declared
from sparelane.papers.engine.base import Effort, Outcome, Simulation
from sparelane.papers.engine.runner import distil
from sparelane.papers.rapid import table2_mechanisms, testbed, transfers, web
from sparelane.papers.rapid.printed import TABLE_V
from sparelane.papers.rapid.table5_burstiness import LEVELS, WARM_UP_SHARE, Case
from sparelane.scenario import library
from sparelane.simulation.simulate import run

WORK = Path(__file__).parent / "work" / "rapid_buffers.json"

# What a switch holds behind each port, as settings of the scenario.
QUEUES: Mapping[str, tuple[str, ...]] = {
    **{f"{packets} packets": (f"queue.limit={packets}packets",) for packets in (170, 300, 400, 500, 700, 1000, 2000)},
    **{size: (f"queue.limit={size}",) for size in ("500KB", "1.5MB", "3MB")},
    **{
        f"{size} in cells of 2048 bytes": ("queue.kind=cells", "queue.cell=2048B", f"queue.limit={size}")
        for size in ("1.5MB", "3MB")
    },
    "9MB shared by all ports": ('switch={memory="9MB"}', "queue.limit=9MB"),
}
SCHEMES = ("rapid", "newreno", "cubic", "scalable")
# Losses below this, percent, count as this: the paper prints three digits.
LEAST_LOSS = 0.001
# The tables VII and VIII, by the files of their experiments, and what rows of them call the round trip.
WEB_TABLES = {
    "VII": ("table7-web5ms.toml", "round trip 5 ms", 5.0),
    "VIII": ("table8-web30ms.toml", "round trip 30 ms", 30.0),
}
# What the cross traffic without an answer leaves of the path, Gb/s.
LEFT_GBPS = testbed.CAPACITY_BPS / 1e9 - 2.5


@dataclass(frozen=True, slots=True)
class Numbers:
    """What one transfer had: its throughput in Gb/s, its loss in percent, the median web flow beside it in ms."""

    gbps: float
    loss: float
    median_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """One printed cell of a table.

    Attributes:
        table: which, as the paper numbers it.
        scheme: of the transfer.
        printed: the paper's numbers.
        simulation: the run that has ours.
        span: when it ends and from when on it counts, seconds.
        beside: the web users' side, if any.
    """

    table: str
    scheme: str
    printed: Numbers
    simulation: Simulation
    span: tuple[float, float]
    beside: web.Run | None = None

    def numbers(self, outcome: Outcome, effort: Effort) -> Numbers:
        """Ours."""
        stop_s, from_s = self.span
        median = None if self.beside is None else self.beside.durations(outcome, effort).quantile(0.5)
        found = Numbers(transfers.gbps(outcome, stop_s - from_s), transfers.loss_percent(outcome))
        return found if median is None else replace(found, median_ms=float(median))


def main() -> int:
    """Take the command line, run, show."""
    parser = argparse.ArgumentParser(description="Judge the queues of RAPID's testbed over all tables.")
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


def points(queue: str, seed: int, effort: Effort) -> Iterator[Point]:
    """Every cell, under one queue."""
    settings = QUEUES[queue]
    for place, level in enumerate(LEVELS):
        for scheme in SCHEMES:
            use, loss = TABLE_V[scheme][2 * place : 2 * place + 2]
            printed = Numbers(use / 100 * LEFT_GBPS, loss)
            span = testbed.span(scheme, effort, WARM_UP_SHARE)
            case = Case(scheme, level, settings=settings)
            yield Point(f"V, {level}", scheme, printed, case.simulation(seed, effort), span)
    for table, (file, setting, round_trip_ms) in WEB_TABLES.items():
        numbers = declared.read(Path(rapid.__path__[0]) / file, web.METRICS).printed
        for scheme in SCHEMES:
            gentle = web.GENTLE if scheme == "rapid" else ()
            one = web.Run(
                scheme, (*web.round_trip(round_trip_ms), *gentle, *settings), setting, transfers.SCHEMES[scheme]
            )
            keys = (one.key(transfers.THROUGHPUT), one.key(transfers.LOSS), one.key(web.WEB_FLOW, web.MEDIAN))
            printed = Numbers(*(numbers[key] for key in keys))
            yield Point(table, scheme, printed, one.simulation(seed, effort), one.span(effort), one)
    full = table2_mechanisms.VARIANTS[table2_mechanisms.FULL]
    one = web.Run("rapid", (*full.settings, *settings), "beside web users", table2_mechanisms.FULL)
    printed = Numbers(full.web.gbps or 0.0, full.web.loss_percent or 0.0, full.web.median_ms)
    yield Point("II", "rapid", printed, one.simulation(seed, effort), one.span(effort), one)


def measure(queues: Sequence[str], effort: Effort, jobs: int) -> dict[str, list[tuple[Point, Numbers]]]:
    """Ours beside the paper's for every queue, the means over seeds."""
    known: dict[str, list[float | None]] = json.loads(WORK.read_text()) if WORK.exists() else {}

    def one(point: Point) -> Numbers:
        key = json.dumps([point.simulation.scenario, point.simulation.settings, point.simulation.seed])
        if key not in known:
            simulation = point.simulation
            outcome = distil(run(library.find(simulation.scenario), seed=simulation.seed, set=simulation.settings))
            found = point.numbers(outcome, effort)
            known[key] = [found.gbps, found.loss, found.median_ms]
            WORK.parent.mkdir(exist_ok=True)
            WORK.write_text(json.dumps(dict(known)))
        gbps, loss, median_ms = known[key]
        return Numbers(gbps or 0.0, loss or 0.0, median_ms)

    result = {}
    with ThreadPoolExecutor(jobs) as pool:
        for queue in queues:
            by_seed = [list(points(queue, seed, effort)) for seed in effort.seed_numbers()]
            found = [list(pool.map(one, seed)) for seed in by_seed]
            result[queue] = [(point, _mean([seed[place] for seed in found])) for place, point in enumerate(by_seed[0])]
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
    """By what factor ours and the paper's differ, either way: the geometric mean; 1 if they agree."""
    return math.exp(statistics.fmean(abs(math.log(max(ours, 1e-9) / paper)) for ours, paper in pairs))


def show(found: Mapping[str, Sequence[tuple[Point, Numbers]]], effort: Effort) -> str:
    """How far each queue is from the tables, all in all and table by table; and every number."""
    tables = list(dict.fromkeys(point.table for rows in found.values() for point, _ in rows))
    lines = [
        f"Runs of {effort.stop_s:g} s, seeds 1 to {effort.seeds}. By what factor ours and the paper's differ, either "
        "way (1 is agreement): throughputs of all schemes, of RAPID and of the others; losses; median web flows; and "
        "the throughputs table by table.",
        "",
        f"| queue | throughput | RAPID | others | loss | web flow | {' | '.join(tables)} |",
        "| --- |" + " --- |" * (5 + len(tables)),
    ]
    for queue, rows in found.items():
        rates = {
            name: factor([(ours.gbps, point.printed.gbps) for point, ours in rows if keep(point)])
            for name, keep in CHOICES.items()
        }
        losses = [(max(ours.loss, LEAST_LOSS), max(point.printed.loss, LEAST_LOSS)) for point, ours in rows]
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
        "Throughput in Gb/s and loss in percent, ours with each queue; the paper's first.",
        "",
        f"| table | scheme | paper | {' | '.join(found)} |",
        "| --- | --- | --- |" + " --- |" * len(found),
    ]
    for place, (point, _) in enumerate(next(iter(found.values()))):
        ours = [rows[place][1] for rows in found.values()]
        cells = [f"{one.gbps:.2f}, {one.loss:.3f}" for one in (point.printed, *ours)]
        lines.append(f"| {point.table} | {transfers.SCHEMES[point.scheme]} | {' | '.join(cells)} |")
    return "\n".join(lines)


CHOICES: Mapping[str, Callable[[Point], bool]] = {
    "all": lambda _: True,
    "RAPID": lambda point: point.scheme == "rapid",
    "others": lambda point: point.scheme != "rapid",
}

if __name__ == "__main__":
    sys.exit(main())
